"""The analytic systems: their equations, their integrators, and the streams that their draws come from."""

from __future__ import annotations

from dataclasses import replace
from math import cos, pi, sin

import numpy as np
import pytest

from analysis.paper.systems import (
    SPECIFIED,
    AcrobotParameters,
    AcrobotRun,
    Floats,
    Integrator,
    ReacherRun,
    accelerations,
    acrobot_observation,
    drawn,
    energy,
    reacher_observation,
    reacher_samples,
    rollout,
)

ODD = AcrobotParameters(m1=1.1, m2=0.7, l1=1.3, lc1=0.4, lc2=0.6, i1=0.9, i2=1.2, g=9.7, b1=0.1, b2=0.05)
START = np.array([[0.1, -0.2, 0.3, -0.15]])


def by_hand(p: AcrobotParameters, state: Floats, torque: float) -> list[float]:
    """One state's accelerations, as a textbook has them."""
    theta1, theta2, omega1, omega2 = (float(each) for each in state)
    d1 = p.m1 * p.lc1**2 + p.m2 * (p.l1**2 + p.lc2**2 + 2 * p.l1 * p.lc2 * cos(theta2)) + p.i1 + p.i2
    d2 = p.m2 * (p.lc2**2 + p.l1 * p.lc2 * cos(theta2)) + p.i2
    phi2 = p.m2 * p.lc2 * p.g * cos(theta1 + theta2 - pi / 2)
    phi1 = -p.m2 * p.l1 * p.lc2 * omega2**2 * sin(theta2) - 2 * p.m2 * p.l1 * p.lc2 * omega2 * omega1 * sin(theta2)
    phi1 += (p.m1 * p.lc1 + p.m2 * p.l1) * p.g * cos(theta1 - pi / 2) + phi2 + p.b1 * omega1
    turned = p.m2 * p.l1 * p.lc2 * omega1**2 * sin(theta2) if p.coriolis else 0.0
    driven = torque - p.b2 * omega2 + d2 / d1 * phi1 - turned - phi2
    second = driven / (p.m2 * p.lc2**2 + p.i2 - d2**2 / d1)
    return [-(d2 * second + phi1) / d1, second]


def drift(dt: float, parameters: AcrobotParameters = SPECIFIED, integrator: Integrator = "rk4") -> float:
    energies = energy(rollout(parameters, START, dt, round(40 / dt), integrator), parameters)[0]
    return float(np.abs(energies - energies[0]).max() / abs(energies[0]))


@pytest.mark.parametrize("parameters", [SPECIFIED, ODD, replace(ODD, coriolis=False)])
def test_many_states_accelerate_as_each_by_hand(parameters: AcrobotParameters) -> None:
    states = np.random.default_rng(3).normal(0, 2, (50, 4))
    torques = np.random.default_rng(4).normal(0, 1, 50)
    together = accelerations(parameters, states[:, :2].T, states[:, 2:].T, torques).T
    alone = [by_hand(parameters, state, float(torque)) for state, torque in zip(states, torques, strict=True)]
    np.testing.assert_allclose(together, alone, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("dt", "paper"), [(0.2, 6.51e-4), (0.05, 6.86e-7), (0.01, 2.20e-10)])
def test_rk4_drifts_as_in_the_paper(dt: float, paper: float) -> None:
    assert drift(dt) == pytest.approx(paper, rel=0.05)


def test_rk4_converges_at_its_order() -> None:
    assert np.log(drift(0.2) / drift(0.01)) / np.log(20) == pytest.approx(4.95, abs=0.1)


def test_the_nips_variant_does_not_conserve_energy() -> None:
    assert drift(0.01, replace(SPECIFIED, coriolis=False)) > 1e-4


def test_damping_loses_energy() -> None:
    energies = energy(rollout(replace(SPECIFIED, b1=0.1, b2=0.05), START, 0.01, 1000))[0]
    assert (np.diff(energies) < 0).all()


@pytest.mark.parametrize(("dt", "paper"), [(0.05, 2.48e-3), (0.01, 1.06e-4), (0.002, 6.12e-6)])
def test_torque_puts_in_the_power_that_it_has_as_in_the_paper(dt: float, paper: float) -> None:
    states = rollout(SPECIFIED, START, dt, 200, torque=1.0)[0]
    residual = np.diff(energy(states)) - dt * states[:-1, 3]
    assert np.abs(residual).mean() == pytest.approx(paper, rel=5e-3)


@pytest.mark.parametrize(
    ("integrator", "order"), [("rk4", 4), ("euler", 1), ("symplectic_euler", 1), ("verlet", 2)]
)  # fmt: skip
def test_integrators_converge_at_their_order(integrator: Integrator, order: int) -> None:
    exact = rollout(ODD, START, 0.0005, 2000)[0, -1]
    coarse, fine = (np.abs(rollout(ODD, START, 1 / n, n, integrator)[0, -1] - exact).max() for n in (50, 100))
    assert np.log2(coarse / fine) == pytest.approx(order, abs=0.25)


def test_symplectic_euler_moves_velocities_first() -> None:
    after = rollout(SPECIFIED, START, 0.1, 1, "symplectic_euler")[0, 1]
    np.testing.assert_array_equal(after[:2], START[0, :2] + 0.1 * after[2:])


