"""Summaries as Markdown: for an issue, a chat, the page of a CI job."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from audit.markup import escaped
from audit.reports.summaries.value import AuditSummary
from audit.storage.records import NightChange, Standing

LISTED = 100
"""Rows of a table before the rest is only counted: services cut long texts where they like."""


def render(summaries: Sequence[AuditSummary]) -> str:
    """One document for all of them."""
    return "\n\n".join(_one(each) for each in summaries) + "\n"


def _one(summary: AuditSummary) -> str:
    parts = [f"## {escaped(summary.title)}", f"**{escaped(summary.headline)}** (exit code {summary.exit_code})"]
    parts += _listing("New releases", summary.news)
    parts += _changes("New changes", summary.of(Standing.NEW))
    parts += _changes("Accepted changes", summary.of(Standing.WAIVED))
    rows = [(each.subject, each.status, each.reason) for each in summary.not_audited]
    parts += _table("Could not be audited", ("what", "status", "reason"), rows)
    parts += _listing("Notes", summary.notes)
    if summary.night and (known := summary.of(Standing.KNOWN)):
        parts.append(f"Known already: {len(known)}.")
    return "\n\n".join(parts)


def _changes(title: str, changes: Sequence[NightChange]) -> list[str]:
    accepted = any(each.waiver for each in changes)
    columns = ("environment", "older", "newer", "verdict", "reason", *(("accepted",) if accepted else ()))
    rows = [
        (
            each.environment,
            each.older,
            each.newer,
            each.verdict,
            each.reason,
            *((each.waiver or "",) if accepted else ()),
        )
        for each in changes
    ]
    return _table(title, columns, rows)


def _listing(title: str, items: Iterable[str]) -> list[str]:
    listed = [f"- {escaped(item)}" for item in items]
    return [f"### {title}", "\n".join(listed)] if listed else []


def _table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    if not rows:
        return []
    lines = [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    lines += [f"| {' | '.join(escaped(value) for value in row)} |" for row in rows[:LISTED]]
    more = [f"and {len(rows) - LISTED} more"] if len(rows) > LISTED else []
    return [f"### {title}", "\n".join(lines), *more]
