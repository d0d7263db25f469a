"""Search for what brought a change: the smallest set of moves, or the first version. Pure: the world is a predicate.

A predicate may have no answer, because a version does not build or a mixture does not resolve. That is not evidence for
either side, and a search goes round it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Generic, TypeVar

Item = TypeVar("Item")


class Answer(StrEnum):
    """What a predicate says of a set or a version."""

    CHANGED = "changed"
    SAME = "same"
    UNRESOLVED = "unresolved"


@dataclass(frozen=True, slots=True, kw_only=True)
class Boundary(Generic[Item]):
    """Neighbours between which something changed."""

    last: Item
    """The last that is the same."""
    first: Item
    """The first that is changed."""
    between: tuple[Item, ...]
    """Those between the two of which nothing can be said."""
    probes: int


class NoBoundary(ValueError):
    """The ends of a range do not differ as they should."""


def smallest_set(items: Sequence[Item], predicate: Callable[[Sequence[Item]], Answer]) -> tuple[Item, ...]:
    """A set of items that changes something and of which no part does: delta debugging.

    All items together must bring the change. Items that stand together are tried together, so put likely ones first.

    Limits: no smaller part of it does; another set elsewhere may. An answer that is not the same twice misleads it.

    >>> smallest_set("abcdefgh", lambda chosen: Answer.CHANGED if {"c", "f"} <= set(chosen) else Answer.SAME)
    ('c', 'f')
    """
    known: dict[tuple[Item, ...], Answer] = {}

    def changes(chosen: Sequence[Item]) -> bool:
        key = tuple(chosen)
        if key not in known:
            known[key] = predicate(key)
        return known[key] is Answer.CHANGED

    current, parts = tuple(items), 2
    while len(current) > 1:
        chunks = _chunks(current, parts)
        rests = [tuple(item for item in current if item not in chunk) for chunk in chunks] if parts > 2 else []
        smaller = next((each for each in (*chunks, *rests) if changes(each)), None)
        if smaller is not None:
            parts = 2 if smaller in chunks else max(parts - 1, 2)
            current = smaller
        elif parts < len(current):
            parts = min(2 * parts, len(current))
        else:
            break
    return current


def boundary(items: Sequence[Item], predicate: Callable[[Item], Answer]) -> Boundary[Item]:
    """Neighbours in an ordered range between which something changed, by halving.

    The first item must be the same and the last changed. Where it changed back and forth, one of the boundaries is
    found. An item without an answer costs a probe, and its nearest neighbours are tried instead. The middle is that of
    the items which may still answer, so that each answer halves their number: of n items no more than log2(n), rounded
    up, are asked that answer.

    Limits: it finds one boundary, not all, and trusts its two ends.

    Raises:
        NoBoundary: where the range has fewer than two items.
    """
    if len(items) < 2:
        raise NoBoundary("a range needs two ends")
    low, high, probes = 0, len(items) - 1, 0
    unresolved: set[int] = set()
    while True:
        waiting = [place for place in range(low + 1, high) if place not in unresolved]
        if not waiting:
            break
        middle = waiting[len(waiting) // 2]
        probes += 1
        answer = predicate(items[middle])
        if answer is Answer.UNRESOLVED:
            unresolved.add(middle)
        elif answer is Answer.SAME:
            low = middle
        else:
            high = middle
    return Boundary(last=items[low], first=items[high], between=tuple(items[low + 1 : high]), probes=probes)


def _chunks(items: tuple[Item, ...], count: int) -> list[tuple[Item, ...]]:
    edges = [round(place * len(items) / count) for place in range(count + 1)]
    return [items[start:end] for start, end in pairwise(edges) if end > start]
