"""Draw where trajectories start and what is done on the way."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from audit.asked.environment_rows import EnvironmentRow
from audit.asked.stimulus_spec import BoundedStart, StimulusSpec
from audit.stimuli.layout import BoxSpace, DiscreteSpace, Layout, OtherSpace
from audit.stimuli.stimulus import Batch

_ACTIONS_STREAM = 1
"""States come from the seed itself, as in the paper; actions from a stream of their own beside it."""
_FORCED_STREAM = 4

AT_BOUNDS = 0.15
"""Share of an action's entries that lie at a bound: what saturates acts there and nowhere else."""

_NORMALISING_STEPS = 64
"""Last places by which a quaternion's largest entry is moved; a handful suffices."""


class Undrawable(Exception):
    """The matrix asks for states or actions that this environment does not have."""


def horizon(given: StimulusSpec, environment: EnvironmentRow, layout: Layout) -> Batch:
    """The trajectories of one environment."""
    spec = environment.stimulus(given)
    if layout.evidence == "replayed":
        starts: NDArray[Any] = np.arange(spec.seed, spec.seed + spec.trajectories)
    else:
        starts = _states(spec, environment, layout)
    return Batch(starts=starts, actions=_actions(spec, environment, layout))


def forced_actions(count: int, seed: int, layout: Layout) -> NDArray[Any]:
    """An action for each of the bank's states, over the whole space, a share of the entries at their bounds."""
    generator = np.random.default_rng([seed, _FORCED_STREAM])
    space = layout.action
    if isinstance(space, DiscreteSpace):
        return generator.integers(space.start, space.start + space.n, size=count, dtype=np.int64)
    if isinstance(space, OtherSpace):
        raise Undrawable(f"actions of the space {space.type} cannot be drawn")
    low, high = _bounds(space)
    drawn = generator.uniform(low, high, size=(count, low.size))
    ends = np.where(generator.random(drawn.shape) < 0.5, low, high)
    drawn = np.where(generator.random(drawn.shape) < AT_BOUNDS, ends, drawn)
    return drawn.reshape(count, *space.shape).astype(np.dtype(space.dtype))


def _states(spec: StimulusSpec, environment: EnvironmentRow, layout: Layout) -> NDArray[np.float64]:
    generator = np.random.default_rng(spec.seed)
    start = environment.start or spec.start
    states = np.zeros((spec.trajectories, layout.state_size))
    if isinstance(start, BoundedStart):
        given = len(start.low)
        if given > layout.state_size:
            raise Undrawable(f"start has {given} entries, the state only {layout.state_size}")
        states[:, :given] = generator.uniform(start.low, start.high, size=(spec.trajectories, given))
        return with_unit_quaternions(states, layout)
    reach = np.full(layout.state_size, start.velocity)
    reach[: layout.positions] = start.position
    states[:] = np.array(layout.reference) + generator.uniform(-reach, reach, size=states.shape)
    return with_unit_quaternions(states, layout)


def with_unit_quaternions(states: NDArray[np.float64], layout: Layout) -> NDArray[np.float64]:
    """The states with their quaternions normalised."""
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
