"""In which stage of a step do two releases begin to differ?

A simulator computes a step in stages: places, inertias, contacts, constraints, forces, their solution, the next state.
Everything after the first stage that differs differs because of it. Each quantity is read by the yardstick, like the
step as a whole.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis import yardstick
from analysis.yardstick import THRESHOLD, Forced

Array = NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Staged:
    """Quantities of a step in one release: states and then their nudged copies along the first axis."""

    arrays: Mapping[str, Array]
    order: Sequence[str]
    dtypes: Mapping[str, str]
    """Of quantities whose dtype the simulator chose; empty where it has only one."""
    discrete: Collection[str] = ()
    """Counts, kinds and the like: they may differ without an effect on anything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A quantity that differs beyond what rounding does."""

    name: str
    place: int
    """In the order of computation."""
    states: int
    """In how many of those looked at."""
    ratio: float
    separation: float
    dtypes: tuple[str, str] | None = None
    """Where it is of another dtype."""
    discrete: bool = False

    @property
    def stage(self) -> str:
        """The stage, or the function, that it belongs to."""
        return stage_of(self.name)

    @property
    def is_variable(self) -> bool:
        """Whether it is a variable of the environment's own code: ``newthdot#1`` is its second value in a step."""
        return "#" in self.name

    @property
    def field(self) -> str:
        """Its name within that."""
        return self.name.rpartition(".")[2]

    @property
    def told(self) -> str:
        """Its name, with its dtypes where they differ."""
        name = self.field.removesuffix("#0")
        return f"{name} ({' → '.join(self.dtypes)})" if self.dtypes else name


def stage_of(name: str) -> str:
    """The stage in words: ``00.constraint.efc_D`` is of the first substep.

    Limits: it reads a name; whether the release computes that stage at this place is for who wrote the name.

    >>> stage_of("00.constraint.efc_D"), stage_of("02.solution.qacc"), stage_of("05.outputs.reward")
    ('constraint', 'solution in substep 3', 'outputs')

    Runge and Kutta's method evaluates everything four times in a substep.

    >>> stage_of("01.collision in evaluation 2.dist")
    'collision in evaluation 2 in substep 2'
    """
    substep, _, stage = name.rpartition(".")[0].partition(".")
    if not substep.isdigit() or not int(substep) or stage == "outputs":
        return stage
    return f"{stage} in substep {int(substep) + 1}"


def before(order: Sequence[str], stage: str) -> list[str]:
    """The stages that come before one, each once.

    Limits: the order is that of the recording; that a later stage depends on an earlier one is not claimed.
    """
    found = list(dict.fromkeys(stage_of(name) for name in order))
    return found[: found.index(stage)] if stage in found else []


def unsteady(first: Staged, again: Staged) -> set[str]:
    """Quantities that differ between two runs of one release: memory that nobody wrote to is in them.

    Limits: two runs show what differs between them, and not all that may.
    """
    return {
        name
        for name, array in first.arrays.items()
        if name not in again.arrays or not _same_bits(array, again.arrays[name])
    }


def compared(older: Staged, newer: Staged, left_out: Collection[str] = ()) -> list[str]:
    """Quantities that both releases computed and that can be held against each other, as the older one orders them.

    Limits: of a quantity that is not among them nothing is known, least of all that it is the same.
    """
    return [name for name in older.order if name in newer.arrays and name not in left_out]


def differences(older: Staged, newer: Staged, states: int, left_out: Collection[str] = ()) -> list[Difference]:
    """Quantities of both releases that differ, in the order in which the older one computes them.

    The first ``states`` rows are the states, the others copies of them, all of the first copy first.

    Limits: quantities that only one release has are not compared.
    """
    places = {name: place for place, name in enumerate(older.order)}
    found = (_difference(name, places[name], older, newer, states) for name in compared(older, newer, left_out))
    return [each for each in found if each is not None]


def first_stage(found: Sequence[Difference]) -> list[Difference]:
    """The differences of the first stage that has any, the largest first; of a function's variables, the first of all.

    What a function computes it computes from what it computed before: there is one culprit. The quantities of a
    simulator's stage come about side by side. A stage in which only counts differ is passed over where another follows:
    a solver that takes one iteration more to the same solution explains nothing.

    Limits: the first place where the difference was seen. Its cause may lie before, in what is not recorded.
    """
    effective = {each.stage for each in found if not each.discrete}
    found = [each for each in found if each.stage in effective] or list(found)
    if not found:
        return []
    first = min(found, key=lambda each: each.place)
    if first.is_variable:
        return [first]
    return sorted((each for each in found if each.stage == first.stage), key=lambda each: -each.ratio)


def only_counts(found: Sequence[Difference]) -> list[Difference]:
    """Differences of stages in which nothing but counts differs.

    Limits: a count may be the first sign of a change that these states do not show.
    """
    effective = {each.stage for each in found if not each.discrete}
    return [each for each in found if each.stage not in effective]


def _difference(name: str, place: int, older: Staged, newer: Staged, states: int) -> Difference | None:
    one, other = older.arrays[name], newer.arrays[name]
    kinds = older.dtypes.get(name, ""), newer.dtypes.get(name, "")
    dtypes = (kinds[0], kinds[1]) if kinds[0] != kinds[1] else None
    if one.shape != other.shape:
        ratio, separation, beyond = float("inf"), float("inf"), states
    else:
        reading = yardstick.read(_forced(one, states), _forced(other, states))
        ratio, separation = reading.ratio, reading.separation
        beyond = int(reading.beyond.sum())
    if ratio < THRESHOLD and dtypes is None:
        return None
    discrete = name in older.discrete and name in newer.discrete
    return Difference(
        name=name, place=place, states=beyond, ratio=ratio, separation=separation, dtypes=dtypes, discrete=discrete
    )


def _forced(rows: Array, states: int) -> Forced:
    """Padding is not-a-number in both releases alike, and stands for nothing."""
    values = np.nan_to_num(np.asarray(rows, dtype=np.float64)[:, None], nan=0.0, posinf=np.inf, neginf=-np.inf)
    return Forced.of(values[:states], values[states:] if len(values) > states else None)


def _same_bits(one: Array, other: Array) -> bool:
    return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
