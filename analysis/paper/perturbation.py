"""Reference sets whose every coefficient is a little wrong, each up or down by the same part of itself.

One sign for all would only scale a law, which says the same. Coefficients stay rational, so that the set that screens
is the set whose ideal is compared.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import sympy

from analysis.algebra.polynomials import coefficient_vector
from analysis.algebra.reference import Law, ReferenceSet
from analysis.paper.certificates import deviation
from analysis.paper.laws import SETS

DECADES = (12, 10, 8, 6, 5, 4, 3, 2, 1)
"""A coefficient is wrong by 10 to the minus this."""
PATTERNS = 5
"""Of signs."""
_STREAMS = {"acrobot": 0, "reacher": 1000}


@cache
def perturbed(system: str, decade: int, pattern: int) -> ReferenceSet:
    """The laws of a system with their coefficients moved.

    Limits: signs are drawn and sizes are not: every coefficient moves by the same fraction.
    """
    rng = np.random.default_rng(pattern + _STREAMS[system])
    specified = SETS[system]
    return replace(specified, laws=tuple(_moved(law, decade, rng) for law in specified.laws))


def _moved(law: Law, decade: int, rng: np.random.Generator) -> Law:
    step = sympy.QQ(1, 10**decade)
    terms = {power: value * (1 + step if rng.integers(0, 2) else 1 - step) for power, value in law.polynomial.terms()}
    return replace(law, polynomial=law.polynomial.ring.from_dict(terms))


def largest_deviation(decade: int) -> float:
    """Of any law of any pattern, its scale fitted out.

    Limits: over these patterns, not over all there are.
    """
    return max(
        deviation(*(coefficient_vector(each.polynomial, law.polynomial.monoms()) for each in (law, moved)))
        for system, specified in SETS.items()
        for pattern in range(PATTERNS)
        for law, moved in zip(specified.laws, perturbed(system, decade, pattern).laws, strict=True)
    )
