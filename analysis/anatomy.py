"""What an environment is made of, in two releases: which constants differ, by name.

A field may be renamed without a number in it changing, and a number may change in its last places because it was
computed in another order. Neither is a change of the model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

ROUNDING = 1e-12
"""Relatively: constants this near to each other were computed in another order, not chosen otherwise."""

_NOTHING = 1e-300


class Kind(StrEnum):
    """How a constant differs."""

    CHANGED = "changed"
    ADDED = "added"
    REMOVED = "removed"
    RENAMED = "renamed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Anatomy:
    """Constants of an environment as one release has them."""

    arrays: Mapping[str, Array]
    names: Mapping[str, Sequence[str] | None]
    """Of the entries along the first axis of a field."""
    texts: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstantDifference:
    """One constant that is not the same."""

    kind: Kind
    field: str
    entry: str
    """Name of the body, joint or geom, or empty."""
    older: str
    newer: str
    size: float
    """Relative to the larger of the two; infinite where one is not there."""

    @property
    def told(self) -> str:
        """``body_mass[fingertip]: 0.0041 → 0.0039``."""
        name = f"{self.field}[{self.entry}]" if self.entry else self.field
        if self.kind is Kind.CHANGED:
            return f"{name}: {self.older} → {self.newer}"
        if self.kind is Kind.RENAMED:
            return f"{self.older} is called {self.newer}"
        return f"{name} {self.kind}"


def differences(older: Anatomy, newer: Anatomy) -> list[ConstantDifference]:
    """All that differs beyond rounding, the changed values first and of these the largest first.

    Limits: that a constant differs does not make it the cause; many differ and do nothing. A renamed one is recognised
    by its numbers: where these changed too it is told as removed and added.
    """
    gone = {name for name in older.arrays if name not in newer.arrays}
    new = {name for name in newer.arrays if name not in older.arrays}
    renamed = _renamed(older, newer, gone, new)
    found = [each for name in older.arrays if name in newer.arrays for each in _field(name, older, newer)]
    found += _texts(older.texts, newer.texts)
    found += [_whole(Kind.RENAMED, one, one, other) for one, other in renamed.items()]
    found += [_whole(Kind.REMOVED, name, _shown(older.arrays[name]), "") for name in sorted(gone - set(renamed))]
    found += [_whole(Kind.ADDED, name, "", _shown(newer.arrays[name])) for name in sorted(new - set(renamed.values()))]
    return sorted(found, key=lambda each: (each.kind is not Kind.CHANGED, -each.size))


def _field(name: str, older: Anatomy, newer: Anatomy) -> list[ConstantDifference]:
    one, other = older.arrays[name], newer.arrays[name]
    labels = older.names.get(name), newer.names.get(name)
    if labels[0] is not None and labels[1] is not None and one.ndim and other.ndim:
        return _by_entry(name, dict(zip(labels[0], one, strict=True)), dict(zip(labels[1], other, strict=True)))
    if one.shape != other.shape:
        return [_whole(Kind.CHANGED, name, f"shape {one.shape}", f"shape {other.shape}")]
    return [_changed(name, "", one, other)] if _differ(one, other) else []


def _by_entry(name: str, one: Mapping[str, Array], other: Mapping[str, Array]) -> list[ConstantDifference]:
    found = []
    for entry, value in one.items():
        if entry not in other:
            found.append(_entry(Kind.REMOVED, name, entry, _shown(value), ""))
        elif np.shape(value) != np.shape(other[entry]) or _differ(value, other[entry]):
            found.append(_changed(name, entry, value, other[entry]))
    found += [_entry(Kind.ADDED, name, entry, "", _shown(value)) for entry, value in other.items() if entry not in one]
    return found


def _differ(one: Array, other: Array) -> bool:
    return relative(one, other) > ROUNDING


def relative(one: Array, other: Array) -> float:
    """The largest difference beside the larger value there; infinite where shapes or not-a-numbers differ.

    Limits: the size of a difference, and not of what comes of it.
    """
    first, second = np.asarray(one, dtype=np.float64), np.asarray(other, dtype=np.float64)
    if first.shape != second.shape or not np.array_equal(np.isnan(first), np.isnan(second)):
        return float("inf")
    same = (first == second) | (np.isnan(first) & np.isnan(second))
    if same.all():
        return 0.0
    with np.errstate(invalid="ignore"):
        scale = np.maximum(np.maximum(np.abs(first), np.abs(second)), _NOTHING)
        ratios = np.where(same, 0.0, np.abs(first - second) / scale)
    return float(np.nan_to_num(ratios, nan=np.inf).max())


def _changed(name: str, entry: str, one: Array, other: Array) -> ConstantDifference:
    """With as many digits as it takes to tell the two apart."""
    digits = next((each for each in (6, 12) if _shown(one, each) != _shown(other, each)), 17)
    older, newer = _shown(one, digits), _shown(other, digits)
    return ConstantDifference(
        kind=Kind.CHANGED, field=name, entry=entry, older=older, newer=newer, size=relative(one, other)
    )


def _entry(kind: Kind, name: str, entry: str, older: str, newer: str) -> ConstantDifference:
    return ConstantDifference(kind=kind, field=name, entry=entry, older=older, newer=newer, size=float("inf"))


def _whole(kind: Kind, name: str, older: str, newer: str) -> ConstantDifference:
    return _entry(kind, name, "", older, newer)


def _texts(older: Mapping[str, str], newer: Mapping[str, str]) -> list[ConstantDifference]:
    found = [
        _whole(Kind.CHANGED, name, text, newer[name])
        for name, text in older.items()
        if name in newer and newer[name] != text
    ]
    found += [_whole(Kind.REMOVED, name, text, "") for name, text in older.items() if name not in newer]
    return found + [_whole(Kind.ADDED, name, "", text) for name, text in newer.items() if name not in older]


def _renamed(older: Anatomy, newer: Anatomy, gone: set[str], new: set[str]) -> dict[str, str]:
    """Fields that have gone whose numbers stand under one new name: only where they are not all the same number."""
    alike: dict[tuple[tuple[int, ...], bytes], list[str]] = {}
    for name in sorted(new):
        alike.setdefault(_numbers(newer.arrays[name]), []).append(name)
    found: dict[str, str] = {}
    for name in sorted(gone):
        array = older.arrays[name]
        others = alike.get(_numbers(array), [])
        if len(others) == 1 and array.size > 1 and np.ptp(array.astype(np.float64)) > 0:
            found[name] = others.pop()
    return found


def _numbers(array: Array) -> tuple[tuple[int, ...], bytes]:
    """The same for arrays whose numbers are equal, whatever their types and the signs of their zeros."""
    return array.shape, (array.astype(np.float64) + 0.0).tobytes()


_LONGEST = 6


def _shown(value: Array, digits: int = 6) -> str:
    flat = np.asarray(value).ravel()
    told = " ".join(f"{each:.{digits}g}" for each in flat[:_LONGEST].tolist())
    return told + (" …" if flat.size > _LONGEST else "")
