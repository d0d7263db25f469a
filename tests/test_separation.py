from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

from analysis.separation import Separation, separation

Array = NDArray[Any]

UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
DTYPES = (np.float16, np.float32, np.float64, np.int64, np.uint8, np.bool_)
SHAPES = arrays.array_shapes(min_dims=2, max_dims=4, min_side=0, max_side=3)


@st.composite
def recordings(draw: Callable[[st.SearchStrategy[Any]], Any]) -> tuple[Array, Array]:
    """Two recordings of one shape, each of any dtype, often equal in many entries."""
    shape = draw(SHAPES)
    older: Array = draw(arrays.arrays(draw(st.sampled_from(DTYPES)), shape))
    if draw(st.booleans()):
        newer = older.copy()
        if older.size and draw(st.booleans()):
            newer.flat[draw(st.integers(0, older.size - 1))] = draw(arrays.from_dtype(older.dtype))
        return older, newer
    return older, draw(arrays.arrays(draw(st.sampled_from(DTYPES)), shape))


def single(value: Any, dtype: Any = np.float64) -> Array:
    return np.array([[value]], dtype=dtype)


def last_place(value: np.floating[Any]) -> float:
    """The distance from a finite number to its neighbour above, as if there were one above the largest."""
    largest = np.finfo(value.dtype).max
    below = abs(value) if abs(value) < largest else np.nextafter(largest, value.dtype.type(0))
    return float(np.nextafter(below, value.dtype.type(np.inf))) - float(below)


def measured(older: Array, newer: Array) -> Separation:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return separation("observation", older, newer)


def equal_but_for_sign_of_zero_and_payload(older: Array, newer: Array) -> bool:
    """Entry by entry in plain Python, independent of how the code does it."""
    pairs = zip(older.ravel().tolist(), newer.ravel().tolist(), strict=True)
    return all(one == other or (one != one and other != other) for one, other in pairs)


@UNHURRIED
@given(recordings())
def test_it_is_symmetric(pair: tuple[Array, Array]) -> None:
    older, newer = pair
    assert measured(older, newer) == measured(newer, older)


@UNHURRIED
@given(recordings())
def test_it_is_zero_exactly_where_nothing_but_zero_signs_and_payloads_differ(pair: tuple[Array, Array]) -> None:
    older, newer = pair
    found = measured(older, newer)
    assert (found.horizon == 0) == equal_but_for_sign_of_zero_and_payload(older, newer)
    same_bytes = older.dtype == newer.dtype and older.tobytes() == newer.tobytes()
    assert found.same_bits == same_bytes


@UNHURRIED
@given(recordings())
def test_it_is_never_negative_nor_not_a_number_and_the_horizon_includes_the_first_step(
    pair: tuple[Array, Array],
) -> None:
    found = measured(*pair)
    assert 0 <= found.first_step <= found.horizon
    for ulps in (found.first_step_ulps, found.horizon_ulps):
        assert ulps is None or 0 <= ulps < math.inf


@UNHURRIED
@given(recordings(), st.data())
def test_the_first_step_looks_at_step_zero_only(pair: tuple[Array, Array], data: st.DataObject) -> None:
    older, newer = pair
    assume(older.shape[1] > 1)
    disturbed = newer.copy()
    disturbed[:, 1:] = data.draw(arrays.arrays(newer.dtype, newer[:, 1:].shape))
    one, other = measured(older, newer), measured(older, disturbed)
    assert (one.first_step, one.first_step == 0) == (other.first_step, other.first_step == 0)


def test_a_difference_at_a_later_step_shows_over_the_horizon_alone() -> None:
    older = np.zeros((2, 3, 2))
    newer = older.copy()
    newer[1, 2, 0] = 0.5
    found = measured(older, newer)
    assert (found.first_step, found.first_step_ulps, found.horizon) == (0.0, 0.0, 0.5)


def test_a_difference_at_step_zero_of_any_trajectory_is_seen() -> None:
    older = np.ones((3, 2, 2))
    newer = older.copy()
    newer[2, 0, 1] += 0.25
    assert measured(older, newer).first_step == 0.25


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@UNHURRIED
@given(value=st.floats(allow_nan=False, allow_infinity=False, width=32))
@example(value=0.0)
@example(value=1.0)
@example(value=-1.0)
@example(value=2.0**-126)
def test_the_next_number_is_one_unit_away_in_spacing_of_the_larger(dtype: type[np.floating[Any]], value: float) -> None:
    assume(value < np.finfo(dtype).max)
    here = dtype(value)
    above = np.nextafter(here, dtype(np.inf))
    expected = (np.float64(above) - np.float64(here)) / last_place(max(abs(here), abs(above)))
    found = measured(single(here, dtype), single(above, dtype))
    assert found.first_step_ulps == found.horizon_ulps == expected
    assert found.first_step_ulps in (0.5, 1.0)  # one half only where the larger begins a binade
    assert found.first_step == np.float64(above) - np.float64(here)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_ulps_count_several_units(dtype: type[np.floating[Any]]) -> None:
    spacing = np.spacing(dtype(1))
    found = measured(single(1, dtype), single(1 + 7 * spacing, dtype))
    assert found.first_step_ulps == 7


def test_ulps_stand_at_the_entry_with_the_largest_difference() -> None:
    older = np.array([[[1.0, 1000.0]]])
    newer = older + np.array([[[2.0**-52, 2.0**-40]]])
    found = measured(older, newer)
    assert found.first_step == 2.0**-40
    assert found.first_step_ulps == 2.0**-40 / np.spacing(1000.0)


