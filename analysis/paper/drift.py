"""Drift of the energy under RK4, its order, and the power balance under torque (appendix I)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from analysis.paper import systems
from analysis.paper.experiment import Experiment, Figure

START = np.array([[0.1, -0.2, 0.3, -0.15]])
SECONDS = 40.0
DRIFTS = {0.2: 6.51e-4, 0.05: 6.86e-7, 0.01: 2.20e-10}
ORDER = 4.95
BALANCES = {0.05: (2.48e-3, 0.99), 0.01: (1.06e-4, 1.06), 0.002: (6.12e-6, 1.53)}
BALANCE_STEPS = 200


def drift(time_step: float, parameters: systems.AcrobotParameters = systems.SPECIFIED) -> float:
    """The largest change of the energy over a passive rollout, relative to where it began.

    Limits: of one start over forty seconds; in a chaotic system another start drifts otherwise. It does not tell an
    integrator's error from a broken law.
    """
    states = systems.rollout(parameters, START, time_step, round(SECONDS / time_step))[0]
    energies = systems.energy(states, parameters)
    return float(np.max(np.abs(energies - energies[0])) / abs(energies[0]))


def _imbalance(time_step: float) -> float:
    """The mean of what a step's gain in energy and the work done in it are apart, under a torque of 1."""
    states = systems.rollout(systems.AcrobotParameters(), START, time_step, BALANCE_STEPS, torque=1.0)[0]
    energies = systems.energy(states, systems.AcrobotParameters())
    return float(np.mean(np.abs(np.diff(energies) - time_step * states[:-1, 3])))


def _run(part: tuple[str, float]) -> float:
    what, time_step = part
    return drift(time_step) if what == "drift" else _imbalance(time_step)


_PARTS = tuple(
    [("drift", time_step) for time_step in sorted(DRIFTS)] + [("balance", time_step) for time_step in BALANCES]
)


def _figures(results: Sequence[float]) -> list[Figure]:
    found = dict(zip(_PARTS, results, strict=True))
    figures = [
        Figure(name=f"energy drift, Δt {step:g}", paper=paper, measured=found["drift", step], where="appendix I-B")
        for step, paper in DRIFTS.items()
    ]
    order = np.log(found["drift", 0.2] / found["drift", 0.05]) / np.log(0.2 / 0.05)
    figures.append(Figure(name="order of the drift", paper=ORDER, measured=float(order), where="appendix I-B"))
    for step, (residual, scaled) in BALANCES.items():
        measured = found["balance", step]
        where = "appendix I-C"
        figures.append(Figure(name=f"balance residual, Δt {step:g}", paper=residual, measured=measured, where=where))
        figures.append(
            Figure(name=f"balance residual / Δt², Δt {step:g}", paper=scaled, measured=measured / step**2, where=where)
        )
    return figures


DRIFT = Experiment(
    name="drift",
    title="drift and convergence order of the energy, power balance under torque",
    parts=_PARTS,
    run=_run,
    figures=_figures,
)
