"""Trajectories from anywhere: npz, Parquet, or a Minari data set. Each comes out as columns by name.

- ``npz``: ``observation``, ``state``, ``action``, singular or plural, of shape (samples, entries) for one trajectory or
  (trajectories, samples, entries) for several. Other arrays are columns of their own name, if they are numbers and as
  long.
- ``parquet``: a row a sample, a column an entry (``observation_0``, ``observation_1``, …) or a list of entries
  (``observation``). A column ``trajectory`` (or ``episode``) tells them apart, ``step`` orders them.
- a Minari data set: its folder, or the ``main_data.hdf5`` in it.
"""

from __future__ import annotations

import math
import re
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audit.errors import UsageError
from audit.storage import database

Floats = NDArray[np.float64]
Columns = dict[str, Floats]
"""Of one trajectory: samples × entries, by name."""

_SINGULAR = {"observations": "observation", "obs": "observation", "states": "state", "actions": "action"}
_TRAJECTORY = ("trajectory", "episode", "episode_id")
_STEP = ("step", "t", "time")
_ENTRY = re.compile(r"(?P<name>.+?)_(?P<place>\d+)")


def read(path: Path) -> list[Columns]:
    """All trajectories of a file.

    Raises:
        UsageError: where there is none, or it cannot be read as one of the three.
    """
    if not path.exists():
        raise UsageError(f"there is no file {path}")
    if path.is_dir() or path.suffix in (".hdf5", ".h5"):
        return _minari(path)
    if path.suffix == ".parquet":
        return _parquet(path)
    if path.suffix == ".npz":
        return _npz(path)
    raise UsageError(f"{path} is no .npz, no .parquet and no Minari data set")


def _npz(path: Path) -> list[Columns]:
    named = {_SINGULAR.get(name, name): (name, array) for name, array in _arrays(path).items()}
    arrays = {
        name: _numbers(title, array, path)
        for name, (title, array) in named.items()
        if name in _SINGULAR.values() or _is_numeric(array)
    }
    if not named:
        raise UsageError(f"{path} is empty")
    if not arrays:
        raise UsageError(f"{path} is not a file with arrays of numbers")
    several = [array for array in arrays.values() if array.ndim == 3]
    count = len(several[0]) if several else 1
    if any(len(array) != count for array in several):
        raise UsageError(f"{path} has arrays of different numbers of trajectories")
    apart = {name for name, array in arrays.items() if several and array.ndim > 1 and len(array) == count}
    return [
        _aligned({name: _samples(array[number] if name in apart else array) for name, array in arrays.items()}, path)
        for number in range(count)
    ]


def _arrays(path: Path) -> Mapping[str, Any]:
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, TypeError, AttributeError, EOFError, KeyError, zipfile.BadZipFile, zlib.error) as error:
        raise UsageError(f"{path} is not an npz file: {error}") from None


def _aligned(columns: Columns, path: Path) -> Columns:
    """Columns of as many samples as the states have. The last of these has no action and is given the one before it."""
    lengths = {name: len(columns[name]) for name in ("observation", "state", "action") if name in columns}
    samples = next(iter(lengths.values()), len(next(iter(columns.values()))))
    if lengths.get("action") == samples - 1 > 0:
        columns["action"] = np.vstack([columns["action"], columns["action"][-1:]])
        lengths["action"] = samples
    if any(length != samples for length in lengths.values()):
        told = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise UsageError(f"{path} has columns of different numbers of samples: {told}")
    return {name: values for name, values in columns.items() if len(values) == samples}


def _samples(array: Floats) -> Floats:
    return array.reshape(len(array), math.prod(array.shape[1:]))


def _is_numeric(array: Any) -> bool:
    return isinstance(array, np.ndarray) and array.dtype.kind in "biuf" and array.ndim > 0


def _numbers(name: str, array: Any, path: Path) -> Floats:
    if not _is_numeric(array):
        raise UsageError(f"{name} in {path} is not an array of numbers")
    return np.asarray(array, dtype=np.float64)


def _parquet(path: Path) -> list[Columns]:
    table = database.read_parquet(path)
    rows = len(next(iter(table.values())))
    owners, steps = (
        next((table.pop(name) for name in names if name in table), default)
        for names, default in ((_TRAJECTORY, [0] * rows), (_STEP, list(range(rows))))
    )
    if None in owners or None in steps:
        raise UsageError(f"{path} has rows that belong to no trajectory, or to no step of one")
    owner, order = np.array(owners), np.array(steps)
    columns = _gathered(table, path)
    found = []
    for each in dict.fromkeys(owner.tolist()):
        places = np.flatnonzero(owner == each)
        chosen = places[np.argsort(order[places], kind="stable")]
        found.append({name: values[chosen] for name, values in columns.items()})
    return found


def _gathered(table: Mapping[str, list[Any]], path: Path) -> Columns:
    """Columns ``name_0``, ``name_1`` … and columns of lists, each as one array under its name."""
    entries: dict[str, dict[int, str]] = {}
    for title in table:
        matched = _ENTRY.fullmatch(title)
        name, place = (matched["name"], int(matched["place"])) if matched else (title, 0)
        entries.setdefault(name, {})[place] = title
    found: Columns = {}
    for name, titles in entries.items():
        if sorted(titles) == list(range(len(titles))):
            parts = [_column(titles[place], table, path) for place in sorted(titles)]
            found[_SINGULAR.get(name, name)] = np.hstack(parts)
        else:  # such as link_1 and link_2: what is numbered otherwise is no entry of anything
            found |= {title: _column(title, table, path) for title in titles.values()}
    return found


def _column(title: str, table: Mapping[str, list[Any]], path: Path) -> Floats:
    try:
        return _samples(np.array(table[title], dtype=np.float64))
    except (TypeError, ValueError):
        raise UsageError(f"{title} in {path} is not a column of numbers, or of lists of one length") from None


def _minari(path: Path) -> list[Columns]:
    try:
        import h5py
    except ImportError:
        raise UsageError(f"{path} needs h5py to be read: install release-audit[minari]") from None
    file = next(
        (each for each in (path, path / "main_data.hdf5", path / "data" / "main_data.hdf5") if each.is_file()), None
    )
    if file is None:
        raise UsageError(f"{path} has no main_data.hdf5: it is no Minari data set")
    try:
        with h5py.File(file, "r") as data:
            episodes = sorted((name for name in data if name.startswith("episode_")), key=_number)
            found = [_episode(data[name], name, path) for name in episodes]
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error}") from None
    if not found:
        raise UsageError(f"{path} has no episodes")
    return found


def _number(name: str) -> int:
    digits = name.removeprefix("episode_")
    return int(digits) if digits.isdigit() else 0


def _episode(group: Any, name: str, path: Path) -> Columns:
    observations = group.get("observations") if hasattr(group, "get") else None
    if observations is None or not hasattr(observations, "shape"):
        raise UsageError(f"{name} of {path} has no observations that are one array")
    columns = {"observation": _samples(_numbers(f"observations of {name}", np.asarray(observations), path))}
    taken = [
        _samples(_numbers(f"actions of {name}", np.asarray(each), path)) for each in _leaves(group.get("actions", {}))
    ]
    if any(len(each) for each in taken):
        columns["action"] = np.hstack(taken)
    return _aligned(columns, path)


def _leaves(node: Any) -> list[Any]:
    """The arrays below a node: actions may be several, by name."""
    return [node] if hasattr(node, "shape") else [leaf for child in node.values() for leaf in _leaves(child)]
