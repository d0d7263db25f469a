"""Dictionaries: differences along trajectories, what is refused, and orthogonal terms that convert back exactly."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import get_args

import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from analysis.algebra import dictionaries
from analysis.algebra.dictionaries import Family, OrthogonalDictionary
from analysis.algebra.errors import BadData
from analysis.algebra.ideals import as_floats
from analysis.algebra.polynomials import monomial_values, monomials

UNHURRIED = settings(deadline=None, max_examples=30)
FAMILIES: tuple[Family, ...] = get_args(Family)
BOUNDS = st.tuples(st.floats(-1e6, 1e6), st.floats(1e-8, 1e6))

Floats = NDArray[np.float64]


def drawn(count: int, variables: int = 2, seed: int = 0) -> Floats:
    return np.random.default_rng(seed).uniform(-1, 1, (count, variables))


def condition(design: Floats) -> float:
    """Of columns of length one, as recovery has them."""
    return float(np.linalg.cond(design / np.linalg.norm(design, axis=0)))


# Differences


def test_differences_are_those_of_monomials_within_each_trajectory() -> None:
    first, second = drawn(10), drawn(7, seed=1)
    exponents = monomials(2, 3, lowest=1)
    found = dictionaries.differences([first, second], exponents)
    assert found.shape == (9 + 6, len(exponents))
    np.testing.assert_array_equal(found[9:], np.diff(monomial_values(second, exponents), axis=0))


def test_the_constant_would_be_conserved_by_anything() -> None:
    assert not dictionaries.differences([drawn(10)], monomials(2, 0)).any()
    assert dictionaries.differences([drawn(10)], monomials(2, 2, lowest=1)).any(axis=0).all()


@pytest.mark.parametrize(
    ("samples", "lag", "stride"), [(100, 50, 49), (200, 50, 50), (11, 50, 5), (3, 50, 1), (2, 50, 1)]
)
def test_a_lag_is_at_most_half_of_a_trajectory(samples: int, lag: int, stride: int) -> None:
    trajectory = drawn(samples)
    found = dictionaries.differences([trajectory], monomials(2, 1, lowest=1), lag)
    np.testing.assert_array_equal(found, trajectory[stride:] - trajectory[:-stride])


# Refusals


def not_a_number(value: float) -> list[Floats]:
    given_ones = [drawn(5), drawn(5)]
    given_ones[1][3, 0] = value
    return given_ones


@pytest.mark.parametrize(
    ("trajectories", "told"),
    [
        ([], "there are no trajectories"),
        ([drawn(5, 3)], "trajectory 0 has the shape (5, 3) and must have 2 columns"),
        ([drawn(5), drawn(5)[:, 0]], "trajectory 1 has the shape (5,) and must have 2 columns"),
        ([drawn(5), drawn(1)], "trajectory 1 has 1 samples, and at least 2 are needed"),
        (not_a_number(np.nan), "trajectory 1 is not a number at sample 3"),
        (not_a_number(np.inf), "trajectory 1 is not a number at sample 3"),
    ],
)
def test_what_nothing_can_be_said_of_is_refused(trajectories: list[Floats], told: str) -> None:
    with pytest.raises(BadData, match=re.escape(told)):
        dictionaries.checked(trajectories, 2)


def test_good_trajectories_pass() -> None:
    dictionaries.checked([drawn(2), drawn(300)], 2)


# Orthogonal dictionaries


@pytest.mark.parametrize("family", FAMILIES)
def test_the_way_to_monomials_and_back_is_exact(family: Family) -> None:
    samples = drawn(50, 3) * [1, 100, 1e-4] + [0, 7, 0.123]
    rows = OrthogonalDictionary.standardising(samples, 3, family).to_monomials()
    assert all(isinstance(value, Fraction) for row in rows for value in row)
    matrix = sympy.Matrix([[sympy.Rational(each.numerator, each.denominator) for each in row] for row in rows])
    assert matrix.is_upper
    assert matrix * matrix.inv() == sympy.eye(len(rows))


@pytest.mark.parametrize("family", FAMILIES)
def test_terms_of_degree_two_are_those_of_the_textbook(family: Family) -> None:
    plain = OrthogonalDictionary(family=family, centres=(Fraction(1),), scales=(Fraction(2),), degree=2)
    square = {"legendre": Fraction(3, 2), "chebyshev": Fraction(2)}[family]
    lowest = {"legendre": Fraction(1, 2), "chebyshev": Fraction(1)}[family]  # square · u² − lowest, u = (x − 1)/2
    assert [row[2] for row in plain.to_monomials()] == [square / 4 - lowest, -square / 2, square / 4]


@UNHURRIED
@given(st.lists(BOUNDS, min_size=2, max_size=2), st.sampled_from(FAMILIES))
def test_values_agree_with_the_converted_monomials(bounds: list[tuple[float, float]], family: Family) -> None:
    centre, width = np.array(bounds).T
    samples = drawn(30) * width + centre
    dictionary = OrthogonalDictionary.standardising(samples, 2, family)
    exact = np.array(dictionary.to_monomials(), dtype=object)
    raw = np.array(
        [[Fraction(x) ** a * Fraction(y) ** b for a, b in dictionary.exponents] for x, y in samples.tolist()]
    )
    np.testing.assert_allclose(dictionary.on(samples), (raw @ exact).astype(np.float64), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_coefficients_are_converted_to_those_over_monomials(family: Family) -> None:
    samples = drawn(40) * [3, 0.5] + [1, 2]
    dictionary = OrthogonalDictionary.standardising(samples, 3, family)
    coefficients = np.random.default_rng(1).normal(size=len(dictionary.exponents))
    values = monomial_values(samples, dictionary.exponents) @ (as_floats(dictionary.to_monomials()) @ coefficients)
    np.testing.assert_allclose(values, dictionary.on(samples) @ coefficients, atol=1e-10)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    ("low", "high"), [(-1, 1), (100, 101), (1e5, 1.001e5), (1e-5, 1.2e-5), (-1e-6, 1e-6), (0, 1e9)]
)
def test_terms_stay_apart_where_raw_monomials_are_nearly_the_same(family: Family, low: float, high: float) -> None:
    samples = drawn(500)
    samples[:, 1] = low + (high - low) * (samples[:, 1] + 1) / 2
    dictionary = OrthogonalDictionary.standardising(samples, 4, family)
    assert condition(dictionary.on(samples)) < 5
    assert condition(dictionary.on(samples)) < condition(monomial_values(samples, dictionary.exponents))


@pytest.mark.parametrize("value", [0.0, 1.0, -1e-7, 123456.789])
def test_a_variable_that_is_constant_up_to_rounding_is_not_stretched_to_fill_an_interval(value: float) -> None:
    samples = drawn(50)
    samples[:, 1] = value * (1 + 1e-15 * np.sign(samples[:, 1]))
    dictionary = OrthogonalDictionary.standardising(samples, 1)
    spread = np.ptp(dictionary.on(samples)[:, 2])
    assert spread < 1e-5
