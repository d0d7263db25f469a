"""One line on each explained change of a run, for its summary."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from audit.asked.releases import EDITED, EDITS
from audit.comparisons import run_pairs
from audit.storage.store import Store

_PYTHON = "Python"
"""What stands for it among distributions, whose names have no capitals. Nobody searches over Pythons."""

MOST_NAMED = 4
"""Distributions that a line of the summary names, of those that may have brought a change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortLine:
    """An explained pair in one line."""

    told: str
    open: bool
    """Whether several things differ, and a search, which nobody has made, would tell which one brings the change."""


def of_run(store: Store, run_id: str) -> dict[tuple[str, str, str], ShortLine]:
    """Of every explained pair of a run that is told of, one line for the summary."""
    rows = (
        run_pairs.told(store, run_id)
        .query(
            store,
            """
        SELECT pair.environment, pair.older, pair.newer, each.stage, each.fields, each.interface, each.constants,
            (SELECT min_by(field || CASE WHEN entry = '' THEN '' ELSE '[' || entry || ']' END || ': ' || older_value
                    || ' → ' || newer_value, place)
             FROM internal.constant_differences AS one
             WHERE one.older_behaviour = each.older_behaviour AND one.newer_behaviour = each.newer_behaviour
                AND kind = 'changed')
        FROM pair
        JOIN internal.explanations AS each USING (older_behaviour, newer_behaviour)
        WHERE pair.verdict = 'changed'
        """,
        )
        .rows
    )
    brought = {tuple(row[:3]): tuple(row[3]) for row in _blamed(store, run_id)}
    moved = _moved(store, run_id)
    told = {}
    for *names, stage, fields, interface, constants, first in rows:
        pair = names[0], names[1], names[2]
        blamed, differing = brought.get(pair), moved(*pair[1:])
        parts = _short(stage, fields, interface, constants, first), _brought(blamed, differing)
        searchable = len(differing) > 1 and not any(each.startswith(f"{_PYTHON} ") for each in differing)
        told[pair] = ShortLine(told="; ".join(filter(None, parts)), open=not blamed and searchable)
    return told


def _blamed(store: Store, run_id: str) -> tuple[tuple[Any, ...], ...]:
    """Environment, older and newer release, and what a search found to bring the change."""
    found = run_pairs.told(store, run_id).query(
        store,
        "SELECT environment, older, newer, each.blamed FROM pair"
        " JOIN internal.run_blames AS each USING (run_id, environment, older, newer)",
    )
    return found.rows


def _moved(store: Store, run_id: str) -> Callable[[str, str], list[str]]:
    """Return what tells all that differs between two releases of a run: distributions, edits, Python."""
    found: dict[str, dict[str, str]] = {}
    for release, requires, python in store.query(
        "SELECT release, requires, python FROM internal.run_releases WHERE run_id = ?", [run_id]
    ).rows:
        edits = requires.partition(EDITED)[2]
        found[release] = {_PYTHON: python} | ({EDITS: edits} if edits else {})
    for release, package, version in store.query(
        "SELECT release, package, version FROM internal.run_releases JOIN internal.lock_packages USING (lock_digest)"
        " WHERE run_id = ?",
        [run_id],
    ).rows:
        found[release][package] = version

    def between(older: str, newer: str) -> list[str]:
        one, other = found.get(older, {}), found.get(newer, {})
        return [
            f"{name} {one.get(name, 'absent')} → {other.get(name, 'absent')}"
            for name in sorted({*one, *other})
            if one.get(name) != other.get(name)
        ]

    return between


def _brought(blamed: Sequence[str] | None, moved: Sequence[str]) -> str:
    """What brings a change, where that is known; otherwise what may."""
    if blamed or len(moved) == 1:
        return f"brought by {', '.join(blamed or moved)}"
    if not moved:
        return ""
    few = ", ".join(each.split()[0].rstrip(":") for each in moved[:MOST_NAMED])
    more = f" and {len(moved) - MOST_NAMED} more" if len(moved) > MOST_NAMED else ""
    return f"brought by one or more of {few}{more}"


def _short(stage: str, fields: str, interface: str, constants: int, first: str | None) -> str:
    parts = [interface] if interface else []
    if stage:
        parts.append(f"first differs in {stage}: {fields}")
    if constants and first:
        more = f" and {constants - 1} more" if constants > 1 else ""
        parts.append(f"constants differ: {first}{more}")
    return "; ".join(parts)
