"""Dictionaries: candidate terms of a law, evaluated on data, one column a term.

A conserved quantity is whatever its initial condition made it, so it is sought among *differences* of monomials along
a trajectory. The constant is left out there: its difference is zero for every system, and would be found in each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import sympy
from numpy.polynomial import chebyshev, legendre
from numpy.typing import NDArray

from analysis.algebra.errors import BadData
from analysis.algebra.polynomials import Exponents, monomial_values, monomials

Floats = NDArray[np.float64]
Family = Literal["legendre", "chebyshev"]

_DENOMINATOR = 1000
"""Variables are moved and scaled by rationals with at most this denominator, in units of a power of ten that is theirs,
so that the way back is exact."""

_CONSTANT = 1e-9
"""A variable that varies by less than this beside its size is constant: rounding must not come to fill an interval."""

LEAST = 2
"""Samples of a trajectory: one has no difference, and nothing to vary."""

LARGEST = 1e20
"""Of a sample: the squares of a polynomial of degree seven are numbers up to it."""


def checked(trajectories: Sequence[Floats], variables: int) -> None:
    """Refuse what no dictionary can be evaluated on.

    Limits: it sees shapes and sizes. That a column is the quantity which it is called is not for it to see.

    Raises:
        BadData: in one sentence.
    """
    if not trajectories:
        raise BadData("there are no trajectories")
    for number, trajectory in enumerate(trajectories):
        if trajectory.ndim != 2 or trajectory.shape[1] != variables:
            raise BadData(f"trajectory {number} has the shape {trajectory.shape} and must have {variables} columns")
        if len(trajectory) < LEAST:
            raise BadData(f"trajectory {number} has {len(trajectory)} samples, and at least {LEAST} are needed")
        if not np.isfinite(trajectory).all():
            row = int(np.flatnonzero(~np.isfinite(trajectory).all(axis=1))[0])
            raise BadData(f"trajectory {number} is not a number at sample {row}")
        if np.abs(trajectory).max() > LARGEST:
            raise BadData(f"trajectory {number} reaches {np.abs(trajectory).max():.1e}, which is no state of a system")


def differences(trajectories: Sequence[Floats], exponents: Exponents, lag: int = 1) -> Floats:
    """How every monomial changes over ``lag`` samples, within each trajectory.

    A conserved quantity has no difference at any lag, everything else grows with the time between, and noise does not:
    a longer lag is free robustness. It is at most half of a trajectory, so that a short one still gives differences.

    Limits: it does not know where an episode was reset within a trajectory: such a jump counts as a difference.
    """
    blocks = []
    for trajectory in trajectories:
        stride = max(1, min(lag, (len(trajectory) - 1) // 2))
        values = monomial_values(trajectory, exponents)
        blocks.append(values[stride:] - values[:-stride])
    return np.vstack(blocks)


@dataclass(frozen=True, slots=True, kw_only=True)
class OrthogonalDictionary:
    """Products of Legendre or Chebyshev polynomials of standardised variables, up to a total degree.

    Numbers are found in it, because raw monomials of mixed scale are nearly dependent; laws are read in monomials,
    and the way there is an exact rational matrix.
    """

    family: Family
    centres: tuple[Fraction, ...]
    scales: tuple[Fraction, ...]
    degree: int

    @classmethod
    def standardising(cls, samples: Floats, degree: int, family: Family = "legendre") -> OrthogonalDictionary:
        """Such that every variable of the samples fills the interval from -1 to 1.

        Limits: the interval is that of these samples; others may leave it, where the terms grow quickly.
        """
        low, high = samples.min(axis=0), samples.max(axis=0)
        widths = np.maximum((high - low) / 2, _CONSTANT * np.maximum(np.abs(low), np.abs(high)))
        widths[widths == 0] = 1.0
        units = [Fraction(10) ** math.floor(math.log10(width)) for width in widths]
        centres = tuple(_rounded(value, unit) for value, unit in zip((low + high) / 2, units, strict=True))
        scales = tuple(_rounded(width, unit) for width, unit in zip(widths, units, strict=True))
        return cls(family=family, centres=centres, scales=scales, degree=degree)

    @property
    def exponents(self) -> Exponents:
        """Degrees of the factors of each term, and the monomials that they are converted to."""
        return monomials(len(self.centres), self.degree)

    def on(self, samples: Floats) -> Floats:
        """The value of every term on every sample.

        Limits: the terms are orthogonal where samples are spread as the family wants them, and not on others.
        """
        standard = (samples - [float(each) for each in self.centres]) / [float(each) for each in self.scales]
        table = _VANDERMONDE[self.family](standard, self.degree)  # samples × variables × degrees
        columns = [
            np.prod([table[:, variable, power] for variable, power in enumerate(exponent)], axis=0)
            for exponent in self.exponents
        ]
        return np.stack(columns, axis=1)

    def to_monomials(self) -> list[list[Fraction]]:
        """The exact matrix that turns coefficients over these terms into coefficients over monomials.

        Limits: the matrix is exact, and badly conditioned all the same: what is rounded before it is applied is lost.
        """
        symbols = sympy.symbols(f"x:{len(self.centres)}")
        place = {exponent: row for row, exponent in enumerate(self.exponents)}
        matrix = [[Fraction(0)] * len(place) for _ in place]
        factors = [
            [self._factor(symbol, variable, power) for power in range(self.degree + 1)]
            for variable, symbol in enumerate(symbols)
        ]
        for column, exponent in enumerate(self.exponents):
            term = sympy.Poly(1, *symbols, domain=sympy.QQ)
            for variable, power in enumerate(exponent):
                term *= sympy.Poly(factors[variable][power], *symbols, domain=sympy.QQ)
            for monomial, value in term.terms():
                matrix[place[monomial]][column] = Fraction(int(value.p), int(value.q))
        return matrix

    def _factor(self, symbol: sympy.Symbol, variable: int, power: int) -> sympy.Expr:
        centre, scale = self.centres[variable], self.scales[variable]
        argument = (symbol - sympy.Rational(centre.numerator, centre.denominator)) / sympy.Rational(
            scale.numerator, scale.denominator
        )
        return sympy.expand(_SYMBOLIC[self.family](power, argument))


_VANDERMONDE: dict[Family, Callable[..., Any]] = {
    "legendre": legendre.legvander,
    "chebyshev": chebyshev.chebvander,
}
_SYMBOLIC: dict[Family, Callable[[int, sympy.Expr], sympy.Expr]] = {
    "legendre": sympy.legendre,
    "chebyshev": sympy.chebyshevt,
}


def _rounded(value: float, unit: Fraction) -> Fraction:
    return (Fraction(value) / unit).limit_denominator(_DENOMINATOR) * unit
