"""An adapter, as an example: a damped pendulum that hits a stop on one side. Its interface is in dumper/adapter.py.

An adapter of a real simulator would import it here and call it below; this one brings its own few lines of physics.
"""

from __future__ import annotations

import math

import numpy as np

STOP = 2.0  # radians; it swings freely to the other side
TOO_FAST = 12.0  # radians per second; the episode ends there


class Pendulum:
    """Angle and speed, and the constants they obey."""

    def __init__(self, length: float = 1.0) -> None:
        self.gravity = 9.81
        self.length = length
        self.damping = 0.1
        self.bounce = 0.5
        self.time_step = 0.02
        self.angle, self.speed = 0.5, 0.0

    def advance(self, torque: float) -> None:
        """One semi-implicit Euler step; at the stop the speed turns round and loses a part."""
        pull = self.gravity / self.length * math.sin(self.angle)
        self.speed += self.time_step * (torque - pull - self.damping * self.speed)
        self.angle += self.time_step * self.speed
        if self.angle > STOP:
            self.angle, self.speed = STOP, -self.bounce * abs(self.speed)


def make(length: float = 1.0) -> Pendulum:
    return Pendulum(length)


def layout(pendulum: Pendulum) -> dict[str, object]:
    return {"state_size": 2, "positions": 1, "reference": [0.5, 0.0], "low": [-math.pi, None], "high": [STOP, None]}


def actions(pendulum: Pendulum) -> dict[str, list[float]]:
    return {"low": [-5.0], "high": [5.0]}


def impose(pendulum: Pendulum, state: np.ndarray) -> None:
    pendulum.angle, pendulum.speed = state.tolist()


def read(pendulum: Pendulum) -> list[float]:
    return [pendulum.angle, pendulum.speed]


def step(pendulum: Pendulum, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool]:
    pendulum.advance(float(action[0]))
    return observe(pendulum), -abs(pendulum.angle), abs(pendulum.speed) > TOO_FAST, False


def reset(pendulum: Pendulum, seed: int) -> np.ndarray:
    pendulum.angle, pendulum.speed = np.random.RandomState(seed).uniform(-1.0, 1.0, 2).tolist()
    return observe(pendulum)


def constants(pendulum: Pendulum) -> dict[str, float]:
    return {name: getattr(pendulum, name) for name in ("gravity", "time_step", "damping", "length", "bounce")}


def move(pendulum: Pendulum, name: str, factor: float) -> None:
    setattr(pendulum, name, getattr(pendulum, name) * factor)


def acting(pendulum: Pendulum) -> dict[str, bool]:
    return {"at the stop": pendulum.angle >= STOP, "too fast": abs(pendulum.speed) > TOO_FAST}


def observe(pendulum: Pendulum) -> np.ndarray:
    """What an agent sees: no part of the interface."""
    return np.array([math.cos(pendulum.angle), math.sin(pendulum.angle), pendulum.speed], dtype=np.float32)
