"""The stimulus: states and actions, drawn once here, addressed by digest, handed to every release as bytes.

The virtualenvs never draw a random number.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audit import folders
from audit.matrix import BoundedStart, EnvironmentRow, StimulusSpec

_ACTIONS_STREAM = 1
"""States come from the seed itself, as in the paper; actions from a stream of their own beside it."""


_NORMALISING_STEPS = 64
"""Last places by which a quaternion's largest entry is moved; a handful suffices."""


class Undrawable(Exception):
    """The matrix asks for states or actions that this environment does not have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """What an environment's states and actions look like, told by a release that has it."""

    kind: str
    state_size: int
    positions: int
    quaternions: tuple[int, ...]
    reference: tuple[float, ...]
    action: dict[str, Any]

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Layout:
        """Read what a dumper wrote; anything missing or of another type raises ``KeyError``, ``TypeError`` or so."""
        return cls(
            kind=str(data["kind"]),
            state_size=int(data["state_size"]),
            positions=int(data["positions"]),
            quaternions=tuple(int(start) for start in data["quaternions"]),
            reference=tuple(float(value) for value in data["reference"]),
            action=dict(data["action"]),
        )


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
        digest=folders.digest(*(part for array in (states, actions) for part in identity(array))),
        payload=file.getvalue(),
        trajectories=spec.trajectories,
        steps=spec.steps,
    )


def identity(array: NDArray[Any]) -> tuple[str, str, bytes]:
    """What makes two arrays the same: dtype, shape and bytes."""
    return array.dtype.str, str(array.shape), np.ascontiguousarray(array).tobytes()


def _states(spec: StimulusSpec, environment: EnvironmentRow, layout: Layout) -> NDArray[np.float64]:
    generator = np.random.default_rng(spec.seed)
    start = environment.start or spec.start
    states = np.zeros((spec.trajectories, layout.state_size))
    if isinstance(start, BoundedStart):
        given = len(start.low)
        if given > layout.state_size:
            raise Undrawable(f"start has {given} entries, the state only {layout.state_size}")
        states[:, :given] = generator.uniform(start.low, start.high, size=(spec.trajectories, given))
        return states
    reach = np.full(layout.state_size, start.velocity)
    reach[: layout.positions] = start.position
    states[:] = np.array(layout.reference) + generator.uniform(-reach, reach, size=states.shape)
    for first in layout.quaternions:
        states[:, first : first + 4] = unit_quaternions(states[:, first : first + 4])
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
    if space["type"] == "Discrete":
        first, count = int(space["start"]), int(space["n"])
        if spec.actions == "uniform":
            return generator.integers(first, first + count, size=size, dtype=np.int64)
        coast = first if environment.coast is None else environment.coast
        if not first <= coast < first + count:
            raise Undrawable(f"coast is {coast}, the actions are {first} to {first + count - 1}")
        return np.full(size, coast, dtype=np.int64)
    if space["type"] != "Box" or not isinstance(space["low"], list):
        raise Undrawable(f"actions of the space {space['type']} cannot be drawn")
    shape, dtype = tuple(space["shape"]), np.dtype(space["dtype"])
    if spec.actions == "zero":
        return np.zeros((*size, *shape), dtype=dtype)
    low, high = _bound(space["low"], -1.0), _bound(space["high"], 1.0)
    drawn = generator.uniform(low, high, size=(*size, low.size))
    return drawn.reshape(*size, *shape).astype(dtype)


def _bound(values: list[str], unbounded: float) -> NDArray[np.float64]:
    """The bounds of an action space; ``unbounded`` where there is none."""
    bound = np.array([float(value) for value in values])
    return np.where(np.isfinite(bound), bound, unbounded)
