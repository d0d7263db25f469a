"""What the store keeps of pairs of behaviours: judgements with their evidence, certificates, planted faults."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from analysis.growth import UNEXPLAINED
from analysis.verdicts import Evidence, Judgement, Verdict
from audit.storage.database import Database
from audit.storage.records import CertificateRecord, SensitivityRecord


class StoredComparisons:
    """Judgements on pairs of behaviours."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def compared(self, reads: str) -> set[tuple[str, str]]:
        """The pairs of behaviours that have been judged in that way."""
        found = self._database.rows("SELECT first, second FROM internal.comparisons WHERE reads = ?", [reads])
        return {(first, second) for first, second in found}

    def judgement(self, first: str, second: str, reads: str) -> Judgement | None:
        """The judgement on two behaviours that was made in that way; nothing where there is none."""
        columns = ", ".join(_JUDGEMENT_COLUMNS[3:])
        for row in self._database.rows(
            f"SELECT {columns} FROM internal.comparisons WHERE first = ? AND second = ? AND reads = ?",
            [first, second, reads],
        ):
            verdict, reason, first_step, first_step_ulps, horizon, paper, ratio, forced, states, changed, beyond = row
            return Judgement(
                verdict=Verdict(verdict),
                paper_verdict=Verdict(paper),
                reason=reason,
                first_step=first_step,
                first_step_ulps=first_step_ulps,
                first_step_ratio=ratio,
                horizon=horizon,
                states_forced=forced,
                states_beyond=states,
                outputs_changed=changed,
                beyond=tuple(beyond or ()),
            )
        return None

    def put_comparison(
        self, first: str, second: str, reads: str, judgement: Judgement, evidence: Sequence[Evidence]
    ) -> None:
        """Keep a judgement and what it was read from, in place of an earlier one."""
        self.put_comparisons(reads, [((first, second), judgement, evidence)])

    def put_comparisons(
        self, reads: str, found: Sequence[tuple[tuple[str, str], Judgement, Sequence[Evidence]]]
    ) -> None:
        """Keep judgements, all of them in one transaction."""
        firsts, seconds = ([pair[place] for pair, _, _ in found] for place in (0, 1))
        with self._database.transaction():
            for table in ("comparisons", "evidence"):
                self._database.execute(
                    f"DELETE FROM internal.{table} WHERE reads = ? AND (first, second) IN"
                    " (SELECT (unnest(?::VARCHAR[]), unnest(?::VARCHAR[])))",
                    [reads, firsts, seconds],
                )
            rows = [(*pair, reads, *_judgement_row(judgement)) for pair, judgement, _ in found]
            self._database.insert("comparisons", _JUDGEMENT_COLUMNS, rows)
            read_from = [(*pair, reads, *_evidence_row(each)) for pair, _, evidence in found for each in evidence]
            self._database.insert("evidence", _EVIDENCE_COLUMNS, read_from)

    def verdicts(self, reads: str) -> dict[tuple[str, str], str]:
        """The verdicts on all pairs of behaviours that have been judged in that way."""
        found = self._database.rows("SELECT first, second, verdict FROM internal.comparisons WHERE reads = ?", [reads])
        return {(first, second): verdict for first, second, verdict in found}

    def unexplained(self, reads: str) -> set[tuple[str, str]]:
        """The amplified pairs of behaviours whose growth no twin explains."""
        found = self._database.rows(
            "SELECT first, second FROM internal.certificates WHERE reads = ? AND certificate = ?", [reads, UNEXPLAINED]
        )
        return {(first, second) for first, second in found}

    def certified(self, reads: str) -> set[tuple[str, str]]:
        """The pairs of behaviours whose growth has been held against twins."""
        found = self._database.rows("SELECT first, second FROM internal.certificates WHERE reads = ?", [reads])
        return {(first, second) for first, second in found}

    def put_certificate(self, record: CertificateRecord) -> None:
        """Keep a certificate with the curves it was read from."""
        with self._database.transaction():
            self._database.replace("certificates", [getattr(record, name) for name in record.__dataclass_fields__])

    def put_sensitivity(self, records: Sequence[SensitivityRecord]) -> None:
        """Keep what planted faults showed, in place of what was known of the same before."""
        self._database.replace_records("sensitivity", records)


_JUDGEMENT_COLUMNS = (
    "first", "second", "reads", "verdict", "reason", "first_step_separation", "first_step_ulps", "horizon_separation",
    "paper_verdict", "first_step_ratio", "states_forced", "states_beyond", "outputs_changed", "beyond",
)  # fmt: skip

_EVIDENCE_COLUMNS = (
    "first", "second", "reads", "output", "same_bits", "first_step_separation", "first_step_ulps", "horizon_separation",
    "horizon_ulps", "interface", "first_step_ratio", "states_beyond",
)  # fmt: skip


def _judgement_row(judgement: Judgement) -> tuple[Any, ...]:
    return (
        str(judgement.verdict), judgement.reason, judgement.first_step, judgement.first_step_ulps, judgement.horizon,
        str(judgement.paper_verdict), judgement.first_step_ratio, judgement.states_forced, judgement.states_beyond,
        judgement.outputs_changed, list(judgement.beyond),
    )  # fmt: skip


def _evidence_row(each: Evidence) -> tuple[Any, ...]:
    apart = each.horizon
    return (
        each.output,
        each.same_bits,
        each.first_step,
        each.first_step_ulps if not each.same_bits else 0.0,
        apart.horizon if apart is not None else 0.0,
        apart.horizon_ulps if apart is not None else 0.0,
        each.interface,
        each.ratio,
        int(each.reading.beyond.sum()) if each.reading is not None else 0,
    )
