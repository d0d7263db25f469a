"""Polynomials with rational coefficients, their monomials, and their values on data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import combinations_with_replacement

import numpy as np
import sympy
from numpy.typing import NDArray
from sympy.polys.rings import PolyElement, PolyRing

Floats = NDArray[np.float64]
Exponents = tuple[tuple[int, ...], ...]
"""Monomials: for each, the power of every variable."""


AT_ONCE = 4096
"""Samples that are evaluated together: their monomials stay in the processor's cache, so that cost stays linear."""


@cache
def polynomial_ring(variables: tuple[str, ...]) -> PolyRing:
    """Polynomials over the rationals in these variables, ordered by degree and then reverse lexicographically.

    Limits: one order of monomials, because bases of different orders cannot be compared.
    """
    return PolyRing(variables, sympy.QQ, sympy.grevlex)


def exact(polynomial: sympy.Poly) -> PolyElement:
    """The same polynomial as an element of its ring.

    Limits: it expects rational coefficients; one with an open constant in it is refused by SymPy.
    """
    variables = tuple(str(symbol) for symbol in polynomial.gens)
    return polynomial_ring(variables).from_dict(polynomial.set_domain(sympy.QQ).rep.to_dict())


@cache
def monomials(variables: int, degree: int, lowest: int = 0) -> Exponents:
    """All monomials of ``lowest`` to ``degree``, those of lower degree first.

    Limits: it lists candidates, of which physics uses few. Their number grows as the degree's power of the variables.

    >>> monomials(2, 2)
    ((0, 0), (1, 0), (0, 1), (2, 0), (1, 1), (0, 2))
    """
    chosen = (
        combination
        for total in range(lowest, degree + 1)
        for combination in combinations_with_replacement(range(variables), total)
    )
    return tuple(tuple(combination.count(variable) for variable in range(variables)) for combination in chosen)


def monomial_values(samples: Floats, exponents: Exponents) -> Floats:
    """The value of every monomial on every sample: samples × monomials.

    Each is a known one times a variable, so that a whole dictionary costs one multiplication a column.

    Limits: plain floating point: high powers of large samples overflow, and nothing is said of it here.
    """
    variables = np.ascontiguousarray(samples.T)
    known: dict[tuple[int, ...], Floats] = {(0,) * len(variables): np.ones(len(samples))}
    rows = np.empty((len(exponents), len(samples)))  # a monomial a row: each is written in one piece
    for row, exponent in zip(rows, exponents, strict=True):
        row[:] = _value(exponent, variables, known)
    return rows.T


def _value(exponent: tuple[int, ...], variables: Floats, known: dict[tuple[int, ...], Floats]) -> Floats:
    if exponent not in known:
        variable = next(place for place, power in enumerate(exponent) if power)
        lower = tuple(power - (place == variable) for place, power in enumerate(exponent))
        known[exponent] = _value(lower, variables, known) * variables[variable]
    return known[exponent]


@dataclass(frozen=True)
class Compiled:
    """A few polynomials in the same variables, ready to be evaluated on any number of samples at once."""

    exponents: Exponents
    coefficients: Floats
    """Polynomials × monomials."""

    @classmethod
    def of(cls, polynomials: Iterable[PolyElement]) -> Compiled:
        """Gather the monomials of all of them, so that each is evaluated once.

        Limits: coefficients are rounded to floats; what is exact stays with the polynomials.
        """
        terms = [{power: float(value) for power, value in each.terms()} for each in polynomials]
        exponents = tuple(sorted({power for each in terms for power in each}))
        coefficients = np.array([[each.get(power, 0.0) for power in exponents] for each in terms])
        return cls(exponents, coefficients.reshape(len(terms), len(exponents)))

    @cached_property
    def magnitudes(self) -> Floats:
        """Of the coefficients."""
        return np.abs(self.coefficients)

    def on(self, samples: Floats) -> tuple[Floats, Floats]:
        """The value of each polynomial on samples of shape (…, variables), and the sum of the sizes of its terms.

        The second is its natural scale there: a residual is small or large only beside it.

        Limits: a value that is not zero is not yet a broken law: how much is too much is not decided here.
        """
        flat = samples.reshape(-1, samples.shape[-1])
        values, scales = (np.empty((len(flat), len(self.coefficients))) for _ in range(2))
        for start in range(0, len(flat), AT_ONCE):
            chosen = slice(start, start + AT_ONCE)
            columns = monomial_values(flat[chosen], self.exponents)
            values[chosen] = columns @ self.coefficients.T
            scales[chosen] = np.abs(columns) @ self.magnitudes.T
        shape = (*samples.shape[:-1], len(self.coefficients))
        return values.reshape(shape), scales.reshape(shape)


def used(exponents: Iterable[tuple[int, ...]]) -> set[int]:
    """Places of the variables that occur in monomials.

    Limits: it sees which variables are written, and not whether they cancel.
    """
    return {place for exponent in exponents for place, power in enumerate(exponent) if power}


def narrowed(polynomial: PolyElement, ring: PolyRing, places: Sequence[int]) -> PolyElement:
    """The same polynomial in a ring of only some of its variables, which must be all that occur in it.

    Limits: it does not check that the variables left away do not occur; they would be lost.
    """
    return ring.from_dict({tuple(power[place] for place in places): value for power, value in polynomial.terms()})


def widened(polynomial: PolyElement, ring: PolyRing, places: Sequence[int]) -> PolyElement:
    """The way back: the same polynomial in a ring of more variables, its own at these places.

    Limits: the new variables do not occur in it; nothing is claimed of them.
    """
    return ring.from_dict({widened_power(power, ring.ngens, places): value for power, value in polynomial.terms()})


def widened_power(power: Sequence[int], variables: int, places: Sequence[int]) -> tuple[int, ...]:
    """A monomial among more variables, its own at these places.

    Limits: places must be distinct, which is not checked.
    """
    wide = dict(zip(places, power, strict=True))
    return tuple(wide.get(place, 0) for place in range(variables))


def coefficient_vector(polynomial: PolyElement, exponents: Sequence[tuple[int, ...]]) -> Floats:
    """Its coefficients over a list of monomials.

    Limits: coefficients outside the list are dropped without a word.
    """
    terms = dict(polynomial.terms())
    return np.array([float(terms.get(exponent, 0)) for exponent in exponents])
