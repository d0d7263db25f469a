"""Read the file with which a dumper answered a cell. It was written by code under audit: nothing in it is trusted."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from audit.layout import Layout
from audit.stimulus import Stimulus

LARGEST_BYTES = 2**31
"""Of one answer. The largest in a shipped matrix is under 20 MB; one beyond this is a fault, not a recording."""

SOURCES = 4
"""Where a state of a bank may come from: given, visited, in range, sought."""

_KINDS = "biuf"  # booleans, integers, floats


class DamagedAnswer(Exception):
    """The file is missing, cut off, of another format, or not what was asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellAnswer:
    """What a dumper says it did."""

    status: str
    reason: str
    detail: str = ""
    seconds: float = 0.0
    steps: int = 0
    meta: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)


class _Head(BaseModel):
    """What stands beside the arrays. Everything else in it is kept as it is."""

    model_config = ConfigDict(extra="allow", strict=True)

    format: Literal[1]
    environment: str
    status: Literal["ok", "unavailable", "incomparable", "nondeterministic", "failed"]
    reason: str
    detail: str
    arrays: list[str]
    seconds: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    steps: int = Field(default=0, ge=0, le=2**62)


def read(path: Path, task: str, environment: str, stimulus: Stimulus | None) -> CellAnswer:
    """Read the answer about ``environment`` and validate it; raise :class:`DamagedAnswer` rather than believe half."""
    try:
        if path.stat().st_size > LARGEST_BYTES:
            raise DamagedAnswer(f"the answer is larger than {LARGEST_BYTES} bytes")
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        head = _Head.model_validate_json(arrays.pop("meta").tobytes())
        meta: dict[str, Any] = head.model_extra or {}
        if head.environment != environment or sorted(arrays) != head.arrays:
            raise DamagedAnswer("the answer is about something else")
        if head.status == "ok" and task == "probe":
            Layout.from_json(meta["layout"])
        if head.status == "ok" and task == "bank":
            _check_bank(arrays, meta["features"])
        elif head.status == "ok" and stimulus is not None:
            _check_dump(arrays, stimulus)
        elif arrays:
            raise DamagedAnswer("the answer holds arrays, and nothing was recorded")
    except DamagedAnswer:
        raise
    except Exception as error:  # whatever the readers of zip, npy and JSON raise on bytes that somebody else wrote
        raise DamagedAnswer(f"the answer cannot be read: {type(error).__name__}: {error}") from None
    return CellAnswer(
        status=head.status,
        reason=head.reason,
        detail=head.detail,
        seconds=head.seconds,
        steps=head.steps,
        meta=meta,
        arrays=arrays,
    )


def _check_bank(arrays: dict[str, NDArray[Any]], features: Any) -> None:
    if not isinstance(features, list) or not all(isinstance(name, str) for name in features):
        raise DamagedAnswer("the features are not a list of names")
    states = arrays.get("states", np.empty(()))
    if states.ndim != 2 or not len(states) or states.dtype != np.float64 or not np.isfinite(states).all():
        raise DamagedAnswer("the states are not finite numbers")
    one = states.shape[:1]
    _check_shapes(arrays, {"states": states.shape, "source": one, "kept": one, "acting": (*one, len(features))})
    kept = arrays["kept"]
    if kept.dtype != np.int64 or kept[0] < 0 or (np.diff(kept) <= 0).any():
        raise DamagedAnswer("the bank's states are out of order")
    if arrays["acting"].dtype != np.bool_ or arrays["source"].dtype != np.uint8 or arrays["source"].max() >= SOURCES:
        raise DamagedAnswer("the bank does not say where its states come from and what acts in them")


def _check_dump(arrays: dict[str, NDArray[Any]], stimulus: Stimulus) -> None:
    """Shapes follow from the stimulus, but for the entries of states and observations, which only the release knows."""
    batch = next(iter(stimulus.batches), "reset")
    entries = arrays.get(f"{batch}.state", np.empty(())).shape[2:3]
    observed = arrays.get(f"{batch}.observation", np.empty(())).shape[2:]
    expected: dict[str, tuple[int, ...]] = {
        name: (arrays[name].size,) for name in ("structure", "spaces") if name in arrays
    }
    batches = dict(stimulus.batches)
    if stimulus.is_table:  # a release may have more transitions than the one that was asked, or fewer
        batches["forced"] = (len(arrays.get("forced.reward", ())), 1)
    for name, horizon in batches.items():
        expected |= {f"{name}.{output}": horizon for output in ("reward", "terminated", "truncated")}
        expected[f"{name}.state"] = (*horizon, *entries)
        expected[f"{name}.observation"] = (*horizon, *observed)
        if name != "nudged":
            expected[f"{name}.imposed"] = (horizon[0], *entries)
    if stimulus.resets:
        expected["reset.state"] = (stimulus.resets, *arrays.get("reset.state", np.empty(())).shape[1:2])
        observation = arrays.get("reset.observation", np.empty(()))
        expected["reset.observation"] = (stimulus.resets, *observation.shape[1:])
    if not {"structure", "spaces"} <= set(arrays):
        raise DamagedAnswer("the answer does not describe its observation and spaces")
    _check_shapes(arrays, expected)


def _check_shapes(arrays: dict[str, NDArray[Any]], expected: dict[str, tuple[int, ...]]) -> None:
    if set(arrays) != set(expected):
        raise DamagedAnswer(f"the answer holds {', '.join(sorted(arrays)) or 'nothing'}")
    for name, array in sorted(arrays.items()):
        if array.dtype.kind not in _KINDS:
            raise DamagedAnswer(f"{name} has the dtype {array.dtype}")
        if array.shape != expected[name]:
            raise DamagedAnswer(f"{name} has the shape {array.shape}, and {expected[name]} was asked for")
