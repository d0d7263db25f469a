"""Searches with a predicate: right wherever the change is, and with no more questions than they need."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import combinations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from analysis.searching import Answer, Boundary, NoBoundary, boundary, smallest_set

SETS = st.integers(1, 14).flatmap(
    lambda size: st.tuples(
        st.just(size), st.sets(st.frozensets(st.integers(0, size - 1), min_size=1), min_size=1, max_size=4)
    )
)
"""How many items there are, and sets of them each of which brings the change."""

RANGES = st.integers(2, 200).flatmap(
    lambda size: st.tuples(
        st.just(size),
        st.integers(1, size - 1),
        st.lists(st.tuples(st.integers(1, size), st.integers(1, size)), max_size=4).map(
            lambda blocks: frozenset(
                place for start, length in blocks for place in range(start, min(start + length, size - 1))
            )
        ),
    )
)
"""How many items, the first that is changed, and those without an answer: neighbours, as unbuildable versions are."""


class Asked:
    """A predicate on sets that remembers what it was asked."""

    def __init__(self, answer: Callable[[frozenset[int]], Answer]) -> None:
        self._answer = answer
        self.sets: list[frozenset[int]] = []

    def __call__(self, chosen: Sequence[int]) -> Answer:
        assert list(chosen) == sorted(chosen), "in the order in which they were given"
        self.sets.append(frozenset(chosen))
        return self._answer(self.sets[-1])


def brought_by(causes: set[frozenset[int]]) -> Callable[[frozenset[int]], Answer]:
    def answer(chosen: frozenset[int]) -> Answer:
        return Answer.CHANGED if any(cause <= chosen for cause in causes) else Answer.SAME

    return answer


def parts(chosen: Sequence[int]) -> list[frozenset[int]]:
    """All that is left when one is taken away."""
    return [frozenset(each) for each in combinations(chosen, len(chosen) - 1) if each]


# Sets


@given(SETS)
def test_what_is_found_brings_the_change_and_no_part_of_it_does(given_sets: tuple[int, set[frozenset[int]]]) -> None:
    size, causes = given_sets
    answer = brought_by(causes)
    found = smallest_set(range(size), answer_once := Asked(answer))
    assert frozenset(found) in causes
    assert not [part for part in parts(found) if answer(part) is Answer.CHANGED]
    assert len(answer_once.sets) == len(set(answer_once.sets)), "each set is asked about once"
    assert frozenset(range(size)) not in answer_once.sets, "that all of them bring it is known"
    assert frozenset() not in answer_once.sets


@given(SETS, st.lists(st.tuples(st.integers(0, 13), st.integers(0, 13)), max_size=8))
def test_what_does_not_resolve_is_gone_round(
    given_sets: tuple[int, set[frozenset[int]]], requirements: list[tuple[int, int]]
) -> None:
    """Some items need another one: without it there is no answer, whatever else is there."""
    size, causes = given_sets
    brought = brought_by(causes)

    def answer(chosen: frozenset[int]) -> Answer:
        lacking = [1 for one, other in requirements if other < size and one in chosen and other not in chosen]
        return Answer.UNRESOLVED if lacking else brought(chosen)

    asked = Asked(answer)
    found = smallest_set(range(size), asked)
    assert answer(frozenset(found)) is Answer.CHANGED
    assert not [part for part in parts(found) if answer(part) is Answer.CHANGED]
    assert len(asked.sets) == len(set(asked.sets))


@given(st.integers(1, 60), st.data())
def test_one_culprit_among_many_takes_few_questions(size: int, data: st.DataObject) -> None:
    culprit = data.draw(st.integers(0, size - 1))
    asked = Asked(brought_by({frozenset([culprit])}))
    assert smallest_set(range(size), asked) == (culprit,)
    assert len(asked.sets) <= 2 * math.ceil(math.log2(size))


def test_nothing_and_one() -> None:
    asked = Asked(brought_by({frozenset([0])}))
    assert smallest_set([], asked) == ()
    assert smallest_set([0], asked) == (0,)
    assert asked.sets == []


# Ranges


class Versions:
    """A predicate on places in a range that remembers what it was asked."""

    def __init__(self, first: int, unresolved: frozenset[int]) -> None:
        self._first, self._unresolved = first, unresolved
        self.places: list[int] = []

    def __call__(self, place: int) -> Answer:
        self.places.append(place)
        if place in self._unresolved:
            return Answer.UNRESOLVED
        return Answer.CHANGED if place >= self._first else Answer.SAME

    @property
    def skipped(self) -> int:
        return len(self._unresolved.intersection(self.places))


@given(RANGES)
@example((117, 16, frozenset([*range(48, 68), *range(101, 116)])))  # the middle of the places is not that of answers
def test_the_boundary_is_found_wherever_it_is(given_range: tuple[int, int, frozenset[int]]) -> None:
    size, first, unresolved = given_range
    asked = Versions(first, unresolved)
    found = boundary(range(size), asked)
    assert found.last < first <= found.first
    assert found.between == tuple(range(found.last + 1, found.first))
    assert unresolved.issuperset(found.between)
    assert not unresolved & {found.last, found.first}
    assert len(asked.places) == len(set(asked.places)) == found.probes
    assert not {0, size - 1} & set(asked.places), "the ends are known"
    assert found.probes <= math.ceil(math.log2(size)) + asked.skipped


def test_without_gaps_every_boundary_takes_no_more_than_the_doublings() -> None:
    for size in range(2, 130):
        probes = [boundary(range(size), Versions(first, frozenset())).probes for first in range(1, size)]
        assert max(probes) == math.ceil(math.log2(size - 1))


@given(st.lists(st.sampled_from(list(Answer)), max_size=60))
def test_where_it_goes_back_and_forth_a_boundary_is_found(inner: list[Answer]) -> None:
    answers = [Answer.SAME, *inner, Answer.CHANGED]
    found = boundary(range(len(answers)), lambda place: answers[place])
    assert (answers[found.last], answers[found.first]) == (Answer.SAME, Answer.CHANGED)
    assert {answers[place] for place in found.between} <= {Answer.UNRESOLVED}


def test_neighbours_are_a_boundary_without_a_question() -> None:
    asked = Versions(1, frozenset())
    assert boundary("ab", lambda item: asked("ab".index(item))) == Boundary(last="a", first="b", between=(), probes=0)
    assert asked.places == []


@pytest.mark.parametrize("items", ["", "a"])
def test_a_range_needs_two_ends(items: str) -> None:
    with pytest.raises(NoBoundary):
        boundary(items, lambda _: Answer.SAME)
