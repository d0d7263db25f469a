"""The power balance of a driven, damped Acrobot: is the damping that was put in what is found (tier B of the paper)?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, partial

import numpy as np

from analysis.algebra import balance
from analysis.algebra.balance import Quadrature, Transitions
from analysis.algebra.recovery import GAP
from analysis.paper import systems
from analysis.paper.experiment import Experiment, Figure, Floats, Rule, share
from analysis.paper.laws import parameterised, unit_norms

DAMPINGS = ((0.1, 0.05), (0.3, 0.3), (0.02, 0.2))
TIME_STEPS = (0.001, 0.002, 0.005, 0.01, 0.02)
TRAJECTORIES, STEPS = 12, 400
DEGREE, POWER_DEGREE = 3, 2
QUADRATURES: tuple[Quadrature, ...] = ("trapezoid", "rectangle")
ROTATIONS = 12

NOT_ORTHONORMAL = (
    "the paper's basis was row-normalised and not orthonormal, so that its gap depends on which basis was taken;"
    " here it is orthonormal"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What was recovered of one system by one quadrature."""

    gap: float
    coefficients: tuple[float, ...]
    error: float
    """The larger of the relative errors."""
    decisive_rotations: tuple[bool, ...]
    """Whether the gap is decisive in row-normalised bases of the same terms, each turned at random."""

    @property
    def decisive(self) -> bool:
        """By the paper's gap."""
        return self.gap < GAP


def transitions(damping: tuple[float, float], time_step: float) -> Transitions:
    """All steps of a dozen trajectories, each with its start and a torque a step drawn from one stream.

    Limits: torques are white noise. What a policy would exercise is not in them.
    """
    rng = np.random.default_rng(0)
    drawn = [(rng.uniform(-systems.START, systems.START), rng.uniform(-1, 1, STEPS)) for _ in range(TRAJECTORIES)]
    starts, torques = (np.array(each) for each in zip(*drawn, strict=True))
    parameters = replace(systems.SPECIFIED, b1=damping[0], b2=damping[1])
    states = systems.rollout(parameters, starts, time_step, STEPS, torque=torques)
    observations = systems.acrobot_observation(states)
    return Transitions(
        before=observations[:, :-1].reshape(-1, 6),
        action=torques.reshape(-1),
        after=observations[:, 1:].reshape(-1, 6),
        time_step=time_step,
        powered=(4, 5),
    )


def _run(part: tuple[tuple[float, float], float]) -> dict[Quadrature, Found]:
    damping, time_step = part
    steps = transitions(damping, time_step)
    return {quadrature: _found(steps, damping, quadrature) for quadrature in QUADRATURES}


def _found(steps: Transitions, damping: tuple[float, float], quadrature: Quadrature) -> Found:
    recovered = balance.recover(steps, unit_norms(), DEGREE, POWER_DEGREE, quadrature)
    found = balance.damping(recovered, parameterised("acrobot").polynomial, driven=1).coefficients
    values, energy_terms, _ = balance.dictionary(steps, unit_norms(), DEGREE, POWER_DEGREE, quadrature)
    reduced = np.asarray(np.linalg.qr(values, mode="r"), dtype=np.float64)
    return Found(
        gap=recovered.recovered.gap,
        coefficients=found,
        error=max(abs(measured / put_in - 1) for measured, put_in in zip(found, damping, strict=True)),
        decisive_rotations=tuple(_gap(reduced, turned) < GAP for turned in _rotations(len(energy_terms))),
    )


@cache
def _rotations(terms: int) -> tuple[Floats, ...]:
    """Random orthonormal bases of the energy's terms."""
    rng = np.random.default_rng(0)
    return tuple(np.linalg.qr(rng.normal(size=(terms, terms)))[0] for _ in range(ROTATIONS))


def _gap(design: Floats, turned: Floats) -> float:
    """Of a basis whose rows are carried into scaled columns and only made of length one there."""
    lengths, terms = np.linalg.norm(design, axis=0), len(turned)
    basis = np.eye(design.shape[1])
    basis[:terms, :terms] = turned
    rows = basis * lengths
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    singular = np.linalg.svd((design / lengths) @ rows.T, compute_uv=False)
    return float(singular[-1] / singular[-2])


_PARTS = tuple((damping, time_step) for damping in DAMPINGS for time_step in TIME_STEPS)


def _figures(results: Sequence[dict[Quadrature, Found]]) -> list[Figure]:
    trapezoid, rectangle = ([each[quadrature] for each in results] for quadrature in QUADRATURES)
    first, second = results[0]["trapezoid"].coefficients
    told = partial(Figure, where="appendix G-B")
    return [
        told(name="decisive, trapezoid", paper="14/15", measured=_decisive(trapezoid), rule=Rule.SAME),
        told(name="worst error of the damping, trapezoid", paper=3.3e-3, measured=_worst(trapezoid)),
        told(name="b1 of 0.1", paper="0.10000", measured=f"{first:.5f}", rule=Rule.SAME),
        told(name="b2 of 0.05", paper="0.05000", measured=f"{second:.5f}", rule=Rule.SAME),
        told(
            name="decisive, rectangle", paper="2/15", measured=_decisive(rectangle), rule=Rule.SAME, exact=False
        ).explained(NOT_ORTHONORMAL),
        told(
            name="the paper's count is one of those of row-normalised bases, rectangle", paper="yes",
            measured=_within(rectangle, 2), rule=Rule.SAME, exact=False,
        ),
        told(
            name="worst error of the damping, rectangle", paper=0.96, measured=_worst(rectangle), exact=False
        ).explained(NOT_ORTHONORMAL),
    ]  # fmt: skip


def _decisive(found: Sequence[Found]) -> str:
    return share([each.decisive for each in found])


def _worst(found: Sequence[Found]) -> float:
    return max((each.error for each in found if each.decisive), default=float("nan"))


def _within(found: Sequence[Found], count: int) -> str:
    counts = [sum(decisive) for decisive in zip(*(each.decisive_rotations for each in found), strict=True)]
    return "yes" if min(counts) <= count <= max(counts) else "no"


BALANCE = Experiment(
    name="balance",
    title="damping recovered from the power balance",
    parts=_PARTS,
    run=_run,
    figures=_figures,
)
