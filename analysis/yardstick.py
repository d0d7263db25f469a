"""The yardstick: how far a release's own next step moves when its input moves by one unit in the last place.

A separation between two releases is read in multiples of it. Rounding lands within a few; a changed line of physics
lands many orders of magnitude above. Where a simulator is itself discontinuous (a contact about to appear) the
envelope is large and that state rightly says nothing: the others decide.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.distance import Array, Floats, apart, in_last_places

THRESHOLD = 1e3
"""Ratios from here on are a change.

Measured on the matrices ``mujoco``, ``classic`` and ``mjcf`` (6,180 pairs of 80 releases on 17 environments): rounding
reaches 10.3, the smallest change 3.4e6. The largest ratio of a release against its own nudged copies is 11 in half of
the 127 behaviours of ``mujoco``, 20 in nine tenths and 40 at most. Of a state on an edge it can be far larger: there
the majority of the copies decides (see :func:`read`).
"""

SCALE_QUANTILE = 0.9
"""Of a column's sizes: its scale. The largest would let one exploded state blunt all, and the median is too fine where
most states are at rest or in free fall."""

COMMON_QUANTILE = 0.75
"""Of the scales of an output's columns: the one that those get which are nothing beside the others."""

NOTHING = 1e-8
"""A column whose scale is this small beside the others holds what rounding left: an accelerometer in free fall shows
2e-10 of 9.81, and single precision still resolves 6e-8."""

