"""Ideals: exact answers to what follows from what, and whether two sets of laws say the same."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy.polys.rings import PolyElement

from analysis.algebra import ideals
from analysis.algebra.errors import BadLaw
from analysis.algebra.ideals import LARGEST_DEGREE, Decision, Ideal, TookTooLong, equality
from analysis.algebra.polynomials import monomials, polynomial_ring

UNHURRIED = settings(deadline=None, max_examples=50)
CUBIC = polynomial_ring(("x", "y", "z"))
X, Y, Z = CUBIC.gens
TWISTED = Ideal.of([Y - X**2, Z - X**3], CUBIC)

ACROBOT = polynomial_ring(("c1", "s1", "c2", "s2", "w1", "w2"))
C1, S1, C2, S2, W1, W2 = ACROBOT.gens
UNIT_NORMS = [C1**2 + S1**2 - 1, C2**2 + S2**2 - 1]

TERMS = st.dictionaries(st.sampled_from(monomials(3, 4)), st.fractions(-9, 9, max_denominator=9), max_size=5)
RATIONALS = st.fractions(-9, 9, max_denominator=9)


def rational(value: Fraction) -> PolyElement:
    return sympy.QQ(value.numerator, value.denominator)


@st.composite
def polynomials(draw: st.DrawFn) -> PolyElement:
    return CUBIC.from_dict({power: rational(value) for power, value in draw(TERMS).items()})


def reacher(second: Fraction = Fraction(11, 10)) -> list[PolyElement]:
    """Its five laws, lengths in units of the first link."""
    ring = polynomial_ring(("c1", "c2", "s1", "s2", "tx", "ty", "w1", "w2", "dx", "dy", "dz"))
    c1, c2, s1, s2, tx, ty, _, _, dx, dy, dz = ring.gens
    link = rational(second)
    return [
        c1**2 + s1**2 - 1,
        c2**2 + s2**2 - 1,
        dz,
        dx + tx - c1 - (c1 * c2 - s1 * s2) * link,
        dy + ty - s1 - (s1 * c2 + c1 * s2) * link,
    ]


# The basis


def test_the_twisted_cubic_has_three_elements_for_its_two_generators() -> None:
    assert set(TWISTED.basis) == {X**2 - Y, X * Y - Z, Y**2 - X * Z}
    assert TWISTED.contains(Y**2 - X * Z)


def test_the_basis_does_not_depend_on_how_the_ideal_was_generated() -> None:
    other = Ideal.of([X * Y - Z, (X**2 - Y) * 7, Y**2 - X * Z, (Y - X**2) * Z], CUBIC)
    assert other.basis == TWISTED.basis


def test_reachers_five_laws_have_a_basis_of_ten() -> None:
    laws = reacher()
    assert len(Ideal.of(laws, laws[0].ring).basis) == 10


def test_no_laws_have_only_zero_as_a_consequence() -> None:
    empty = Ideal.of([], CUBIC)
    assert empty.basis == Ideal.of([CUBIC.zero], CUBIC).basis == ()
    assert empty.normal_form(X * Y + 1) == X * Y + 1
    assert empty.contains(CUBIC.zero)
    assert not empty.contains(X)
    assert empty.filtered_dimension(3) == 0


def test_laws_that_contradict_each_other_have_everything_as_a_consequence() -> None:
    everything = Ideal.of([X - 1, X - 2], CUBIC)
    assert everything.contains(CUBIC.one)
    assert everything.filtered_dimension(2) == math.comb(5, 2)


# Normal forms


@UNHURRIED
@given(polynomials())
def test_a_normal_form_is_its_own_normal_form_and_differs_by_what_follows(polynomial: PolyElement) -> None:
    reduced = TWISTED.normal_form(polynomial)
    assert TWISTED.normal_form(reduced) == reduced
    assert TWISTED.contains(polynomial - reduced)
    assert all(TWISTED.is_standard(power) for power in reduced.monoms())


@UNHURRIED
@given(polynomials(), polynomials(), RATIONALS, RATIONALS)
def test_the_normal_form_is_linear(first: PolyElement, second: PolyElement, one: Fraction, other: Fraction) -> None:
    a, b = rational(one), rational(other)
    reduced = TWISTED.normal_form(first) * a + TWISTED.normal_form(second) * b
    assert TWISTED.normal_form(first * a + second * b) == reduced


@UNHURRIED
@given(polynomials(), polynomials())
def test_every_combination_of_laws_follows_from_them(first: PolyElement, second: PolyElement) -> None:
    assert TWISTED.contains(first * (Y - X**2) + second * (Z - X**3))
    assert not TWISTED.contains(first * (Y - X**2) + 1)


def test_membership_is_decided_and_not_measured() -> None:
    slightly = sympy.QQ(1, 10**30)
    assert TWISTED.contains(X**3 - Z)
    assert not TWISTED.contains(X**3 - Z + X * slightly)


@pytest.mark.parametrize(("degree", "trivial"), [(2, 1), (3, 5), (4, 15)])
def test_one_quadric_has_as_many_multiples_as_there_are_monomials_to_multiply_it_by(degree: int, trivial: int) -> None:
    ring = polynomial_ring(("x", "y", "z", "w"))
    x, y, z, w = ring.gens
    for law in (x**2 + y**2 - 1, x * w - y * z):
        assert Ideal.of([law], ring).filtered_dimension(degree) == trivial == math.comb(4 + degree - 2, degree - 2)


def test_acrobots_two_unit_norms_fill_fourteen_directions_at_degree_three() -> None:
    known = Ideal.of(UNIT_NORMS, ACROBOT)
    assert [known.filtered_dimension(degree) for degree in (1, 2, 3)] == [0, 2, 14]


# The matrix of the normal form


@pytest.mark.parametrize(
    ("ideal", "degree"), [(TWISTED, 3), (Ideal.of(UNIT_NORMS, ACROBOT), 3), (Ideal.of([X * 3 - Y * 7 + 1], CUBIC), 2)]
)
def test_the_matrix_is_an_exact_projection_onto_the_standard_monomials(ideal: Ideal, degree: int) -> None:
    exponents = monomials(ideal.ring.ngens, degree)
    rows = ideal.normal_form_matrix(exponents)
    assert all(isinstance(value, Fraction) for row in rows for value in row)
    matrix = sympy.Matrix([[sympy.Rational(each.numerator, each.denominator) for each in row] for row in rows])
    assert matrix * matrix == matrix
    standard = [ideal.is_standard(exponent) for exponent in exponents]
    assert matrix.rank() == sum(standard) == len(exponents) - ideal.filtered_dimension(degree)
    for place, is_standard in enumerate(standard):
        unit = [int(row == place) for row in range(len(exponents))]
        if is_standard:
            assert list(matrix[:, place]) == unit
        else:
            assert not any(matrix[place, :])


def test_the_matrix_does_what_the_normal_form_does() -> None:
    exponents = monomials(3, 3)
    rows = TWISTED.normal_form_matrix(exponents)
    column = [row[exponents.index((2, 1, 0))] for row in rows]
    assert {exponents[place]: value for place, value in enumerate(column) if value} == {(1, 0, 1): 1}  # x²y → y² → xz
    assert ideals.as_floats(rows).shape == (20, 20)


def test_a_dictionary_that_a_normal_form_leaves_is_refused() -> None:
    with pytest.raises(BadLaw, match=r"the normal form of x\*\*2 leaves the dictionary"):
        TWISTED.normal_form_matrix(((0, 0, 0), (2, 0, 0)))


# Equality


def test_sets_that_generate_each_other_are_equal() -> None:
    assert equality([Y - X**2, Z - X**3], TWISTED.basis) is Decision.EQUAL
    assert equality([X + Y, X - Y], [X * 5, Y / 3]) is Decision.EQUAL
    assert equality(reacher(), [*reacher(), reacher()[0] * reacher()[3]]) is Decision.EQUAL


def test_a_set_that_says_less_or_more_is_different() -> None:
    assert equality(UNIT_NORMS, UNIT_NORMS[:1]) is Decision.DIFFERENT
    assert equality(UNIT_NORMS[:1], UNIT_NORMS) is Decision.DIFFERENT
    assert equality([X], [X**2]) is Decision.DIFFERENT


@pytest.mark.parametrize("exponent", [1, 3, 6, 12, 40])
def test_a_constant_that_is_off_by_any_rational_is_another_system(exponent: int) -> None:
    moved = Fraction(11, 10) + Fraction(1, 10**exponent)
    assert equality(reacher(), reacher(moved)) is Decision.DIFFERENT
    assert equality(reacher(moved), reacher(moved)) is Decision.EQUAL


@UNHURRIED
@given(polynomials(), RATIONALS.filter(bool))
def test_scaling_laws_and_adding_multiples_of_others_changes_nothing(law: PolyElement, factor: Fraction) -> None:
    other = Y - X**2
    assert equality([law, other], [other * rational(factor), law + other * X]) is Decision.EQUAL


@pytest.mark.parametrize(("first", "second"), [(None, [X]), ([X], None), (None, None), ([], []), ([], [X]), ([X], [])])
def test_nothing_recovered_is_no_difference(
    first: Sequence[PolyElement] | None, second: Sequence[PolyElement] | None
) -> None:
    assert equality(first, second) is Decision.UNAVAILABLE


def test_what_is_too_large_to_be_computed_is_no_difference() -> None:
    assert equality([X ** (LARGEST_DEGREE + 1)], [X]) is Decision.UNAVAILABLE
    assert equality([X], [X, Y ** (LARGEST_DEGREE + 1)]) is Decision.UNAVAILABLE
    assert equality([X**LARGEST_DEGREE], [X]) is Decision.DIFFERENT


def test_laws_in_different_variables_cannot_be_compared() -> None:
    with pytest.raises(BadLaw, match="different variables"):
        equality([X], [polynomial_ring(("x", "y")).gens[0]])


def cubics(count: int) -> list[PolyElement]:
    """Dense cubics in six variables: their basis takes longer than anybody has tried."""
    rng = np.random.default_rng(1)
    ring = polynomial_ring(tuple("abcdef"))
    return [
        ring.from_dict({power: ring.domain(int(rng.integers(1, 9))) for power in monomials(6, 3)}) for _ in range(count)
    ]


def test_a_basis_that_takes_too_long_is_unavailable_and_no_difference() -> None:
    hard = cubics(5)
    with pytest.raises(TookTooLong, match=r"^the reduced basis of these laws takes more than 0\.2 s$"):
        Ideal.of(hard, hard[0].ring, seconds=0.2)
    assert equality(hard, hard[:4], seconds=0.2) is Decision.UNAVAILABLE


def test_a_basis_is_in_the_ring_that_was_asked_for() -> None:
    assert all(each.ring == X.ring for each in TWISTED.basis)
    assert equality(TWISTED.basis, TWISTED.basis, seconds=60.0) is Decision.EQUAL
