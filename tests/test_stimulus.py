from __future__ import annotations

import io
import os
import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from audit import matrix_file, stimulus
from audit.digests import array_digest
from audit.layout import BadLayout, Layout
from audit.matrix import EnvironmentRow, StimulusSpec
from audit.matrix_file import SHIPPED
from audit.stimulus import Stimulus, Undrawable

UNHURRIED = settings(deadline=None, max_examples=60)
DISCRETE: Any = {"type": "Discrete", "n": 3, "start": 0}
BOX: Any = {
    "type": "Box", "shape": [2], "dtype": "float32", "low": ["-1.0", "-0.4000000059604645"], "high": ["1.0", "0.5"],
}  # fmt: skip
LAYOUT = Layout(
    kind="state", state_size=4, positions=4, quaternions=(), reference=(0.0, 0.0, 0.0, 0.0), action=DISCRETE
)


def with_action(action: Any) -> Layout:
    return replace(LAYOUT, action=action)


def spec(**values: Any) -> StimulusSpec:
    return StimulusSpec.model_validate({"trajectories": 8, "steps": 5, **values})


def environment(**values: Any) -> EnvironmentRow:
    return EnvironmentRow.model_validate({"id": "E", **values})


def unpacked(drawn: Stimulus) -> tuple[NDArray[Any], NDArray[Any]]:
    with np.load(io.BytesIO(drawn.payload), allow_pickle=False) as file:
        assert sorted(file.files) == ["actions", "states"]
        return file["states"], file["actions"]


def draw(spec: StimulusSpec, environment: EnvironmentRow, layout: Layout = LAYOUT) -> tuple[NDArray[Any], NDArray[Any]]:
    return unpacked(stimulus.draw(spec, environment, layout))


# One seed, one stimulus


@UNHURRIED
@given(seed=st.integers(0, 2**70), actions=st.sampled_from(["zero", "uniform"]))
def test_the_same_seed_gives_the_same_bytes(seed: int, actions: str) -> None:
    asked = spec(seed=seed, actions=actions)
    assert stimulus.draw(asked, environment(), LAYOUT) == stimulus.draw(asked, environment(), LAYOUT)


