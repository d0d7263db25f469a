"""Attribution: which constant of the specification made a law what it was found to be?

A recovered law carries an arbitrary scale and, where it is conserved, an arbitrary constant. So a template is fitted
modulo both. One constant is freed at a time, because real mistakes are few; then two, where one does not explain the
data, so that a second wrong constant is not concealed by the first, nor two small errors by a specification that is no
worse than any single constant. It names no constant where none explains the law, and none where the specification
explains it as well. It does not decide whether the constants that it left alone are right: what enters a law in the
same way is told apart by no data, and three wrong constants are explained by none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np
import sympy
from numpy.typing import NDArray
from scipy import optimize

from analysis.algebra.ideals import Ideal
from analysis.algebra.recovery import GAP, Recovered
from analysis.algebra.reference import Kind, Law
from analysis.algebra.verdict import Verdict

Floats = NDArray[np.float64]

FITS = 1e-3
"""A template explains a law where no more than this of it is left, as a vector of coefficients. Clean data leave 1e-8,
a fault that no constant explains 4e-3 and more (the paper's catalogue)."""

PAIR_FITS = 1e-5
"""The same with two constants free, which can bend further: the nearest that a structural fault of the catalogue comes
to a pair is 4e-3, and two true faults leave 3e-8."""

SEPARATED = 10.0
"""An explanation is told from another where it leaves ten times less. The paper's value."""

MOST_ALTERNATIVES = 3
"""Pairs that explain a law equally well. All inertias half as large again are all masses a third less, because a law
has no scale: two explanations, and both are told. Where there are many, none is one."""

_EXACT = 1e-12
"""What is left below this is rounding, and as good as nothing."""
_STARTS = (1.0, 0.5, 2.0, 4.0)
"""Multiples of the specified value at which a fit begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A constant, as fitted and as specified."""

    parameter: str
    fitted: float
    specified: float

    @property
    def told(self) -> str:
        """In words."""
        return f"{self.parameter} is {self.fitted:.6g}, specified {self.specified:.6g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hypothesis:
    """Some constants freed, the others as specified."""

    values: tuple[Value, ...]
    residual: float
    """What it leaves of the law."""

    @property
    def told(self) -> str:
        """In words."""
        return " and ".join(value.told for value in self.values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribution:
    """A verdict, and what it rests on."""

    law: str
    verdict: Verdict
    explanations: tuple[Hypothesis, ...]
    """Of a parameter fault: several where they cannot be told apart."""
    hypotheses: tuple[Hypothesis, ...]
    """One constant at a time, the best first."""
    gap: float
    """Of the recovery."""
    specification: float
    """What the specification itself leaves of the law."""
    reason: str

    @property
    def told(self) -> str:
        """In words."""
        if self.verdict is Verdict.PARAMETER_FAULT:
            return " or ".join(each.told for each in self.explanations)
        return f"{self.verdict} ({self.reason})"


def attribute(
    law: Law, parameters: Mapping[str, Fraction], known: Ideal, found: Recovered, gap: float = GAP
) -> Attribution:
    """Say which constant of ``law`` explains what was found; ``known`` is what was divided out in finding it.

    It does not decide that the system is as specified: what is consistent in one law may be wrong in another.
    """
    if not found.decisive(gap):
        kind = "stays constant" if law.kind is Kind.CONSERVED else "vanishes"
        reason = f"nothing of this form {kind}: the best direction varies {found.gap:.2g} as much as the next"
        return _verdict(law, Verdict.NOT_EXPLICABLE, found, reason)
    template = _Template.of(law, parameters, known, found)
    singles = sorted((template.fit([name]) for name in law.parameters), key=_residual)
    specification = template.residual({})
    best = max(singles[0].residual, _EXACT)
    pairs = _pairs(template, law.parameters, best)
    if pairs:
        reason = "two constants explain it, and no single one does"
        return _verdict(law, Verdict.PARAMETER_FAULT, found, reason, singles, specification, pairs)
    if specification <= min(FITS, SEPARATED * best):
        reason = "the specified values explain it as well as any other"
        return _verdict(law, Verdict.CONSISTENT, found, reason, singles, specification)
    if best > FITS:
        reason = f"the best single constant, {singles[0].values[0].parameter}, leaves {best:.2g} of it"
        return _verdict(law, Verdict.NOT_EXPLICABLE, found, reason, singles, specification)
    if specification <= SEPARATED * best:
        reason = f"the specified values leave {specification:.2g} of it, and no constant much less"
        return _verdict(law, Verdict.NOT_EXPLICABLE, found, reason, singles, specification)
    explaining = [each for each in singles if each.residual <= SEPARATED * best]
    reason = "one constant explains it" if len(explaining) == 1 else "these data cannot tell the constants apart"
    return _verdict(law, Verdict.PARAMETER_FAULT, found, reason, singles, specification, explaining)


def unread(law: Law, why: str) -> Attribution:
    """Of a law that could not be read off the data at all."""
    return Attribution(
        law=law.name,
        verdict=Verdict.NOT_EXPLICABLE,
        explanations=(),
        hypotheses=(),
        gap=float("nan"),
        specification=float("nan"),
        reason=f"it cannot be read off these data: {why}",
    )


def _verdict(
    law: Law,
    verdict: Verdict,
    found: Recovered,
    reason: str,
    hypotheses: Sequence[Hypothesis] = (),
    specification: float = float("nan"),
    explanations: Sequence[Hypothesis] = (),
) -> Attribution:
    return Attribution(
        law=law.name,
        verdict=verdict,
        explanations=tuple(explanations),
        hypotheses=tuple(hypotheses),
        gap=found.gap,
        specification=specification,
        reason=reason,
    )


def _pairs(template: _Template, names: Sequence[str], single: float) -> list[Hypothesis]:
    """The pairs of constants that explain what no single one does; none where too many would."""
    if single <= SEPARATED * _EXACT or len(names) < 2:
        return []
    ranked = sorted((template.fit(list(pair)) for pair in combinations(names, 2)), key=_residual)
    best = max(ranked[0].residual, _EXACT)
    if best > PAIR_FITS or best * SEPARATED >= single:
        return []
    alike = [each for each in ranked if each.residual <= SEPARATED * best]
    return alike if len(alike) <= MOST_ALTERNATIVES else []


def _residual(hypothesis: Hypothesis) -> float:
    return hypothesis.residual


@dataclass(frozen=True, slots=True, kw_only=True)
class _Template:
    """The law as a vector of coefficients that depends on the constants, beside the vector that was found."""

    parameters: tuple[str, ...]
    specified: Floats
    coefficients: Callable[..., Sequence[float]]
    found: Floats
    """Of length one."""

    @classmethod
    def of(cls, law: Law, parameters: Mapping[str, Fraction], known: Ideal, found: Recovered) -> _Template:
        """Both over the same monomials: what is known is divided out of the template too."""
        terms = _reduced(law, known)
        measured = dict(zip(found.exponents, found.coefficients.tolist(), strict=True))
        if law.kind is Kind.CONSERVED:
            for each in (terms, measured):
                each.pop((0,) * known.ring.ngens, None)
        exponents = sorted({*terms, *measured})
        vector = np.array([measured.get(exponent, 0.0) for exponent in exponents])
        symbols = [sympy.Symbol(name) for name in law.parameters]
        return cls(
            parameters=law.parameters,
            specified=np.array([float(parameters[name]) for name in law.parameters]),
            coefficients=sympy.lambdify(symbols, [terms.get(exponent, 0) for exponent in exponents], "math"),
            found=vector / np.linalg.norm(vector),
        )

    def fit(self, names: Sequence[str]) -> Hypothesis:
        """Free these constants and leave as little of the law as possible."""
        places = [self.parameters.index(name) for name in names]
        start = self.specified[places]
        fits = [
            optimize.least_squares(self._left, start * factor, args=(places,), xtol=1e-15, ftol=1e-15, gtol=1e-15)
            for factor in (_STARTS if len(names) == 1 else _STARTS[:1])
        ]
        best = min(fits, key=lambda fit: float(fit.cost))
        return Hypothesis(
            values=tuple(
                Value(parameter=name, fitted=float(value), specified=float(specified))
                for name, value, specified in zip(names, best.x, start, strict=True)
            ),
            residual=float(np.linalg.norm(best.fun)),
        )

    def residual(self, values: Mapping[str, float]) -> float:
        """What is left of the law when the constants have these values, the others those of the specification."""
        places = [self.parameters.index(name) for name in values]
        return float(np.linalg.norm(self._left(np.array(list(values.values())), places)))

    def _left(self, values: Floats, places: Sequence[int]) -> Floats:
        """The part of the template that is not along the law, over the template's length: the scale drops out."""
        chosen = self.specified.copy()
        chosen[list(places)] = values
        template = np.array(self.coefficients(*chosen.tolist()), dtype=np.float64)
        length = float(np.linalg.norm(template))
        if length == 0:
            return np.ones_like(template)
        return np.asarray((template - (template @ self.found) * self.found) / length, dtype=np.float64)


def _reduced(law: Law, known: Ideal) -> dict[tuple[int, ...], sympy.Expr]:
    """The template's normal form in the variables that the law uses, its coefficients still open."""
    terms: dict[tuple[int, ...], sympy.Expr] = {}
    for power, coefficient in zip(law.template.monoms(), law.template.coeffs(), strict=True):
        narrow = tuple(power[place] for place in law.uses)
        monomial = known.ring.from_dict({narrow: known.ring.domain.one})
        for exponent, value in known.normal_form(monomial).terms():
            share = sympy.Rational(int(value.numerator), int(value.denominator)) * sympy.sympify(coefficient)
            terms[exponent] = terms.get(exponent, sympy.Integer(0)) + share
    return terms
