"""Trajectories replayed from a seed: the step at which two equal histories part is the first step."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from analysis import replay
from analysis.yardstick import THRESHOLD

TRAJECTORIES, STEPS = 4, 10

Outputs = dict[str, NDArray[Any]]


def recorded() -> Outputs:
    generator = np.random.default_rng(1)
    return {
        "state": np.zeros((TRAJECTORIES, STEPS, 0)),
        "observation": generator.normal(size=(TRAJECTORIES, STEPS, 3)).astype(np.float32),
        "reward": generator.normal(size=(TRAJECTORIES, STEPS)),
        "terminated": np.zeros((TRAJECTORIES, STEPS), np.bool_),
    }


def read(one: Outputs, other: Outputs) -> Any:
    return replay.read({name: (one[name], other[name]) for name in one})


def test_equal_histories_count_every_step_and_read_nothing() -> None:
    assert read(recorded(), recorded()) == ({}, TRAJECTORIES * STEPS)


def test_the_step_at_which_histories_part_is_read_and_what_follows_is_not() -> None:
    other = recorded()
    other["reward"][1, 4] += 1e-3
    other["reward"][1, 5:] += 1e6
    other["observation"][1, 5:] += 100
    readings, steps = read(recorded(), other)
    assert set(readings) == {"reward"}
    assert readings["reward"].separation == pytest.approx(1e-3)
    assert readings["reward"].beyond.tolist() == [False, True, False, False]
    assert steps == 3 * STEPS + 5, "of the one that parted, the steps up to there"


def test_every_trajectory_parts_at_its_own_step() -> None:
    other = recorded()
    for trajectory, first in ((0, 0), (2, STEPS - 1)):
        other["reward"][trajectory, first:] += 0.5
    readings, steps = read(recorded(), other)
    assert readings["reward"].beyond.tolist() == [True, False, True, False]
    assert steps == 1 + STEPS * 3


def test_an_output_that_parts_later_than_another_is_not_read() -> None:
    """Once the observation differs the two are in different states, and chaos may have made the rest of it."""
    other = recorded()
    other["observation"][0, 2:] += 1
    other["reward"][0, 3:] += 1
    other["terminated"][0, 3:] = True
    assert set(read(recorded(), other)[0]) == {"observation"}


def test_a_flag_alone_is_seen() -> None:
    other = recorded()
    other["terminated"][3, 6] = True
    assert read(recorded(), other)[0]["terminated"].ratio == math.inf


def test_a_last_place_is_rounding() -> None:
    other = recorded()
    other["observation"] = np.nextafter(other["observation"], np.float32(9))
    readings, _ = read(recorded(), other)
    assert 0 < readings["observation"].ratio < THRESHOLD


def test_what_is_not_a_number_in_both_is_no_parting() -> None:
    one, other = recorded(), recorded()
    for each in (one, other):
        each["reward"][:, 5:] = np.nan
    assert read(one, other) == ({}, TRAJECTORIES * STEPS)
    other["reward"][0, 7] = 0.0
    assert read(one, other)[0]["reward"].ratio == math.inf


def test_the_grain_is_that_of_all_steps_and_not_of_the_few_at_which_they_part() -> None:
    """A small number among large ones is rounded like them."""
    one = recorded()
    one["reward"][:] = 1e3
    one["reward"][0, 4] = 1e-9
    other = {name: array.copy() for name, array in one.items()}
    other["reward"][0, 4] += 1e-13
    assert 0 < read(one, other)[0]["reward"].ratio < THRESHOLD


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(0, STEPS), min_size=TRAJECTORIES, max_size=TRAJECTORIES))
def test_the_steps_are_those_up_to_and_with_the_parting(firsts: list[int]) -> None:
    other = recorded()
    for trajectory, first in enumerate(firsts):
        other["reward"][trajectory, first:] += 1
    readings, steps = read(recorded(), other)
    assert steps == sum(min(first + 1, STEPS) for first in firsts)
    beyond = readings["reward"].beyond.tolist() if readings else [False] * TRAJECTORIES
    assert beyond == [first < STEPS for first in firsts]
