"""The Acrobot that a release of gymnasium ships, with faults that its class has no attribute for.

Everything is the shipped class's own. A fault replaces a piece of the source of one method, on this instance alone, or
passes the observation through something before it is seen.
"""

from __future__ import annotations

import inspect
import math
import sys
import textwrap
import types
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np

CONSTANTS = ("dt", "LINK_MASS_2", "LINK_MASS_1", "LINK_LENGTH_1", "LINK_COM_POS_1", "LINK_COM_POS_2", "LINK_MOI")

IN_SOURCE = {"gravity": ("_dsdt", "g = 9.8"), "second_inertia": ("_dsdt", "I2 = self.LINK_MOI")}
"""Constants that a method has for itself: where they are set."""


def swapped(observation: np.ndarray) -> np.ndarray:
    """The sine of the first angle and the cosine of the second are in each other's place."""
    return observation[[0, 2, 1, 3, 4, 5]]


def scaled(observation: np.ndarray) -> np.ndarray:
    """The cosine of the first angle is two per cent too long."""
    seen = observation.copy()
    seen[0] *= 1.02
    return seen


OBSERVATIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {"swapped": swapped, "scaled": scaled}


def explicit_euler(derivatives: Callable[[np.ndarray], Any], state: np.ndarray, times: list[float]) -> np.ndarray:
    """Stand in for gymnasium's ``rk4``: one step along the first slope; the last entry is the torque."""
    return (state + (times[1] - times[0]) * np.asarray(derivatives(state)))[:4]


class Acrobot:
    """The shipped environment, and how it is seen."""

    def __init__(self) -> None:
        self.shipped: Any = gymnasium.make("Acrobot-v1", disable_env_checker=True).unwrapped
        self.shipped.reset(seed=0)
        self.sources: dict[str, str] = {}
        self.seen: Callable[[np.ndarray], np.ndarray] = np.array

    def rewrite(self, method: str, old: str, new: str) -> None:
        """Replace a piece of a method's source, which must be there once; LookupError where a release has it not."""
        shipped = type(self.shipped)
        source = self.sources.get(method) or textwrap.dedent(inspect.getsource(getattr(shipped, method)))
        if source.count(old) != 1:
            raise LookupError(f"{old!r} in {method}")
        self.sources[method] = source.replace(old, new)
        names = {**vars(sys.modules[shipped.__module__]), "explicit_euler": explicit_euler}
        exec(self.sources[method], names)
        setattr(self.shipped, method, types.MethodType(names[method], self.shipped))


def make() -> Acrobot:
    """Make it as a user does."""
    return Acrobot()


def edit(acrobot: Acrobot, name: str, value: Any) -> None:
    """Set a constant, or plant a ``fault`` by name; the fault ``none`` is none."""
    if name in IN_SOURCE:
        method, assigned = IN_SOURCE[name]
        acrobot.rewrite(method, assigned, f"{assigned.split(' = ')[0]} = {float(value)!r}")
    elif name != "fault":
        setattr(acrobot.shipped, name, type(_attribute(acrobot, name))(value))
    elif value == "euler":
        acrobot.rewrite("step", "rk4(", "explicit_euler(")
    elif value != "none":
        acrobot.seen = OBSERVATIONS[value]


def layout(acrobot: Acrobot) -> dict[str, object]:
    """Two angles and their speeds, within the limits that the class keeps them to."""
    high = [math.pi, math.pi, float(acrobot.shipped.MAX_VEL_1), float(acrobot.shipped.MAX_VEL_2)]
    return {"state_size": 4, "positions": 2, "reference": [0.0] * 4, "low": [-each for each in high], "high": high}


def actions(acrobot: Acrobot) -> dict[str, int]:
    """Torques; the one in the middle is none."""
    return {"n": int(acrobot.shipped.action_space.n)}


def impose(acrobot: Acrobot, state: np.ndarray) -> None:
    """The class steps from the state it publishes and keeps nothing else."""
    acrobot.shipped.state = state


def read(acrobot: Acrobot) -> np.ndarray:
    """In full precision."""
    return np.array(acrobot.shipped.state, dtype=np.float64)


def step(acrobot: Acrobot, action: int) -> tuple[np.ndarray, float, bool, bool]:
    """Take the shipped class's own step."""
    observation, reward, terminated, truncated, _ = acrobot.shipped.step(action)
    return acrobot.seen(observation), reward, terminated, truncated


def reset(acrobot: Acrobot, seed: int) -> np.ndarray:
    """Start as the shipped class does."""
    return acrobot.seen(acrobot.shipped.reset(seed=seed)[0])


def constants(acrobot: Acrobot) -> dict[str, float]:
    """Those that the class has as attributes."""
    return {name: float(getattr(acrobot.shipped, name)) for name in CONSTANTS}


def move(acrobot: Acrobot, name: str, factor: float) -> None:
    """Multiply one of them."""
    setattr(acrobot.shipped, name, getattr(acrobot.shipped, name) * factor)


def _attribute(acrobot: Acrobot, name: str) -> Any:
    if not hasattr(acrobot.shipped, name):
        raise LookupError(name)
    return getattr(acrobot.shipped, name)
