"""The Reacher that a release of gymnasium ships, with faults in what is seen of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import mujoco
import numpy as np


def swapped(observation: np.ndarray) -> np.ndarray:
    """The cosine of the second angle and the sine of the first are in each other's place."""
    return observation[[0, 2, 1, *range(3, len(observation))]]


OBSERVATIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {"none": np.array, "swapped": swapped}


class Reacher:
    """The shipped environment, and how it is seen."""

    def __init__(self, identifier: str) -> None:
        self.shipped: Any = gymnasium.make(identifier, disable_env_checker=True).unwrapped
        self.shipped.reset(seed=0)
        self.model, self.data = self.shipped.model, self.shipped.data
        self.seen: Callable[[np.ndarray], np.ndarray] = np.array


def make(identifier: str = "Reacher-v4") -> Reacher:
    """Make it as a user does."""
    return Reacher(identifier)


def edit(reacher: Reacher, name: str, value: Any) -> None:
    """Plant a ``fault`` by name, or set the ``time_step``."""
    if name == "time_step":
        reacher.model.opt.timestep = value
    else:
        reacher.seen = {"fault": OBSERVATIONS}[name][value]


def layout(reacher: Reacher) -> dict[str, object]:
    """Positions and velocities; the joints' ranges, where they are limited."""
    model = reacher.model
    joints = zip(model.jnt_range.tolist(), model.jnt_limited.tolist(), strict=True)
    low, high = zip(*(limits if limited else (None, None) for limits, limited in joints), strict=True)
    without = (None,) * model.nv
    return {
        "state_size": model.nq + model.nv,
        "positions": model.nq,
        "reference": np.concatenate([reacher.shipped.init_qpos, reacher.shipped.init_qvel]),
        "low": low + without,
        "high": high + without,
    }


def actions(reacher: Reacher) -> dict[str, list[float]]:
    """The two motors."""
    low, high = reacher.model.actuator_ctrlrange.T.tolist()
    return {"low": low, "high": high}


def impose(reacher: Reacher, state: np.ndarray) -> None:
    """Clear the simulator's data and overwrite its state, so that the solver starts cold (see dumper/on_mujoco.py)."""
    model, data = reacher.model, reacher.data
    mujoco.mj_resetData(model, data)
    data.qpos[:], data.qvel[:] = state[: model.nq], state[model.nq :]
    mujoco.mj_forward(model, data)
    data.qpos[:] = state[: model.nq]
    data.qacc_warmstart[:] = 0


def read(reacher: Reacher) -> np.ndarray:
    """In full precision."""
    return np.concatenate([reacher.data.qpos, reacher.data.qvel])


def step(reacher: Reacher, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool]:
    """Take the shipped class's own step."""
    observation, reward, terminated, truncated, _ = reacher.shipped.step(action)
    return reacher.seen(observation), reward, terminated, truncated


def reset(reacher: Reacher, seed: int) -> np.ndarray:
    """Start as the shipped class does."""
    return reacher.seen(reacher.shipped.reset(seed=seed)[0])


def constants(reacher: Reacher) -> dict[str, float]:
    """The one that every step uses."""
    return {"time_step": float(reacher.model.opt.timestep)}


def move(reacher: Reacher, name: str, factor: float) -> None:
    """Multiply it."""
    edit(reacher, name, constants(reacher)[name] * factor)
