from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis import anatomy, columns
from analysis.anatomy import ROUNDING, Anatomy, Kind


def made(
    arrays: Mapping[str, Any], names: Mapping[str, Sequence[str]] | None = None, texts: Mapping[str, str] | None = None
) -> Anatomy:
    given = {name: np.asarray(value) for name, value in arrays.items()}
    return Anatomy(arrays=given, names={name: (names or {}).get(name) for name in given}, texts=texts or {})


def told(older: Anatomy, newer: Anatomy) -> list[str]:
    return [each.told for each in anatomy.differences(older, newer)]


MASSES = made({"body_mass": [0.1, 0.0041]}, {"body_mass": ["link", "fingertip"]})


def test_a_changed_value_is_named_with_its_body() -> None:
    lighter = made({"body_mass": [0.1, 0.0039]}, {"body_mass": ["link", "fingertip"]})
    assert told(MASSES, lighter) == ["body_mass[fingertip]: 0.0041 → 0.0039"]


def test_what_is_the_same_is_not_told() -> None:
    assert told(MASSES, MASSES) == []


def test_entries_are_matched_by_name_and_not_by_place() -> None:
    turned = made({"body_mass": [0.0041, 0.1]}, {"body_mass": ["fingertip", "link"]})
    assert told(MASSES, turned) == []


def test_bodies_that_came_or_went_are_told_apart_from_changed_ones() -> None:
    other = made({"body_mass": [0.1, 7.0]}, {"body_mass": ["link", "hand"]})
    found = anatomy.differences(MASSES, other)
    assert {(each.kind, each.entry) for each in found} == {(Kind.REMOVED, "fingertip"), (Kind.ADDED, "hand")}


def test_a_renamed_field_is_no_changed_value() -> None:
    found = anatomy.differences(made({"qM": [1.0, 2.0, 3.0]}), made({"M": [1.0, 2.0, 3.0]}))
    assert [(each.kind, each.told) for each in found] == [(Kind.RENAMED, "qM is called M")]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_renamed_fields_are_known_by_their_numbers(dtype: type[np.floating[Any]]) -> None:
    """Whatever their type and the sign of a zero, in any number: a package may name thousands."""
    older = {f"old{number}": np.array([number, 0.0]) for number in range(1, 2000)}
    newer = {f"new{number}": np.array([number, -0.0], dtype) for number in range(1, 2000)}
    found = anatomy.differences(made(older), made(newer))
    assert {each.told for each in found} == {f"old{number} is called new{number}" for number in range(1, 2000)}


def test_fields_that_share_their_numbers_are_no_renamed_ones() -> None:
    found = anatomy.differences(made({"old": [1.0, 2.0]}), made({"one": [1.0, 2.0], "two": [1.0, 2.0]}))
    assert sorted(str(each.kind) for each in found) == ["added", "added", "removed"]


def test_a_field_of_equal_numbers_is_not_taken_for_another_of_the_same() -> None:
    found = anatomy.differences(made({"old": [0.0, 0.0]}), made({"new": [0.0, 0.0]}))
    assert sorted(str(each.kind) for each in found) == ["added", "removed"]


def test_the_largest_change_stands_first_and_changes_before_the_rest() -> None:
    older = made({"a": 1.0, "b": 1.0, "gone": 1.0})
    newer = made({"a": 1.01, "b": 5.0, "come": 2.0})
    assert told(older, newer) == ["b: 1 → 5", "a: 1 → 1.01", "gone removed", "come added"]


def test_texts_are_compared_too() -> None:
    older, newer = (made({}, texts={"integrator": name}) for name in ("Euler", "RK4"))
    assert told(older, newer) == ["integrator: Euler → RK4"]


def test_another_shape_is_a_change() -> None:
    assert told(made({"size": [1.0, 2.0]}), made({"size": [1.0]})) == ["size: shape (2,) → shape (1,)"]


@pytest.mark.parametrize(
    ("one", "other", "differs"),
    [
        (1.0, 1.0 + 1e-15, False),
        (1.0, 1.0 + 1e-9, True),
        (0.0, 1e-300, True),
        (np.nan, np.nan, False),
        (np.nan, 1.0, True),
        (np.inf, np.inf, False),
        (np.inf, -np.inf, True),
        (True, False, True),
    ],
)
def test_rounding_is_no_change_and_not_a_number_is_handled(one: float, other: float, differs: bool) -> None:
    assert bool(told(made({"x": one}), made({"x": other}))) is differs


@given(st.lists(st.floats(allow_nan=True), min_size=1, max_size=5), st.lists(st.floats(), min_size=1, max_size=5))
def test_a_relative_difference_is_symmetric_and_never_negative(one: list[float], other: list[float]) -> None:
    first, second = np.array(one), np.array(other)
    assert anatomy.relative(first, second) == anatomy.relative(second, first) >= 0
    assert anatomy.relative(first, first) <= ROUNDING


# Entries of an observation


def observations(entries: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(20, entries))


@pytest.mark.parametrize("lost", [0, 3, 10])
def test_a_lost_entry_is_named(lost: int) -> None:
    older = observations(11)
    assert columns.told(older, np.delete(older, lost, axis=1)) == f"lost entry {lost}"


def test_gained_entries_are_named_and_said_to_be_constant_where_they_are() -> None:
    older = observations(3)
    assert columns.told(older, np.column_stack([older, np.zeros(20)])) == "gained entry 3, which is always 0"


def test_reordered_entries_are_named() -> None:
    older = observations(4)
    assert columns.told(older, older[:, [0, 2, 1, 3]]) == "entries 1, 2 are at 2, 1"


def test_of_equal_entries_each_is_matched_with_the_nearest_that_is_free() -> None:
    older = observations(6)[:, [0, 1, 1, 2, 1, 3]]
    assert columns.told(older, older[:, [1, 0, 2, 3, 4, 5]]) == "entries 0, 1 are at 1, 0"
    assert columns.told(older, np.delete(older, 2, axis=1)) == "lost entry 4"


@pytest.mark.timeout(30)
def test_very_many_equal_entries_are_matched_in_no_time() -> None:
    """As of an image that shows nothing; all pairs of them would take hours."""
    older, newer = np.zeros((3, 100_000)), np.zeros((3, 99_000))
    told = columns.told(older, newer)
    assert told.startswith("lost entries 99000, 99001, ")
    assert told.endswith(", 99019 and 980 more, which are always 0")
    assert columns.permuted(older, older)


def test_nothing_is_told_where_nothing_moved() -> None:
    older = observations(4)
    assert columns.told(older, older) == ""
