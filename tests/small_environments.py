"""Small environments with the APIs of old and new, for tests of the dumper without a release."""

from __future__ import annotations

from typing import Any

import numpy as np


class Discrete:
    n = 2


class Box:
    def __init__(self) -> None:
        self.shape, self.dtype = (2,), np.dtype(np.float32)
        self.low, self.high = np.array([-1.0, -np.inf], np.float32), np.array([0.1, np.inf], np.float32)


class Counter:
    """Counts its steps in its state; done of itself at ``end``. The API of gym 0.22, wrapped in its time limit."""

    TOP = 5.0
    metadata = "words"

    def __init__(self, end: float = np.inf, limit: float = np.inf) -> None:
        self.end, self.limit = end, limit
        self.action_space, self.observation_space = Discrete(), Box()
        self.state: Any = None
        self.resets: list[int | None] = []
        self.seeds: list[int] = []
        self.tau = 0.02

    @property
    def unwrapped(self) -> Counter:
        return self

    def seed(self, seed: int) -> None:
        self.seeds.append(seed)

    def reset(self, seed: int | None = None) -> Any:
        self.resets.append(seed)
        self.elapsed = 0
        self.state = np.array([0.25, 0.5])
        return self.state.astype(np.float32)

    def advance(self, action: int) -> Any:
        self.elapsed += 1
        self.state = self.state + np.array([1.0, action])
        return self.state.astype(np.float32), float(self.state[0]), self.elapsed >= self.end

    def step(self, action: int) -> Any:
        observation, reward, done = self.advance(action)
        information = {}
        if self.elapsed >= self.limit:  # as gym 0.21 to 0.24 do
            information["TimeLimit.truncated"] = not done
            done = True
        return observation, reward, done, information


class Modern(Counter):
    """The API of gym 0.26 and gymnasium."""

    def step(self, action: int) -> Any:
        observation, reward, done = self.advance(action)
        return observation, reward, done, self.elapsed >= self.limit, {}


class Ancient(Counter):
    """The API of gym 0.21: a reset that knows no seed."""

    def reset(self) -> Any:  # type: ignore[override]
        return super().reset()


class Wrapped(Ancient):
    """A wrapper whose reset takes anything and hands it on, around an environment that takes no seed."""

    def __init__(self, end: float = np.inf, limit: float = np.inf) -> None:
        super().__init__(end, limit)
        self._inner = Ancient(end, limit)

    @property
    def unwrapped(self) -> Counter:
        return self._inner

    def reset(self, **keywords: Any) -> Any:  # type: ignore[override]
        if keywords:
            raise TypeError("reset() got an unexpected keyword argument 'seed'")
        return self._inner.reset()


class Toy(Counter):
    """Two states; action 1 goes to the other with a chance."""

    def __init__(self) -> None:
        super().__init__()
        self.P: Any = {
            1: {0: [(1.0, 1, 0.0, False)]},
            0: {1: [(0.25, 0, -1.0, False), (0.75, 1, 10.0, True)], 0: [(1.0, 0, -1.0, False)]},
        }
