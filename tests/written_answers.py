"""Answers written as a dumper writes them, and as it would not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audit.processes import answers
from audit.processes.answers import CellAnswer
from audit.stimuli.stimulus import Stimulus
from dumper import answers as dumper_answers

BATCHES = {"horizon": (2, 3), "forced": (4, 1), "nudged": (8, 1)}
STIMULUS = Stimulus(digest="d", payload=b"", batches=BATCHES, resets=2)
LAYOUT = {
    "kind": "state",
    "state_size": 2,
    "positions": 2,
    "quaternions": [],
    "reference": [0.0, 0.5],
    "action": {"type": "Discrete", "n": 2, "start": 0},
}
META = {"layout": LAYOUT, "steps": 6, "seconds": 0.25, "constants": {"gravity": "9.8"}}


def recording() -> dict[str, NDArray[Any]]:
    generator = np.random.default_rng(0)
    arrays: dict[str, NDArray[Any]] = {
        "structure": np.frombuffer(b'"<f4(4,)"', dtype=np.uint8),
        "spaces": np.frombuffer(b"{}", dtype=np.uint8),
        "reset.state": generator.normal(size=(2, 2)),
        "reset.observation": generator.normal(size=(2, 4)).astype(np.float32),
    }
    for name, shape in BATCHES.items():
        arrays |= {
            f"{name}.state": generator.normal(size=(*shape, 2)),
            f"{name}.observation": generator.normal(size=(*shape, 4)).astype(np.float32),
            f"{name}.reward": generator.normal(size=shape),
            f"{name}.terminated": generator.normal(size=shape) > 0,
            f"{name}.truncated": np.zeros(shape, dtype=np.bool_),
        }
        if name != "nudged":
            arrays[f"{name}.imposed"] = generator.normal(size=(shape[0], 2))
    return arrays


def write(path: Path, **changes: Any) -> Path:
    """A whole answer, but for the changes."""
    whole = {"status": "ok", "reason": "", "arrays": recording(), "meta": dict(META), "detail": "", **changes}
    dumper_answers.write(str(path), "E", dumper_answers.Answer(**whole))
    return path


def read(path: Path, environment: str = "E", stimulus: Stimulus = STIMULUS) -> CellAnswer:
    return answers.read(path, "dump", environment, stimulus)


def read_probe(path: Path) -> CellAnswer:
    return answers.read(path, "probe", "E", None)


def head(**changes: Any) -> dict[str, Any]:
    """What the description in the file begins with, but for the changes."""
    return {
        "format": 1,
        "status": "ok",
        "reason": "",
        "detail": "",
        "environment": "E",
        "arrays": sorted(recording()),
        **META,
        **changes,
    }


def write_raw(path: Path, description: Any, arrays: dict[str, Any] | None = None) -> Path:
    """A file that the dumper would not write."""
    text = description if isinstance(description, bytes) else json.dumps(description).encode()
    np.savez(path, meta=np.frombuffer(text, dtype=np.uint8), **(recording() if arrays is None else arrays))
    return path
