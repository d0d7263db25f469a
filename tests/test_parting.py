"""States at which trajectories part: chosen before the jump, with the actions over it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from analysis.verdicts import Verdict
from audit.asked.matrix import OUTPUTS
from audit.comparisons import certifying, parting
from audit.comparisons.certifying import Explained
from audit.comparisons.parting import RUN_UP, STATES
from audit.stimuli.stimulus import Batch
from audit.storage.store import Store
from tests.planned_cells import drawn, planned
from tests.recorded_behaviours import SPACES, forced, keep, steps, text
from tests.stored_runs import cell

STEPS = 40
JUMP = 25


@pytest.fixture
def jumped(store: Store) -> tuple[Store, Explained]:
    """Two behaviours that part at one step of the second of three trajectories, and twins that never do."""
    first = np.cumsum(np.ones((3, STEPS, 2)), axis=1)
    second = first.copy()
    second[1, JUMP:] += 1e-3
    for name, states in (("a", first), ("b", second)):
        arrays = {f"horizon.{output}": array for output, array in steps(states).items()}
        described = {"structure": text(b"same"), "spaces": text(SPACES)}
        keep(store, name, {**arrays, **described, "horizon.imposed": np.zeros((3, 2))})
    cross = np.abs(first - second).max(axis=2)
    return store, explained(cross)


def explained(cross: Any) -> Explained:
    record = certifying._record(("a", "b"), "r", cross, [], None)
    return Explained(
        pair=("a", "b"),
        environment="E",
        cross=cross,
        twins=[np.zeros_like(cross)],
        floor=1e-16,
        record=record,
        complete=True,
    )


def test_the_state_before_the_jump_is_forced_with_a_run_up(jumped: tuple[Store, Explained]) -> None:
    store, each = jumped
    one = planned("a", "E")
    actions = np.arange(3 * STEPS).reshape(3, STEPS)
    given = drawn(
        one, Batch(starts=np.zeros((3, 2)), actions=actions), Batch(starts=np.zeros((1, 2)), actions=actions[:1, :1])
    )
    other = planned("b", "E")
    rows = [cell("a", 0, "a"), cell("b", 1, "b")]
    (found,) = parting.wanted([each], rows, {"a/E": one, "b/E": other}, {"E": given}, store)
    assert [each.cell.release.id for each in found.recordings] == ["a", "b"]
    assert len({each.stimulus.digest for each in found.recordings}) == 1
    batch = parting._states(each, given, store)
    assert batch is not None
    assert len(batch.starts) <= STATES
    assert batch.starts[0].tolist() == [JUMP - RUN_UP, JUMP - RUN_UP]  # after that many steps of one
    assert batch.actions[0].tolist() == [STEPS + JUMP - RUN_UP + step for step in range(RUN_UP + 1)]


def test_a_jump_at_the_first_step_begins_at_what_was_imposed(store: Store) -> None:
    cross = np.zeros((2, STEPS))
    cross[0, 0] = 1.0
    for name in "ab":
        arrays = {f"horizon.{output}": array for output, array in steps(np.ones((2, STEPS, 2))).items()}
        keep(store, name, {**arrays, "horizon.imposed": np.full((2, 2), 7.0)})
    actions = np.zeros((2, STEPS), np.int64)
    given = drawn(
        planned("a", "E"),
        Batch(starts=np.zeros((2, 2)), actions=actions),
        Batch(starts=np.zeros((1, 2)), actions=actions[:1, :1]),
    )
    batch = parting._states(explained(cross), given, store)
    assert batch is not None
    assert batch.starts[0].tolist() == [7.0, 7.0]


def test_a_change_found_there_keeps_what_the_trajectories_showed(jumped: tuple[Store, Explained]) -> None:
    """The verdict is new; the paper's, and the separation over the horizon, are those of the trajectories."""
    store, each = jumped
    shifted = forced()["forced.state"] + 1e-3
    keep(store, "p", forced())
    keep(store, "q", {**forced(), "forced.state": shifted, "nudged.state": forced()["nudged.state"] + 1e-3})
    one, other = planned("a", "E"), planned("b", "E")
    batch = Batch(starts=np.zeros((3, 2)), actions=np.zeros((3, STEPS), np.int64))
    given = drawn(one, batch, batch.chosen(slice(0, 1)))
    rows = [cell("a", 0, "a"), cell("b", 1, "b")]
    (parted,) = parting.wanted([each], rows, {"a/E": one, "b/E": other}, {"E": given}, store)
    behaviours: dict[str, str | None] = {
        recording.identifier: name for recording, name in zip(parted.recordings, "pq", strict=True)
    }
    found = parting.judge(parted, behaviours, OUTPUTS, store)
    assert found is not None
    judgement, evidence = found
    assert judgement.verdict is Verdict.CHANGED
    assert judgement.reason.startswith(f"within {RUN_UP + 1} steps before their trajectories part: state")
    assert judgement.paper_verdict is Verdict.AMPLIFIED
    assert judgement.horizon == pytest.approx(2e-3)  # of the reward, which sums two entries
    (state,) = (each for each in evidence if each.output == "state")
    assert state.horizon is not None
    assert state.horizon.horizon == pytest.approx(1e-3)
    same: dict[str, str | None] = dict.fromkeys(behaviours, "p")
    assert parting.judge(parted, same, OUTPUTS, store) is None
