"""The paper's two systems in closed form: Acrobot and Reacher, of many trajectories at once.

The shipped environments fix the step size and the integrator; the fault catalogue has to vary both. The equations are
those of Gymnasium, but for the clipping of velocities, which would break the energy. A run states all that decides an
arm but its seeds, so that the thousand arms of a calibration are integrated in one call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integrator = Literal["rk4", "euler", "symplectic_euler", "verlet"]
ObservationFault = Callable[[Floats], Floats]
"""What goes wrong between a state and its observation: observations (..., columns) to observations."""
Accelerate = Callable[[Floats, Floats], Floats]
"""Angles and velocities of both joints, (2, ...) each, to accelerations."""

START = np.array([1.0, 1.0, 0.5, 0.5])
"""Half the width of the box around rest that Acrobot's trajectories start from: θ1, θ2, ω1, ω2."""

POSE = (np.pi, np.pi, 0.2, 0.2, 10.0, 10.0)
"""The same for Reacher's poses: the angles, the target, the velocities."""

NOISE_STREAM = 90210
"""Added to an arm's seed for its noise, so that arms of one start may have noises of their own."""

_LENGTHS = [4, 5, 8, 9, 10]
"""Columns of Reacher's observation that are lengths: the target and the way from it to the fingertip."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AcrobotParameters:
    """The constants of Acrobot, by default as Gymnasium specifies them."""

    m1: float = 1.0
    m2: float = 1.0
    l1: float = 1.0
    l2: float = 1.0
    lc1: float = 0.5
    lc2: float = 0.5
    i1: float = 1.0
    i2: float = 1.0
    g: float = 9.8
    b1: float = 0.0
    b2: float = 0.0
    """Viscous damping of the joints."""
    coriolis: bool = True
    """Without it, the ``nips`` variant that Gymnasium ships beside the ``book`` one."""


SPECIFIED = AcrobotParameters()


def accelerations(parameters: AcrobotParameters, angles: Floats, velocities: Floats, torque: float | Floats) -> Floats:
    """Of both joints, (2, ...), under a torque on the second; term by term as Gymnasium writes them.

    Limits: no velocity is clipped, and nothing bounds the angles: Gymnasium does both.
    """
    p, (theta1, theta2), (omega1, omega2) = parameters, angles, velocities
    lever, sine = p.m2 * p.l1 * p.lc2, np.sin(theta2)
    d1, d2, d3 = _inertias(p, np.cos(theta2))
    phi2 = p.m2 * p.lc2 * p.g * np.cos(theta1 + theta2 - np.pi / 2)
    weight = (p.m1 * p.lc1 + p.m2 * p.l1) * p.g * np.cos(theta1 - np.pi / 2)
    phi1 = -lever * omega2**2 * sine - 2 * lever * omega2 * omega1 * sine + weight + phi2 + p.b1 * omega1
    coriolis = lever * omega1**2 * sine if p.coriolis else 0.0
    second = (torque - p.b2 * omega2 + d2 / d1 * phi1 - coriolis - phi2) / (d3 - d2**2 / d1)
    return np.stack([-(d2 * second + phi1) / d1, second])


def energy(states: Floats, parameters: AcrobotParameters = SPECIFIED) -> Floats:
    """Kinetic and potential, of states (..., 4) whose angles count from the downward vertical.

    Limits: a value, and not a claim that it is conserved: damping, torque and the integrator change it.
    """
    p, (theta1, theta2, omega1, omega2) = parameters, np.moveaxis(states, -1, 0)
    d1, d2, d3 = _inertias(p, np.cos(theta2))
    kinetic = d1 * omega1**2 / 2 + d2 * omega1 * omega2 + d3 * omega2**2 / 2
    second = p.l1 * np.cos(theta1) + p.lc2 * np.cos(theta1 + theta2)
    total: Floats = kinetic - p.m1 * p.g * p.lc1 * np.cos(theta1) - p.m2 * p.g * second
    return total


def _inertias(p: AcrobotParameters, cosine: Floats) -> tuple[Floats, Floats, float]:
    """The mass matrix: of the first joint, between the two, of the second."""
    d1 = p.m1 * p.lc1**2 + p.m2 * (p.l1**2 + p.lc2**2 + 2 * p.l1 * p.lc2 * cosine) + p.i1 + p.i2
    d2 = p.m2 * (p.lc2**2 + p.l1 * p.lc2 * cosine) + p.i2
    return d1, d2, p.m2 * p.lc2**2 + p.i2


def _slope(accelerate: Accelerate, state: Floats) -> Floats:
    return np.concatenate([state[2:], accelerate(state[:2], state[2:])])


def _rk4(accelerate: Accelerate, state: Floats, dt: float) -> Floats:
    first = _slope(accelerate, state)
    second = _slope(accelerate, state + dt / 2 * first)
    third = _slope(accelerate, state + dt / 2 * second)
    fourth = _slope(accelerate, state + dt * third)
    return state + dt / 6 * (first + 2 * second + 2 * third + fourth)


def _euler(accelerate: Accelerate, state: Floats, dt: float) -> Floats:
    return state + dt * _slope(accelerate, state)


def _symplectic_euler(accelerate: Accelerate, state: Floats, dt: float) -> Floats:
    velocities = state[2:] + dt * accelerate(state[:2], state[2:])
    return np.concatenate([state[:2] + dt * velocities, velocities])


def _verlet(accelerate: Accelerate, state: Floats, dt: float) -> Floats:
    angles, velocities = state[:2], state[2:]
    before = accelerate(angles, velocities)
    moved = angles + dt * velocities + dt**2 / 2 * before
    after = accelerate(moved, velocities + dt * before)
    return np.concatenate([moved, velocities + dt / 2 * (before + after)])


_STEPS: dict[Integrator, Callable[[Accelerate, Floats, float], Floats]] = {
    "rk4": _rk4, "euler": _euler, "symplectic_euler": _symplectic_euler, "verlet": _verlet,
}  # fmt: skip


def rollout(
    parameters: AcrobotParameters,
    starts: Floats,
    dt: float,
    steps: int,
    integrator: Integrator = "rk4",
    torque: float | Floats = 0.0,
) -> Floats:
    """States (..., steps + 1, 4) from starts (..., 4). A torque holds for a step; it broadcasts to (..., steps).

    Limits: fixed steps without any control of the error; a step too coarse goes wrong in silence.
    """
    torques = np.broadcast_to(torque, (*starts.shape[:-1], steps))
    states = np.empty((steps + 1, 4, *starts.shape[:-1]))
    states[0] = np.moveaxis(starts, -1, 0)
    for step in range(steps):
        accelerate = partial(accelerations, parameters, torque=torques[..., step])
        states[step + 1] = _STEPS[integrator](accelerate, states[step], dt)
    return np.ascontiguousarray(np.moveaxis(states, (0, 1), (-2, -1)))


def acrobot_observation(states: Floats) -> Floats:
    """The cosine and sine of each angle and the velocities: the coordinates in which the energy is a polynomial.

    Limits: in full precision, which the shipped observation has not got.
    """
    theta1, theta2, omega1, omega2 = np.moveaxis(states, -1, 0)
    return np.stack([np.cos(theta1), np.sin(theta1), np.cos(theta2), np.sin(theta2), omega1, omega2], axis=-1)


def reacher_observation(
    theta1: Floats,
    theta2: Floats,
    tx: Floats,
    ty: Floats,
    w1: Floats,
    w2: Floats,
    l1: float = 0.1,
    l2: float = 0.11,
) -> Floats:
    """Observations (..., 11) of poses and targets; the last column is the height, which is zero in a plane.

    Limits: kinematics alone: the velocities are what they are given as, not derivatives of the poses.
    """
    cosine1, cosine2, sine1, sine2 = np.cos(theta1), np.cos(theta2), np.sin(theta1), np.sin(theta2)
    away_x = l1 * cosine1 + l2 * np.cos(theta1 + theta2) - tx
    away_y = l1 * sine1 + l2 * np.sin(theta1 + theta2) - ty
    height = np.zeros_like(away_x)
    return np.stack([cosine1, cosine2, sine1, sine2, tx, ty, w1, w2, away_x, away_y, height], axis=-1)


@dataclass(frozen=True, slots=True, kw_only=True)
class AcrobotRun:
    """How trajectories of Acrobot are integrated and observed: all of an arm but its seeds."""

    parameters: AcrobotParameters = SPECIFIED
    dt: float
    trajectories: int = 8
    steps: int = 400
    integrator: Integrator = "rk4"
    torque: float | Floats = 0.0
    """A number, or numbers (trajectories, steps)."""
    fault_of_observation: ObservationFault | None = None
    noise: float = 0.0
    every: int = 1
    """Samples of the integration to one of the observation."""

    def arms(self, seeds: Sequence[int], ic_seeds: Sequence[int] | None = None) -> Floats:
        """Observations (seeds, trajectories, samples, 6) of one arm per seed, integrated together.

        Limits: starts are drawn from a box around rest; states of high energy do not occur.
        """
        shape = (self.trajectories, 4)
        starts = [np.random.default_rng(seed).uniform(-START, START, shape) for seed in ic_seeds or seeds]
        states = rollout(self.parameters, np.array(starts), self.dt, self.steps, self.integrator, self.torque)
        return _observed(acrobot_observation(states[..., :: self.every, :]), self, seeds)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReacherRun:
    """How poses of Reacher are drawn and observed: all of an arm but its seeds."""

    l1: float = 0.1
    l2: float = 0.11
    count: int = 4000
    scale: float = 1.0
    """The unit of lengths: 0.1 makes the first link one."""
    fault_of_observation: ObservationFault | None = None
    noise: float = 0.0

    def arms(self, seeds: Sequence[int], ic_seeds: Sequence[int] | None = None) -> Floats:
        """Observations (seeds, 1, count, 11) of one arm per seed; a thousand of 4,000 poses are 350 MB.

        Limits: poses are drawn one by one and form no trajectory; nothing dynamic can be read off them.
        """
        observations = np.array([[self._poses(seed)] for seed in ic_seeds or seeds])
        observations[..., _LENGTHS] /= self.scale
        return _observed(observations, self, seeds)

    def _poses(self, seed: int) -> Floats:
        rng = np.random.default_rng(seed)
        theta1, theta2, tx, ty, w1, w2 = (rng.uniform(-width, width, self.count) for width in POSE)
        return reacher_observation(theta1, theta2, tx, ty, w1, w2, self.l1, self.l2)


Run = AcrobotRun | ReacherRun


def _observed(observations: Floats, run: Run, seeds: Sequence[int]) -> Floats:
    """With the run's fault, then its noise, which is drawn for each arm by itself."""
    if run.fault_of_observation is not None:
        observations = run.fault_of_observation(observations)
    if run.noise:
        for arm, seed in zip(observations, seeds, strict=True):
            arm += np.random.default_rng(seed + NOISE_STREAM).normal(0.0, run.noise, arm.shape)
    return observations


def drawn(run: Run, seed: int = 0, ic_seed: int | None = None) -> tuple[Floats, ...]:
    """One arm of a run: its trajectories, each (samples, columns).

    Limits: an arm is its seed's; two arms of one seed are the same numbers and not two observations.
    """
    return tuple(run.arms([seed], None if ic_seed is None else [ic_seed])[0])


def reacher_samples(
    *,
    l1: float = 0.1,
    l2: float = 0.11,
    seed: int = 0,
    ic_seed: int | None = None,
    count: int = 4000,
    scale: float = 1.0,
    fault_of_observation: ObservationFault | None = None,
    noise: float = 0.0,
) -> tuple[Floats, ...]:
    """One arm of Reacher: a single array (count, 11).

    Limits: a single array, so that trajectories cannot be told from each other in it.
    """
    run = ReacherRun(l1=l1, l2=l2, count=count, scale=scale, fault_of_observation=fault_of_observation, noise=noise)
    return drawn(run, seed, ic_seed)
