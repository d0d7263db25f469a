"""The two levels together: which law broke, and which constant broke it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.algebra import attribution, dictionaries, recovery, screening
from analysis.algebra.attribution import Attribution
from analysis.algebra.errors import BadData
from analysis.algebra.evidence import Evidence
from analysis.algebra.ideals import Ideal, TookTooLong
from analysis.algebra.polynomials import monomial_values, narrowed, polynomial_ring
from analysis.algebra.recovery import Recovered
from analysis.algebra.reference import Kind, Law, ReferenceSet
from analysis.algebra.screening import Screen, Unit
from analysis.algebra.verdict import Verdict

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What the trajectories of a system say."""

    reference: str
    screen: Screen | None
    """``None`` where there was nothing to hold them against."""
    attributions: tuple[Attribution, ...]
    """Of the laws that have constants in them."""

    @property
    def faults(self) -> tuple[Attribution, ...]:
        """Laws of which a constant is named."""
        return tuple(each for each in self.attributions if each.verdict is Verdict.PARAMETER_FAULT)


def diagnose(
    laws: ReferenceSet,
    tested: Sequence[Floats],
    against: Sequence[Floats] | None = None,
    *,
    unit: Unit = Unit.TRAJECTORY,
) -> Diagnosis:
    """Screen trajectories against those of another system, and attribute every law that has constants in it.

    Trajectories are samples × variables of the set. Conserved laws hold where nothing drives the system; that is for
    the caller to see to.

    Limits: it speaks of the laws of the set alone. A system that keeps them all may be another one, and a law that is
    broken for two reasons is told as broken once.
    """
    screened = screening.screen(laws, against, tested, unit=unit) if against is not None else None
    return Diagnosis(
        reference=laws.name,
        screen=screened,
        attributions=tuple(attribute(laws, law, tested) for law in laws.laws if law.parameters),
    )


def attribute(
    laws: ReferenceSet,
    law: Law,
    trajectories: Sequence[Floats],
    lag: int | None = None,
    *,
    by_coefficients: bool = False,
) -> Attribution:
    """Recover one law from trajectories and say which constant it speaks of; or that they are too few to say.

    Constants are told apart on the trajectories themselves, or ``by_coefficients`` of the recovered law alone, as in
    the paper.

    Limits: the other laws of the set are not looked at, and are taken to hold where they have no constants.
    """
    try:
        known, found = recover(laws, law, trajectories, lag)
    except (BadData, TookTooLong) as error:
        return attribution.unread(law, str(error))
    evidence = None if by_coefficients else _evidence(laws, law, trajectories, found, lag)
    return attribution.attribute(law, laws.parameters, known, found, evidence)


def recover(
    laws: ReferenceSet, law: Law, trajectories: Sequence[Floats], lag: int | None = None
) -> tuple[Ideal, Recovered]:
    """The law as the data have it, among the variables that it uses, and what was divided out in finding it.

    Limits: it does not decide that there is one: the gap of what was found says that.
    """
    ring = polynomial_ring(tuple(laws.names[place] for place in law.uses))
    known = Ideal.of([narrowed(each, ring, law.uses) for each in laws.identities(law)], ring)
    chosen = [trajectory[:, law.uses] for trajectory in trajectories]
    if law.kind is Kind.CONSERVED:
        return known, recovery.conserved(chosen, known, law.degree, laws.lag if lag is None else lag)
    return known, recovery.vanishing(np.vstack(chosen), known, law.degree)


def _evidence(
    laws: ReferenceSet, law: Law, trajectories: Sequence[Floats], found: Recovered, lag: int | None
) -> Evidence:
    """What the trajectories, each by itself, say of polynomials in the terms of what was found in all of them."""
    chosen = [trajectory[:, law.uses] for trajectory in trajectories]
    if law.kind is Kind.CONSERVED:
        stride = laws.lag if lag is None else lag
        return Evidence.of([dictionaries.differences([each], found.exponents, stride) for each in chosen])
    return Evidence.of([monomial_values(each, found.exponents) for each in chosen])
