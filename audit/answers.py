"""Read the file with which a dumper answered a cell. It was written by code under audit: nothing in it is trusted."""

from __future__ import annotations

import json
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audit.matrix import OUTPUTS
from audit.stimulus import Layout, Stimulus

FORMAT = 1
LARGEST_BYTES = 2**31
"""Of one answer. The largest in a shipped matrix is under 20 MB; one beyond this is a fault, not a recording."""

_STATUSES = frozenset({"ok", "unavailable", "incomparable", "failed"})
_KINDS = "biuf"  # booleans, integers, floats


class DamagedAnswer(Exception):
    """The file is missing, cut off, of another format, or not what was asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellAnswer:
    """What a dumper says it did."""

    status: str
    reason: str
    detail: str = ""
    meta: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)


def read(path: Path, environment: str, stimulus: Stimulus | None) -> CellAnswer:
    """Read the answer about ``environment`` and validate it; raise :class:`DamagedAnswer` rather than believe half."""
    try:
        if path.stat().st_size > LARGEST_BYTES:
            raise DamagedAnswer(f"the answer is larger than {LARGEST_BYTES} bytes")
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        meta = json.loads(arrays.pop("meta").tobytes())
        status, reason, detail = meta.pop("status"), meta.pop("reason"), meta.pop("detail")
        if meta.pop("format") != FORMAT or status not in _STATUSES or sorted(arrays) != meta.pop("arrays"):
            raise DamagedAnswer("the answer is not of the expected format")
        if meta.pop("environment") != environment:
            raise DamagedAnswer("the answer is about another environment")
    except DamagedAnswer:
        raise
    except (OSError, ValueError, KeyError, TypeError, AttributeError, EOFError, zipfile.BadZipFile) as error:
        raise DamagedAnswer(f"the answer cannot be read: {type(error).__name__}: {error}") from None
    if status == "ok" and stimulus is None:
        _check_layout(meta)
    elif status == "ok" and stimulus is not None:
        _check_arrays(arrays, (stimulus.trajectories, stimulus.steps))
    return CellAnswer(status=status, reason=str(reason), detail=str(detail), meta=meta, arrays=arrays)


def _check_layout(meta: dict[str, Any]) -> None:
    try:
        Layout.from_json(meta["layout"])
    except (KeyError, TypeError, ValueError) as error:
        raise DamagedAnswer(f"the layout cannot be read: {type(error).__name__}: {error}") from None


def _check_arrays(arrays: dict[str, NDArray[Any]], horizon: tuple[int, int]) -> None:
    if set(arrays) != {"imposed", *OUTPUTS}:
        raise DamagedAnswer(f"the answer holds {', '.join(sorted(arrays)) or 'nothing'}")
    for name, array in arrays.items():
        if array.dtype.kind not in _KINDS:
            raise DamagedAnswer(f"{name} has the dtype {array.dtype}")
        expected = horizon[:1] if name == "imposed" else horizon
        if array.shape[: len(expected)] != expected:
            raise DamagedAnswer(f"{name} has the shape {array.shape}, the stimulus {horizon}")
