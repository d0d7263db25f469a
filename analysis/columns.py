"""Which entries of an observation have gone, come or moved, where two releases observe different numbers of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def told(older: Array, newer: Array) -> str:
    """In words, from observations of the same states: samples × entries. Entries are matched by their values.

    Limits: it matches values, not meanings: columns that are equal on these samples are not told apart.

    >>> told(np.array([[1.0, 2.0, 0.0], [3.0, 4.0, 0.0]]), np.array([[1.0, 2.0], [3.0, 4.0]]))
    'lost entry 2, which is always 0'
    >>> told(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[2.0, 1.0], [4.0, 3.0]]))
    'entries 0, 1 are at 1, 0'
    """
    places = _matched(older, newer)
    lost = [place for place in range(older.shape[1]) if place not in places]
    new = sorted(set(range(newer.shape[1])) - set(places.values()))
    moved = {old: place for old, place in places.items() if place - old != _shift(old, lost, new)}
    parts = []
    if lost:
        parts.append(f"lost {_entries(lost)}{_constant(older[:, lost])}")
    if new:
        parts.append(f"gained {_entries(new)}{_constant(newer[:, new])}")
    if moved and not lost and not new:
        parts.append(f"{_entries(list(moved))} are at {', '.join(map(str, moved.values()))}")
    return "; ".join(parts)


def permuted(older: Array, newer: Array) -> bool:
    """Whether the newer entries are the older ones, in another order or the same.

    Limits: on these samples. Two columns that never differ here may differ elsewhere.
    """
    return bool(len(_matched(older, newer)) == older.shape[1] == newer.shape[1])


def _matched(older: Array, newer: Array) -> dict[int, int]:
    """Each older entry with the newer one of the same values, not taken yet, that is nearest to its own place."""
    if len(older) != len(newer):
        return {}
    free: dict[bytes, list[int]] = {}
    for place, values in enumerate(_columns(newer)):
        free.setdefault(values, []).append(place)
    found: dict[int, int] = {}
    for place, values in enumerate(_columns(older)):
        alike = free.get(values)
        if alike:
            found[place] = min(alike, key=lambda other, place=place: abs(other - place))  # type: ignore[misc]
            alike.remove(found[place])
    return found


def _columns(array: Array) -> list[bytes]:
    """The values of each column as bytes that are equal where the values are: zero has one sign, and so has nan."""
    values = np.asarray(array, dtype=np.float64).T + 0.0
    values[np.isnan(values)] = np.nan
    return [column.tobytes() for column in np.ascontiguousarray(values)]


def _shift(place: int, lost: list[int], new: list[int]) -> int:
    return sum(each <= place for each in new) - sum(each < place for each in lost)


def _entries(places: list[int]) -> str:
    return f"{'entry' if len(places) == 1 else 'entries'} {', '.join(map(str, places))}"


def _constant(values: Array) -> str:
    constant = values.size and (values == values[:1]).all() and np.unique(values[0]).size == 1
    return f", which {'is' if values.shape[1] == 1 else 'are'} always {values[0, 0]:g}" if constant else ""
