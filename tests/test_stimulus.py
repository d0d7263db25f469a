"""What releases are given: put together once, nudged by one last place, addressed by digest, handed over as bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

from analysis import yardstick
from audit.digests import array_digest
from audit.stimuli import stimulus
from audit.stimuli.layout import BadLayout, Layout
from audit.stimuli.stimulus import RESETS, Batch

UNHURRIED = settings(deadline=None, max_examples=60)
EPSILON = 2.0**-52
NUMBERS = st.floats(-1e9, 1e9).map(lambda value: value if abs(value) > 1e-300 else 0.0)
STATES = arrays.arrays(np.float64, (5, 3), elements=NUMBERS)
BOX: Any = {"type": "Box", "shape": [1], "dtype": "float64", "low": ["-1.0"], "high": ["1.0"]}

Floats = NDArray[np.float64]


def batch(states: Any = ((0.1, 0.2), (0.3, 0.4)), steps: int = 3) -> Batch:
    starts = np.array(states)
    return Batch(starts=starts, actions=np.arange(len(starts) * steps).reshape(len(starts), steps))


# Nudges and twins


@UNHURRIED
@given(states=STATES, seed=st.integers(0, 2**40))
def test_every_coordinate_of_a_nudge_is_one_last_place_away(states: Floats, seed: int) -> None:
    copies = stimulus.nudged(batch(states, steps=1), 4, seed).starts.reshape(4, *states.shape)
    own = np.abs(states).max(axis=0)
    scale = yardstick.lifted(own)
    still = EPSILON * np.where(scale > 0, scale, 1.0)
    expected = np.where((states == 0) | (scale > own), still, np.spacing(np.abs(states)))
    assert ((copies == states + expected) | (copies == states - expected)).all()


def test_a_coordinate_that_is_zero_moves_by_its_columns_scale() -> None:
    states = np.array([[0.0, 0.0, 1.0], [8.0, 0.0, 1.0]])
    (copy,) = stimulus.nudged(batch(states, steps=1), 1, 0).starts[:1]
    assert np.abs(copy).tolist() == [8 * EPSILON, EPSILON, pytest.approx(1.0)]


def test_what_rounding_left_of_zero_moves_like_zero() -> None:
    states = np.array([[1e-30, 2.0], [-3e-31, 4.0]])
    copies = stimulus.nudged(batch(states, steps=1), 2, 0).starts
    assert np.abs(copies[:, 0]).tolist() == [pytest.approx(4 * EPSILON)] * 4


def test_coordinates_move_up_and_down_and_no_two_copies_alike() -> None:
    states = np.ones((50, 4))
    moved = stimulus.nudged(batch(states, steps=1), 4, 0).starts > 1
    assert 0.4 < moved.mean() < 0.6
    assert len({copy.tobytes() for copy in moved.reshape(4, 50, 4)}) == 4


def test_the_actions_of_a_copy_are_those_of_its_state() -> None:
    forced = batch(np.arange(6.0).reshape(3, 2) + 1, steps=1)
    nudged = stimulus.nudged(forced, 2, 0)
    assert nudged.actions.tolist() == [[0], [1], [2], [0], [1], [2]]
    np.testing.assert_allclose(nudged.starts, np.concatenate([forced.starts] * 2), rtol=1e-15)


def test_twins_are_nudges_of_their_own() -> None:
    horizon = batch()
    twins, nudged = stimulus.twins(horizon, 2, 0), stimulus.nudged(horizon, 2, 0)
    assert twins.shape == (4, 3)
    assert twins.actions.tobytes() == nudged.actions.tobytes()
    assert twins.starts.tobytes() != nudged.starts.tobytes()
    np.testing.assert_allclose(twins.starts, nudged.starts, rtol=1e-15)
    assert (twins.starts != np.concatenate([horizon.starts] * 2)).all()


def test_the_seed_decides_the_signs_and_the_states_are_left_alone() -> None:
    forced = batch(np.ones((20, 2)), steps=1)
    one, again, other = (stimulus.nudged(forced, 2, seed).starts.tobytes() for seed in (0, 0, 1))
    assert one == again != other
    assert (forced.starts == 1).all()


# Assembled


def test_what_is_assembled_is_unpacked() -> None:
    horizon, forced = batch(), batch(steps=1)
    source = np.array([0, 1], np.uint8)
    made = stimulus.assemble({"horizon": horizon, "forced": forced}, source=source)
    found = stimulus.unpacked(made.payload)
    assert sorted(found) == [
        "forced.actions", "forced.source", "forced.states", "horizon.actions", "horizon.states", "reset.seeds",
    ]  # fmt: skip
    assert found["horizon.states"].tobytes() == horizon.starts.tobytes()
    assert found["forced.actions"].tobytes() == forced.actions.tobytes()
    assert found["reset.seeds"].tolist() == list(range(RESETS))
    assert made.batches == {"horizon": (2, 3), "forced": (2, 1)}
    assert (made.resets, made.steps) == (RESETS, 8)


def test_seeds_are_named_seeds() -> None:
    seeded = Batch(starts=np.arange(2), actions=np.zeros((2, 3, 1)))
    assert sorted(stimulus.unpacked(stimulus.assemble({"horizon": seeded}, resets=0).payload)) == [
        "horizon.actions",
        "horizon.seeds",
    ]


def test_a_table_counts_as_forced_steps() -> None:
    made = stimulus.assemble({}, rows=7)
    assert (made.batches, made.steps) == ({"forced": (7, 1)}, 7)
    assert sorted(stimulus.unpacked(made.payload)) == ["reset.seeds"]
    assert made.digest != stimulus.assemble({}, rows=8).digest


def test_everything_that_is_given_decides_the_digest_and_the_order_of_batches_does_not() -> None:
    whole = {"horizon": batch(), "forced": batch(steps=1)}
    moved = Batch(starts=batch().starts + 1e-16, actions=batch().actions)
    steered = Batch(starts=batch().starts, actions=batch().actions + 1)
    made = [
        stimulus.assemble(whole),
        stimulus.assemble(whole, resets=0),
        stimulus.assemble(whole, resets=5),
        stimulus.assemble({"horizon": whole["horizon"]}),
        stimulus.assemble({"forced": whole["horizon"]}),
        stimulus.assemble({**whole, "horizon": moved}),
        stimulus.assemble({**whole, "horizon": steered}),
        stimulus.assemble(whole, source=np.array([0, 1], np.uint8)),
    ]
    assert len({each.digest for each in made}) == len(made)
    assert stimulus.assemble(dict(reversed(whole.items()))).digest == stimulus.assemble(whole).digest


def test_a_sample_has_states_and_actions_of_the_same_rows() -> None:
    chosen = batch(np.arange(10.0).reshape(5, 2)).chosen(np.array([4, 1]))
    assert chosen.starts.tolist() == [[8.0, 9.0], [2.0, 3.0]]
    assert chosen.actions.tolist() == [[12, 13, 14], [3, 4, 5]]
    assert batch().chosen(slice(0, 1)).shape == (1, 3)


# The layout


def test_a_layout_is_read_from_what_a_dumper_wrote() -> None:
    data: dict[str, Any] = {
        "kind": "mujoco", "state_size": 13, "positions": 7, "quaternions": [3], "reference": [0.0] * 13, "action": BOX,
    }  # fmt: skip
    assert Layout.from_json(data) == Layout(
        kind="mujoco", state_size=13, positions=7, quaternions=(3,), reference=(0.0,) * 13, action=BOX
    )
    assert Layout.from_json(data).evidence == "forced"
    for missing in data:
        with pytest.raises(BadLayout, match=missing):
            Layout.from_json({name: value for name, value in data.items() if name != missing})


def test_a_digest_is_of_dtype_shape_and_bytes() -> None:
    array = np.arange(6.0).reshape(2, 3)
    assert array_digest(array) == array_digest(np.asfortranarray(array))
    different = [array, array.T, array.reshape(3, 2), array.astype(np.float32), array.astype(">f8"), array + 1]
    assert len({array_digest(each) for each in different}) == len(different)


@pytest.mark.parametrize(
    "changes",
    [
        {"evidence": "hearsay"},
        {"rows": -1},
        {"state_size": 0, "reference": [], "positions": 0, "quaternions": []},
        {"quaternions": [10]},
        {"positions": 14},
    ],
    ids=str,
)
def test_a_layout_that_contradicts_itself(changes: dict[str, Any]) -> None:
    data = {
        "kind": "mujoco", "state_size": 13, "positions": 7, "quaternions": [3], "reference": [0.0] * 13, "action": BOX,
    }  # fmt: skip
    with pytest.raises(BadLayout):
        Layout.from_json({**data, **changes})


def test_a_replayed_environment_may_have_no_state() -> None:
    data = {
        "kind": "replay", "state_size": 0, "positions": 0, "quaternions": [], "reference": [], "action": BOX,
        "evidence": "replayed", "low": None, "high": None,
    }  # fmt: skip
    assert Layout.from_json(data).evidence == "replayed"
