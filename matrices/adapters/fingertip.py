"""Where Reacher's fingertip is after a step, by the shipped class: its position in the plane as the simulator has it.

``moves: false`` takes no step; ``forward: true`` computes the kinematics anew before the fingertip is read. With
``lengths: true`` the lengths of the links are seen instead: of the bodies' frames, then of the links' capsules.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import mujoco
import numpy as np


class Reacher:
    """The shipped environment, and when its fingertip is read."""

    def __init__(self, identifier: str, moves: bool, forward: bool, lengths: bool) -> None:
        self.shipped: Any = gymnasium.make(identifier, disable_env_checker=True).unwrapped
        self.shipped.reset(seed=0)
        self.model, self.data = self.shipped.model, self.shipped.data
        self.moves, self.forward, self.lengths = moves, forward, lengths


def make(identifier: str, moves: bool = True, forward: bool = False, lengths: bool = False) -> Reacher:
    """Make it as a user does."""
    return Reacher(identifier, moves, forward, lengths)


def layout(reacher: Reacher) -> dict[str, object]:
    """Positions and velocities."""
    return {"state_size": reacher.model.nq + reacher.model.nv, "positions": reacher.model.nq}


def actions(reacher: Reacher) -> dict[str, list[float]]:
    """The two motors."""
    low, high = reacher.model.actuator_ctrlrange.T.tolist()
    return {"low": low, "high": high}


def impose(reacher: Reacher, state: np.ndarray) -> None:
    """Set the state as the shipped class does, from data that have been cleared."""
    mujoco.mj_resetData(reacher.model, reacher.data)
    reacher.shipped.set_state(state[: reacher.model.nq], state[reacher.model.nq :])
    reacher.data.qacc_warmstart[:] = 0


def read(reacher: Reacher) -> np.ndarray:
    """In full precision."""
    return np.concatenate([reacher.data.qpos, reacher.data.qvel])


def step(reacher: Reacher, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool]:
    """Take the shipped class's own step, or none; then look at the fingertip."""
    if reacher.moves:
        reacher.shipped.step(np.asarray(action, dtype=np.float32))
    if reacher.forward:
        mujoco.mj_forward(reacher.model, reacher.data)
    return seen(reacher), 0.0, False, False


def seen(reacher: Reacher) -> np.ndarray:
    """The fingertip, or the lengths: no part of the interface."""
    if not reacher.lengths:
        return np.array(reacher.data.body("fingertip").xpos[:2])
    frames = [reacher.model.body(name).pos[0] for name in ("body1", "fingertip")]
    capsules = [2 * reacher.model.geom(name).size[1] for name in ("link0", "link1")]
    return np.array([*frames, *capsules])
