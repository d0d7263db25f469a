"""Which entries of an observation have gone, come or moved, where two releases observe different numbers of them."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

MOST_TOLD = 20
"""Entries that are told by their place; of more, as of an image, only the number."""


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
    parts = []
    if lost:
        parts.append(f"lost {_entries(lost)}{_constant(older[:, lost])}")
    if new:
        parts.append(f"gained {_entries(new)}{_constant(newer[:, new])}")
    moved = [old for old, place in places.items() if place != old]
    if moved and not lost and not new:
        parts.append(f"{_entries(moved)} are at {_listed([places[old] for old in moved])}")
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
    free: dict[bytes, _Free] = {}
    for place, values in enumerate(_columns(newer)):
        free.setdefault(values, _Free()).after.append(place)
    found = ((place, free[values].nearest(place)) for place, values in enumerate(_columns(older)) if values in free)
    return {place: taken for place, taken in found if taken is not None}


@dataclass(frozen=True, slots=True)
class _Free:
    """Places of equal columns that are not taken yet, for places that are asked about in ascending order."""

    before: list[int] = field(default_factory=list)
    after: deque[int] = field(default_factory=deque)

    def nearest(self, place: int) -> int | None:
        """Take the nearest one, of two as near the first."""
        while self.after and self.after[0] < place:
            self.before.append(self.after.popleft())
        if self.before and (not self.after or place - self.before[-1] <= self.after[0] - place):
            return self.before.pop()
        return self.after.popleft() if self.after else None


def _columns(array: Array) -> list[bytes]:
    """The values of each column as bytes that are equal where the values are: zero has one sign, and so has nan."""
    values = np.asarray(array, dtype=np.float64).T + 0.0
    values[np.isnan(values)] = np.nan
    return [column.tobytes() for column in np.ascontiguousarray(values)]


def _entries(places: list[int]) -> str:
    return f"{'entry' if len(places) == 1 else 'entries'} {_listed(places)}"


def _listed(places: list[int]) -> str:
    more = f" and {len(places) - MOST_TOLD} more" if len(places) > MOST_TOLD else ""
    return f"{', '.join(map(str, places[:MOST_TOLD]))}{more}"


def _constant(values: Array) -> str:
    constant = values.size and (values == values[:1]).all() and np.unique(values[0]).size == 1
    return f", which {'is' if values.shape[1] == 1 else 'are'} always {values[0, 0]:g}" if constant else ""
