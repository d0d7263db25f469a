"""How far apart two arrays are, entry by entry: the one definition that every comparison uses."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Floats = NDArray[np.float64]


def apart(one: Array, other: Array) -> Floats:
    """The absolute difference of every entry, computed in double precision.

    It is zero where the two are the same or neither is a number, and infinite where one is not a number and the other
    is, or where infinities have opposite signs.

    Limits: of integers that differ but that double precision takes for the same it says 1, whatever their difference.
    """
    left, right = one.astype(np.float64), other.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        found: Floats = np.abs(left - right)
    alike = (one == other) | (np.isnan(left) & np.isnan(right))
    found[(found == 0.0) & ~alike] = 1.0
    found[alike] = 0.0
    found[np.isnan(found)] = np.inf
    return found


def in_last_places(distances: Floats, one: Array, other: Array) -> float | None:
    """The largest of the distances in units in the last place of the larger value there, in the coarser dtype.

    Limits: nothing is said where there is no last place: of flags, of integers, or where the distance is infinite.
    """
    if distances.size == 0:
        return 0.0
    where = np.unravel_index(int(np.argmax(distances)), distances.shape)
    if one.dtype.kind != "f" or other.dtype.kind != "f" or not np.isfinite(distances[where]):
        return None
    dtype = min(one.dtype, other.dtype, key=lambda each: each.itemsize)
    larger = max(abs(float(one[where])), abs(float(other[where])))
    return float(distances[where]) / _last_place(larger, dtype)


def _last_place(value: float, dtype: np.dtype[Any]) -> float:
    """The distance from ``value`` to the next number of ``dtype``, or to the one before where it is the largest."""
    limits = np.finfo(dtype)
    inside = np.asarray(min(value, float(limits.max)), dtype=dtype)
    below = np.nextafter(inside, dtype.type(0)) if inside == limits.max else inside
    return float(np.spacing(below))
