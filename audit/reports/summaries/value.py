"""The value that every form is written from."""

from __future__ import annotations

from dataclasses import dataclass

from audit.errors import EXIT_COMPLETE
from audit.storage.records import NightChange, Standing


@dataclass(frozen=True, slots=True, kw_only=True)
class NotAudited:
    """A release or a cell of which nothing could be seen."""

    subject: str
    status: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSummary:
    """What is new, what is accepted, what could not be audited: of one matrix."""

    matrix: str
    exit_code: int
    night: str = ""
    """Id of the night; empty where it was a run."""
    first: bool = False
    """Whether it is the first night, which only records."""
    run_id: str | None = None
    empty: bool = False
    """Whether nothing at all could be audited, so that nothing can be said of changes."""
    news: tuple[str, ...] = ()
    releases: int = 0
    dumped: int = 0
    shared: int = 0
    reused: int = 0
    changes: tuple[NightChange, ...] = ()
    not_audited: tuple[NotAudited, ...] = ()
    notes: tuple[str, ...] = ()
    repeated: tuple[str, ...] = ()
    """Those of the notes that the last night told as well: nobody is woken for them again."""
    trouble: str = ""
    """Why it could not be completed."""
    seconds: float = 0.0

    def of(self, standing: Standing) -> tuple[NightChange, ...]:
        """The changes of one standing."""
        return tuple(each for each in self.changes if each.standing == standing)

    @property
    def is_quiet(self) -> bool:
        """Whether nobody has to be told."""
        noted = set(self.notes) - set(self.repeated)
        told = self.news or noted or self.trouble or self.of(Standing.NEW) or self.not_audited
        return self.exit_code == EXIT_COMPLETE and not told

    @property
    def title(self) -> str:
        """Which audit it is."""
        return f"{self.matrix}, night of {self.night}" if self.night else self.matrix

    @property
    def headline(self) -> str:
        """One sentence, or two."""
        if self.trouble and (self.empty or not self.run_id):
            return self.trouble
        return self._found + (f". {self.trouble}" if self.trouble else "")

    @property
    def _found(self) -> str:
        if self.first:
            recorded = "is recorded as it is" if self.releases == 1 else "are recorded as they are"
            return f"The first night: {counted(self.releases, 'release')} {recorded}, without alarm"
        if self.night and not self.run_id:
            return "Nothing new"
        new, waived, known = (len(self.of(standing)) for standing in (Standing.NEW, Standing.WAIVED, Standing.KNOWN))
        parts = [counted(new, "new change") if new else "No change is new" if self.changes else "Nothing changed"]
        if known and not self.night:
            parts.append(f"{counted(known, 'change')} known from earlier runs")
        if waived:
            parts.append(f"{counted(waived, 'change')} accepted")
        if self.not_audited:
            parts.append(f"{len(self.not_audited)} could not be audited")
        return ", ".join(parts)


def counted(number: int, what: str) -> str:
    """``1 change``, ``2 changes``."""
    return f"{number} {what}{'' if number == 1 else 's'}"
