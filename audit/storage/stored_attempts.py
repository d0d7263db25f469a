"""What the store keeps of cells whose process failed: a package that always hangs is not tried for ever.

What a release raises is remembered at once, as its dump. What its process died of may be the machine's hiccup, and is
tried again by the next runs, a few times.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from audit.failures import BREAKAGE, Failure, Status
from audit.storage.database import Database

MOST_RUNS = 3
"""Runs in which a cell may fail, each with two processes, before later ones take it as it is. Machines have bad days;
six processes on three of them did not all have one."""

COUNTED = BREAKAGE - {Status.RAISED}
"""Statuses that are the package's doing, as far as can be known. What is the machine's fault is never counted."""


class StoredAttempts:
    """Failures of cells, by key."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def given_up(self, keys: Iterable[str], timeout: float) -> dict[str, Failure]:
        """Those that failed often enough, with no less time than they would be given now."""
        found = self._database.rows(
            "SELECT cell_key, runs, status, reason, exit_code, signal, stderr_tail FROM internal.attempts"
            " WHERE cell_key IN (SELECT unnest(?::VARCHAR[])) AND runs >= ? AND (status <> 'timeout' OR timeout >= ?)",
            [list(keys), MOST_RUNS, timeout],
        )
        return {
            key: Failure(
                subject="",
                stage="dump",
                status=Status(status),
                reason=f"{reason}; so it did in {runs} runs, and is not tried again (--again tries it)",
                exit_code=exit_code,
                signal=number,
                stderr_tail=tail,
            )
            for key, runs, status, reason, exit_code, number, tail in found
        }

    def count(self, failed: Mapping[str, Failure], succeeded: Collection[str], timeout: float) -> None:
        """Count one more failure of each, and forget those of cells that have an answer now."""
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
