"""Matrices written by tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from audit.asked import matrix_file
from audit.asked.matrix_file import MatrixFile
from audit.errors import UsageError

SMALLEST = """\
name: smallest
python: "3.11"
releases:
  - {id: a, requires: ["gymnasium==1.0.0"]}
environments:
  - id: CartPole-v1
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "matrix.yaml"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    return path


def read(folder: Path, text: str) -> MatrixFile:
    return matrix_file.read(written(folder, text))


def plain(path: Path) -> Any:
    data = YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))
    return json.loads(json.dumps(data, default=str))


def outcome(folder: Path, text: str) -> MatrixFile | UsageError:
    try:
        return read(folder, text)
    except UsageError as error:
        return error
