"""Compare what releases did: one comparison per pair of distinct behaviours, however many releases show them.

Releases that show the same behaviour are identical without a comparison.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis import replay, yardstick
from analysis.separation import Separation, separation
from analysis.verdicts import RULE, Evidence, Judgement, incomparable, judge
from analysis.yardstick import Forced
from audit.asked.matrix import Matrix
from audit.failures import readable
from audit.stimuli.bank import SOURCES
from audit.storage.records import RunCell, StoredArray
from audit.storage.store import Store

STEP_OUTPUTS = ("state", "observation", "reward", "terminated", "truncated")
"""What every step is recorded as."""

_LONGEST_VALUE = 60
"""Characters of a space's property that a reason quotes."""

_MOST_PROPERTIES = 12
"""Of spaces, that a reason names. Two real ones have ten; a package may have written any number."""

COMMIT_SECONDS = 1.0
"""Of arithmetic that an interrupted audit may have to do again; a transaction for every pair takes longer than it."""

Pair = tuple[str, str]
"""Two behaviours, the lesser digest first."""


def wanted(cells: Iterable[RunCell], pairing: str, against: str | None) -> dict[Pair, str]:
    """The pairs of behaviours that the matrix's pairs need, each with an example of who shows it."""
    by_environment: dict[str, list[RunCell]] = {}
    for cell in cells:
        if cell.behaviour is not None:
            by_environment.setdefault(cell.environment, []).append(cell)
    pairs: dict[Pair, str] = {}
    for environment, group in by_environment.items():
        first_to_show: dict[str, str] = {}
        for cell in group:
            first_to_show.setdefault(str(cell.behaviour), cell.release)
        fixed = {cell.behaviour for cell in group if cell.release == against}
        for one, other in combinations(first_to_show, 2):
            if pairing != "against" or fixed & {one, other}:
                example = f"{environment}: {first_to_show[one]} and {first_to_show[other]}"
                pairs[ordered(one, other)] = example
    return pairs


def ordered(one: str, other: str) -> Pair:
    """The two as the pair they are kept under."""
    return (one, other) if one < other else (other, one)


def reads(outputs: Sequence[str], window: tuple[int, int] | None = None) -> str:
    """How verdicts are read, as it is stored with them: where rule, outputs or window are others, so are verdicts."""
    fitted = f":{window[0]}-{window[1]}" if window is not None else ""
    return f"{RULE}:{','.join(outputs)}{fitted}"


def reads_of(matrix: Matrix) -> str:
    """How the verdicts of a matrix are read."""
    return reads(matrix.outputs, matrix.growth_window)


def _nobody(_: Pair) -> None:
    """Who is told by default."""


def compare(
    store: Store, pairs: Sequence[Pair], outputs: Sequence[str], kept_as: str, done: Callable[[Pair], None] = _nobody
) -> None:
    """Compare behaviours, read the verdicts from ``outputs``, keep both; each is told as ``done`` when it is kept."""
    store.look_up({behaviour for pair in pairs for behaviour in pair})
    waiting: list[tuple[Pair, Judgement, list[Evidence]]] = []
    since = time.monotonic()
    for pair in pairs:
        waiting.append((pair, *judged(store, pair, outputs)))
        if pair == pairs[-1] or time.monotonic() - since > COMMIT_SECONDS:
            store.comparisons.put_comparisons(kept_as, waiting)
            for each, *_ in waiting:
                done(each)
            waiting, since = [], time.monotonic()


def judged(store: Store, pair: Pair, outputs: Sequence[str]) -> tuple[Judgement, list[Evidence]]:
    """The verdict on two behaviours, and what it was read from."""
    if store.machine_of(pair[0]) != store.machine_of(pair[1]):
        return incomparable("the dumps were made on machines of different kinds"), []
    both = _RecordedPair(store=store, first=store.outputs(pair[0]), second=store.outputs(pair[1]))
    if not both.is_table and not all(both.same(name) for name in both.common("imposed")):
        return incomparable("the states that were imposed read back differently"), []
    evidence = [_evidence(both, output) for output in STEP_OUTPUTS]
    states = both.count("forced.reward")
    if not states:
        evidence, states = _replayed(both, evidence)
    source = store.stimulus_of(pair[0]).get("forced.source")
    sources = [SOURCES[number] for number in source.tolist()] if source is not None else []
    evidence += [_resets(both), _spaces(both)]
    return judge(evidence, outputs, states, sources), evidence


def resets(store: Store, behaviours: tuple[str, str]) -> Evidence:
    """How two behaviours differ in what seeds start from."""
    first, second = (store.outputs(behaviour) for behaviour in behaviours)
    return _resets(_RecordedPair(store=store, first=first, second=second))


