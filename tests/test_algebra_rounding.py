"""Rounding: coefficients become the small fractions that they are near to, and are left alone where they are not."""

from __future__ import annotations

import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from analysis.algebra import rounding
from analysis.algebra.polynomials import Exponents, coefficient_vector, polynomial_ring
from analysis.algebra.rounding import CLOSE, LARGEST_DENOMINATOR

UNHURRIED = settings(deadline=None, max_examples=50)
RING = polynomial_ring(("x", "y"))
X, Y = RING.gens
LINEAR: Exponents = ((1, 0), (0, 1), (0, 0))

REACHER = polynomial_ring(("c1", "c2", "s1", "s2", "tx", "dx"))
KINEMATICS: Exponents = (
    (0, 0, 0, 0, 0, 1), (0, 0, 0, 0, 1, 0), (1, 0, 0, 0, 0, 0), (1, 1, 0, 0, 0, 0), (0, 0, 1, 1, 0, 0),
)  # fmt: skip
IN_METRES = np.array([1, 1, -0.1, -0.11, 0.11]) / 3.7
IN_FIRST_LINKS = np.array([1, 1, -1, -1.1, 1.1]) / 3.7

Floats = NDArray[np.float64]
SMALL = st.integers(1, LARGEST_DENOMINATOR).flatmap(lambda whole: st.integers(-whole, whole).map(lambda n: n / whole))


# Small fractions


@UNHURRIED
@given(SMALL, SMALL, st.sampled_from([1.0, -1.0]), st.floats(1e-6, 1e6), st.floats(-CLOSE / 2, CLOSE / 2))
def test_fractions_are_found_again_whatever_the_scale_of_the_law(
    second: float, third: float, sign: float, scale: float, off: float
) -> None:
    law = np.array([sign, second + off, third])
    found = rounding.snapped(law * scale, LINEAR, RING)
    assert found.polynomial is not None
    assert not found.left
    np.testing.assert_allclose(coefficient_vector(found.polynomial, LINEAR), [sign, second, third], atol=1e-12)


def test_dust_is_not_there() -> None:
    found = rounding.snapped(np.array([2.0, 2 * CLOSE * 0.9, -1.0]), LINEAR, RING)
    assert found.polynomial == X - sympy.QQ(1, 2)


def test_what_is_near_no_small_fraction_is_named_and_nothing_is_rounded() -> None:
    found = rounding.snapped(np.array([1.0, np.pi / 4, 0.5]), LINEAR, RING)
    assert found.polynomial is None
    assert dict(found.left) == {(0, 1): pytest.approx(np.pi / 4)}


@pytest.mark.parametrize("healthy", [1.0, 0.5, 0.1, 11 / 16])
@pytest.mark.parametrize("fault", [1e-5, 1e-4, 1e-3])
def test_a_faulty_value_is_not_rounded_to_the_healthy_one(healthy: float, fault: float) -> None:
    found = rounding.snapped(np.array([1.0, healthy * (1 - fault), 0.0]), LINEAR, RING)
    if healthy * fault > CLOSE:
        assert found.polynomial is None or found.polynomial != X + Y * sympy.Rational(healthy).limit_denominator(16)
    else:  # the prior that a system is right wins: why it must not be used on one under test
        assert found.polynomial is not None


# Units


def test_reachers_kinematics_are_no_small_fractions_in_metres() -> None:
    found = rounding.snapped(IN_METRES, KINEMATICS, REACHER)
    assert found.polynomial is None
    assert {exponent for exponent, _ in found.left} == {KINEMATICS[3], KINEMATICS[4]}
    assert rounding.snapped(IN_METRES, KINEMATICS, REACHER, denominator=100).polynomial is not None


def test_reachers_kinematics_are_small_fractions_in_units_of_the_first_link() -> None:
    found = rounding.snapped(IN_FIRST_LINKS, KINEMATICS, REACHER).polynomial
    c1, c2, s1, s2, tx, dx = REACHER.gens
    assert found is not None
    assert found.monic() * sympy.QQ(-11, 10) == dx + tx - c1 - (c1 * c2 - s1 * s2) * sympy.QQ(11, 10)
