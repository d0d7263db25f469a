"""The state bank of an environment: states to force single steps from, an action for each, and what they cover."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict, TypeAdapter
from pydantic.dataclasses import dataclass as checked_dataclass

from audit.asked.matrix_file import MatrixFile
from audit.asked.stimulus_spec import BankSpec
from audit.dumps.answers import CellAnswer
from audit.errors import UsageError
from audit.stimuli import starts
from audit.stimuli.layout import DiscreteSpace, Layout
from audit.stimuli.starts import Undrawable
from audit.stimuli.stimulus import Batch, packed

SHARES = {"visited": 0.5, "in range": 0.25, "sought": 0.25}
"""Of the states that a bank is asked for."""
SOURCES = ("given", *SHARES)

_ROLLOUTS = 64
_ROLLOUT_STEPS = 200
_NUMBERS = 400_000
"""Random numbers for drawing and seeking: about twenty for each state that the search may look at."""
_BANK_STREAM = 5
_LISTED = 6
"""Untouched pairs that a coverage names before it counts the rest."""


TERMINATES = "terminates"
"""What every kind of environment can tell: that the episode ends with the step."""

_KINDS = {
    "contact": "colliding pairs touched",
    "limit": "limits reached",
    "saturated": "actuators saturated",
    "": "other things acted",
}


@checked_dataclass(frozen=True, slots=True, kw_only=True, config=ConfigDict(extra="ignore"))
class Coverage:
    """What a bank's states exercise. It limits what `identical` claims."""

    sources: dict[str, int]
    """States by where they come from."""
    features: dict[str, int] | None
    """In how many states each thing acts that can; ``None`` where it was not measured."""
    fastest: float
    """The largest velocity among the states."""

    @property
    def states(self) -> int:
        """How many there are."""
        return sum(self.sources.values())

    def untouched(self, kind: str) -> list[str]:
        """Names of what never acts, of one kind."""
        return [name for name, count in self._of(kind).items() if not count]

    def _of(self, kind: str) -> dict[str, int]:
        """What has the kind as its first word; what has none of them goes by the kind ``""``."""
        found = {}
        for name, count in (self.features or {}).items():
            first, _, rest = name.partition(" ")
            if name != TERMINATES and (first == kind if kind else first not in _KINDS):
                found[rest if kind else name] = count
        return found

    @property
    def text(self) -> str:
        """In words, as it stands beside a verdict."""
        parts = [f"{self.states} states"]
        if self.features is None:
            return f"{parts[0]}, coverage not measured"
        for kind, words in _KINDS.items():
            possible = self._of(kind)
            if possible:
                parts.append(f"{sum(map(bool, possible.values()))} of {len(possible)} {words}")
        ends = self.features.get(TERMINATES, 0)
        parts.append(f"{ends} end the episode")
        if self.fastest:
            parts.append(f"speeds up to {self.fastest:.3g}")
        never = [name for kind in ("contact", "limit", "") for name in self.untouched(kind)]
        if never:
            more = f" and {len(never) - _LISTED} more" if len(never) > _LISTED else ""
            parts.append(f"never touched: {', '.join(never[:_LISTED])}{more}")
        return "; ".join(parts)


COVERAGE: TypeAdapter[Coverage] = TypeAdapter(Coverage)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bank:
    """States and actions, and what they cover."""

    states: NDArray[np.float64]
    actions: NDArray[Any]
    source: NDArray[np.uint8]
    """Where each state comes from: its place in ``SOURCES``."""
    coverage: Coverage

    @property
    def batch(self) -> Batch:
        """As single steps."""
        return Batch(starts=self.states, actions=self.actions[:, None])


@dataclass(frozen=True, slots=True, kw_only=True)
class BankRequest:
    """What the baseline is given to make a bank from."""

    payload: bytes
    actions: NDArray[Any]


def check_files(file: MatrixFile) -> None:
    """Read the user's own banks before any work, so that mistakes in them are told at once."""
    specs = (file.matrix.bank, *(row.bank for row in file.matrix.environments))
    for name in dict.fromkeys(spec.file for spec in specs if spec is not None and spec.file is not None):
        _read_own(file.path.parent / name)