def test_another_process_draws_the_same_whatever_its_hash_seed() -> None:
    script = (
        "import sys; from tests.test_stimulus import *\n"
        "sys.stdout.write(stimulus.draw(spec(seed=3, actions='uniform'), environment(), LAYOUT).digest)"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=SHIPPED.parent,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert digests == {stimulus.draw(spec(seed=3, actions="uniform"), environment(), LAYOUT).digest}


def test_everything_that_is_drawn_decides_the_digest() -> None:
    asked = [
        (spec(), environment(), LAYOUT),
        (spec(seed=1), environment(), LAYOUT),
        (spec(steps=6), environment(), LAYOUT),
        (spec(trajectories=9), environment(), LAYOUT),
        (spec(actions="uniform"), environment(), LAYOUT),
        (spec(), environment(coast=1), LAYOUT),
        (spec(), environment(start={"low": [0], "high": [1]}), LAYOUT),
        (spec(), environment(), replace(LAYOUT, reference=(0.0, 0.0, 0.0, 1.0))),
        (spec(), environment(), with_action(BOX)),
        (spec(), environment(), with_action({**BOX, "dtype": "float64"})),
    ]
    digests = {stimulus.draw(*each).digest for each in asked}
    assert len(digests) == len(asked)
    assert all(len(digest) == 64 for digest in digests)


def test_the_environments_name_does_not_decide() -> None:
    one, other = environment(), environment(id="F", name="g", arguments={"a": 1})
    assert stimulus.draw(spec(), one, LAYOUT) == stimulus.draw(spec(), other, LAYOUT)


def test_the_actions_do_not_move_the_states() -> None:
    zero, _ = draw(spec(), environment())
    uniform, _ = draw(spec(actions="uniform"), environment())
    assert zero.tobytes() == uniform.tobytes()


# States


def test_the_papers_states_are_the_papers() -> None:
    matrix = matrix_file.read(SHIPPED / "paper.yaml").matrix
    for row in matrix.environments:
        start: Any = row.start
        n = len(start.low)
        layout = replace(LAYOUT, state_size=n, positions=n, reference=(0.0,) * n)
        states, actions = draw(matrix.stimulus, row, layout)
        expected = np.random.default_rng(12345).uniform(start.low, start.high, size=(8, n))
        assert states.dtype == np.float64
        assert states.tobytes() == expected.tobytes()
        assert actions.shape == (8, 500)


def test_entries_beyond_the_bounds_are_zero() -> None:
    states, _ = draw(spec(), environment(start={"low": [1, 2], "high": [2, 3]}))
    assert states.shape == (8, 4)
    assert np.all(states[:, 2:] == 0)
    assert np.all((states[:, :2] >= [1, 2]) & (states[:, :2] <= [2, 3]))


def test_bounds_that_meet_give_that_value() -> None:
    states, _ = draw(spec(), environment(start={"low": [1, 2, 3, 4], "high": [1, 2, 3, 4]}))
    assert np.all(states == [1, 2, 3, 4])


def test_the_environments_start_goes_before_the_stimulus() -> None:
    states, _ = draw(spec(start={"low": [5], "high": [6]}), environment(start={"low": [1], "high": [2]}))
    assert states[:, 0].max() <= 2
    states, _ = draw(spec(start={"low": [5], "high": [6]}), environment())
    assert states[:, 0].min() >= 5


@UNHURRIED
@given(position=st.floats(0, 10), velocity=st.floats(0, 10))
def test_near_states_stay_within_reach_of_the_reference(position: float, velocity: float) -> None:
    layout = replace(LAYOUT, positions=3, reference=(1.0, -2.0, 3.0, 0.5))
    states, _ = draw(spec(start={"position": position, "velocity": velocity}), environment(), layout)
    away = np.abs(states - layout.reference)
    assert np.all(away <= np.array([position] * 3 + [velocity]) * (1 + 1e-12) + 1e-15)
    assert len(np.unique(states[:, 0])) == 8 or position < 1e-10


@UNHURRIED
@given(seed=st.integers(0, 10_000), reach=st.floats(0, 3))
def test_quaternions_have_a_norm_of_exactly_one(seed: int, reach: float) -> None:
    layout = replace(
        LAYOUT,
        kind="mujoco",
        state_size=13,
        positions=7,
        quaternions=(3,),
        reference=(0.0, 0.0, 1.25, 1.0, *(0.0,) * 9),
    )
    states, _ = draw(spec(seed=seed, start={"position": reach, "velocity": reach}), environment(), layout)
    w, x, y, z = states[:, 3:7].T
    assert np.all(np.sqrt(w**2 + x**2 + y**2 + z**2) == 1)
    assert np.all(np.abs(states[:, :3] - [0, 0, 1.25]) <= reach * (1 + 1e-12))


@UNHURRIED
@given(st.lists(st.floats(-1, 1), min_size=4, max_size=4).filter(lambda q: np.linalg.norm(q) > 1e-3))
def test_making_a_unit_quaternion_twice_moves_no_bit_and_keeps_the_direction(entries: list[float]) -> None:
    drawn = np.array([entries])
    once = stimulus.unit_quaternions(drawn)
    w, x, y, z = once[0]
    assert np.sqrt(w**2 + x**2 + y**2 + z**2) == 1
    assert stimulus.unit_quaternions(once).tobytes() == once.tobytes()
    assert once @ drawn[0] == pytest.approx(np.linalg.norm(drawn))


# Actions


def test_no_action_is_zero_in_the_spaces_own_dtype() -> None:
    _, actions = draw(spec(), environment(), with_action(BOX))
    assert actions.shape == (8, 5, 2)
    assert actions.dtype == np.float32
    assert not actions.any()


@UNHURRIED
@given(seed=st.integers(0, 1000), dtype=st.sampled_from(["float32", "float64"]))
def test_uniform_actions_lie_within_the_bounds_in_the_spaces_own_dtype(seed: int, dtype: str) -> None:
    layout = with_action({**BOX, "dtype": dtype})
    _, actions = draw(spec(seed=seed, steps=50, actions="uniform"), environment(), layout)
    assert actions.dtype == dtype
    low, high = np.array([-1.0, -0.4000000059604645], dtype), np.array([1.0, 0.5], dtype)
    assert np.all((actions >= low) & (actions <= high))
    assert len(np.unique(actions)) > 100


def test_unbounded_actions_are_drawn_within_reach_of_the_bound_there_is() -> None:
    space = {**BOX, "low": ["-inf", "0.0"], "high": ["inf", "inf"]}
    _, actions = draw(spec(actions="uniform", steps=100), environment(), with_action(space))
    assert actions[..., 0].min() < -0.5
    assert actions[..., 0].max() > 0.5
    assert np.all((actions[..., 1] >= 0) & (actions[..., 1] <= 2))


def test_a_half_bounded_space_beyond_one_is_drawn_within_its_bounds_or_refused() -> None:
    space = {**BOX, "low": ["2.0", "2.0"], "high": ["inf", "inf"]}
    try:
        _, actions = draw(spec(actions="uniform"), environment(), with_action(space))
    except Undrawable:
        return
    assert actions.min() >= 2


def test_actions_of_several_axes() -> None:
    space = {"type": "Box", "shape": [2, 3], "dtype": "float64", "low": ["0"] * 6, "high": list("123456")}
    _, actions = draw(spec(actions="uniform"), environment(), with_action(space))
    assert actions.shape == (8, 5, 2, 3)
    assert np.all(actions <= np.arange(1, 7).reshape(2, 3))


def test_discrete_actions() -> None:
    layout = with_action({"type": "Discrete", "n": 3, "start": 2})
    _, actions = draw(spec(actions="uniform", steps=50), environment(coast=4), layout)
    assert actions.shape == (8, 50)
    assert actions.dtype == np.int64
    assert set(np.unique(actions)) == {2, 3, 4}


@pytest.mark.parametrize(("coast", "expected"), [(None, 2), (2, 2), (4, 4)])
def test_coasting(coast: int | None, expected: int) -> None:
    layout = with_action({"type": "Discrete", "n": 3, "start": 2})
    _, actions = draw(spec(), environment(coast=coast), layout)
    assert np.all(actions == expected)


# What cannot be drawn


@pytest.mark.parametrize("coast", [-1, 3, 100])
def test_a_coast_that_is_no_action(coast: int) -> None:
    with pytest.raises(Undrawable, match=f"coast is {coast}, the actions are 0 to 2"):
        draw(spec(), environment(coast=coast))


def test_more_bounds_than_the_state_has_entries() -> None:
    with pytest.raises(Undrawable, match="start has 5 entries, the state only 4"):
        draw(spec(), environment(start={"low": [0] * 5, "high": [1] * 5}))


@pytest.mark.parametrize("actions", ["zero", "uniform"])
@pytest.mark.parametrize(
    "space",
    [
        {"type": "MultiDiscrete", "text": "MultiDiscrete([2 2])"},
        {"type": "Tuple", "text": "Tuple(Discrete(2))"},
        {"type": "Dict", "text": "Dict()"},
    ],
    ids=lambda space: space["type"],
)
def test_spaces_that_cannot_be_drawn_from(space: dict[str, str], actions: str) -> None:
    with pytest.raises(Undrawable, match=space["type"]):
        draw(spec(actions=actions), environment(), with_action(space))


def test_bounds_too_long_to_have_been_told() -> None:
    space = {"type": "Box", "shape": [100], "dtype": "float32", "low": None, "high": None}
    with pytest.raises(Undrawable):
        draw(spec(actions="uniform"), environment(), with_action(space))


def test_a_range_too_wide_to_draw_from() -> None:
    wide = {"low": [-1.7e308], "high": [1.7e308]}
    with pytest.raises(ValueError, match="further apart"):
        environment(start=wide)


# The layout


def test_a_layout_is_read_from_what_a_dumper_wrote() -> None:
    data: dict[str, Any] = {
        "kind": "mujoco", "state_size": 13, "positions": 7, "quaternions": [3], "reference": [0.0] * 13, "action": BOX,
    }  # fmt: skip
    assert Layout.from_json(data) == Layout(
        kind="mujoco", state_size=13, positions=7, quaternions=(3,), reference=(0.0,) * 13, action=BOX
    )
    for missing in data:
        with pytest.raises(BadLayout, match=missing):
            Layout.from_json({name: value for name, value in data.items() if name != missing})


def test_a_digest_is_of_dtype_shape_and_bytes() -> None:
    array = np.arange(6.0).reshape(2, 3)
    assert array_digest(array) == array_digest(np.asfortranarray(array))
    different = [array, array.T, array.reshape(3, 2), array.astype(np.float32), array.astype(">f8"), array + 1]
    assert len({array_digest(each) for each in different}) == len(different)
