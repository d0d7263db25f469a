"""Reference sets read off healthy data, unrounded: what a pipeline without a specification would screen with.

Exact is only what was divided out in finding a law: that a sine and a cosine belong together is not in the data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import sympy

from analysis.algebra import diagnosis, recovery
from analysis.algebra.ideals import Ideal
from analysis.algebra.polynomials import coefficient_vector, polynomial_ring, widened_power
from analysis.algebra.recovery import GAP, Recovered
from analysis.algebra.reference import Law, ReferenceSet
from analysis.paper.catalogue import ACROBOT, REACHER, Arm
from analysis.paper.certificates import deviation
from analysis.paper.laws import SETS
from analysis.paper.systems import Run, drawn

_HEALTHY: Mapping[str, Run] = {"acrobot": ACROBOT, "reacher": REACHER}


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveredLaw:
    """A law as the data have it, in the scale of the specified one."""

    law: Law
    gap: float
    deviation: float
    """From the specified coefficients, relatively."""


def recovered_laws(noise: float) -> dict[str, tuple[RecoveredLaw, ...]]:
    """Of both systems, from their healthy arms observed with this noise; each law of a specified name.

    Limits: laws of the specified form only. What else the data obey is not sought.
    """
    arms = {system: drawn(replace(run, noise=noise), seed=0, ic_seed=0) for system, run in _HEALTHY.items()}
    return {
        system: tuple(_recovered_law(specified, law, arms[system]) for law in specified.laws)
        for system, specified in SETS.items()
    }


def recovered_sets(laws: Mapping[str, Sequence[RecoveredLaw]], gap: float = GAP) -> dict[str, ReferenceSet]:
    """The sets of those laws that are told by a gap below this one; an infinite one keeps all.

    Limits: a law is kept by its gap, and by nothing that knows whether it is right.
    """
    return {
        system: replace(SETS[system], laws=tuple(each.law for each in found if each.gap < gap))
        for system, found in laws.items()
    }


def _recovered_law(specified: ReferenceSet, law: Law, arm: Arm) -> RecoveredLaw:
    places, found = _found(specified, law, arm)
    powers = [widened_power(power, len(specified.names), places) for power in found.exponents]
    terms = sorted({*powers, *law.polynomial.monoms()})
    truth = coefficient_vector(law.polynomial, terms)
    coefficients = dict(zip(powers, found.coefficients.tolist(), strict=True))
    values = np.array([coefficients.get(power, 0.0) for power in terms])
    values *= (truth @ values) / (values @ values)
    exact = {power: sympy.QQ(*value.as_integer_ratio()) for power, value in zip(terms, values.tolist(), strict=True)}
    polynomial = specified.ring.from_dict({power: value for power, value in exact.items() if value})
    return RecoveredLaw(law=replace(law, polynomial=polynomial), gap=found.gap, deviation=deviation(truth, values))


def _found(specified: ReferenceSet, law: Law, arm: Arm) -> tuple[Sequence[int], Recovered]:
    """The direction, and the places of the variables that it was sought among.

    A unit norm is sought in its two columns, a height that vanishes among all; neither knows of anything else.
    """
    if law.parameters:
        return law.uses, diagnosis.recover(specified, law, arm)[1]
    places = law.uses if law.degree > 1 else range(len(specified.names))
    nothing = Ideal.of([], polynomial_ring(tuple(specified.names[place] for place in places)))
    return places, recovery.vanishing(np.vstack(arm)[:, list(places)], nothing, law.degree)
