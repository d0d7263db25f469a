"""Turn measured coefficients into exact ones: make them free of units, then take the nearest small fractions.

That specifications hold round numbers is a prior on a system being *right*. It serves to find the laws of a reference.
It must not be used on a system under test: it would round a faulty constant back to the healthy one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import mpmath
import numpy as np
import sympy
from numpy.typing import NDArray
from sympy.polys.rings import PolyElement, PolyRing

from analysis.algebra.polynomials import Exponents

Floats = NDArray[np.float64]

LARGEST_DENOMINATOR = 16
"""The paper's. Reacher's kinematics needs 100 in metres, and 11 in units of its first link, its largest term made 1."""

CLOSE = 1e-6
"""A coefficient this near to a fraction is it, zero included. Recovered ones are right to 1e-8 on clean data."""

PRECISE = 1e-8
"""How exact a coefficient is that was recovered from clean data."""

_CHANCE = 1e-3
"""Relations that PSLQ may find where there is none, on average. It bounds the integers in them: the more constants, the
smaller the integers that relate anything to anything at the precision there is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapped:
    """An exact polynomial, and what could not be made exact."""

    polynomial: PolyElement | None
    """``None`` where a coefficient is near no small fraction."""
    left: tuple[tuple[tuple[int, ...], float], ...] = ()
    """Monomials whose coefficient is near none, with that coefficient."""


def nondimensional(coefficients: Floats, exponents: Exponents, units: Sequence[float]) -> Floats:
    """Coefficients of the same law in variables divided by their units, the largest of them made 1.

    Limits: the units are taken from the caller: with other ones other coefficients come out, none truer.
    """
    powers = np.array(exponents, dtype=np.float64)
    scaled = coefficients * np.prod(np.asarray(units, dtype=np.float64) ** powers, axis=1)
    return np.asarray(scaled / scaled[np.argmax(np.abs(scaled))], dtype=np.float64)


def snapped(
    coefficients: Floats, exponents: Exponents, ring: PolyRing, denominator: int = LARGEST_DENOMINATOR
) -> Snapped:
    """The polynomial with every coefficient replaced by the nearest fraction of at most that denominator.

    Limits: it does not decide that the fraction is the true value, only that no simpler one is as near.
    """
    largest = float(np.max(np.abs(coefficients)))
    terms, left = {}, []
    for exponent, value in zip(exponents, (coefficients / largest).tolist(), strict=True):
        nearest = Fraction(value).limit_denominator(denominator)
        if abs(float(nearest) - value) > CLOSE:
            left.append((exponent, value))
        elif nearest:
            terms[exponent] = sympy.QQ(nearest.numerator, nearest.denominator)
    return Snapped(polynomial=None if left else ring.from_dict(terms), left=tuple(left))


def relation(value: float, constants: Mapping[str, float], precision: float = PRECISE) -> sympy.Expr | None:
    """The value as a rational combination of 1 and the constants, by PSLQ; ``None`` where no small one is there.

    The fallback for coefficients that are genuinely irrational: a ratio of inertias, a root. The value is right to
    ``precision``: the less so, the smaller the integers that are believed.

    Limits: a relation that the digits allow, not one that is proven; with many constants there is always one.

    >>> relation(0.5 * 2**0.5 + 1, {"root2": 2**0.5})
    root2/2 + 1
    """
    given = [value, 1.0, *constants.values()]
    largest = max(2, int((_CHANCE / precision / 2 ** len(given)) ** (1 / (len(given) - 1))))
    found = mpmath.pslq([mpmath.mpf(each) for each in given], tol=precision, maxcoeff=largest, maxsteps=10**5)
    if found is None or found[0] == 0:
        return None
    names = [sympy.Integer(1), *(sympy.Symbol(name) for name in constants)]
    return sympy.nsimplify(-sum(count * name for count, name in zip(found[1:], names, strict=True)) / found[0])
