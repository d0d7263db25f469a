"""The stimulus: states and actions, put together once here, addressed by digest, handed to every release as bytes.

The virtualenvs never draw a random number.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis import yardstick
from audit.digests import array_digest, digest

RESETS = 32
"""Seeds from which every release is reset: a changed distribution of starts is a finding of its own."""

_NUDGES_STREAM = 2
_TWINS_STREAM = 3
_EPSILON = float(np.finfo(np.float64).eps)

Floats = NDArray[np.float64]
Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """States (or seeds, where states cannot be imposed) with the actions to take from each."""

    starts: NDArray[Any]
    actions: NDArray[Any]

    @property
    def shape(self) -> tuple[int, int]:
        """Trajectories and steps."""
        return self.actions.shape[0], self.actions.shape[1]

    @property
    def start_name(self) -> str:
        """What the starts are called in the file."""
        return "seeds" if self.starts.ndim == 1 else "states"

    def chosen(self, rows: NDArray[np.int64] | slice) -> Batch:
        """Some of its trajectories."""
        return Batch(starts=self.starts[rows], actions=self.actions[rows])


@dataclass(frozen=True, slots=True, kw_only=True)
class Stimulus:
    """All that a release is given about one environment."""

    digest: str
    payload: bytes
    """An npz with the batches and the seeds of resets."""
    batches: Mapping[str, tuple[int, int]]
    """Trajectories and steps of each batch."""
    resets: int
    is_table: bool = False
    """Whether all transitions are told, and nothing is stepped."""

    @property
    def steps(self) -> int:
        """Steps in all."""
        return sum(count * steps for count, steps in self.batches.values())


def assemble(
    batches: Mapping[str, Batch], resets: int = RESETS, *, rows: int = 0, source: NDArray[np.uint8] | None = None
) -> Stimulus:
    """Put batches together, with where each forced state comes from.

    A table of ``rows`` transitions needs none: it counts as that many forced steps.
    """
    arrays: dict[str, NDArray[Any]] = {"reset.seeds": np.arange(resets)} if resets else {}
    if source is not None:
        arrays["forced.source"] = source
    for name, batch in batches.items():
        arrays[f"{name}.{batch.start_name}"] = batch.starts
        arrays[f"{name}.actions"] = batch.actions
    shapes = {name: batch.shape for name, batch in batches.items()} | ({"forced": (rows, 1)} if rows else {})
    return Stimulus(
        digest=digest(
            str(sorted(shapes.items())), *sorted(arrays), array_digest(*(arrays[name] for name in sorted(arrays)))
        ),
        payload=packed(arrays),
        batches=shapes,
        resets=resets,
        is_table=bool(rows),
    )


def packed(arrays: Arrays) -> bytes:
    """Arrays as the npz that a dumper reads."""
    file = io.BytesIO()
    np.savez(file, **arrays)  # type: ignore[arg-type]  # numpy's stub takes its own flag for one of the arrays
    return file.getvalue()


def unpacked(payload: bytes) -> dict[str, NDArray[Any]]:
    """The arrays of an npz that was made here."""
    with np.load(io.BytesIO(payload), allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def nudged(forced: Batch, nudges: int, seed: int) -> Batch:
    """Copies of the forced states, each with every coordinate moved by one unit in the last place, up or down.

    Every other copy mirrors the one before. Where a state lies on an edge (a tie in rounding to single precision, a
    contact about to appear), one of the two falls over it, and the envelope knows.
    """
    generator = np.random.default_rng([seed, _NUDGES_STREAM])
    signs: list[Floats] = []
    for number in range(nudges):
        signs.append(-signs[-1] if number % 2 else generator.choice([-1.0, 1.0], size=forced.starts.shape))
    copies = [_moved(forced.starts, each) for each in signs]
    return Batch(starts=np.concatenate(copies), actions=np.concatenate([forced.actions] * nudges))


def twins(horizon: Batch, count: int, seed: int) -> Batch:
    """The trajectories, started one unit in the last place away, ``count`` times over."""
    generator = np.random.default_rng([seed, _TWINS_STREAM])
    shape = horizon.starts.shape
    copies = [_moved(horizon.starts, generator.choice([-1.0, 1.0], size=shape)) for _ in range(count)]
    return Batch(starts=np.concatenate(copies), actions=np.concatenate([horizon.actions] * count))


def _moved(states: Floats, signs: Floats) -> Floats:
    """A coordinate that is zero moves by epsilon times its column's scale, or by epsilon where all are zero.

    So does one in a column that is nothing beside the others: what stands there is zero but for rounding.
    """
    own = np.abs(states).max(axis=0, initial=0.0)
    scale = yardstick.lifted(own)
    still = _EPSILON * np.where(scale > 0, scale, 1.0)
    step: Floats = np.where((states == 0.0) | (scale > own), still, np.spacing(np.abs(states)))
    return states + signs * step