@pytest.mark.parametrize(
    ("older", "newer", "expected"),
    [
        (math.nan, 1.0, math.inf),
        (math.nan, math.inf, math.inf),
        (math.inf, -math.inf, math.inf),
        (math.inf, 1.0, math.inf),
        (math.nan, math.nan, 0.0),
        (math.inf, math.inf, 0.0),
        (-math.inf, -math.inf, 0.0),
        (0.0, -0.0, 0.0),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_not_a_number_and_infinity(older: float, newer: float, expected: float, dtype: Any) -> None:
    found = measured(single(older, dtype), single(newer, dtype))
    assert found.first_step == found.horizon == expected
    assert found.first_step_ulps == (None if expected else 0.0)


def test_two_payloads_of_not_a_number_are_other_bits_but_no_distance() -> None:
    quiet, other = np.array([[0x7FF8000000000000]]), np.array([[0x7FF8000000000001]])
    found = measured(quiet.view(np.float64), other.view(np.float64))
    assert not found.same_bits
    assert (found.first_step, found.horizon) == (0.0, 0.0)


def test_one_bad_entry_does_not_hide_behind_finite_ones() -> None:
    older = np.zeros((2, 2, 3))
    newer = older + 1e300
    newer[1, 1, 2] = np.nan
    found = measured(older, newer)
    assert (found.first_step, found.horizon) == (1e300, math.inf)


def test_a_change_of_shape_is_an_interface_change_in_words_without_direction() -> None:
    one, other = np.zeros((2, 5, 11)), np.zeros((2, 5, 9))
    found = measured(one, other)
    assert found == measured(other, one)
    assert found.interface == "observation has shapes 11 and 9"
    assert (found.first_step, found.horizon, found.first_step_ulps) == (math.inf, math.inf, None)
    assert not found.same_bits


def test_a_scalar_that_became_a_vector() -> None:
    assert measured(np.zeros((2, 5)), np.zeros((2, 5, 1))).interface == "observation has shapes 1 and scalar"


def test_a_change_of_dtype_is_an_interface_change_and_still_measured() -> None:
    older, newer = single(0.1, np.float32), single(0.1, np.float64)
    found = measured(older, newer)
    assert found.interface == "observation has dtypes float32 and float64"
    assert not found.same_bits
    assert found.first_step == abs(float(np.float32(0.1)) - 0.1)
    assert found.first_step_ulps is not None
    assert found.first_step_ulps <= 0.5  # of the coarser dtype: the rounding of 0.1 to float32


def test_equal_values_of_two_dtypes_are_at_no_distance_but_not_the_same_bits() -> None:
    found = measured(np.ones((1, 1), np.float32), np.ones((1, 1), np.float64))
    assert (found.same_bits, found.first_step, found.horizon) == (False, 0.0, 0.0)
    assert found.interface


def test_byte_order_is_a_dtype() -> None:
    assert measured(np.ones((1, 1), ">f8"), np.ones((1, 1), "<f8")).interface


def test_flags_have_no_last_place() -> None:
    found = measured(np.array([[True, False]]), np.array([[True, True]]))
    assert found == Separation(
        output="observation",
        same_bits=False,
        first_step=0.0,
        first_step_ulps=None,
        horizon=1.0,
        horizon_ulps=None,
        horizon_grains=np.inf,
    )


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, np.uint64])
def test_integers_do_not_wrap_around(dtype: Any) -> None:
    limits = np.iinfo(dtype)
    found = measured(single(limits.min, dtype), single(limits.max, dtype))
    assert found.first_step == pytest.approx(float(limits.max) - float(limits.min))
    assert found.first_step_ulps is None


def test_neighbouring_large_integers_are_apart() -> None:
    """Beyond 2**53 two integers can meet in one float64; they are not the same for that."""
    older, newer = np.array([[2**53]]), np.array([[2**53 + 1]])
    assert measured(older, newer).first_step > 0


@pytest.mark.parametrize("shape", [(0, 0), (0, 5, 2), (3, 0, 2), (3, 5, 0)])
def test_empty_recordings_are_the_same(shape: tuple[int, ...]) -> None:
    assert measured(np.zeros(shape), np.zeros(shape)) == Separation.none("observation")


def test_empty_recordings_of_two_dtypes() -> None:
    found = measured(np.zeros((0, 5), np.float32), np.zeros((0, 5), np.float64))
    assert (found.first_step, found.horizon, bool(found.interface)) == (0.0, 0.0, True)


def test_the_largest_numbers_neither_warn_nor_vanish() -> None:
    largest = np.finfo(np.float64).max
    found = measured(single(largest), single(-largest))
    assert (found.first_step, found.first_step_ulps) == (math.inf, None)
    found = measured(single(largest), single(np.nextafter(largest, 0)))
    assert (found.first_step, found.first_step_ulps) == (last_place(largest), 1.0)


def test_the_largest_single_precision_numbers() -> None:
    largest = np.finfo(np.float32).max
    found = measured(single(largest, np.float32), single(-largest, np.float32))
    assert found.first_step == 2 * float(largest)
    assert found.first_step_ulps == 2 * float(largest) / last_place(largest)


def test_a_value_beyond_the_coarser_dtype_has_a_finite_count_of_ulps_or_none() -> None:
    found = measured(single(1, np.float16), single(1e6, np.float64))
    assert found.first_step == 999999
    assert found.first_step_ulps is None or math.isfinite(found.first_step_ulps)


def test_the_inputs_are_left_as_they_were() -> None:
    older, newer = single(math.nan), single(1.0)
    measured(older, newer)
    assert math.isnan(older[0, 0])
    assert newer[0, 0] == 1.0


def test_the_same_array_in_another_memory_order_is_the_same() -> None:
    array = np.arange(12.0).reshape(2, 2, 3)
    assert measured(array, np.asfortranarray(array)) == Separation.none("observation")


def test_none_is_named_after_the_output() -> None:
    assert Separation.none("reward") == replace(Separation.none("state"), output="reward")
