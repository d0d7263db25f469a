"""What the store keeps of processes that failed at a question: a package that always hangs is not asked for ever.

The question may be a probe, a bank, a dump or an examination. What a release raises is remembered at once, as its
answer. What its process died of may be the machine's hiccup, and is asked again by the next runs, a few times.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from audit.failures import BREAKAGE, MOST_RUNS, Failure, Status
from audit.storage.database import Database

COUNTED = BREAKAGE - {Status.RAISED}
"""Statuses that are the package's doing, as far as can be known. What is the machine's fault is never counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """What is to be asked, and what its failure is called. Questions that are the same have one key."""

    key: str
    subject: str
    stage: str


class StoredAttempts:
    """Failures at questions, by the key under which their answers would be kept."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def given_up(self, asked: Iterable[Attempt], timeout: float) -> dict[Attempt, Failure]:
        """Those that failed often enough, with no less time than they would be given now."""
        by_key: dict[str, list[Attempt]] = {}
        for each in asked:
            by_key.setdefault(each.key, []).append(each)
        rows = self._database.rows(
            "SELECT cell_key, runs, status, reason, exit_code, signal, stderr_tail FROM internal.attempts"
            " WHERE cell_key IN (SELECT unnest(?::VARCHAR[])) AND runs >= ? AND (status <> 'timeout' OR timeout >= ?)",
            [list(by_key), MOST_RUNS, timeout],
        )
        return {each: _given_up(each, *counted) for key, *counted in rows for each in by_key[key]}

    def count(self, failed: Mapping[str, Failure], succeeded: Collection[str], timeout: float) -> None:
        """Count one more failure of each, and forget those of what has an answer now."""
        counted = {key: each for key, each in failed.items() if each.status in COUNTED}
        told = [*counted, *succeeded]
        known = dict(
            self._database.rows(
                "SELECT cell_key, runs FROM internal.attempts WHERE cell_key IN (SELECT unnest(?::VARCHAR[]))", [told]
            )
        )
        if not counted and not known:
            return
        with self._database.transaction():
            self._database.execute(
                "DELETE FROM internal.attempts WHERE cell_key IN (SELECT unnest(?::VARCHAR[]))", [list(succeeded)]
            )
            for key, each in counted.items():
                row = (
                    key, known.get(key, 0) + 1, timeout, each.status, each.reason, each.exit_code, each.signal,
                    each.stderr_tail,
                )  # fmt: skip
                self._database.replace("attempts", row)


def _given_up(
    asked: Attempt, runs: int, status: str, reason: str, exit_code: int | None, number: int | None, tail: str
) -> Failure:
    return Failure(
        subject=asked.subject,
        stage=asked.stage,
        status=Status(status),
        reason=f"{reason}; so it did in {runs} runs, and is not tried again (--again tries it)",
        exit_code=exit_code,
        signal=number,
        stderr_tail=tail,
    )
