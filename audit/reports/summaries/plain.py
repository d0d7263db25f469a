"""A summary as lines of text: for a terminal, a log, and the view ``nights``."""

from __future__ import annotations

from collections.abc import Iterable

from audit.failures import readable
from audit.reports.summaries.value import AuditSummary, counted
from audit.storage.records import NightChange, Standing

LISTED = 20
"""Lines of a kind before the rest is only counted."""


def lines(summary: AuditSummary, notes: int = LISTED) -> list[str]:
    """Everything, what is urgent first; of notes the first few."""
    told = [f"{summary.title}: {summary.headline}"]
    told += _section("new releases", summary.news)
    told += _section("new changes", map(change, summary.of(Standing.NEW)))
    told += _section("accepted changes", (f"{change(each)}: {each.waiver}" for each in summary.of(Standing.WAIVED)))
    told += _section(
        "could not be audited", (f"{each.subject}: {each.status}: {each.reason}" for each in summary.not_audited)
    )
    told += _section("notes", map(note, summary.notes), notes)
    if summary.night and (known := summary.of(Standing.KNOWN)):
        told.append(f"{counted(len(known), 'change')} known already: in the view night_changes")
    return [readable(line) for line in told]


def text(summary: AuditSummary) -> str:
    """All lines as one text, with all notes: the next night looks up in it what was told."""
    return "\n".join(lines(summary, len(summary.notes)))


def change(each: NightChange) -> str:
    """A change in a line."""
    return f"{each.environment}: {each.older} → {each.newer}: {each.verdict}: {each.reason}"


def note(text: str) -> str:
    """A note in a line."""
    return readable(" ".join(text.split()))


def _section(title: str, items: Iterable[str], most: int = LISTED) -> list[str]:
    listed = list(items)
    shown = [f"  {' '.join(item.split())}" for item in listed[:most]]
    more = [f"  and {len(listed) - most} more"] if len(listed) > most else []
    return [f"{title}:", *shown, *more] if listed else []
