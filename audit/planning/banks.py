"""Ask the baseline for a bank, or take the user's own states, and read what came of it."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audit.asked.matrix_file import MatrixFile
from audit.asked.stimulus_spec import BankSpec
from audit.errors import UsageError
from audit.processes.answers import CellAnswer
from audit.stimuli import starts
from audit.stimuli.bank import SHARES, SOURCES, Bank, Coverage
from audit.stimuli.layout import DiscreteSpace, Layout
from audit.stimuli.starts import Undrawable
from audit.stimuli.stimulus import Batch, packed

_ROLLOUTS = 64
_ROLLOUT_STEPS = 200
_NUMBERS = 400_000
"""Random numbers for drawing and seeking: about twenty for each state that the search may look at."""
_BANK_STREAM = 5


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
