"""Deflating a nullspace measured on one trajectory, and what survives (table deflation of the paper)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from analysis.algebra import nullspaces
from analysis.algebra.ideals import as_floats
from analysis.algebra.polynomials import coefficient_vector, monomial_values, monomials
from analysis.paper import systems
from analysis.paper.experiment import Experiment, Figure, Floats, Rule
from analysis.paper.laws import ACROBOT, parameterised, unit_norms

START = np.array([[0.8, 0.4, 0.0, 0.0]])
SECONDS = 40.0
TERMS = monomials(6, 3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row of the table."""

    raw: int
    projected: int
    """Dimensions left after projecting both unit norms out."""
    reduced: int
    """After reducing to normal forms."""
    residual: float = math.nan
    """What of a single survivor lies outside the span of the energy and 1."""


TABLE = {
    (0.002, 1e-6): Row(raw=15, projected=14, reduced=1, residual=4.9e-10),
    (0.01, 1e-6): Row(raw=15, projected=14, reduced=1, residual=1.6e-7),
    (0.05, 1e-4): Row(raw=16, projected=15, reduced=2),
    (0.2, 1e-4): Row(raw=15, projected=14, reduced=1, residual=6.2e-1),
    (0.2, 1e-6): Row(raw=14, projected=13, reduced=0),
}
"""By the step and the tolerance of the nullspace."""


def row(part: tuple[float, float]) -> Row:
    """One row of the table: directions that vanish at a tolerance, and what each way of deflating leaves of them.

    Limits: on one passive trajectory from one start, as in the paper; not on others.
    """
    time_step, tolerance = part
    states = systems.rollout(systems.SPECIFIED, START, time_step, round(SECONDS / time_step))[0]
    raw = nullspaces.nullspace(monomial_values(systems.acrobot_observation(states), TERMS), tolerance)
    projected = nullspaces.projected(raw, [coefficient_vector(law, TERMS) for law in ACROBOT.generators[:2]])
    reduced = nullspaces.reduced(raw, as_floats(unit_norms().normal_form_matrix(TERMS)))
    residual = _outside(reduced[0]) if len(reduced) == 1 else math.nan
    return Row(raw=len(raw), projected=len(projected), reduced=len(reduced), residual=residual)


def _outside(direction: Floats) -> float:
    energy = coefficient_vector(parameterised("acrobot").polynomial, TERMS)
    plane = np.linalg.qr(np.stack([energy, np.eye(len(TERMS))[0]], axis=1))[0]
    return float(np.linalg.norm(direction - plane @ (plane.T @ direction)) / np.linalg.norm(direction))


def _figures(results: Sequence[Row]) -> list[Figure]:
    figures = []
    for (time_step, tolerance), found in zip(TABLE, results, strict=True):
        paper, where = TABLE[time_step, tolerance], "table deflation"
        of = f"Δt {time_step:g}, tolerance {tolerance:g}"
        counts = (("nullspace", paper.raw, found.raw), ("after projection", paper.projected, found.projected))
        for name, printed, measured in (*counts, ("after normal form", paper.reduced, found.reduced)):
            figures.append(Figure(name=f"{name}, {of}", paper=printed, measured=measured, rule=Rule.SAME, where=where))
        if not math.isnan(paper.residual):
            name = f"survivor outside the energy, {of}"
            figures.append(Figure(name=name, paper=paper.residual, measured=found.residual, where=where))
    return figures


DEFLATION = Experiment(
    name="deflation",
    title="deflation of a nullspace measured on one trajectory",
    parts=tuple(TABLE),
    run=row,
    figures=_figures,
)
