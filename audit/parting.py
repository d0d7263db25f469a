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
from analysis.verdicts import Judgement, Verdict
from audit import comparing, stimulus
from audit.certifying import Explained
from audit.comparing import Pair
from audit.drawing import Drawn
from audit.plan import Cell, Recording
from audit.records import RunCell
from audit.stimulus import Batch
from audit.store import Store

STATES = 32
"""At most, of one environment."""

RUN_UP = 3
"""Steps before the jump from which it is approached.

A forced step begins with a cold solver. A change that acts only through its warm start (one in mujoco 3.11 does) shows
after a step or two; nudged copies take the same steps, so that the yardstick has their growth in it.
"""

NUDGES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Parted:
    """A pair of behaviours to be looked at again, and the recordings that decide."""

    pair: Pair
    environment: str
    recordings: tuple[Recording, Recording]


def wanted(
    unexplained: Sequence[Explained],
    rows: Sequence[RunCell],
    cells: Mapping[str, Cell],
    drawn: Mapping[str, Drawn],
    store: Store,
) -> list[Parted]:
    """The recordings of each pair: the same states for all pairs of an environment, those of the largest jumps."""
    shows: dict[tuple[str, str], Cell] = {}
    for row in rows:
        if row.behaviour is not None:
            shows.setdefault((row.environment, row.behaviour), cells[row.identifier])
    found = []
    for environment in sorted({each.environment for each in unexplained}):
        group = [each for each in unexplained if each.environment == environment]
        batch = _states(group, drawn[environment], store)
        if batch is None:
            continue
        given = stimulus.assemble(
            {"forced": batch, "nudged": stimulus.nudged(batch, NUDGES, drawn[environment].seed)}, resets=0
        )
        for each in group:
            first, second = (
                Recording(cell=shows[environment, behaviour], stimulus=given, purpose="parted")
                for behaviour in each.pair
            )
            found.append(Parted(pair=each.pair, environment=environment, recordings=(first, second)))
    return found


def _states(group: Sequence[Explained], drawn: Drawn, store: Store) -> Batch | None:
    """States before the largest jumps, of every pair a fair share."""
    if drawn.horizon is None or drawn.forced is None:
        return None
    places: dict[tuple[str, int, int], None] = {}
    share = max(1, STATES // len(group))
    for each in group:
        for trajectory, step in growth.jumps(each.cross, each.twins, each.floor, share):
            places[each.pair[0], trajectory, step] = None
    states, actions = [], []
    for behaviour, trajectory, step in list(places)[:STATES]:
        outputs = store.outputs(behaviour)
        first = max(0, step - RUN_UP)
        if first == 0:
            states.append(store.arrays.get(outputs["horizon.imposed"].digest)[trajectory])
        else:
            states.append(store.arrays.get(outputs["horizon.state"].digest)[trajectory, first - 1])
        taken = drawn.horizon.actions[trajectory, first : first + RUN_UP + 1]
        actions.append(np.resize(taken, (RUN_UP + 1, *taken.shape[1:])))
    finite = [index for index, state in enumerate(states) if np.isfinite(state).all()]
    if not finite:
        return None
    return Batch(
        starts=np.array([states[index] for index in finite]),
        actions=np.array([actions[index] for index in finite]),
    )


def judge(
    parted: Parted, behaviours: Mapping[str, str | None], outputs: Sequence[str], store: Store
) -> Judgement | None:
    """The verdict where trajectories part, when it is a change; nothing when these states do not tell either."""
    first, second = (behaviours.get(each.identifier) for each in parted.recordings)
    if first is None or second is None or first == second:
        return None
    judgement, _ = comparing.judged(store, comparing.ordered(first, second), outputs)
    if judgement.verdict is not Verdict.CHANGED:
        return None
    return replace(judgement, reason=f"where their trajectories part: {judgement.reason}", beyond=())
