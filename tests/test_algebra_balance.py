"""Balance: the damping of a driven system is read off the work done on it, where the work is summed well enough."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import sympy
from numpy.typing import NDArray

from analysis.algebra import balance
from analysis.algebra.balance import Transitions
from analysis.algebra.errors import BadData
from analysis.algebra.ideals import Ideal
from analysis.algebra.polynomials import polynomial_ring
from analysis.paper.systems import AcrobotParameters, acrobot_observation, rollout

RING = polynomial_ring(("c", "s", "w"))
C, S, W = RING.gens
KNOWN = Ideal.of([C**2 + S**2 - 1], RING)
GRAVITY = 9.8
ENERGY = W**2 / 2 - C * sympy.QQ(49, 5)

Floats = NDArray[np.float64]


def pendulum(damping: float, dt: float = 0.01, steps: int = 2000, torque: float = 5.0) -> Transitions:
    """θ'' = u − g sin θ − b θ', with a torque drawn anew at each step, by Runge and Kutta's rule."""
    torques = np.random.default_rng(0).uniform(-torque, torque, steps)
    states = np.empty((steps + 1, 2))
    states[0] = 1.0, 0.0
    for step in range(steps):
        state, slopes = states[step], [np.zeros(2)]
        for part in (0, dt / 2, dt / 2, dt):
            angle, velocity = state + part * slopes[-1]
            slopes.append(np.array([velocity, torques[step] - GRAVITY * np.sin(angle) - damping * velocity]))
        states[step + 1] = state + dt / 6 * (slopes[1] + 2 * slopes[2] + 2 * slopes[3] + slopes[4])
    observed = np.column_stack([np.cos(states[:, 0]), np.sin(states[:, 0]), states[:, 1]])
    return Transitions(before=observed[:-1], action=torques, after=observed[1:], time_step=dt, powered=(2,))


def recovered(transitions: Transitions, quadrature: balance.Quadrature = "trapezoid") -> balance.Balance:
    return balance.recover(transitions, KNOWN, degree=2, quadrature=quadrature)


@pytest.mark.parametrize("damping", [0.05, 0.1, 0.5])
def test_the_trapezoid_recovers_the_damping(damping: float) -> None:
    found = recovered(pendulum(damping))
    assert found.recovered.decisive()
    read = balance.damping(found, ENERGY, driven=0)
    assert read.coefficients == pytest.approx([damping], abs=1e-3)
    assert read.residual < 1e-3


@pytest.mark.parametrize("damping", [0.05, 0.1, 0.5])
def test_the_rectangle_does_not(damping: float) -> None:
    read = balance.damping(recovered(pendulum(damping), "rectangle"), ENERGY, driven=0)
    assert abs(read.coefficients[0] - damping) > 10e-3


def test_the_error_is_the_quadratures_and_falls_with_the_square_of_the_step() -> None:
    errors = [
        abs(balance.damping(recovered(pendulum(0.3, dt)), ENERGY, driven=0).coefficients[0] - 0.3)
        for dt in (0.04, 0.02, 0.01)
    ]
    assert errors[0] > 2.5 * errors[1] > 2.5 * 2.5 * errors[2]


def test_a_system_without_damping_has_none() -> None:
    assert balance.damping(recovered(pendulum(0.0)), ENERGY, driven=0).coefficients == pytest.approx([0.0], abs=1e-3)


def test_the_balance_holds_the_energy_and_the_power_it_was_not_told() -> None:
    found = recovered(pendulum(0.1))
    energy = dict(zip(found.energy_terms, found.energy.tolist(), strict=True))
    assert energy[1, 0, 0] / energy[0, 0, 2] == pytest.approx(-2 * GRAVITY, rel=1e-3)
    power = dict(zip(found.power_terms, found.power.tolist(), strict=True))
    assert power[2, 0] / power[1, 1] == pytest.approx(-0.1, abs=1e-3)  # of ω² and of ω·u
    assert (0, 0, 0) not in energy
    assert (0, 0) not in power


def test_another_energy_does_not_explain_the_balance() -> None:
    found = recovered(pendulum(0.1))
    right, wrong = (balance.damping(found, energy, driven=0) for energy in (ENERGY, W**2 / 2 - C * 20))
    assert wrong.residual > 100 * right.residual


def test_both_dampings_of_a_driven_acrobot_are_recovered() -> None:
    ring = polynomial_ring(("c1", "s1", "c2", "s2", "w1", "w2"))
    c1, s1, c2, s2, w1, w2 = ring.gens
    kinetic = (7 * w1**2 + 2 * c2 * w1**2 + 5 * w1 * w2 + 2 * c2 * w1 * w2) / 4 + 5 * w2**2 / 8
    energy = kinetic + (s1 * s2 * 49 - c1 * 147 - c1 * c2 * 49) / 10
    torque = np.random.default_rng(0).uniform(-2, 2, (8, 400))
    starts = np.random.default_rng(1).uniform(-1, 1, (8, 4))
    seen = acrobot_observation(rollout(AcrobotParameters(b1=0.1, b2=0.05), starts, 0.005, 400, torque=torque))
    found = balance.recover(
        Transitions(
            before=seen[:, :-1].reshape(-1, 6),
            action=torque.ravel(),
            after=seen[:, 1:].reshape(-1, 6),
            time_step=0.005,
            powered=(4, 5),
        ),
        Ideal.of([c1**2 + s1**2 - 1, c2**2 + s2**2 - 1], ring),
    )
    assert found.recovered.decisive()
    assert balance.damping(found, energy, driven=1).coefficients == pytest.approx([0.1, 0.05], rel=3.3e-3)


def test_actions_that_are_missing_are_refused() -> None:
    transitions = pendulum(0.1, steps=50)
    with pytest.raises(BadData, match="as many actions and next states as states"):
        recovered(replace(transitions, action=transitions.action[:-1]))
    with pytest.raises(BadData, match="too few"):
        recovered(pendulum(0.1, steps=10))


def test_what_is_not_a_number_or_has_too_many_actions_is_refused() -> None:
    transitions = pendulum(0.1, steps=50)
    broken = np.where(np.arange(50) == 7, np.nan, transitions.action)
    with pytest.raises(BadData, match="not a number at sample 7"):
        recovered(replace(transitions, action=broken))
    with pytest.raises(BadData, match="must have 3 columns"):
        recovered(replace(transitions, after=transitions.after[:, :2]))
    with pytest.raises(BadData, match="must have 1 columns"):
        recovered(replace(transitions, action=np.stack([broken, broken], axis=1)))
