"""How far apart: the same for every comparison, also of what is not a number."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra import numpy as arrays

from analysis.distance import Array, apart, in_last_places

NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [(1.0, 3.5, 2.5), (NAN, NAN, 0.0), (NAN, 1.0, INF), (1.0, NAN, INF), (INF, INF, 0.0), (INF, -INF, INF),
     (INF, NAN, INF), (-1e308, 1.7e308, INF), (0.0, -0.0, 0.0)],
)  # fmt: skip
def test_floats(one: float, other: float, expected: float) -> None:
    assert apart(np.array([one]), np.array([other]))[0] == expected


def test_integers_that_double_precision_takes_for_the_same() -> None:
    large = np.array([2**60, 2**60], dtype=np.int64)
    assert apart(large, large + np.array([0, 1])).tolist() == [0.0, 1.0]


@given(one=arrays.arrays(np.float32, 3), other=arrays.arrays(np.float64, 3))
def test_it_is_symmetric_and_zero_for_the_same_alone(one: Array, other: Array) -> None:
    found = apart(one, other)
    np.testing.assert_array_equal(found, apart(other, one))
    same = (one == other) | (np.isnan(one) & np.isnan(other))
    np.testing.assert_array_equal(found == 0, same)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_next_number_is_one_last_place_away(dtype: type) -> None:
    values: Array = np.array([1.0, 1e-3, np.finfo(dtype).max], dtype=dtype)
    for value in values:
        one, other = np.array([value]), np.nextafter(np.array([value]), dtype(0))
        found = in_last_places(apart(one, other), one, other)
        assert found == pytest.approx(1.0) or (value == 1.0 and found == pytest.approx(0.5))


def test_the_coarser_dtype_has_the_last_place() -> None:
    one, other = np.array([1.0], np.float32), np.array([1.0 + 2.0**-23])
    assert in_last_places(apart(one, other), one, other) == pytest.approx(1.0)


@pytest.mark.parametrize("values", [np.array([1]), np.array([True]), np.array([NAN])])
def test_there_may_be_no_last_place(values: Array) -> None:
    other = np.zeros_like(values)
    assert in_last_places(apart(values, other), values, other) is None
    assert in_last_places(np.empty(0), values[:0], other[:0]) == 0.0
