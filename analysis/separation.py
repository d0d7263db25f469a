"""How far two recordings of one output are apart: at the first step, over the horizon, in absolute terms and in ulps.

An output is an array of shape ``(trajectories, steps, ...)``. Step 0 is the first one after a state that both releases
were handed, the only step that chaos cannot have touched.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analysis.distance import Array, apart, in_last_places

NIL = 1e-30
"""Below this a column is nothing: a reward of 1e-50, the far tail of an exponential, has no last place to speak of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Separation:
    """Two recordings of one output, compared.

    ``first_step`` and ``horizon`` are the largest absolute differences; infinite where one side is not a number (or
    infinite) and the other is something else, and where the two cannot be subtracted at all. ``*_ulps`` counts the
    same differences in units in the last place of the larger of the two values at that entry; it is ``None`` for
    outputs without a last place (flags, integers) and where the difference is infinite.
    """

    output: str
    same_bits: bool
    first_step: float
    first_step_ulps: float | None
    horizon: float
    horizon_ulps: float | None
    horizon_grains: float = 0.0
    """The largest separation in multiples of what a column's typical number can be written in."""
    interface: str = ""
    """A change of shape or dtype, in words that name no direction; empty when there is none."""

    @classmethod
    def none(cls, output: str) -> Separation:
        """Two recordings with the same bits.

        Limits: the bits of what was recorded; nothing is said of what was not.
        """
        return cls(output=output, same_bits=True, first_step=0.0, first_step_ulps=0.0, horizon=0.0, horizon_ulps=0.0)


def separation(output: str, older: Array, newer: Array) -> Separation:
    """Compare two recordings of ``output``.

    Limits: it measures, and does not judge: what a separation means is read by the yardstick.
    """
    if older.shape != newer.shape:
        shapes = sorted((_entry_shape(older), _entry_shape(newer)))
        return Separation(
            output=output,
            same_bits=False,
            first_step=np.inf,
            first_step_ulps=None,
            horizon=np.inf,
            horizon_ulps=None,
            horizon_grains=np.inf,
            interface=f"{output} has shapes {shapes[0]} and {shapes[1]}",
        )
    dtypes = sorted((str(older.dtype), str(newer.dtype)))
    interface = "" if older.dtype == newer.dtype else f"{output} has dtypes {dtypes[0]} and {dtypes[1]}"
    if not interface and older.tobytes() == newer.tobytes():
        return Separation.none(output)
    first, first_ulps = _largest(older[:, :1], newer[:, :1])
    horizon, horizon_ulps = _largest(older, newer)
    return Separation(
        output=output,
        same_bits=False,
        first_step=first,
        first_step_ulps=first_ulps,
        horizon=horizon,
        horizon_ulps=horizon_ulps,
        horizon_grains=_grains(older, newer),
        interface=interface,
    )


def _largest(older: Array, newer: Array) -> tuple[float, float | None]:
    """The largest absolute difference and its size in ulps at the entry where it stands."""
    distances = apart(older, newer)
    return float(distances.max(initial=0.0)), in_last_places(distances, older, newer)


def _grains(older: Array, newer: Array) -> float:
    """The largest separation of a column over epsilon times its mean size; infinite where flags or integers differ."""
    if older.size == 0:
        return 0.0
    rows = older.shape[0] * older.shape[1]
    left, right = older.reshape(rows, -1), newer.reshape(rows, -1)
    if older.dtype.kind != "f" or newer.dtype.kind != "f":
        return np.inf if (left != right).any() else 0.0
    epsilon = float(np.finfo(min(older.dtype, newer.dtype, key=lambda each: each.itemsize)).eps)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        sizes = np.maximum(
            *(np.where(np.isfinite(each), np.abs(each), 0).mean(axis=0, dtype=np.float64) for each in (left, right))
        )
        grains = apart(left, right).max(axis=0, initial=0.0) / (epsilon * np.maximum(sizes, NIL))
    return float(np.nan_to_num(grains, nan=0.0, posinf=np.inf).max(initial=0.0))


def _entry_shape(array: Array) -> str:
    return "×".join(str(size) for size in array.shape[2:]) or "scalar"
