"""Polynomials: how many monomials there are, and what they and their sums come to on data."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sympy.polys.rings import PolyElement

from analysis.algebra import expressions
from analysis.algebra.polynomials import (
    Compiled,
    coefficient_vector,
    exact,
    monomial_values,
    monomials,
    narrowed,
    polynomial_ring,
    used,
)

UNHURRIED = settings(deadline=None, max_examples=50)
RING = polynomial_ring(("x", "y", "z"))
X, Y, Z = RING.gens
DICTIONARIES = {
    4: (5, 15, 35, 70),
    6: (7, 28, 84, 210),
    8: (9, 45, 165, 495),
    11: (12, 78, 364, 1365),
    17: (18, 171, 1140, 5985),
}
"""The paper's table of dictionary sizes: by number of variables, of degree 1 to 4."""

Floats = NDArray[np.float64]
TERMS = st.dictionaries(
    st.sampled_from(monomials(3, 4)), st.fractions(-9, 9, max_denominator=9), min_size=1, max_size=6
)


def made(terms: dict[tuple[int, ...], Fraction]) -> PolyElement:
    return RING.from_dict({power: sympy.QQ(value.numerator, value.denominator) for power, value in terms.items()})


def drawn(*shape: int) -> Floats:
    return np.random.default_rng(0).normal(size=(*shape, 3))


# Monomials


@pytest.mark.parametrize("variables", DICTIONARIES)
def test_a_dictionary_is_as_large_as_the_papers_table_says(variables: int) -> None:
    for degree, count in enumerate(DICTIONARIES[variables], start=1):
        found = monomials(variables, degree)
        assert len(found) == count == math.comb(variables + degree, degree)
        assert len(set(found)) == count
        assert all(len(each) == variables and 0 <= sum(each) <= degree for each in found)


def test_monomials_of_lower_degree_come_first_and_the_constant_can_be_left_out() -> None:
    degrees = [sum(each) for each in monomials(3, 3)]
    assert degrees == sorted(degrees)
    assert monomials(3, 3, lowest=1) == monomials(3, 3)[1:]
    assert monomials(3, 3, lowest=3) == tuple(each for each in monomials(3, 3) if sum(each) == 3)


def test_values_of_monomials_are_products_of_powers() -> None:
    samples, exponents = drawn(20), monomials(3, 4)
    direct = np.prod(samples[:, None, :] ** np.array(exponents), axis=2)
    np.testing.assert_allclose(monomial_values(samples, exponents), direct, rtol=1e-13)


def test_monomials_need_not_come_in_order_nor_with_those_that_they_are_made_of() -> None:
    samples = drawn(5)
    values = monomial_values(samples, ((2, 0, 3), (0, 0, 0), (0, 1, 0)))
    np.testing.assert_allclose(values[:, 0], samples[:, 0] ** 2 * samples[:, 2] ** 3, rtol=1e-14)
    assert values[:, 1].tolist() == [1] * 5
    assert values[:, 2].tolist() == samples[:, 1].tolist()


# Polynomials on data


@UNHURRIED
@given(st.lists(TERMS, min_size=1, max_size=3))
def test_values_and_scales_are_those_of_a_direct_sum(given_terms: list[dict[tuple[int, ...], Fraction]]) -> None:
    samples = drawn(4)
    values, scales = Compiled.of(made(terms) for terms in given_terms).on(samples)
    for place, terms in enumerate(given_terms):
        parts = np.array([float(value) * np.prod(samples ** np.array(power), axis=1) for power, value in terms.items()])
        size = np.abs(parts).sum(axis=0)
        np.testing.assert_allclose(scales[:, place], size, rtol=1e-12)
        assert (np.abs(values[:, place] - parts.sum(axis=0)) <= 1e-14 * size).all()


@pytest.mark.parametrize("shape", [(), (7,), (2, 7), (2, 3, 7), (0,)])
def test_samples_may_have_any_leading_shape(shape: tuple[int, ...]) -> None:
    samples = drawn(*shape)
    x, y, z = np.moveaxis(samples, -1, 0)
    values, scales = Compiled.of([X**2 - Y, 3 - Y * Z]).on(samples)
    assert values.shape == scales.shape == (*shape, 2)
    np.testing.assert_allclose(values, np.stack([x**2 - y, 3 - y * z], axis=-1), atol=1e-14)
    np.testing.assert_allclose(scales, np.stack([x**2 + np.abs(y), 3 + np.abs(y * z)], axis=-1), atol=1e-14)


def test_samples_are_left_as_they_were() -> None:
    samples = drawn(7)
    kept = samples.copy()
    Compiled.of([X, Y * Z]).on(samples)
    assert (samples == kept).all()


def test_no_polynomials_have_no_values() -> None:
    assert Compiled.of([]).on(drawn(7))[0].shape == (7, 0)
    values, scales = Compiled.of([RING.zero]).on(drawn(7))
    assert values.tolist() == scales.tolist() == [[0.0]] * 7


# Between forms


def test_a_polynomial_that_was_read_is_an_element_of_its_ring() -> None:
    assert exact(expressions.polynomial("x**2/3 - 0.11*y*z", ("x", "y", "z"))) == X**2 / 3 - Y * Z * sympy.QQ(11, 100)


def test_a_ring_is_ordered_by_degree_and_then_reverse_lexicographically() -> None:
    assert [each for each, _ in (X + Y**2 + X * Z + Z**3).terms()] == [(0, 0, 3), (0, 2, 0), (1, 0, 1), (1, 0, 0)]
    assert polynomial_ring(("x", "y", "z")) is RING


def test_coefficients_over_a_list_of_monomials() -> None:
    assert coefficient_vector(X**2 / 2 - 3 * Y + 1, monomials(3, 1)).tolist() == [1, 0, -3, 0]


def test_a_polynomial_of_few_variables_lives_in_a_ring_of_only_those() -> None:
    smaller = polynomial_ring(("x", "z"))
    assert used((X**2 - Z + 1).monoms()) == {0, 2}
    assert narrowed(X**2 - Z + 1, smaller, (0, 2)) == smaller.gens[0] ** 2 - smaller.gens[1] + 1
