"""Which pairs of behaviours have to be compared."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from audit.comparisons import comparing
from audit.failures import Status
from audit.storage.records import RunCell


def cell(release: str, behaviour: str | None, environment: str = "E", position: int = 0) -> RunCell:
    return RunCell(
        environment=environment,
        release=release,
        position=position,
        cell_key=None,
        status=Status.OK,
        reason="",
        behaviour=behaviour,
        reused=False,
    )


def test_all_pairs_of_distinct_behaviours_lesser_first() -> None:
    cells = [cell("1", "c"), cell("2", "a"), cell("3", "b"), cell("4", "c")]
    assert set(comparing.wanted(cells, "all", None)) == {("a", "b"), ("a", "c"), ("b", "c")}


def test_against_one_release_needs_only_pairs_with_its_behaviour() -> None:
    cells = [cell("1", "c"), cell("2", "a"), cell("3", "b")]
    assert set(comparing.wanted(cells, "against", "3")) == {("a", "b"), ("b", "c")}


def test_against_a_release_without_a_dump_needs_nothing_between_the_others() -> None:
    cells = [cell("1", "c"), cell("2", "a"), cell("3", None)]
    assert comparing.wanted(cells, "against", "3") == {}


def test_adjacent_covers_every_pair_of_neighbours() -> None:
    cells = [cell(str(position), name, position=position) for position, name in enumerate("bab")]
    assert comparing.wanted(cells, "adjacent", None) == {("a", "b"): "E: 0 and 1"}


def test_environments_are_not_compared_with_each_other() -> None:
    cells = [cell("1", "a"), cell("1", "b", "F"), cell("2", None)]
    assert comparing.wanted(cells, "all", None) == {}


def test_nothing_wanted_of_nothing() -> None:
    assert comparing.wanted([], "all", None) == {}
    assert comparing.wanted([cell("1", None)], "all", None) == {}


@settings(deadline=None)
@given(st.lists(st.sampled_from("abcd"), max_size=30))
def test_the_work_grows_with_behaviours_and_not_with_releases(behaviours: list[str]) -> None:
    cells = [cell(str(index), behaviour) for index, behaviour in enumerate(behaviours)]
    assert set(comparing.wanted(cells, "all", None)) == set(combinations(sorted(set(behaviours)), 2))
