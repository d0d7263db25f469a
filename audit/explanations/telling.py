"""One screen on one change: what differs, where in the step it begins, which constants, which law, which package."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from audit.asked.releases import EDITED, EDITS
from audit.comparisons import run_pairs
from audit.errors import UsageError
from audit.explanations.explaining import MOST_CONSTANTS
from audit.laws import law_lines
from audit.storage.store import Store

_PYTHON = "Python"
"""What stands for it among distributions, whose names have no capitals. Nobody searches over Pythons."""

MOST_NAMED = 4
"""Distributions that a line of the summary names, of those that may have brought a change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """All that is known of why two releases differ on an environment."""

    environment: str
    older: str
    newer: str
    verdict: str
    reason: str
    stage: str
    fields: str
    states: int
    ratio: float | None
    before: tuple[str, ...]
    """Stages before it in which nothing differs."""
    interface: str
    """What became of the entries of an observation, where there are more or fewer of them."""
    constants: tuple[str, ...]
    more_constants: int
    laws: str
    packages: tuple[str, ...]
    """What brings it, or, where nobody searched, what differs."""
    searched: bool
    change_log: str
    reproducer: str
    left_open: str
    """What could not be looked into."""
    as_of: str
    """When the index was asked, where it was not now and could answer otherwise."""

    def lines(self) -> list[str]:
        """For a person."""
        told = [f"{self.environment}: {self.older} → {self.newer}: {self.verdict}", f"  {self.reason}"]
        if self.stage:
            ratio = f", ratio up to {self.ratio:.1e}" if self.ratio is not None else ""
            states = f"{self.states} state{'s' if self.states != 1 else ''}"
            told.append(f"first differs in  {self.stage}: {self.fields} ({states}{ratio})")
        if self.before:
            told.append(f"the same before   {shortened(self.before)}")
        if self.interface:
            told.append(f"interface change  {self.interface}")
        label = "constants differ  " if self.constants else "constants         "
        for each in self.constants:
            told.append(f"{label}{each}")
            label = " " * len(label)
        if self.more_constants:
            told.append(f"{label}and {self.more_constants} more: query the view constant_differences")
        if not self.constants:
            told.append(f"{label}none differs")
        if self.laws:
            told.append(f"laws              {self.laws}")
        brought = "brought by        " if self.searched else "one or more of    "
        told.append(f"{brought}{', '.join(self.packages) or 'nothing that is installed differs'}")
        if self.change_log:
            told.append(f"its change log    {self.change_log}")
        if self.reproducer:
            told.append(f"to show it        {self.reproducer}")
        if self.left_open:
            told.append(f"not looked into   {self.left_open}")
        if self.as_of:
            told.append(f"as installed at   {self.as_of}: --fresh asks the index again")
        return told

    def as_json(self) -> str:
        """For a machine."""
        return json.dumps(asdict(self), indent=1, default=str) + "\n"


def shortened(before: Sequence[str]) -> str:
    """Each stage once, and, where it comes again in evaluations and substeps, how far they go.

    >>> shortened(["kinematics", "solution", "kinematics in substep 2"])
    'kinematics, solution: all of them up to kinematics in substep 2'
    """
    names = ", ".join(dict.fromkeys(stage.partition(" in ")[0] for stage in before))
    return f"{names}: all of them up to {before[-1]}" if before and " in " in before[-1] else names


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPair:
    """A changed pair of a run, or of releases that were looked at now."""

    run_id: str
    """Empty where no run has it."""
    older_behaviour: str
    newer_behaviour: str
    verdict: str
    reason: str
    beyond: tuple[int, ...]
    states_forced: int
    ratio: float


def changed_neighbours(store: Store, run_id: str) -> list[tuple[str, str, str]]:
    """Environment, older and newer release of changed neighbours whose states can be imposed.

    Of neighbours with the same two behaviours, the oldest: one explanation holds for all of them.
    """
    found = run_pairs.neighbours(run_id).query(
        store,
        "SELECT environment, older, newer FROM pair WHERE verdict = 'changed' AND evidence = 'forced'"
        " QUALIFY row_number() OVER ("
        "   PARTITION BY environment, older_behaviour, newer_behaviour ORDER BY older_position, newer_position) = 1"
        " ORDER BY environment, older_position, newer_position",
    )
    return [(environment, older, newer) for environment, older, newer in found.rows]


