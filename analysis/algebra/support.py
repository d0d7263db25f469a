"""Search laws among few variables first: physics couples few at a time, and few variables have short dictionaries.

What is found is divided out before the next search, so that nothing is found twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from sympy.polys.rings import PolyElement, PolyRing

from analysis.algebra import recovery, rounding
from analysis.algebra.ideals import Ideal
from analysis.algebra.polynomials import narrowed, polynomial_ring, used, widened

Floats = NDArray[np.float64]

VANISHES = 1e-9
"""The largest residual of a law beside its terms: rounding leaves 1e-16, single precision 2e-8."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """An exact law among a few variables, which other trajectories bear out."""

    variables: tuple[str, ...]
    polynomial: PolyElement
    """In the ring of all variables."""
    gap: float


def vanishing_laws(
    trajectories: Sequence[Floats], ring: PolyRing, *, arity: int, degree: int, known: Sequence[PolyElement] = ()
) -> list[Found]:
    """Laws that vanish on all trajectories, of at most ``degree`` in at most ``arity`` variables, fewest first.

    Each is sought in the first half of the trajectories (or of the only one), must hold in the rest, and must have
    coefficients that are small fractions: give variables in units that make them so.

    Limits: laws with irrational coefficients are not found, nor those of more variables. That there is nothing says
    only that there is nothing of this form.
    """
    parts = trajectories if len(trajectories) > 1 else np.array_split(trajectories[0], 2)
    half = len(parts) // 2
    sought, held = np.vstack(parts[:half]), parts[half:]
    found: list[Found] = []
    for count in range(1, arity + 1):
        for chosen in combinations(range(ring.ngens), count):
            for power in range(1, degree + 1):
                laws = [*known, *(each.polynomial for each in found)]
                law = _law(sought[:, chosen], [each[:, chosen] for each in held], ring, chosen, power, laws)
                if law is not None and not Ideal.of(laws, ring).contains(law.polynomial):
                    found.append(law)  # what others imply by way of variables not chosen was not divided out
    return found


def _law(
    sought: Floats,
    held: Sequence[Floats],
    ring: PolyRing,
    chosen: tuple[int, ...],
    degree: int,
    laws: Sequence[PolyElement],
) -> Found | None:
    names = tuple(str(ring.symbols[place]) for place in chosen)
    smaller = polynomial_ring(names)
    known = Ideal.of([narrowed(law, smaller, chosen) for law in laws if used(law.monoms()) <= set(chosen)], smaller)
    if len(known.standard_monomials(degree)) < 2:
        return None  # all that there could be is known
    direction = recovery.vanishing(sought, known, degree)
    if not direction.decisive() or not recovery.holds_elsewhere(direction, held, conserves=False, most=VANISHES):
        return None
    exact = rounding.snapped(direction.coefficients, direction.exponents, smaller).polynomial
    if exact is None:
        return None
    return Found(variables=names, polynomial=widened(exact, ring, chosen), gap=direction.gap)
