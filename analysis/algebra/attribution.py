"""Attribution: which constant of the specification made a law what it was found to be?

A recovered law carries an arbitrary scale and, where it is conserved, an arbitrary constant. So a template is fitted
modulo both. The specification, every constant and every two of them are fitted, and what cannot be told from the best
of them is kept: the specification if it is among them, else single constants, else pairs. Real mistakes are few, but
two that look like one are told beside it. It names no constant where none explains the law, and none where the
specification explains it as well. It does not decide whether the constants that it left alone are right: what enters a
law in the same way is told apart by no data, and three wrong constants are explained by none, unless fewer make the
same law: then these are named.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

from analysis.algebra.evidence import Evidence
from analysis.algebra.ideals import Ideal
from analysis.algebra.recovery import GAP, Recovered
from analysis.algebra.reference import Kind, Law
from analysis.algebra.templates import SEPARATED, Fit, Template
from analysis.algebra.verdict import Verdict

MOVED = 1e-6
"""A constant that moved by less, relatively, is as specified: over a short episode an integrator's own error looks like
a constant that is off by up to 5e-7 (Acrobot, thirty steps of 0.02 s)."""

MOST_TOLD = 3
"""Explanations in one sentence. All inertias half as large again are all masses a third less, because a law has no
scale: two explanations, and both are told. Of many, the rest are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A constant, as fitted and as specified."""

    parameter: str
    fitted: float
    specified: float

    @property
    def moved(self) -> float:
        """How far it is from the specified value, relatively; absolutely where that is zero. Not whether it is much."""
        return abs(self.fitted - self.specified) / (abs(self.specified) or 1.0)

    @property
    def told(self) -> str:
        """In words, to six digits: they are not all significant."""
        return f"{self.parameter} is {self.fitted:.6g}, specified {self.specified:.6g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hypothesis:
    """Some constants freed, the others as specified."""

    values: tuple[Value, ...]
    residual: float
    """What it leaves of the law: of its coefficients, or how much it still varies on the data."""

    @property
    def told(self) -> str:
        """In words. Not how likely it is."""
        return " and ".join(value.told for value in self.values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribution:
    """A verdict, and what it rests on."""

    law: str
    verdict: Verdict
    explanations: tuple[Hypothesis, ...]
    """Of a parameter fault: several where they cannot be told apart."""
    rivals: tuple[Hypothesis, ...]
    """Two constants at once, none of those above, that explain it as well as one does."""
    hypotheses: tuple[Hypothesis, ...]
    """One constant at a time, the best first."""
    gap: float
    """Of the recovery."""
    specification: float
    """What the specification itself leaves of the law."""
    reason: str

    @property
    def told(self) -> str:
        """In words: what explains the law, or why nothing does. No more than a few of many explanations."""
        if self.verdict is not Verdict.PARAMETER_FAULT:
            return f"{self.verdict} ({self.reason})"
        beside = f" (or, two at once, {_joined(self.rivals)})" if self.rivals else ""
        return _joined(self.explanations) + beside


def attribute(
    law: Law,
    parameters: Mapping[str, Fraction],
    known: Ideal,
    found: Recovered,
    evidence: Evidence | None = None,
    gap: float = GAP,
) -> Attribution:
    """Say which constant of ``law`` explains what was found; ``known`` is what was divided out in finding it.

    Explanations are compared on the data, or by their coefficients where there is no ``evidence``.

    Limits: it does not decide that the system is as specified: what is consistent in one law may be wrong in another.
    Nor does it name three: of 56 Acrobots with three wrong constants 47 were not explicable, and in 9 fewer constants
    were named, which make the same law (``python -m bench --only attribution``, seeds 61283 and 90417).
    """
    if not found.decisive(gap):
        kind = "stays constant" if law.kind is Kind.CONSERVED else "vanishes"
        reason = (
            f"no law can be read off these data: of this form nothing {kind} that stands out, the best varies "
            f"{found.gap:.2g} as much as the next, so there is none or the data are too few or too noisy"
        )
        return _verdict(law, found, _Ruling(verdict=Verdict.NOT_EXPLICABLE, reason=reason))
    fits = _Fits.of(Template.of(law, parameters, known, found, evidence))
    return _verdict(law, found, _ruled(fits), fits)


def unread(law: Law, why: str) -> Attribution:
    """Of a law that could not be read off the data at all.

    Limits: it says nothing of the law, nor of the system.
    """
    return Attribution(
        law=law.name,
        verdict=Verdict.NOT_EXPLICABLE,
        explanations=(),
        rivals=(),
        hypotheses=(),
        gap=float("nan"),
        specification=float("nan"),
        reason=f"it cannot be read off these data: {why}",
    )


def _verdict(law: Law, found: Recovered, ruling: _Ruling, fits: _Fits | None = None) -> Attribution:
    return Attribution(
        law=law.name,
        verdict=ruling.verdict,
        explanations=ruling.explanations,
        rivals=ruling.rivals,
        hypotheses=fits.singles if fits is not None else (),
        gap=found.gap,
        specification=fits.specification.residual if fits is not None else float("nan"),
        reason=ruling.reason,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ruling:
    verdict: Verdict
    reason: str
    explanations: tuple[Hypothesis, ...] = ()
    rivals: tuple[Hypothesis, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fits:
    """Everything that was tried, the best of each kind first."""

    specification: Hypothesis
    singles: tuple[Hypothesis, ...]
    pairs: tuple[Hypothesis, ...]
    least: float
    """No hypothesis leaves less that means anything."""
    most: tuple[float, float, float]
    """That one may leave with none, one and two constants free."""

    @classmethod
    def of(cls, template: Template) -> _Fits:
        singles = {name: template.fit([name]) for name in template.parameters}
        pairs = [_pair(template, singles[one], singles[other]) for one, other in combinations(template.parameters, 2)]
        return cls(
            specification=_hypothesis(template, template.fit([])),
            singles=_ranked(template, singles.values()),
            pairs=_ranked(template, pairs),
            least=template.reading.least,
            most=(template.reading.most(0), template.reading.most(1), template.reading.most(2)),
        )

    @property
    def explaining(self) -> list[Hypothesis]:
        every = (self.specification, *self.singles, *self.pairs)
        return [each for each in every if each.residual <= self.most[len(each.values)]]


def _ruled(fits: _Fits) -> _Ruling:
    """What cannot be told from the best that explains the law, fewest constants first."""
    if not fits.explaining:
        best = fits.singles[0]
        reason = f"the best single constant, {best.values[0].parameter}, leaves {best.residual:.2g} of it"
        return _Ruling(verdict=Verdict.NOT_EXPLICABLE, reason=reason)
    best = min(fits.explaining, key=_residual)
    line = SEPARATED * max(best.residual, fits.least)
    if fits.specification.residual <= line or all(value.moved <= MOVED for value in best.values):
        return _specified(fits)
    alike = [each for each in fits.explaining if each.residual <= line]
    singles = [each for each in alike if len(each.values) == 1]
    if not singles:
        reason = "two constants explain it, and no single one does"
        return _Ruling(verdict=Verdict.PARAMETER_FAULT, reason=reason, explanations=tuple(alike))
    named = {each.values[0].parameter for each in singles}
    rivals = [each for each in alike if not named & {value.parameter for value in each.values}]
    reason = "one constant explains it" if len(singles) == 1 else "these data cannot tell the constants apart"
    return _Ruling(verdict=Verdict.PARAMETER_FAULT, reason=reason, explanations=tuple(singles), rivals=tuple(rivals))


def _specified(fits: _Fits) -> _Ruling:
    """Of a law that nothing explains much better than the specification."""
    if fits.specification in fits.explaining:
        return _Ruling(verdict=Verdict.CONSISTENT, reason="the specified values explain it as well as any other")
    reason = f"the specified values leave {fits.specification.residual:.2g} of it, and no constant much less"
    return _Ruling(verdict=Verdict.NOT_EXPLICABLE, reason=reason)


def _pair(template: Template, one: Fit, other: Fit) -> Fit:
    """Begun also where one of the two alone leaves least: from the specification a large fault may be out of reach."""
    names = [*one.names, *other.names]
    first, second = (float(template.specified[template.parameters.index(name)]) for name in names)
    return template.fit(names, [(one.values[0], second), (first, other.values[0])])


def _ranked(template: Template, fits: Iterable[Fit]) -> tuple[Hypothesis, ...]:
    return tuple(sorted((_hypothesis(template, fit) for fit in fits), key=_residual))


def _hypothesis(template: Template, fit: Fit) -> Hypothesis:
    specified = dict(zip(template.parameters, template.specified.tolist(), strict=True))
    values = (
        Value(parameter=name, fitted=value, specified=specified[name])
        for name, value in zip(fit.names, fit.values, strict=True)
    )
    return Hypothesis(values=tuple(values), residual=fit.residual)


def _residual(hypothesis: Hypothesis) -> float:
    return hypothesis.residual


def _joined(hypotheses: Sequence[Hypothesis]) -> str:
    told = " or ".join(each.told for each in hypotheses[:MOST_TOLD])
    more = len(hypotheses) - MOST_TOLD
    return f"{told} or {more} other{'s' if more > 1 else ''}" if more > 0 else told
