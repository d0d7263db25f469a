"""A law as a vector of coefficients that depends on its constants, fitted to what was found.

There are two ways to read what a choice of constants leaves of a law: by the angle between its coefficients and the
recovered ones, as the paper does, and on the data themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np
import sympy
from numpy.typing import NDArray
from scipy import optimize

from analysis.algebra.evidence import Evidence
from analysis.algebra.ideals import Ideal
from analysis.algebra.polynomials import Exponents
from analysis.algebra.recovery import Recovered
from analysis.algebra.reference import Kind, Law

Floats = NDArray[np.float64]

FITS = 1e-3
"""A template explains a law where no more than this of it is left, as a vector of coefficients. Clean data leave 1e-8,
a fault that no constant explains 4e-3 and more (the paper's catalogue)."""

PAIR_FITS = 1e-5
"""The same with two constants free, which can bend further: the nearest that a structural fault of the catalogue comes
to a pair is 4e-3, and two true faults leave 3e-8."""

SEPARATED = 10.0
"""An explanation is told from another where it leaves ten times less. The paper's value. On the data of a healthy
Acrobot no two constants leave less than a quarter of what the specification does, however short or coarse they are."""

_EXACT = 1e-12
"""What is left of coefficients below this is rounding, and as good as nothing."""
_STARTS = (1.0, 0.5, 2.0, 4.0)
"""Multiples of the specified value at which a fit of one constant begins."""


class Reading(Protocol):
    """A way to say what a law leaves unexplained."""

    @property
    def least(self) -> float:
        """No law leaves less that means anything."""
        ...

    def left(self, coefficients: Floats) -> Floats:
        """A vector whose length is what a law of these coefficients leaves.

        Limits: a measure of one law; of two readings the lengths cannot be compared.
        """
        ...

    def most(self, freed: int) -> float:
        """The most that a law may leave and still explain what was found, with so many constants free.

        Limits: it bounds what is acceptable, and says nothing of which of two acceptable laws is right.
        """
        ...


@dataclass(frozen=True)
class ByCoefficients:
    """The part of a law that is not along the recovered one, which has length one: the paper's reading."""

    found: Floats
    least: float = _EXACT

    def left(self, coefficients: Floats) -> Floats:
        """Over the law's own length: the scale drops out.

        Limits: it weighs all coefficients alike, those that the data determine and those that they do not.
        """
        length = float(np.linalg.norm(coefficients))
        if length == 0:
            return np.ones_like(coefficients)
        across = coefficients - (coefficients @ self.found) * self.found
        return np.asarray(across / length, dtype=np.float64)

    def most(self, freed: int) -> float:
        """A fixed fraction.

        Limits: it knows nothing of how noisy the data were.
        """
        return FITS if freed < 2 else PAIR_FITS


@dataclass(frozen=True)
class OnData:
    """How much a law varies on the data that it is to explain."""

    evidence: Evidence

    @property
    def least(self) -> float:
        """What the recovered law leaves; it was fitted to the same data, so that only a part of it is physics."""
        return self.evidence.least

    def left(self, coefficients: Floats) -> Floats:
        """Beside the size of the law's terms.

        Limits: on these data; not what it would leave on others.
        """
        return self.evidence.variation(coefficients)

    def most(self, freed: int) -> float:
        """What the recovered law leaves where it is held out, or ten times what it leaves where it was fitted.

        The specification of a healthy Acrobot leaves up to 1.25 of the first or 15 of the second, never more than both;
        a leak of torque 2.3 and 650. Constants that are free make no difference: nothing here was fitted by them.

        Limits: with few trajectories what is held out is large and nearly everything explains them; then only the
        comparison of explanations decides.
        """
        assert freed >= 0
        return max(self.evidence.held_out, SEPARATED * self.evidence.least)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """Some constants freed, and what is left of the law at best."""

    names: tuple[str, ...]
    values: tuple[float, ...]
    residual: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """The law's coefficients as a function of its constants, and the reading that they are held against."""

    parameters: tuple[str, ...]
    specified: Floats
    coefficients: Callable[..., Sequence[float]]
    reading: Reading

    @classmethod
    def of(
        cls,
        law: Law,
        parameters: Mapping[str, Fraction],
        known: Ideal,
        found: Recovered,
        evidence: Evidence | None = None,
    ) -> Template:
        """Over the monomials of what was found: what is known is divided out of the template too.

        Without evidence it is read by coefficients.

        Limits: it does not decide that the law has this form; ``fit`` says how far it is from it.
        """
        terms = _reduced(law, known)
        symbols = [sympy.Symbol(name) for name in law.parameters]
        exponents = found.exponents if evidence is not None else _exponents(law, terms, found.exponents)
        return cls(
            parameters=law.parameters,
            specified=np.array([float(parameters[name]) for name in law.parameters]),
            coefficients=sympy.lambdify(symbols, [terms.get(exponent, 0) for exponent in exponents], "math"),
            reading=_reading(evidence, _unit(found, exponents), np.array([each in terms for each in exponents])),
        )

    def fit(self, names: Sequence[str], starts: Sequence[Sequence[float]] = ()) -> Fit:
        """Free these constants and leave as little of the law as possible.

        Limits: the best of a few local searches, from multiples of the specified values and from ``starts``: no proof
        that nothing leaves less.
        """
        places = [self.parameters.index(name) for name in names]
        specified = self.specified[places]
        if not places:
            return Fit(names=(), values=(), residual=float(np.linalg.norm(self._left(specified, places))))
        begins = [*(specified * factor for factor in (_STARTS if len(names) == 1 else _STARTS[:1])), *starts]
        fits = [
            optimize.least_squares(self._left, begin, args=(places,), method="lm", xtol=1e-15, ftol=1e-15, gtol=1e-15)
            for begin in begins
        ]
        best = min(fits, key=lambda fit: float(fit.cost))
        return Fit(names=tuple(names), values=tuple(best.x.tolist()), residual=float(np.linalg.norm(best.fun)))

    def _left(self, values: Floats, places: Sequence[int]) -> Floats:
        chosen = self.specified.copy()
        chosen[list(places)] = values
        return self.reading.left(np.array(self.coefficients(*chosen.tolist()), dtype=np.float64))


def _reading(evidence: Evidence | None, found: Floats, form: NDArray[np.bool_]) -> Reading:
    """On the data, unless an integrator has added terms to the law that no constant makes, and little of them.

    A fit to the data would bend the constants to make up for these terms; among coefficients they stand apart.
    """
    by_coefficients = ByCoefficients(found)
    if evidence is None:
        return by_coefficients
    on_data = OnData(evidence)
    left, best = evidence.least_of(form)
    integrated = left > on_data.most(0) and float(np.linalg.norm(by_coefficients.left(best))) <= FITS
    return by_coefficients if integrated else on_data


def _exponents(law: Law, terms: Mapping[tuple[int, ...], sympy.Expr], found: Exponents) -> Exponents:
    """Of the law and of what was found; a conserved law's constant is arbitrary."""
    every = sorted({*terms, *found})
    return tuple(each for each in every if law.kind is not Kind.CONSERVED or any(each))


def _unit(found: Recovered, exponents: Exponents) -> Floats:
    measured = dict(zip(found.exponents, found.coefficients.tolist(), strict=True))
    vector = np.array([measured.get(exponent, 0.0) for exponent in exponents])
    return np.asarray(vector / np.linalg.norm(vector), dtype=np.float64)


def _reduced(law: Law, known: Ideal) -> dict[tuple[int, ...], sympy.Expr]:
    """The template's normal form in the variables that the law uses, its coefficients still open."""
    terms: dict[tuple[int, ...], sympy.Expr] = {}
    for power, coefficient in zip(law.template.monoms(), law.template.coeffs(), strict=True):
        narrow = tuple(power[place] for place in law.uses)
        monomial = known.ring.from_dict({narrow: known.ring.domain.one})
        for exponent, value in known.normal_form(monomial).terms():
            part = sympy.Rational(int(value.numerator), int(value.denominator)) * sympy.sympify(coefficient)
            terms[exponent] = terms.get(exponent, sympy.Integer(0)) + part
    return terms
