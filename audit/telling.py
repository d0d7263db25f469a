"""One screen on one change: what differs, where in the step it begins, which constants, which law, which package."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from audit import law_lines
from audit.errors import UsageError
from audit.explaining import MOST_CONSTANTS
from audit.store import Store


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

    def lines(self) -> list[str]:
        """For a person."""
        told = [f"{self.environment}: {self.older} → {self.newer}: {self.verdict}", f"  {self.reason}"]
        if self.stage:
            ratio = f", ratio up to {self.ratio:.1e}" if self.ratio is not None else ""
            told.append(f"first differs in  {self.stage}: {self.fields} ({self.states} states{ratio})")
        if self.before:
            told.append(f"the same before   {_shortened(self.before)}")
        if self.interface:
            told.append(f"interface change  {self.interface}")
        label = "constants         "
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
        return told

    def as_json(self) -> str:
        """For a machine."""
        return json.dumps(asdict(self), indent=1, default=str)


def _shortened(before: Sequence[str]) -> str:
    """The stages of one substep, and how many whole substeps went before."""
    first = [stage for stage in before if " in substep " not in stage]
    later = {stage.rpartition(" ")[2] for stage in before if " in substep " in stage}
    return ", ".join(first) + (f", in {len(later) + 1} substeps" if later else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPair:
    """A changed pair of the latest run of some matrix."""

    run_id: str
    matrix: str
    older_behaviour: str
    newer_behaviour: str
    verdict: str
    reason: str
    beyond: tuple[int, ...]
    states_forced: int
    ratio: float


def changed_neighbours(store: Store, run_id: str) -> list[tuple[str, str, str]]:
    """Environment, older and newer release of every changed pair of neighbours whose states can be imposed."""
    found = store.query(
        "SELECT environment, older, newer FROM pairs_history WHERE run_id = ? AND verdict = 'changed' AND adjacent"
        " AND evidence = 'forced' ORDER BY environment, older_position, newer_position",
        [run_id],
    )
    return [(environment, older, newer) for environment, older, newer in found.rows]


def stored_pair(store: Store, environment: str, older: str, newer: str, run_id: str = "") -> StoredPair | None:
    """The pair as an audit has it, or as the latest has; nothing where none has."""
    found = store.query(
        "SELECT run_id, matrix, older_behaviour, newer_behaviour, verdict, reason, beyond, states_forced,"
        " first_step_ratio FROM pairs_history WHERE environment = ? AND older = ? AND newer = ?"
        " AND (run_id = ? OR ? = '') ORDER BY finished DESC LIMIT 1",
        [environment, older, newer, run_id, run_id],
    ).rows
    if not found:
        return None
    *texts, beyond, states, ratio = found[0]
    return StoredPair(
        run_id=texts[0],
        matrix=texts[1],
        older_behaviour=texts[2] or "",
        newer_behaviour=texts[3] or "",
        verdict=texts[4] or "",
        reason=texts[5] or "",
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
        constants=tuple(_constant(*row) for row in constants[:MOST_CONSTANTS]),
        more_constants=max(0, len(constants) - MOST_CONSTANTS),
        laws=law_lines.lines(store, pair.run_id).get(names, "") if pair.run_id else "",
        packages=tuple(packages),
        searched=searched,
        change_log=change_log,
        reproducer=reproducer,
        left_open=left_open,
    )


def short_lines(store: Store, run_id: str) -> dict[tuple[str, str, str], str]:
    """Of every explained pair of a run, one line for the summary."""
    rows = store.query(
        """
        SELECT pair.environment, pair.older, pair.newer, each.stage, each.fields, each.interface, each.constants,
            (SELECT min_by(field || CASE WHEN entry = '' THEN '' ELSE '[' || entry || ']' END || ': ' || older_value
                    || ' → ' || newer_value, place)
             FROM internal.constant_differences AS one
             WHERE one.older_behaviour = each.older_behaviour AND one.newer_behaviour = each.newer_behaviour
                AND kind = 'changed')
        FROM pairs_history AS pair
        JOIN internal.explanations AS each USING (older_behaviour, newer_behaviour)
        WHERE pair.run_id = ? AND pair.verdict = 'changed'
        """,
        [run_id],
    ).rows
    return {(environment, older, newer): _short(*rest) for environment, older, newer, *rest in rows}


def _short(stage: str, fields: str, interface: str, constants: int, first: str | None) -> str:
    parts = [interface] if interface else []
    if stage:
        parts.append(f"first differs in {stage}: {fields}")
    if constants and first:
        parts.append(first + (f" and {constants - 1} more" if constants > 1 else ""))
    return "; ".join(parts)


def _constant(kind: str, field: str, entry: str, older: str, newer: str) -> str:
    name = f"{field}[{entry}]" if entry else field
    return f"{name}: {older} → {newer}" if kind == "changed" else f"{name} {kind}"