def request(spec: BankSpec, horizon: Batch, layout: Layout, folder: Path) -> BankRequest:
    """Seeds, actions and random numbers for a bank that holds the trajectories' own starts, or the user's states."""
    if spec.file is not None:
        states, actions = _own(folder / spec.file, spec, layout)
        wanted, numbers = [0, 0, 0], 0
    else:
        states = horizon.starts
        in_range, sought = (int(spec.states * SHARES[source]) for source in ("in range", "sought"))
        wanted, numbers = [spec.states - in_range - sought, in_range, sought], _NUMBERS
        actions = starts.forced_actions(len(states) + spec.states, spec.seed, layout)
    generator = np.random.default_rng([spec.seed, _BANK_STREAM])
    rollouts = starts.forced_actions(_ROLLOUTS * _ROLLOUT_STEPS, spec.seed + 1, layout)
    payload = packed(
        {
            "states": states,
            "forced_actions": actions,
            "seeds": np.arange(_ROLLOUTS),
            "actions": rollouts.reshape(_ROLLOUTS, _ROLLOUT_STEPS, *rollouts.shape[1:]),
            "numbers": generator.random(numbers),
            "wanted": np.array(wanted),
            "budget": np.array(spec.budget),
        }
    )
    return BankRequest(payload=payload, actions=actions)


def of_answer(answer: CellAnswer, asked: BankRequest, layout: Layout) -> Bank:
    """The bank that a release made."""
    kept = answer.arrays["kept"]
    if answer.arrays["states"].shape[1] != layout.state_size or kept[-1] >= len(asked.actions):
        raise Undrawable("the bank holds other states than were asked for")
    states = starts.with_unit_quaternions(answer.arrays["states"].copy(), layout)
    source, acting = answer.arrays["source"], answer.arrays["acting"]
    coverage = Coverage(
        sources={name: count for number, name in enumerate(SOURCES) if (count := int((source == number).sum()))},
        features=dict(zip(answer.meta["features"], acting.sum(axis=0).tolist(), strict=True)),
        fastest=float(np.abs(states[:, layout.positions :]).max(initial=0.0)),
    )
    return Bank(states=states, actions=asked.actions[kept], source=source.astype(np.uint8), coverage=coverage)


def of_starts(horizon: Batch, layout: Layout) -> Bank:
    """Only the states that the trajectories start from, with their first actions: what the paper looked at."""
    coverage = Coverage(
        sources={"given": len(horizon.starts)},
        features=None,
        fastest=float(np.abs(horizon.starts[:, layout.positions :]).max(initial=0.0)),
    )
    return Bank(
        states=horizon.starts,
        actions=horizon.actions[:, 0],
        source=np.zeros(len(horizon.starts), dtype=np.uint8),
        coverage=coverage,
    )


def _read_own(path: Path) -> Mapping[str, NDArray[Any]]:
    """The arrays of a user's bank, as far as they can be checked without the environment."""
    arrays = _arrays(path)
    if "states" not in arrays:
        raise UsageError(f"{path} holds no array `states`")
    for name in ("states", "actions"):
        if name in arrays and arrays[name].dtype.kind not in "biuf":
            raise UsageError(f"{path}: `{name}` must be real numbers, not {arrays[name].dtype}")
    states = arrays["states"]
    if states.ndim != 2 or not len(states) or not np.isfinite(states).all():
        raise UsageError(f"{path}: `states` must be finite, one row a state")
    return arrays


def _own(path: Path, spec: BankSpec, layout: Layout) -> tuple[NDArray[np.float64], NDArray[Any]]:
    arrays = _read_own(path)
    states = np.array(arrays["states"], dtype=np.float64)
    if states.shape[1] != layout.state_size:
        raise UsageError(f"{path} has states of {states.shape[1]} entries, the environment of {layout.state_size}")
    states = starts.with_unit_quaternions(states, layout)
    drawn = starts.forced_actions(len(states), spec.seed, layout)
    if "actions" not in arrays:
        return states, drawn
    dtype = np.int64 if isinstance(layout.action, DiscreteSpace) else drawn.dtype
    actions = np.asarray(arrays["actions"]).astype(dtype)
    if actions.shape != drawn.shape:
        raise UsageError(f"{path} has actions of shape {actions.shape}, and {drawn.shape} fits the environment")
    return states, actions


def _arrays(path: Path) -> Mapping[str, NDArray[Any]]:
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, AttributeError, EOFError, KeyError, zipfile.BadZipFile, zlib.error) as error:
        raise UsageError(f"{path} is not an npz file: {error}") from None
