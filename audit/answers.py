"""Read the file with which a dumper answered a cell. It was written by code under audit: nothing in it is trusted."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from audit.layout import Layout
from audit.matrix import OUTPUTS
from audit.stimulus import Stimulus

LARGEST_BYTES = 2**31
"""Of one answer. The largest in a shipped matrix is under 20 MB; one beyond this is a fault, not a recording."""

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
    status: Literal["ok", "unavailable", "incomparable", "failed"]
    reason: str
    detail: str
    arrays: list[str]
    seconds: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    steps: int = Field(default=0, ge=0, le=2**62)


def read(path: Path, environment: str, stimulus: Stimulus | None) -> CellAnswer:
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
        if head.status == "ok" and stimulus is None:
            Layout.from_json(meta["layout"])
        if head.status == "ok" and stimulus is not None:
            _check_arrays(arrays, (stimulus.trajectories, stimulus.steps))
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


def _check_arrays(arrays: dict[str, NDArray[Any]], horizon: tuple[int, int]) -> None:
    if set(arrays) != {"imposed", "structure", *OUTPUTS}:
        raise DamagedAnswer(f"the answer holds {', '.join(sorted(arrays)) or 'nothing'}")
    entries = arrays["state"].shape[2:3]
    expected = {
        "imposed": (horizon[0], *entries),
        "state": (*horizon, *entries),
        "observation": (*horizon, *arrays["observation"].shape[2:]),
        "structure": (arrays["structure"].size,),
    }
    for name, array in sorted(arrays.items(), key=lambda each: each[0] != "state"):
        if array.dtype.kind not in _KINDS:
            raise DamagedAnswer(f"{name} has the dtype {array.dtype}")
        if array.shape != expected.get(name, horizon) or (name == "state" and not entries):
            raise DamagedAnswer(f"{name} has the shape {array.shape}, the stimulus {horizon}")
