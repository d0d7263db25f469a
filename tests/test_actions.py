"""What is done on the way: actions of trajectories and of forced states."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit.stimuli import starts
from audit.stimuli.starts import AT_BOUNDS, Undrawable
from tests.drawn_stimuli import BOX, UNHURRIED, draw, environment, spec, with_action


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


# Actions of forced states


def test_forced_actions_cover_the_space_and_its_bounds() -> None:
    actions = starts.forced_actions(2000, 0, with_action(BOX))
    low, high = np.array([-1.0, -0.4000000059604645], np.float32), np.array([1.0, 0.5], np.float32)
    assert actions.shape == (2000, 2)
    assert actions.dtype == np.float32
    assert np.all((actions >= low) & (actions <= high))
    at_low, at_high = (actions == low).mean(), (actions == high).mean()
    assert at_low == pytest.approx(AT_BOUNDS / 2, rel=0.3)
    assert at_high == pytest.approx(AT_BOUNDS / 2, rel=0.3)
    assert len(np.unique(actions)) > 2000


def test_discrete_forced_actions() -> None:
    actions = starts.forced_actions(100, 0, with_action({"type": "Discrete", "n": 3, "start": 2}))
    assert actions.shape == (100,)
    assert actions.dtype == np.int64
    assert set(np.unique(actions)) == {2, 3, 4}


def test_forced_actions_of_several_axes_and_of_unbounded_spaces() -> None:
    space = {"type": "Box", "shape": [2, 3], "dtype": "float64", "low": ["-inf"] * 6, "high": ["inf"] * 6}
    actions = starts.forced_actions(50, 0, with_action(space))
    assert actions.shape == (50, 2, 3)
    assert np.isfinite(actions).all()


def test_more_forced_actions_begin_with_the_same_and_another_seed_gives_others() -> None:
    layout = with_action({"type": "Discrete", "n": 1000, "start": 0})
    few, many = starts.forced_actions(10, 0, layout), starts.forced_actions(20, 0, layout)
    assert few.tolist() == starts.forced_actions(10, 0, layout).tolist()
    assert few.tolist() == many[:10].tolist()
    assert few.tolist() != starts.forced_actions(10, 1, layout).tolist()


def test_forced_actions_that_cannot_be_drawn() -> None:
    for space in (
        {"type": "Tuple", "text": "Tuple()"},
        {"type": "Box", "shape": [100], "dtype": "float32", "low": None, "high": None},
        {**BOX, "low": ["-1.7e308", "0"], "high": ["1.7e308", "1"]},
        {**BOX, "low": ["1", "1"], "high": ["0", "0"]},
    ):
        with pytest.raises(Undrawable):
            starts.forced_actions(3, 0, with_action(space))


# What cannot be drawn


@pytest.mark.parametrize("coast", [-1, 3, 100])
def test_a_coast_that_is_no_action(coast: int) -> None:
    with pytest.raises(Undrawable, match=f"coast is {coast}, the actions are 0 to 2"):
        draw(spec(), environment(coast=coast))


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
