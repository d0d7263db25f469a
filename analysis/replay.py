"""Read trajectories that could only be replayed from a seed: where do two equal histories part?

As long as everything two releases showed was the same, they are taken to be in the same state. The step at which they
part is then a first step, as far as can be seen from outside. That is weaker than a state that both were handed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis import yardstick
from analysis.yardstick import Forced, Reading

Array = NDArray[Any]


def read(outputs: Mapping[str, tuple[Array, Array]]) -> tuple[dict[str, Reading], int]:
    """Readings of the outputs that differ where histories part, and the number of steps after equal histories.

    Limits: only the first step after histories part is read, because later ones feed on it; a state that no history
    reached is not.
    """
    parted = np.any([_differs(*both) for both in outputs.values()], axis=0)
    trajectories, steps = parted.shape
    first = np.where(parted.any(axis=1), parted.argmax(axis=1), steps - 1)
    rows = np.arange(trajectories)
    readings = {}
    for output, (one, other) in outputs.items():
        found = yardstick.read(Forced.of(one[rows, first]), Forced.of(other[rows, first]), _column_grain(one))
        if found.ratios.any():
            readings[output] = found
    return readings, int((first + 1).sum())


def _differs(one: Array, other: Array) -> NDArray[np.bool_]:
    unlike = (one != other) & ~((one != one) & (other != other))
    found: NDArray[np.bool_] = unlike.reshape(*one.shape[:2], -1).any(axis=2)
    return found


def _column_grain(recording: Array) -> NDArray[np.float64]:
    """What the entries can be written in, by their scale over all steps and not only those at which histories part."""
    flat = recording.reshape(recording.shape[0] * recording.shape[1], -1)
    grain: NDArray[np.float64] = np.median(yardstick.grain_of(flat), axis=0)
    return grain
