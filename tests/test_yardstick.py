"""The yardstick: a separation in multiples of what a nudge by one last place does."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

from analysis import yardstick
from analysis.yardstick import THRESHOLD, Forced, Reading

UNHURRIED = settings(deadline=None, max_examples=50)
SHAPE = (7, 3)
NUMBERS = st.floats(1e-6, 1e6) | st.floats(-1e6, -1e-6)
VALUES = arrays.arrays(np.float64, SHAPE, elements=NUMBERS, fill=st.just(1.0))
ODD = st.sampled_from([0.0, -0.0, np.nan, np.inf, -np.inf, 5e-324, 1e300]) | st.floats(-1e300, 1e300)
ANYTHING = arrays.arrays(np.float64, SHAPE, elements=ODD, fill=st.just(1.0))

Floats = NDArray[np.float64]


def read(older: NDArray[Any], newer: NDArray[Any], *nudged: NDArray[Any], floor: Floats | None = None) -> Reading:
    """The nudged copies are those of the older one."""
    copies = np.array(nudged) if nudged else np.empty((0, *older.shape), older.dtype)
    return yardstick.read(Forced(value=older, nudged=copies), Forced.of(newer), floor)


def ones(entries: int = 1, states: int = 5) -> Floats:
    return np.ones((states, entries))


# What holds of any numbers


@UNHURRIED
@given(ANYTHING)
def test_the_same_is_zero_apart_whatever_it_is(value: Floats) -> None:
    found = read(value, value.copy(), value)
    assert not found.ratios.any()
    assert (found.ratio, found.separation, found.relative) == (0.0, 0.0, 0.0)


@UNHURRIED
@given(VALUES, VALUES, VALUES, st.integers(-40, 40))
def test_another_unit_gives_the_same_ratios(older: Floats, newer: Floats, copy: Floats, power: int) -> None:
    unit = 2.0**power
    plain, scaled = read(older, newer, copy), read(older * unit, newer * unit, copy * unit)
    assert scaled.ratios.tolist() == plain.ratios.tolist()
    assert scaled.separation == plain.separation * unit
    assert scaled.relative == plain.relative


@UNHURRIED
@given(ANYTHING, ANYTHING, ANYTHING)
def test_a_ratio_is_a_number_and_the_order_of_releases_does_not_matter(
    older: Floats, newer: Floats, copy: Floats
) -> None:
    copies = Forced(value=older, nudged=copy[None])
    found, swapped = yardstick.read(copies, Forced.of(newer)), yardstick.read(Forced.of(newer), copies)
    assert not np.isnan(found.ratios).any()
    assert (found.ratios >= 0).all()
    assert found.ratios.tolist() == swapped.ratios.tolist()
    assert found.ratios[found.state] == found.ratio


@UNHURRIED
@given(VALUES, VALUES, VALUES)
def test_a_wider_envelope_never_makes_a_larger_ratio(older: Floats, newer: Floats, copy: Floats) -> None:
    assert (read(older, newer, copy).ratios <= read(older, newer).ratios).all()
    assert (read(older, newer, floor=np.ones(SHAPE[1])).ratios <= read(older, newer).ratios).all()


# Not a number


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
def test_one_side_that_is_not_a_number_is_infinitely_far(odd: float) -> None:
    newer = ones(2)
    newer[3, 1] = odd
    found = yardstick.read(Forced.of(ones(2), ones(2)), Forced.of(newer, newer))
    assert found.ratios.tolist() == [0, 0, 0, math.inf, 0]
    assert (found.state, found.entry) == (3, 1)
    assert found.beyond.tolist() == [False, False, False, True, False]
    assert found.separation == math.inf
    assert math.isfinite(found.relative)
    assert yardstick.read(Forced.of(newer, newer), Forced.of(ones(2), ones(2))).ratio == math.inf


def test_two_that_are_not_numbers_are_the_same() -> None:
    both = np.full((5, 1), np.nan)
    assert read(both, both.copy()).ratio == 0
    assert read(np.full((5, 1), np.inf), np.full((5, 1), np.inf)).ratio == 0
    assert read(np.full((5, 1), np.inf), np.full((5, 1), -np.inf)).ratio == math.inf


def test_a_state_from_which_anything_can_come_says_nothing_and_the_others_do() -> None:
    older, newer, copy = ones(), ones() + 1, ones()
    copy[2] = np.nan
    found = read(older, newer, copy)
    assert found.ratios[2] == 0
    assert (np.delete(found.ratios, 2) >= THRESHOLD).all()


# Flags and integers


def test_a_flag_that_no_nudge_flips_is_infinitely_far() -> None:
    older = np.zeros((5, 1), np.bool_)
    newer, copy = older.copy(), older.copy()
    newer[1] = True
    copy[2] = True  # of another state
    assert read(older, newer, copy).ratios.tolist() == [0, math.inf, 0, 0, 0]
    assert read(older, older, ~older).ratio == 0


@pytest.mark.parametrize("side", [0, 1])
def test_a_flag_that_a_nudge_of_either_release_flips_says_nothing(side: int) -> None:
    older, newer = np.zeros((5, 1), np.bool_), np.ones((5, 1), np.bool_)
    copies = [older[None], newer[None]]
    copies[side] = ~copies[side]
    found = yardstick.read(Forced(value=older, nudged=copies[0]), Forced(value=newer, nudged=copies[1]))
    assert 0 < found.ratio <= 1


def test_integers_that_float64_takes_for_the_same_are_apart() -> None:
    older = np.full((3, 1), 2**60, np.int64)
    assert read(older, older + 1).ratio == math.inf
    assert read(older, older.copy()).ratio == 0


# Grain


def test_the_grain_is_that_of_the_outputs_own_dtype() -> None:
    older = ones().astype(np.float32)
    step = np.float32(2) ** -23
    single = read(older, older + step)
    assert single.ratio == pytest.approx(0.5)
    assert read(ones(), ones() + float(step)).ratio > 1e8
    assert yardstick.grain_of(older).max() == pytest.approx(2 * 2.0**-23)
    assert yardstick.grain_of(ones()).max() == pytest.approx(2 * 2.0**-52)
    assert not yardstick.grain_of(np.ones((2, 2), np.int64)).any()


def test_the_coarser_of_two_dtypes_decides() -> None:
    found = read(ones().astype(np.float32), ones() + 2.0**-25)
    assert 0 < found.ratio < 1


def test_the_grain_of_the_largest_numbers_is_finite() -> None:
    largest = np.array([[1e300], [np.finfo(np.float64).max], [1e300], [np.inf], [np.nan]])
    assert np.isfinite(yardstick.grain_of(largest)).all()
    assert (yardstick.grain_of(largest) > 0).all()


def test_one_exploded_state_does_not_blunt_the_others() -> None:
    older = ones(states=9)
    older[4] = 1e15
    newer = older.copy()
    newer[0] += 1e-9
    assert read(older, newer).ratios[0] >= THRESHOLD
    assert read(older, newer).ratios[1:].tolist() == [0] * 8


def test_zeros_do_not_pull_the_scale_of_a_column_down() -> None:
    """A coordinate that is mostly zero is still rounded as what it is where it is not."""
    older = np.zeros((9, 1))
    older[0] = 1e3
    newer = older.copy()
    newer[5] = 1e-13
    assert read(older, newer).ratio < THRESHOLD
    newer[5] = 1e-9
    assert read(older, newer).ratio >= THRESHOLD


def test_a_relative_change_of_1e_9_is_beyond_the_threshold_and_a_last_place_is_not() -> None:
    older = np.random.default_rng(0).uniform(0.5, 2, (512, 4))
    copies = [older + sign * np.spacing(older) for sign in (-1, 1)]
    assert read(older, older * (1 + 1e-9), *copies).beyond.all()
    assert not read(older, older + 8 * np.spacing(older), *copies).beyond.any()


def test_where_the_largest_ratio_is_and_how_large_the_change() -> None:
    older = np.full((4, 3), 10.0)
    newer = older.copy()
    newer[2, 1] += 0.5
    found = read(older, newer)
    assert (found.state, found.entry, found.separation) == (2, 1, 0.5)
    assert found.relative == pytest.approx(0.05)


# Shapes


def test_recordings_of_single_steps_become_states_and_nudges() -> None:
    value = np.arange(12.0).reshape(3, 1, 2, 2)
    copies = np.concatenate([value + 100, value + 200])
    forced = Forced.of(value, copies)
    assert forced.value.shape == (3, 4)
    assert forced.nudged.shape == (2, 3, 4)
    assert (forced.nudged[1] - forced.value == 200).all(), "copy by copy, each in the order of the states"
    assert Forced.of(value).nudged.shape == (0, 3, 4)
    assert Forced.of(np.zeros((3, 1))).value.shape == (3, 1)


def test_the_envelope_is_of_the_same_state() -> None:
    older, newer, copy = ones(), ones(), ones()
    newer[0] += 1e-6
    copy[1] += 1e-3
    assert read(older, newer, copy).ratios[0] >= THRESHOLD


def test_an_output_without_entries_has_no_ratio() -> None:
    forced = Forced.of(np.zeros((5, 1, 0)), np.zeros((10, 1, 0)))
    assert yardstick.null_ratio(forced) == 0


# The null


def test_the_null_is_the_last_nudge_against_the_others() -> None:
    value = ones()
    step = np.spacing(1.0)
    copies = np.array([value + 3 * step, value - step, value + 5 * step])
    assert yardstick.null_ratio(Forced(value=value, nudged=copies)) == pytest.approx(5 / (3 + 2))
    assert yardstick.null_ratio(Forced(value=value, nudged=copies[::-1])) == pytest.approx(3 / (5 + 2))
    assert yardstick.null_ratio(Forced(value=value, nudged=copies[:1])) == pytest.approx(3 / 2)
    assert yardstick.null_ratio(Forced.of(value)) == 0


def test_the_null_leaves_out_the_mirror_of_the_last_nudge() -> None:
    """A smooth step moves as far under a nudge as under its mirror, which would make every null about one."""
    value = ones()
    step = np.spacing(1.0)
    pairs = np.array([value + 2 * step, value - 2 * step, value + 8 * step, value - 8 * step])
    assert yardstick.null_ratio(Forced(value=value, nudged=pairs)) == pytest.approx(8 / (2 + 2))
    assert yardstick.null_ratio(Forced(value=value, nudged=pairs[2:])) == pytest.approx(8 / 2)


def test_the_typical_response_is_that_of_all_but_the_most_sensitive_states() -> None:
    value = np.ones((100, 2))
    copy = value + 1e-15
    copy[:5, 0] = 50.0
    typical = yardstick.typical_response(Forced(value=value, nudged=copy[None]))
    np.testing.assert_allclose(typical, 1e-15, rtol=0.2)
