"""The gap that decides a recovery must not depend on the units of the variables (appendix E of the paper)."""

from __future__ import annotations

from functools import partial

import numpy as np

from analysis.algebra import dictionaries, recovery
from analysis.algebra.ideals import Ideal, as_floats
from analysis.algebra.polynomials import monomials, polynomial_ring
from analysis.paper import catalogue
from analysis.paper.catalogue import Arm
from analysis.paper.certificates import healthy
from analysis.paper.experiment import Figure, Rule
from analysis.paper.laws import ACROBOT, unit_norms

SMALL_NOISE = 1e-8
"""With no noise at all the gap is a quotient of rounding, and its own digits are no property of the units."""
LARGER = 100.0
"""By which one velocity is scaled."""


def units_of_the_gap() -> list[Figure]:
    """One velocity in a unit a hundred times smaller: an accepted gap must not move.

    Limits: one velocity and one factor. That no unit matters is proven by the scaling of columns and not by this.
    """
    told = partial(Figure, paper=1e-7, rule=Rule.AT_MOST, where="appendix E-A")
    clean, noisy = (_moved(healthy(noise)) for noise in (0.0, SMALL_NOISE))
    note = "the gap of clean data is rounding over a singular value, and rounding moves with the unit"
    return [
        told(name="move of the gap, noise 1e-8", measured=noisy),
        told(name="move of the gap, clean data", measured=clean, exact=False).explained(note),
        told(name="move of the gap in the orthogonal dictionary", measured=_moved_orthogonal()),
        Figure(
            name="move of the gap of a basis that is not orthonormal, as a factor",
            paper=10,
            measured=_moved_untreated(healthy(SMALL_NOISE)),
            rule=Rule.ABOUT,
            exact=False,
            where="appendix E-A",
        ).explained("singular values of the normal form are equal, and which basis goes with them is rounding"),
    ]


def _scaled(arm: Arm) -> Arm:
    return tuple(catalogue.scaled(each, 4, LARGER) for each in arm)


def _moved(arm: Arm) -> float:
    before, after = (recovery.conserved(each, unit_norms(), 3, ACROBOT.lag).gap for each in (arm, _scaled(arm)))
    return abs(after / before - 1)


def _moved_orthogonal() -> float:
    """Of the unit norm of the first angle, sought among its cosine, its sine and its velocity."""
    arm = healthy(SMALL_NOISE)
    nothing = Ideal.of([], polynomial_ring(("c1", "s1", "w1")))
    before, after = (
        recovery.vanishing_in_orthogonal(np.vstack(each)[:, [0, 1, 4]], nothing, 2).gap for each in (arm, _scaled(arm))
    )
    return abs(after / before - 1)


def _moved_untreated(arm: Arm) -> float:
    """The factor, where the basis of the quotient is carried into scaled columns and not made orthonormal there."""
    exponents = monomials(6, 3)
    image, singular, _ = np.linalg.svd(as_floats(unit_norms().normal_form_matrix(exponents))[1:, 1:])
    basis = image[:, singular > 1e-8].T
    gaps = []
    for each in (arm, _scaled(arm)):
        design = dictionaries.differences(each, exponents[1:], ACROBOT.lag)
        lengths = np.linalg.norm(design, axis=0)
        values = np.linalg.svd((design / lengths) @ (basis / lengths).T, compute_uv=False)
        gaps.append(float(values[-1] / values[-2]))
    return max(gaps) / min(gaps)
