"""Negative controls: where there is no law, none is found (appendix H)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from analysis.algebra import nullspaces
from analysis.algebra.polynomials import monomial_values, monomials
from analysis.paper.experiment import Figure, Floats, Recordings, Rule, ShippedExperiment

ENVIRONMENTS = {"Hopper-v5": 11, "HalfCheetah-v5": 17}
TOLERANCES = (1e-10, 1e-8, 1e-6)
LOOSE = 1e-4
HELD = 1e-6
"""Residual of a direction on an episode that it was not found in, beside the size of the dictionary there."""


def _directions(episodes: Sequence[Floats], degree: int, tolerance: float) -> Floats:
    """What vanishes on all episodes together, at a tolerance."""
    samples = np.vstack(episodes)
    exponents = monomials(samples.shape[1], degree)
    return nullspaces.nullspace(monomial_values(samples, exponents), tolerance)


def _surviving(episodes: Sequence[Floats], degree: int, tolerance: float) -> int:
    """Directions found in the first half of the episodes that hold on each of the others."""
    half = len(episodes) // 2
    found = _directions(episodes[:half], degree, tolerance)
    exponents = monomials(episodes[0].shape[1], degree)
    held = np.ones(len(found), dtype=bool)
    for episode in episodes[half:]:
        design = monomial_values(episode, exponents)
        held &= np.linalg.norm(design @ found.T, axis=0) / np.linalg.norm(design) < HELD
    return int(held.sum())


def _figures(recordings: Recordings) -> Sequence[Figure]:
    figures = []
    for name, entries in ENVIRONMENTS.items():
        episodes = list(recordings.array("shipped", name, "horizon.observation"))
        empty = sum(len(_directions(episodes, degree, tolerance)) == 0 for degree in (1, 2) for tolerance in TOLERANCES)
        figures += [
            Figure(name=f"{name}: entries of the observation", paper=entries, measured=episodes[0].shape[1]),
            Figure(name=f"{name}: samples", paper=4008, measured=sum(map(len, episodes)), rule=Rule.SAME),
            Figure(
                name=f"{name}: nullspaces of degree 1 and 2 that are empty, at 1e-10 to 1e-6",
                paper=2 * len(TOLERANCES),
                measured=empty,
                rule=Rule.SAME,
            ),
            Figure(
                name=f"{name}: directions at 1e-4 that other episodes bear out",
                paper=0,
                measured=_surviving(episodes, 2, LOOSE),
                rule=Rule.SAME,
            ),
        ]
    return figures


NEGATIVE = ShippedExperiment(
    name="negative",
    title="Hopper and HalfCheetah have no polynomial law, and none is found",
    matrix="paper/negative.yaml",
    figures=_figures,
)
