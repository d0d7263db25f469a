"""Ideals over the rationals: the one canonical basis, normal forms, membership, equality.

For a fixed order of monomials the reduced Gröbner basis of an ideal is unique, so that two sets of laws are the same
if and only if their bases are. Every answer here is exact: no tolerance enters. What cannot be decided is said to be
unavailable, because a failed computation is no evidence of a difference.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from sympy.polys.groebnertools import groebner
from sympy.polys.rings import PolyElement, PolyRing

from analysis.algebra.errors import BadLaw
from analysis.algebra.polynomials import Exponents, monomials

Floats = NDArray[np.float64]

LARGEST_DEGREE = 12
"""Of a generator. The worst case of a Gröbner basis is doubly exponential in it; laws of simulators have 1 to 4."""


class Decision(StrEnum):
    """Whether two ideals are the same."""

    EQUAL = "equal"
    DIFFERENT = "different"
    UNAVAILABLE = "unavailable"
    """There is nothing to compare, or it is too large to be computed: this is not a difference."""


@dataclass(frozen=True)
class Ideal:
    """All consequences of a few polynomial laws, held by their reduced Gröbner basis (grevlex, over Q)."""

    ring: PolyRing
    basis: tuple[PolyElement, ...]

    @classmethod
    def of(cls, generators: Iterable[PolyElement], ring: PolyRing) -> Ideal:
        """The ideal that the generators span; without any, the zero ideal."""
        given = [generator for generator in generators if generator]
        return cls(ring, tuple(groebner(given, ring)) if given else ())

    def normal_form(self, polynomial: PolyElement) -> PolyElement:
        """What is left of a polynomial after everything in the ideal has been taken out of it."""
        return polynomial.rem(list(self.basis)) if self.basis else polynomial

    def contains(self, polynomial: PolyElement) -> bool:
        """Whether it follows from the laws. Decided, not measured."""
        return not self.normal_form(polynomial)

    def is_standard(self, exponent: tuple[int, ...]) -> bool:
        """Whether a monomial is its own normal form: no leading monomial of the basis divides it."""
        return not any(
            all(power >= needed for power, needed in zip(exponent, leading, strict=True)) for leading in self._leading
        )

    def filtered_dimension(self, degree: int) -> int:
        """How many independent polynomials of at most this degree the ideal holds.

        The order is by degree first, so these are as many as there are monomials that are not standard.
        """
        return sum(not self.is_standard(exponent) for exponent in monomials(self.ring.ngens, degree))

    def normal_form_matrix(self, exponents: Exponents) -> list[list[Fraction]]:
        """The exact matrix of the normal-form map on the span of these monomials: column j is what becomes of the j-th.

        Raises:
            BadLaw: where a normal form leaves the span, as it cannot on all monomials up to a degree.
        """
        place = {exponent: row for row, exponent in enumerate(exponents)}
        matrix = [[Fraction(0)] * len(exponents) for _ in exponents]
        for column, exponent in enumerate(exponents):
            for power, value in self.normal_form(self.ring.from_dict({exponent: self.ring.domain.one})).terms():
                if power not in place:
                    raise BadLaw(f"the normal form of {self.ring.from_dict({exponent: 1})} leaves the dictionary")
                matrix[place[power]][column] = Fraction(int(value.numerator), int(value.denominator))
        return matrix

    @property
    def _leading(self) -> Sequence[tuple[int, ...]]:
        return [polynomial.LM for polynomial in self.basis]


def as_floats(matrix: Sequence[Sequence[Fraction]]) -> Floats:
    """An exact matrix, rounded once."""
    return np.array([[float(value) for value in row] for row in matrix])


def equality(first: Sequence[PolyElement] | None, second: Sequence[PolyElement] | None) -> Decision:
    """Whether two sets of laws have the same consequences, by reducing each modulo the other.

    Unavailable where one is not there (nothing was recovered), where a degree is beyond ``LARGEST_DEGREE`` or memory
    does not suffice. Time is not limited: a basis of few polynomials in six variables may take minutes. It decides
    whether the polynomials say the same; not whether they say everything about a system, nor whether they are right.
    """
    if not first or not second:
        return Decision.UNAVAILABLE
    if any(_degree(generator) > LARGEST_DEGREE for generator in (*first, *second)):
        return Decision.UNAVAILABLE
    rings = {generator.ring for generator in (*first, *second)}
    if len(rings) > 1:
        raise BadLaw("laws in different variables cannot be compared")
    ring = rings.pop()
    try:
        one, other = Ideal.of(first, ring), Ideal.of(second, ring)
    except MemoryError:
        return Decision.UNAVAILABLE
    same = all(other.contains(each) for each in first) and all(one.contains(each) for each in second)
    return Decision.EQUAL if same else Decision.DIFFERENT


def _degree(polynomial: PolyElement) -> int:
    return max((sum(power) for power in polynomial.monoms()), default=0)
