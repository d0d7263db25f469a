"""The stimulus: states and actions, drawn once here, addressed by digest, handed to every release as bytes.

The virtualenvs never draw a random number.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audit.digests import array_digest
from audit.layout import BoxSpace, DiscreteSpace, Layout, OtherSpace
from audit.matrix import BoundedStart, EnvironmentRow, StimulusSpec

_ACTIONS_STREAM = 1
"""States come from the seed itself, as in the paper; actions from a stream of their own beside it."""


_NORMALISING_STEPS = 64
"""Last places by which a quaternion's largest entry is moved; a handful suffices."""


class Undrawable(Exception):
    """The matrix asks for states or actions that this environment does not have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stimulus:
    """States and an action for every step from each of them."""

    digest: str
    payload: bytes
    """An npz with ``states`` (trajectories × entries) and ``actions`` (trajectories × steps × ...)."""
    trajectories: int
    steps: int


def draw(spec: StimulusSpec, environment: EnvironmentRow, layout: Layout) -> Stimulus:
    """Draw the stimulus of one environment."""
    states = _states(spec, environment, layout)
    actions = _actions(spec, environment, layout)
    file = io.BytesIO()
    np.savez(file, states=states, actions=actions)
    return Stimulus(
        digest=array_digest(states, actions),
        payload=file.getvalue(),
        trajectories=spec.trajectories,
        steps=spec.steps,
    )


def _states(spec: StimulusSpec, environment: EnvironmentRow, layout: Layout) -> NDArray[np.float64]:
    generator = np.random.default_rng(spec.seed)
    start = environment.start or spec.start
    states = np.zeros((spec.trajectories, layout.state_size))
    if isinstance(start, BoundedStart):
        given = len(start.low)
        if given > layout.state_size:
            raise Undrawable(f"start has {given} entries, the state only {layout.state_size}")
        states[:, :given] = generator.uniform(start.low, start.high, size=(spec.trajectories, given))
        return _with_unit_quaternions(states, layout)
    reach = np.full(layout.state_size, start.velocity)
    reach[: layout.positions] = start.position
    states[:] = np.array(layout.reference) + generator.uniform(-reach, reach, size=states.shape)
    return _with_unit_quaternions(states, layout)


def _with_unit_quaternions(states: NDArray[np.float64], layout: Layout) -> NDArray[np.float64]:
    for first in layout.quaternions:
        quaternions = states[:, first : first + 4]
        if not quaternions.any(axis=1).all():
            raise Undrawable(f"entries {first} to {first + 3} are a quaternion, and zero is none: start must give them")
        states[:, first : first + 4] = unit_quaternions(quaternions)
    return states


def unit_quaternions(drawn: NDArray[np.float64]) -> NDArray[np.float64]:
    """Quaternions whose computed norm is exactly 1, so that normalising them again moves no bit.

    Some releases normalise what they are given and some do not (mujoco 2.3.7 does, 3.0 does not). The states that they
    read back would differ in the last place, and nothing could be compared.
    """
    units: NDArray[np.float64] = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    largest = np.argmax(np.abs(units), axis=1)
    rows = np.arange(len(units))
    for _ in range(_NORMALISING_STEPS):
        norms = np.sqrt(units[:, 0] ** 2 + units[:, 1] ** 2 + units[:, 2] ** 2 + units[:, 3] ** 2)
        off = norms != 1.0
        if not off.any():
            break
        moved = units[rows, largest]
        towards = np.where(norms > 1.0, 0.0, np.copysign(2.0, moved))
        units[rows, largest] = np.where(off, np.nextafter(moved, towards), moved)
    return units


def _actions(spec: StimulusSpec, environment: EnvironmentRow, layout: Layout) -> NDArray[Any]:
    generator = np.random.default_rng([spec.seed, _ACTIONS_STREAM])
    size = (spec.trajectories, spec.steps)
    space = layout.action
    if isinstance(space, DiscreteSpace):
        return _discrete(spec, space, environment.coast, size, generator)
    if isinstance(space, OtherSpace):
        raise Undrawable(f"actions of the space {space.type} cannot be drawn")
    dtype = np.dtype(space.dtype)
    if spec.actions == "zero":
        return np.zeros((*size, *space.shape), dtype=dtype)
    low, high = _bounds(space)
    return generator.uniform(low, high, size=(*size, low.size)).reshape(*size, *space.shape).astype(dtype)


def _discrete(
    spec: StimulusSpec, space: DiscreteSpace, coast: int | None, size: tuple[int, int], generator: np.random.Generator
) -> NDArray[np.int64]:
    last = space.start + space.n - 1
    if spec.actions == "uniform":
        return generator.integers(space.start, last + 1, size=size, dtype=np.int64)
    chosen = space.start if coast is None else coast
    if not space.start <= chosen <= last:
        raise Undrawable(f"coast is {chosen}, the actions are {space.start} to {last}")
    return np.full(size, chosen, dtype=np.int64)


def _bounds(space: BoxSpace) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The bounds to draw between: those of the space, and one away from the other where there is none."""
    if space.low is None or space.high is None:
        raise Undrawable("it has too many actions to draw")
    low, high = np.array(space.low), np.array(space.high)
    low = np.where(np.isfinite(low), low, np.where(np.isfinite(high), high - 2.0, -1.0))
    high = np.where(np.isfinite(high), high, low + 2.0)
    with np.errstate(over="ignore"):
        drawable = np.isfinite(high - low) & (low <= high)
    if low.shape != (np.prod(space.shape, dtype=int),) or low.shape != high.shape or not drawable.all():
        raise Undrawable("the bounds of its actions cannot be drawn between")
    return low, high