BORDERLINE_FROM, BORDERLINE_BELOW = 1e2, 1e5
"""A ratio between these is told as one that lies between rounding and a change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forced:
    """One output of a release's forced steps."""

    value: Array
    """States × entries: what came of each state."""
    nudged: Array
    """Nudges × states × entries: what came of it after every coordinate had been moved by one last place."""

    @classmethod
    def of(cls, value: Array, nudged: Array | None = None) -> Forced:
        """From recordings of shape (states, 1, ...) and (nudges · states, 1, ...).

        Limits: it reshapes; that copies stand in the order of their states is for the recording to see to.
        """
        flat = value.reshape(len(value), math.prod(value.shape[1:]))
        if nudged is None:
            return cls(value=flat, nudged=np.empty((0, *flat.shape), flat.dtype))
        copies = nudged.reshape(len(nudged) // max(1, len(value)), *flat.shape)
        return cls(value=flat, nudged=copies)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One output of two releases, read by the yardstick."""

    ratios: Floats
    """By state: its separation in multiples of the envelope, the largest over its entries."""
    separation: float
    """The largest absolute separation."""
    ulps: float | None
    """The same in units in the last place of the larger value there; ``None`` where there is no last place."""
    beyond_separation: float
    """The largest absolute separation in a state that is beyond the threshold."""
    relative: float
    """The same over the size of its column: what a relative change of the output it is."""
    state: int
    entry: int
    """Where the largest ratio is."""

    @property
    def ratio(self) -> float:
        """The largest."""
        return float(self.ratios.max(initial=0.0))

    @property
    def beyond(self) -> NDArray[np.bool_]:
        """Which states are beyond the threshold."""
        return self.ratios >= THRESHOLD


def read(older: Forced, newer: Forced, floor: Floats | None = None) -> Reading:
    """Read the separation of two releases. ``floor`` is what each entry may move by besides.

    What is beyond the threshold in a state has to separate the two in most of its nudged copies too: on an edge,
    rounding may put one release on either side. A ratio is infinite where one side is not a number and the other is,
    zero where the two are the same.

    Limits: a ratio, not a probability. A state in which the release itself is discontinuous says nothing, and a change
    below rounding is not seen.
    """
    separation = apart(older.value, newer.value)
    response = np.maximum(_response(older.value, older.nudged), _response(newer.value, newer.nudged))
    grain = np.maximum(grain_of(older.value), grain_of(newer.value))
    envelope = response + grain + (0.0 if floor is None else floor)
    ratios = _over(separation, envelope)
    if (ratios >= THRESHOLD).any():
        lasting = _over(_lasting(separation, older.nudged, newer.nudged), envelope)
        ratios = np.where(ratios >= THRESHOLD, lasting, ratios)
    state, entry = np.unravel_index(int(np.argmax(ratios)), ratios.shape) if ratios.size else (0, 0)
    size = np.maximum(_scale(older.value), _scale(newer.value))
    by_state = ratios.max(axis=1, initial=0.0)
    beyond = separation[by_state >= THRESHOLD]
    finite = np.where(np.isfinite(beyond), beyond, 0.0)
    with np.errstate(over="ignore"):  # beside a scale that is next to nothing it is infinite
        relative = float((finite / np.where(size > 0, size, 1.0)).max(initial=0.0))
    return Reading(
        ratios=by_state,
        separation=float(separation.max(initial=0.0)),
        ulps=in_last_places(separation, older.value, newer.value),
        beyond_separation=float(beyond.max(initial=0.0)),
        relative=relative,
        state=int(state),
        entry=int(entry),
    )


def _lasting(separation: Floats, older: Array, newer: Array) -> Floats:
    """The separation that most copies of a state show, the state itself among them."""
    if len(older) != len(newer) or not len(older):
        return separation
    copies = [separation, *(apart(one, other) for one, other in zip(older, newer, strict=True))]
    lasting: Floats = np.partition(copies, len(copies) // 2, axis=0)[len(copies) // 2]
    return lasting


def null_ratio(forced: Forced) -> float:
    """The largest ratio of a release against itself: its last nudge against the envelope of the others.

    Nudges come in mirrored pairs, and where a step is smooth a mirrored one moves it just as far. So the mirror of the
    last one is left out of the envelope.

    Limits: one draw of what rounding does, by which the threshold is judged; it is no bound.
    """
    if len(forced.nudged) == 0:
        return 0.0
    others = forced.nudged[:-2] if len(forced.nudged) % 2 == 0 else forced.nudged[:-1]
    envelope = _response(forced.value, others) + grain_of(forced.value)
    return float(_over(apart(forced.value, forced.nudged[-1]), envelope).max(initial=0.0))


def typical_response(forced: Forced) -> Floats:
    """By entry: how far it moves under a nudge in all but the most sensitive states.

    Limits: typical, and not the largest: in the tenth of the states left out it may be anything.
    """
    return np.quantile(_response(forced.value, forced.nudged), SCALE_QUANTILE, axis=0, method="lower")


def grain_of(value: Array) -> Floats:
    """What an entry can be written in: its own last place, and that of its column's scale.

    A difference of two large numbers has the rounding of the large numbers; the column's scale stands for them.

    Limits: what can be resolved, not what is right: a value may be wrong in all of its digits.
    """
    if value.dtype.kind != "f":
        return np.zeros(value.shape)
    limit = np.finfo(value.dtype)
    finite = np.where(np.isfinite(value), np.abs(value), 0).astype(value.dtype)
    own = np.spacing(np.minimum(finite, limit.max / 2)).astype(np.float64)
    grain: Floats = own + float(limit.eps) * _scale(value)
    return grain


def _scale(value: Array) -> Floats:
    """The scale of each column: the size that nine tenths of what is not zero in it stay below.

    In free fall an accelerometer shows what is left of numbers as large as its readings elsewhere. A column that is
    nothing beside the others is what rounding left where zero should be (the sideways position of a body that falls
    straight): it has their scale.
    """
    sizes = np.abs(value.astype(np.float64))
    sizes[~np.isfinite(sizes) | (sizes == 0)] = np.nan
    scale = np.zeros(sizes.shape[1])
    some = ~np.isnan(sizes).all(axis=0)
    scale[some] = np.nanquantile(sizes[:, some], SCALE_QUANTILE, axis=0, method="lower")
    return lifted(scale)


def lifted(scale: Floats) -> Floats:
    """Scales of columns, those that are nothing beside the others raised to what the larger of them have.

    Limits: a guess at what rounding touches. A column that is really this small is read too coarsely then.
    """
    some = scale[scale > 0]
    if not some.size:
        return scale
    common = np.quantile(some, COMMON_QUANTILE, method="lower")
    return np.where(scale < NOTHING * common, common, scale)


def _response(value: Array, nudged: Array) -> Floats:
    """The largest move of each entry over the nudges."""
    if len(nudged) == 0:
        return np.zeros(value.shape)
    largest: Floats = np.max([apart(value, each) for each in nudged], axis=0)
    return largest


def _over(separation: Floats, envelope: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio: Floats = separation / envelope
    ratio[separation == 0] = 0.0
    # Where the envelope is itself infinite the release says of itself that anything can come of this state.
    ratio[np.isinf(envelope)] = 0.0
    return ratio
