"""Where trajectories start: drawn once, from a seed."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit.asked import matrix_file
from audit.asked.matrix_file import SHIPPED
from audit.stimuli import starts
from audit.stimuli.starts import Undrawable
from tests.drawn_stimuli import BOX, LAYOUT, UNHURRIED, assembled, draw, environment, spec, with_action

# One seed, one stimulus


@UNHURRIED
@given(seed=st.integers(0, 2**70), actions=st.sampled_from(["zero", "uniform"]))
def test_the_same_seed_gives_the_same_bytes(seed: int, actions: str) -> None:
    asked = spec(seed=seed, actions=actions)
    assert assembled(asked, environment(), LAYOUT) == assembled(asked, environment(), LAYOUT)


def test_another_process_draws_the_same_whatever_its_hash_seed() -> None:
    script = (
        "import sys; from tests.drawn_stimuli import *\n"
        "sys.stdout.write(assembled(spec(seed=3, actions='uniform'), environment(), LAYOUT).digest)"
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
    assert digests == {assembled(spec(seed=3, actions="uniform"), environment(), LAYOUT).digest}


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
    digests = {assembled(*each).digest for each in asked}
    assert len(digests) == len(asked)
    assert all(len(digest) == 64 for digest in digests)


def test_the_environments_name_does_not_decide() -> None:
    one, other = environment(), environment(id="F", name="g", arguments={"a": 1})
    assert assembled(spec(), one, LAYOUT) == assembled(spec(), other, LAYOUT)


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
    once = starts.unit_quaternions(drawn)
    w, x, y, z = once[0]
    assert np.sqrt(w**2 + x**2 + y**2 + z**2) == 1
    assert starts.unit_quaternions(once).tobytes() == once.tobytes()
    assert once @ drawn[0] == pytest.approx(np.linalg.norm(drawn))


# What cannot be drawn


def test_more_bounds_than_the_state_has_entries() -> None:
    with pytest.raises(Undrawable, match="start has 5 entries, the state only 4"):
        draw(spec(), environment(start={"low": [0] * 5, "high": [1] * 5}))


def test_a_range_too_wide_to_draw_from() -> None:
    wide = {"low": [-1.7e308], "high": [1.7e308]}
    with pytest.raises(ValueError, match="further apart"):
        environment(start=wide)


@pytest.mark.parametrize("start", [{"low": [0] * 4, "high": [1] * 4}, {"low": [0], "high": [1]}])
def test_zero_is_no_quaternion(start: dict[str, Any]) -> None:
    layout = replace(LAYOUT, kind="mujoco", state_size=8, quaternions=(4,), reference=(0.0,) * 8)
    with pytest.raises(Undrawable, match="entries 4 to 7 are a quaternion"):
        draw(spec(), environment(start=start), layout)


# Where states cannot be imposed


def test_seeds_take_the_place_of_states() -> None:
    layout = replace(LAYOUT, kind="replay", state_size=0, positions=0, reference=(), evidence="replayed")
    batch = starts.horizon(spec(seed=3), environment(), layout)
    assert batch.starts.tolist() == list(range(3, 11))
    assert batch.start_name == "seeds"
    assert batch.actions.tobytes() == draw(spec(seed=3), environment())[1].tobytes()
