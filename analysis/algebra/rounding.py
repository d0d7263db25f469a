"""Turn measured coefficients into exact ones: take the nearest small fractions.

That specifications hold round numbers is a prior on a system being *right*. It serves to find the laws of a reference.
It must not be used on a system under test: it would round a faulty constant back to the healthy one.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapped:
    """An exact polynomial, and what could not be made exact."""

    polynomial: PolyElement | None
    """``None`` where a coefficient is near no small fraction."""
    left: tuple[tuple[tuple[int, ...], float], ...] = ()
    """Monomials whose coefficient is near none, with that coefficient."""


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
