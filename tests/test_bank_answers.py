"""The answer to a request for a bank."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from audit.processes import answers
from audit.processes.answer_file import DamagedAnswer
from audit.processes.answers import CellAnswer
from tests.written_answers import write


def bank(**changes: Any) -> dict[str, Any]:
    arrays: dict[str, Any] = {
        "states": np.ones((3, 2)),
        "source": np.array([0, 1, 3], np.uint8),
        "acting": np.zeros((3, 2), np.bool_),
        "kept": np.arange(3),
    }
    return arrays | changes


def read_bank(folder: Path, features: Any = ("a", "b"), **changes: Any) -> CellAnswer:
    arrays = {name: array for name, array in bank(**changes).items() if array is not None}
    path = write(folder / "a.npz", arrays=arrays, meta={"features": features})
    return answers.read(path, "bank", "E", None)


def test_a_bank_comes_back_as_it_was_made(tmp_path: Path) -> None:
    answer = read_bank(tmp_path)
    assert answer.meta["features"] == ["a", "b"]
    assert {name: array.tobytes() for name, array in answer.arrays.items()} == {
        name: array.tobytes() for name, array in bank().items()
    }


@pytest.mark.parametrize(
    "changes",
    [
        {"states": np.ones((0, 2)), "source": np.zeros(0), "acting": np.zeros((0, 2))},
        {"states": np.ones(3)},
        {"states": np.full((3, 2), np.nan)},
        {"states": np.full((3, 2), np.inf)},
        {"states": np.ones((3, 2), np.float32)},
        {"states": None},
        {"source": np.zeros(2)},
        {"source": None},
        {"acting": np.zeros((3, 1))},
        {"acting": np.zeros((3, 2), "S1")},
        {"more": np.zeros(3)},
        {"features": None},
        {"features": "ab"},
        {"features": ["a", 3]},
        {"features": ["a", "b", "c"]},
    ],
    ids=str,
)
def test_a_bank_that_is_none(tmp_path: Path, changes: dict[str, Any]) -> None:
    with pytest.raises(DamagedAnswer):
        read_bank(tmp_path, **changes)


def test_a_bank_without_features(tmp_path: Path) -> None:
    with pytest.raises(DamagedAnswer):
        answers.read(write(tmp_path / "a.npz", arrays=bank(), meta={}), "bank", "E", None)