def test_trajectories_do_not_know_of_each_other() -> None:
    starts = np.random.default_rng(0).normal(0, 1, (3, 4))
    torques = np.random.default_rng(1).normal(0, 1, (3, 20))
    together = rollout(ODD, starts, 0.01, 20, torque=torques)
    assert together.shape == (3, 21, 4)
    for start, torque, states in zip(starts, torques, together, strict=True):
        np.testing.assert_array_equal(rollout(ODD, start[None], 0.01, 20, torque=torque)[0], states)


def test_energy_is_the_papers_polynomial_in_the_observation() -> None:
    states = np.random.default_rng(0).uniform(-pi, pi, (2000, 4))
    c1, s1, c2, s2, w1, w2 = acrobot_observation(states).T
    kinetic = 7 / 4 * w1**2 + c2 * w1**2 / 2 + 5 / 4 * w1 * w2 + c2 * w1 * w2 / 2 + 5 / 8 * w2**2
    polynomial = kinetic - 14.7 * c1 - 4.9 * c1 * c2 + 4.9 * s1 * s2
    np.testing.assert_allclose(energy(states), polynomial, atol=1e-12)


def test_reacher_keeps_its_forward_kinematics() -> None:
    c1, c2, s1, s2, tx, ty, _, _, dx, dy, dz = reacher_samples(count=5000)[0].T
    np.testing.assert_allclose(dx + tx, 0.1 * c1 + 0.11 * (c1 * c2 - s1 * s2), atol=1e-15)
    np.testing.assert_allclose(dy + ty, 0.1 * s1 + 0.11 * (s1 * c2 + c1 * s2), atol=1e-15)
    assert not dz.any()


# The streams that draws come from


def test_starts_are_the_scalar_draws_in_their_order() -> None:
    rng = np.random.default_rng(5)
    starts = np.array([[rng.uniform(-width, width) for width in (1, 1, 0.5, 0.5)] for _ in range(3)])
    arm = drawn(AcrobotRun(dt=0.1, trajectories=3, steps=0), seed=9, ic_seed=5)
    np.testing.assert_array_equal(np.concatenate(arm), acrobot_observation(starts))


def test_the_seed_of_starts_is_the_seed_unless_one_is_given() -> None:
    zero, one = (drawn(AcrobotRun(dt=0.1, steps=1), seed)[0] for seed in (0, 1))
    np.testing.assert_array_equal(drawn(AcrobotRun(dt=0.1, steps=1), seed=1, ic_seed=0)[0], zero)
    assert (one != zero).any()


def test_noise_is_drawn_trajectory_by_trajectory() -> None:
    silent, noisy = (drawn(AcrobotRun(dt=0.1, steps=5, noise=noise), 2) for noise in (0.0, 0.1))
    rng = np.random.default_rng(2 + 90210)
    for one, other in zip(silent, noisy, strict=True):
        np.testing.assert_array_equal(other, one + rng.normal(0, 0.1, one.shape))


def test_noise_comes_after_the_fault_and_the_fault_after_sampling() -> None:
    seen: list[tuple[int, ...]] = []

    def fault(observations: Floats) -> Floats:
        seen.append(observations.shape)
        return np.zeros_like(observations)

    arm = drawn(AcrobotRun(dt=0.1, steps=20, every=10, fault_of_observation=fault, noise=1.0))
    assert seen == [(1, 8, 3, 6)]
    assert np.concatenate(arm).std() == pytest.approx(1.0, rel=0.2)


def test_every_nth_sample_of_the_integration_is_observed() -> None:
    np.testing.assert_array_equal(
        drawn(AcrobotRun(dt=0.01, steps=20, every=10))[3], drawn(AcrobotRun(dt=0.01, steps=20))[3][::10]
    )


def test_poses_are_drawn_array_by_array() -> None:
    rng = np.random.default_rng(7)
    widths = (pi, pi, 0.2, 0.2, 10, 10)
    theta1, theta2, tx, ty, w1, w2 = (rng.uniform(-width, width, 40) for width in widths)
    expected = reacher_observation(theta1, theta2, tx, ty, w1, w2, l2=0.13)
    (metres,), (links,) = (reacher_samples(l2=0.13, ic_seed=7, count=40, scale=scale) for scale in (1.0, 0.1))
    np.testing.assert_array_equal(metres, expected)
    expected[:, [4, 5, 8, 9, 10]] /= 0.1
    np.testing.assert_array_equal(links, expected)


def test_reachers_noise_has_a_stream_of_its_own() -> None:
    (silent,), (noisy,) = (reacher_samples(seed=3, count=40, noise=noise) for noise in (0.0, 0.1))
    np.testing.assert_array_equal(noisy, silent + np.random.default_rng(3 + 90210).normal(0, 0.1, silent.shape))


@pytest.mark.parametrize("run", [AcrobotRun(dt=0.01, steps=30, noise=0.1), ReacherRun(count=30, noise=0.1)])
def test_arms_drawn_together_are_those_drawn_alone(run: AcrobotRun | ReacherRun) -> None:
    together = run.arms([4, 5, 6], [0, 1, 1])
    for seed, ic_seed, arm in zip([4, 5, 6], [0, 1, 1], together, strict=True):
        np.testing.assert_array_equal(np.stack(drawn(run, seed, ic_seed)), arm)
