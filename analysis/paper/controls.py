"""Controls on the class that gymnasium ships: known faults must be found, and how small they may be (table II)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from analysis.algebra import screening
from analysis.algebra.screening import LawScreen, Screen, Unit
from analysis.paper.experiment import Figure, Floats, Recordings, Rule, ShippedExperiment
from analysis.paper.laws import ACROBOT

STEPS = (0.2, 0.05, 0.01)
MAGNITUDES = (0.3, 0.1, 0.03, 0.01, 0.003, 0.001)
DRIFTS = {0.2: 3.55e-3, 0.05: 4.19e-6, 0.01: 1.52e-8}
SMALLEST = {
    (0.2, "mass"): 0.03,
    (0.2, "length"): 0.1,
    (0.05, "mass"): 0.001,
    (0.05, "length"): 0.001,
    (0.01, "mass"): 0.001,
    (0.01, "length"): 0.001,
}
NAMES = {"mass": "LINK_MASS_2", "length": "LINK_LENGTH_1"}
RATIOS = {"nips": 4.21, "mass-0.3": 11.56}
MOVED = 1.57
"""Radians per second by which a length that is one percent off moves a trajectory."""

_ENERGY = 2
"""Place of the energy among the laws."""
_BLOCKS = "the paper's figures are of blocks; with trajectories, whose level holds, it is "


def observations(recordings: Recordings, release: str, step: float) -> list[Floats]:
    """The trajectories of a release at a time step.

    Limits: as recorded, in single precision where the release observes in it.
    """
    return list(recordings.array(release, f"Acrobot-{step:g}", "horizon.observation"))


def drift(trajectories: Sequence[Floats]) -> float:
    """How much the energy varies along trajectories, beside the size of its terms, all of them together.

    Limits: a mean over trajectories: one that drifts alone hardly shows.
    """
    values, scales = ACROBOT.compiled.on(np.stack(trajectories))
    spread = values[..., _ENERGY].std(axis=1).mean()
    return float(spread / np.sqrt((scales[..., _ENERGY] ** 2).mean(axis=1)).mean())


def _screens(recordings: Recordings, release: str, step: float) -> dict[Unit, Screen]:
    shipped, tested = (observations(recordings, each, step) for each in ("shipped", release))
    return {unit: screening.screen(ACROBOT, shipped, tested, unit=unit) for unit in Unit}


def _energy(screen: Screen) -> LawScreen:
    return screen.laws[_ENERGY]


def _controls(recordings: Recordings) -> list[Figure]:
    figures = []
    for release, ratio in RATIOS.items():
        found = _screens(recordings, release, STEPS[0])
        energy = _energy(found[Unit.BLOCK])
        figures += [
            Figure(name=f"{release}: ratio of the energy's residual", paper=ratio, measured=energy.ratio),
            Figure(name=f"{release}: laws broken", paper="energy", measured=", ".join(found[Unit.BLOCK].broken)),
            Figure(
                name=f"{release}: laws broken, by trajectories",
                paper="energy",
                measured=", ".join(found[Unit.TRAJECTORY].broken) or "none",
                exact=False,
                note="" if found[Unit.TRAJECTORY].broken else _power(_energy(found[Unit.TRAJECTORY])),
            ),
        ]
    blocks = _screens(recordings, "nips", STEPS[0])[Unit.BLOCK], _screens(recordings, "mass-0.3", STEPS[0])[Unit.BLOCK]
    figures.append(Figure(name="nips: p", paper=1.7e-6, measured=_energy(blocks[0]).p, rule=Rule.ABOUT))
    figures.append(Figure(name="mass 1.3: p", paper=9.8e-12, measured=_energy(blocks[1]).p))
    shipped, moved = (np.stack(observations(recordings, each, STEPS[0])) for each in ("shipped", "length-0.01"))
    figures.append(
        Figure(name="length off by 1%: largest move", paper=MOVED, measured=float(np.abs(moved - shipped).max()))
    )
    return figures


def _power(energy: LawScreen) -> str:
    return f"eight trajectories that drift by {energy.reference:.1e} give p = {energy.p:.2g}, ratio {energy.ratio:.3g}"


def _step_sizes(recordings: Recordings) -> list[Figure]:
    figures = [
        Figure(
            name=f"drift of the reference, Δt {step:g}",
            paper=DRIFTS[step],
            measured=drift(observations(recordings, "shipped", step)),
        )
        for step in STEPS
    ]
    for (step, what), smallest in SMALLEST.items():
        broken: dict[Unit, list[float]] = {unit: [] for unit in Unit}
        for magnitude in MAGNITUDES:
            for unit, screen in _screens(recordings, f"{what}-{magnitude:g}", step).items():
                if _energy(screen).broken:
                    broken[unit].append(magnitude)
        by_trajectories = min(broken[Unit.TRAJECTORY], default=float("inf"))
        figures.append(
            Figure(
                name=f"smallest error of {NAMES[what]} found, Δt {step:g}",
                paper=smallest,
                measured=min(broken[Unit.BLOCK], default=float("inf")),
                rule=Rule.SAME,
                note="" if by_trajectories == smallest else f"{_BLOCKS}{_told(by_trajectories)}",
            )
        )
    return figures


def _told(magnitude: float) -> str:
    return f"{magnitude:g}" if np.isfinite(magnitude) else "none of these"


CONTROLS = ShippedExperiment(
    name="controls",
    title="known faults in the shipped Acrobot, and how small they may be at which time step",
    matrix="paper/controls.yaml",
    figures=lambda recordings: [*_controls(recordings), *_step_sizes(recordings)],
)