@dataclass(frozen=True, slots=True, kw_only=True)
class _RecordedPair:
    """The recordings of two behaviours, read when they are needed."""

    store: Store
    first: dict[str, StoredArray]
    second: dict[str, StoredArray]

    def common(self, output: str) -> list[str]:
        """The recordings of an output that both have: of trajectories, of forced steps, of nudged ones."""
        names = (f"{batch}.{output}" for batch in ("horizon", "forced", "nudged"))
        return [name for name in names if name in self.first and name in self.second]

    @property
    def is_table(self) -> bool:
        """Whether it is all transitions of a toy environment, and nothing was imposed."""
        return "forced.state" in self.first and "nudged.state" not in self.first and "horizon.state" not in self.first

    def same(self, name: str) -> bool:
        """Whether a recording has the same bits in both."""
        return self.first[name].digest == self.second[name].digest

    def arrays(self, name: str) -> tuple[NDArray[Any], NDArray[Any]]:
        """A recording of both."""
        return self.store.arrays.get(self.first[name].digest), self.store.arrays.get(self.second[name].digest)

    def count(self, name: str) -> int:
        """How many rows a recording has; none where it is not there."""
        return self.first[name].shape[0] if name in self.first else 0

    def forced(self, output: str) -> tuple[Forced, Forced]:
        """The forced steps of both, with their nudged copies where there are some."""
        values = self.arrays(f"forced.{output}")
        if f"nudged.{output}" not in self.first:
            return Forced.of(values[0]), Forced.of(values[1])
        copies = self.arrays(f"nudged.{output}")
        return Forced.of(values[0], copies[0]), Forced.of(values[1], copies[1])


def _evidence(both: _RecordedPair, output: str) -> Evidence:
    recordings = both.common(output)
    interface = ""
    if output == "observation" and not both.same("structure"):
        interface = "observation has another structure"
    if output == "state" and both.is_table and not both.same("forced.imposed"):
        interface = "the table has other transitions"
    if all(both.same(name) for name in recordings):
        return Evidence(output=output, same_bits=not interface, interface=interface)
    horizon, reading = None, None
    if f"horizon.{output}" in recordings:
        horizon = _horizon(both, output)
        interface = horizon.interface or interface
    first, second = (each.get(f"forced.{output}") for each in (both.first, both.second))
    if first is not None and second is not None and first.shape == second.shape and not both.same(f"forced.{output}"):
        reading = yardstick.read(*both.forced(output))
    return Evidence(
        output=output,
        same_bits=False,
        reading=reading,
        horizon=horizon,
        interface=interface,
    )


def _horizon(both: _RecordedPair, output: str) -> Separation:
    name = f"horizon.{output}"
    return Separation.none(output) if both.same(name) else separation(output, *both.arrays(name))


def _replayed(both: _RecordedPair, evidence: Sequence[Evidence]) -> tuple[list[Evidence], int]:
    """Where states cannot be imposed, the first step at which two equal histories part is what can be read."""
    if any(each.interface for each in evidence) or "horizon.reward" not in both.first:
        return list(evidence), 0
    outputs = {output: both.arrays(f"horizon.{output}") for output in STEP_OUTPUTS}
    readings, steps = replay.read(outputs)
    return [replace(each, reading=readings.get(each.output)) for each in evidence], steps


def _resets(both: _RecordedPair) -> Evidence:
    """What seeds start from. An observation may move by what a nudge does to it elsewhere."""
    names = [name for name in ("reset.state", "reset.observation") if name in both.first and name in both.second]
    if all(both.same(name) for name in names):
        return Evidence(output="reset", same_bits=True)
    found = []
    for name in names:
        one, other = both.arrays(name)
        if one.shape != other.shape or one.dtype != other.dtype:
            return Evidence(output="reset", same_bits=False, interface="a reset returns another shape or dtype")
        output = name.removeprefix("reset.")
        floor = None
        if f"nudged.{output}" in both.first and f"nudged.{output}" in both.second:
            typical = [yardstick.typical_response(each) for each in both.forced(output)]
            if typical[0].shape == typical[1].shape == Forced.of(one).value.shape[1:]:
                floor = np.maximum(*typical)
        found.append(yardstick.read(Forced.of(one), Forced.of(other), floor))
    return Evidence(output="reset", same_bits=False, reading=max(found, key=lambda each: each.ratio))


def _spaces(both: _RecordedPair) -> Evidence:
    if both.same("spaces"):
        return Evidence(output="spaces", same_bits=True)
    texts = [array.tobytes().decode("utf-8", errors="replace") for array in both.arrays("spaces")]
    return Evidence(output="spaces", same_bits=False, interface=f"spaces: {_space_difference(*texts)}")


def _space_difference(one: str, other: str) -> str:
    """Which properties of which space differ, in words that name no direction."""
    try:
        first, second = json.loads(one), json.loads(other)
        differing = [
            (name, key)
            for name in ("action", "observation")
            for key in sorted({*first[name], *second[name]})
            if first[name].get(key) != second[name].get(key)
        ]
        parts = [
            f"the {name} space's {readable(str(key), _LONGEST_VALUE)} is "
            f"{_two(first[name].get(key), second[name].get(key))}"
            for name, key in differing[:_MOST_PROPERTIES]
        ]
        if len(differing) > _MOST_PROPERTIES:
            parts.append(f"and {len(differing) - _MOST_PROPERTIES} more differ")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):  # a package may have written anything
        parts = []
    return ", ".join(parts) or "they differ"


def _two(one: Any, other: Any) -> str:
    """Two values in words that name no direction; of lists, the first entry that differs."""
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        one, other = next((pair for pair in zip(one, other, strict=True) if pair[0] != pair[1]), (one, other))
    return " or ".join(sorted(readable(str(value), _LONGEST_VALUE) for value in (one, other)))