_HAS_CELL = "SELECT run_id FROM internal.run_cells WHERE environment = ? AND release = ? AND ? IN (cell_key, '')"


def stored_pair(
    store: Store, environment: str, older: str, newer: str, *, run_id: str = "", cells: Sequence[str] = ("", "")
) -> StoredPair | None:
    """The pair as a run has it, or as the latest has that asked what these keys of cells say; nothing if none has."""
    found = store.query(
        "SELECT run_id, older_behaviour, newer_behaviour, verdict, reason, beyond, states_forced, first_step_ratio"
        " FROM pairs_history WHERE environment = ? AND older = ? AND newer = ? AND ? IN (run_id, '')"
        f" AND run_id IN ({_HAS_CELL}) AND run_id IN ({_HAS_CELL}) ORDER BY finished DESC LIMIT 1",
        [environment, older, newer, run_id, environment, older, cells[0], environment, newer, cells[1]],
    ).rows
    if not found:
        return None
    *texts, beyond, states, ratio = found[0]
    return StoredPair(
        run_id=texts[0],
        older_behaviour=texts[1] or "",
        newer_behaviour=texts[2] or "",
        verdict=texts[3] or "",
        reason=texts[4] or "",
        beyond=tuple(beyond or ()),
        states_forced=states or 0,
        ratio=ratio or 0.0,
    )


def tell(
    store: Store,
    names: tuple[str, str, str],
    pair: StoredPair,
    *,
    packages: Sequence[str],
    searched: bool,
    change_log: str,
    reproducer: str,
    as_of: datetime.datetime | None = None,
) -> Told:
    """Put together what the store has of a pair.

    Raises:
        UsageError: where it has not been explained.
    """
    behaviours = [pair.older_behaviour, pair.newer_behaviour]
    rows = store.query(
        "SELECT stage, fields, before, states, ratio, interface, reason FROM internal.explanations"
        " WHERE older_behaviour = ? AND newer_behaviour = ?",
        behaviours,
    ).rows
    if not rows:
        raise UsageError(f"{names[0]}: {names[1]} → {names[2]} has not been explained")
    stage, fields, before, states, ratio, interface, left_open = rows[0]
    constants = store.query(
        "SELECT kind, field, entry, older_value, newer_value FROM internal.constant_differences"
        " WHERE older_behaviour = ? AND newer_behaviour = ? AND kind = 'changed' ORDER BY place",
        behaviours,
    ).rows
    return Told(
        environment=names[0],
        older=names[1],
        newer=names[2],
        verdict=pair.verdict,
        reason=pair.reason,
        stage=stage,
        fields=fields,
        states=states,
        ratio=ratio,
        before=tuple(before),
        interface=interface,
        constants=tuple(constant_told(*row) for row in constants[:MOST_CONSTANTS]),
        more_constants=max(0, len(constants) - MOST_CONSTANTS),
        laws=law_lines.line(store, pair.run_id, names) if pair.run_id else "",
        packages=tuple(packages),
        searched=searched,
        change_log=change_log,
        reproducer=reproducer,
        left_open=left_open,
        as_of=f"{as_of:%Y-%m-%d %H:%M} UTC" if as_of is not None else "",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortLine:
    """An explained pair in one line."""

    told: str
    open: bool
    """Whether several things differ, and a search, which nobody has made, would tell which one brings the change."""


def short_lines(store: Store, run_id: str) -> dict[tuple[str, str, str], ShortLine]:
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


def constant_told(kind: str, field: str, entry: str, older: str, newer: str) -> str:
    """A constant that differs, on one line."""
    name = f"{field}[{entry}]" if entry else field
    return f"{name}: {older} → {newer}" if kind == "changed" else f"{name} {kind}"
