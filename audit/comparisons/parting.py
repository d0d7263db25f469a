"""A third look: force single steps from the very states at which trajectories part and no twin explains it.

A bank holds hundreds of states, a trajectory passes through thousands. Where two releases separate faster than a
release and its twins, something may have changed that acts too rarely for the bank. The state shortly before the jump
is known, and so are the actions: both are handed to the two releases, and the yardstick decides. Releases that show one
behaviour have passed through that state with the same bits, so that one of them speaks for all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from analysis import growth
from analysis.verdicts import Evidence, Judgement, Verdict
from audit.comparisons import comparing
from audit.comparisons.certifying import Explained
from audit.planning.drawing import DrawnEnvironment
from audit.planning.plan import Cell, Recording
from audit.stimuli import stimulus
from audit.stimuli.stimulus import Batch
from audit.storage.records import RunCell
from audit.storage.store import Store

STATES = 8
"""At most, of one pair."""

RUN_UP = 3
"""Steps before the jump from which it is approached.

A forced step begins with a cold solver. A change that acts only through its warm start (in Walker2d one in mujoco 3.11
does) shows after a step or two; nudged copies take the same steps, so that the yardstick has their growth in it.
"""

NUDGES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class PartedPair:
    """A pair of behaviours to be looked at again, and the recordings that decide; none where there is no such state."""

    explained: Explained
    recordings: tuple[Recording, ...]


def wanted(
    unexplained: Sequence[Explained],
    rows: Sequence[RunCell],
    cells: Mapping[str, Cell],
    drawn: Mapping[str, DrawnEnvironment],
    store: Store,
) -> list[PartedPair]:
    """Each pair with what the two are given: the states before its largest jumps."""
    shows: dict[tuple[str, str], Cell] = {}
    for row in rows:
        if row.behaviour is not None:
            shows.setdefault((row.environment, row.behaviour), cells[row.identifier])
    found = []
    for each in unexplained:
        batch = _states(each, drawn[each.environment], store)
        recordings: tuple[Recording, ...] = ()
        if batch is not None:
            nudged = stimulus.nudged(batch, NUDGES, drawn[each.environment].seed)
            given = stimulus.assemble({"forced": batch, "nudged": nudged}, resets=0)
            recordings = tuple(
                Recording(cell=shows[each.environment, name], stimulus=given, purpose=f"parted {given.digest[:8]}")
                for name in each.pair
            )
        found.append(PartedPair(explained=each, recordings=recordings))
    return found


def _states(each: Explained, drawn: DrawnEnvironment, store: Store) -> Batch | None:
    """States some steps before the largest jumps, with the actions up to and over the jump."""
    if drawn.horizon is None or drawn.forced is None:
        return None
    outputs = store.outputs(each.pair[0])
    imposed, recorded = (store.arrays.get(outputs[f"horizon.{name}"].digest) for name in ("imposed", "state"))
    states, actions = [], []
    for trajectory, step in growth.jumps(each.cross, each.twins, each.floor, STATES):
        first = max(0, step - RUN_UP)
        state = recorded[trajectory, first - 1] if first else imposed[trajectory]
        if np.isfinite(state).all():
            taken = drawn.horizon.actions[trajectory, first : first + RUN_UP + 1]
            states.append(state)
            actions.append(np.resize(taken, (RUN_UP + 1, *taken.shape[1:])))
    return Batch(starts=np.array(states), actions=np.array(actions)) if states else None


def judge(
    parted: PartedPair, behaviours: Mapping[str, str | None], outputs: Sequence[str], store: Store
) -> tuple[Judgement, list[Evidence]] | None:
    """The verdict where trajectories part, when it is a change; nothing when these states do not tell either."""
    found = [behaviours.get(each.identifier) for each in parted.recordings]
    known = [each for each in found if each is not None]
    if len(set(known)) != 2:
        return None
    judgement, evidence = comparing.judged(store, comparing.ordered(*known), outputs)
    if judgement.verdict is not Verdict.CHANGED:
        return None
    before, trajectories = comparing.judged(store, parted.explained.pair, outputs)
    steps = f"within {RUN_UP + 1} steps before their trajectories part"
    amended = replace(
        judgement,
        reason=f"{steps}: {judgement.reason}",
        paper_verdict=before.paper_verdict,
        horizon=before.horizon,
        states_forced=(before.states_forced or 0) + (judgement.states_forced or 0),
        beyond=(),
    )
    horizons = {each.output: each.horizon for each in trajectories}
    return amended, [replace(each, horizon=horizons.get(each.output)) for each in evidence]
