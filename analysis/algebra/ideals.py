"""Ideals over the rationals: the one canonical basis, normal forms, membership, equality.

For a fixed order of monomials the reduced Gröbner basis of an ideal is unique, so that two sets of laws are the same
if and only if their bases are. Every answer here is exact: no tolerance enters. What cannot be decided is said to be
unavailable, because a failed computation is no evidence of a difference.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

import numpy as np
import sympy
from numpy.typing import NDArray
from sympy.polys.groebnertools import groebner
from sympy.polys.rings import PolyElement, PolyRing

from analysis.algebra.errors import BadLaw
from analysis.algebra.polynomials import Exponents, monomials

Floats = NDArray[np.float64]

LARGEST_DEGREE = 12
"""Of a generator. The worst case of a Gröbner basis is doubly exponential in it; laws of simulators have 1 to 4."""

SECONDS = 60.0
"""That a basis may take. Those of the sets here take 0.1 s at most; few polynomials of degree four in six variables may
take hours, and nobody knows beforehand which."""


class TookTooLong(BadLaw):
    """A basis that was not found in the time given to it. Whether there is a simple one is not known then."""


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
    def of(cls, generators: Iterable[PolyElement], ring: PolyRing, seconds: float = SECONDS) -> Ideal:
        """The ideal that the generators span; without any, the zero ideal.

        Limits: it holds the consequences of these laws and of no others: a law that nobody wrote down is in it only if
        it follows.

        Raises:
            TookTooLong: where its basis takes more seconds.
        """
        given = [generator for generator in generators if generator]
        if not given:
            return cls(ring, ())
        timed = PolyRing(ring.symbols, ring.domain, _Within(seconds))
        basis = groebner([timed.from_dict(dict(generator)) for generator in given], timed)
        return cls(ring, tuple(ring.from_dict(dict(each)) for each in basis))

    def normal_form(self, polynomial: PolyElement) -> PolyElement:
        """What is left of a polynomial after everything in the ideal has been taken out of it.

        Limits: zero says that the polynomial follows; what is left otherwise depends on the order of monomials and has
        no meaning of its own.
        """
        return polynomial.rem(list(self.basis)) if self.basis else polynomial

    def contains(self, polynomial: PolyElement) -> bool:
        """Whether it follows from the laws.

        Limits: decided and not measured, for the laws as they are written. Whether a system obeys them is another
        question.
        """
        return not self.normal_form(polynomial)

    def is_standard(self, exponent: tuple[int, ...]) -> bool:
        """Whether a monomial is its own normal form: no leading monomial of the basis divides it.

        Limits: it speaks of one monomial; a sum of others may still lie in the ideal.
        """
        return not any(
            all(power >= needed for power, needed in zip(exponent, leading, strict=True)) for leading in self._leading
        )

    def standard_monomials(self, degree: int, lowest: int = 0) -> Exponents:
        """Monomials of ``lowest`` to ``degree`` that are their own normal forms: a basis of all modulo the ideal.

        They span the image of the normal-form map, and are orthonormal in any scaling of the columns.

        Limits: a basis for this order of monomials, one of many.
        """
        return tuple(each for each in monomials(self.ring.ngens, degree, lowest) if self.is_standard(each))

    def filtered_dimension(self, degree: int) -> int:
        """How many independent polynomials of at most this degree the ideal holds.

        The order is by degree first, so these are as many as there are monomials that are not standard.

        Limits: it counts, and does not tell ideals apart: different ones may have the same dimensions.
        """
        return len(monomials(self.ring.ngens, degree)) - len(self.standard_monomials(degree))

    def normal_form_matrix(self, exponents: Exponents) -> list[list[Fraction]]:
        """The exact matrix of the normal-form map on the span of these monomials: column j is what becomes of the j-th.

        Limits: exact, and as large as the dictionary squared. It knows the laws and nothing of data.

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


class _Within:
    """The order of monomials, until time is up: the algorithm asks it at every step, and has no other brake."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._end = time.monotonic() + seconds

    def __call__(self, monomial: tuple[int, ...]) -> object:
        if time.monotonic() > self._end:
            raise TookTooLong(f"the reduced basis of these laws takes more than {self._seconds:g} s")
        return sympy.grevlex(monomial)


def as_floats(matrix: Sequence[Sequence[Fraction]]) -> Floats:
    """An exact matrix, rounded once.

    Limits: fractions beyond the largest float raise; nothing says how much was lost.
    """
    return np.array([[float(value) for value in row] for row in matrix])


def equality(
    first: Sequence[PolyElement] | None, second: Sequence[PolyElement] | None, seconds: float = SECONDS
) -> Decision:
    """Whether two sets of laws have the same consequences, by reducing each modulo the other.

    Unavailable where one is not there (nothing was recovered), where a degree is beyond ``LARGEST_DEGREE``, where a
    basis takes more than these seconds or memory does not suffice.

    Limits: it decides whether the polynomials say the same; not whether they say everything about a system, nor whether
    they are right.
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
        one, other = Ideal.of(first, ring, seconds), Ideal.of(second, ring, seconds)
    except (MemoryError, TookTooLong):
        return Decision.UNAVAILABLE
    same = all(other.contains(each) for each in first) and all(one.contains(each) for each in second)
    return Decision.EQUAL if same else Decision.DIFFERENT


def _degree(polynomial: PolyElement) -> int:
    return max((sum(power) for power in polynomial.monoms()), default=0)
