"""Which amplified pairs are to be explained, by whose twins, and what is kept of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audit.asked.matrix import Matrix
from audit.comparisons import certifying
from audit.comparisons.certifying import TWINS, Amplified
from audit.comparisons.comparing import ordered
from audit.storage.records import RunCell
from audit.storage.store import Store
from tests.recorded_behaviours import keep, steps
from tests.stored_runs import cell

READS = "yardstick-1:state,reward"
MATRIX = Matrix.model_validate(
    {"name": "m", "python": "3.11", "releases": [{"id": "a", "requires": ["a"]}], "environments": [{"id": "E"}]}
)

Verdicts = dict[tuple[str, str], str]


def cells(behaviours: str, environment: str = "E") -> list[RunCell]:
    """Releases 0, 1, … with behaviours of one letter; a dash has none."""
    return [
        cell(str(position), position, None if name == "-" else name, environment)
        for position, name in enumerate(behaviours)
    ]


def wanted(rows: list[RunCell], verdicts: Mapping[tuple[str, str], str]) -> dict[tuple[str, str], str]:
    """By amplified pair, the release that speaks for it."""
    found = certifying.wanted(rows, list(verdicts), verdicts)
    assert len({(each.environment, each.pair) for each in found}) == len(found)
    return {each.pair: each.speaker.release for each in found}


# Who speaks


def test_the_oldest_release_that_agrees_speaks_for_a_pair() -> None:
    assert wanted(cells("-abab"), {("a", "b"): "amplified"}) == {("a", "b"): "1"}


@pytest.mark.parametrize("verdict", ["changed", "rounding", "identical", "incomparable"])
def test_only_amplified_pairs_are_explained(verdict: str) -> None:
    assert wanted(cells("ab"), {("a", "b"): verdict}) == {}


def test_one_release_speaks_for_all_that_agree_directly_or_through_others() -> None:
    verdicts = {("a", "b"): "rounding", ("b", "c"): "amplified", ("c", "d"): "amplified", ("a", "d"): "changed"}
    assert wanted(cells("abcd"), verdicts) == {("b", "c"): "0", ("c", "d"): "0"}


def test_a_change_parts_those_before_from_those_after() -> None:
    verdicts = {
        ("a", "b"): "amplified", ("c", "d"): "amplified",
        **dict.fromkeys([("a", "c"), ("a", "d"), ("b", "c"), ("b", "d")], "changed"),
    }  # fmt: skip
    assert wanted(cells("abcd"), verdicts) == {("a", "b"): "0", ("c", "d"): "2"}


def test_the_oldest_speaks_in_whatever_order_groups_were_joined() -> None:
    verdicts = {("x", "z"): "amplified", ("y", "z"): "rounding"}
    assert wanted(cells("xyxz"), verdicts) == {("x", "z"): "0"}


def test_environments_are_explained_each_by_its_own_release() -> None:
    rows = [*cells("-ab"), *cells("ab", "F")]
    found = certifying.wanted(rows, [("a", "b")], {("a", "b"): "amplified"})
    assert {(each.environment, each.speaker.identifier) for each in found} == {("E", "1/E"), ("F", "0/F")}


def test_what_is_explained_already_is_not_asked_again() -> None:
    assert certifying.wanted(cells("ab"), [], {("a", "b"): "amplified"}) == []


@settings(deadline=None, max_examples=100)
@given(
    st.text("abcd", min_size=1, max_size=8),
    st.dictionaries(
        st.sampled_from([ordered(one, other) for one in "abcd" for other in "abcd" if one < other]),
        st.sampled_from(["rounding", "amplified", "changed"]),
    ),
)
def test_groups_part_the_cells_into_components(behaviours: str, verdicts: Verdicts) -> None:
    rows = cells(behaviours)
    groups = [[each.behaviour for each in group] for _, group in certifying._groups(rows, verdicts)]
    assert sorted(str(name) for group in groups for name in group) == sorted(behaviours)
    home = {name: index for index, group in enumerate(groups) for name in group}
    assert all(len({index for index, group in enumerate(groups) if name in group}) == 1 for name in behaviours)
    for (one, other), verdict in verdicts.items():
        if one in home and other in home and verdict != "changed":
            assert home[one] == home[other]
    linked = sum(verdict != "changed" and {*pair} <= set(behaviours) for pair, verdict in verdicts.items())
    assert len(groups) >= len(set(behaviours)) - linked, "nothing joins that does not agree"


# What is kept


def growing(rate: float, size: float = 1e-15) -> Any:
    """Trajectories that leave the others by so many decades a step."""
    shape = (2, 120, 2)
    moved = np.ones(shape) + size * 10.0 ** (rate * np.arange(120))[:, None]
    return {f"horizon.{name}": array for name, array in steps(moved).items()}


def stored(store: Store, cross: float, twin: float | None) -> Any:
    """Certify a pair that grows at one rate by twins that grow at another."""
    base = {f"horizon.{name}": array for name, array in steps(np.ones((2, 120, 2))).items()}
    keep(store, "a", base)
    keep(store, "b", growing(cross))
    if twin is not None:
        copies = [growing(twin, 1e-15 * (1 + copy)) for copy in range(TWINS)]
        keep(store, "t", {name: np.concatenate([copy[name] for copy in copies]) for name in base})
    each = Amplified(pair=("a", "b"), environment="E", speaker=cell("0", 0, "a"))
    store.comparisons.put_certificate(
        certifying.certify(each, "t" if twin is not None else None, READS, MATRIX, store).record
    )
    columns = "certificate, reason, steps_per_decade, twin_slowest, twin_fastest, curve, twin_curves"
    ((found),) = store.query(f"SELECT {columns} FROM internal.certificates WHERE first = 'a' AND second = 'b'").rows
    return found


def test_a_pair_that_grows_as_its_twins_do_is_explained(store: Store) -> None:
    certificate, _, rate, slowest, fastest, curve, twins = stored(store, 0.1, 0.1)
    assert certificate == "holds"
    assert rate == pytest.approx(10, rel=0.05)
    assert fastest <= slowest
    assert slowest == pytest.approx(10, rel=0.05)
    assert len(curve) == 120
    assert curve[60] == pytest.approx(1e-9, rel=0.01)
    assert [len(each) for each in twins] == [120] * TWINS
    assert twins[3][60] == pytest.approx(4e-9, rel=0.01), "each twin against the release itself"


def test_a_pair_that_grows_faster_than_its_twins_is_not(store: Store) -> None:
    certificate, reason, *_ = stored(store, 0.12, 0.03)
    assert certificate == "unexplained"
    assert "ahead of the farthest twin" in reason


def test_without_twins_a_pair_is_unexplained_and_its_curve_is_kept(store: Store) -> None:
    certificate, reason, rate, slowest, fastest, curve, twins = stored(store, 0.1, None)
    assert (certificate, rate, slowest, fastest, twins) == ("unexplained", None, None, None, [])
    assert "no twin" in reason
    assert len(curve) == 120


@pytest.mark.parametrize("entries", [1, 3])
def test_twins_of_another_shape_explain_nothing(store: Store, entries: int) -> None:
    """As of a release that answers otherwise when it is asked again."""
    keep(store, "a", {f"horizon.{name}": array for name, array in steps(np.ones((2, 120, 2))).items()})
    keep(store, "b", growing(0.1))
    keep(store, "t", {f"horizon.{name}": array for name, array in steps(np.ones((2 * TWINS, 120, entries))).items()})
    each = Amplified(pair=("a", "b"), environment="E", speaker=cell("0", 0, "a"))
    found = certifying.certify(each, "t", READS, MATRIX, store)
    assert (found.record.certificate, found.twins) == ("unexplained", [])
    assert "another shape" in found.record.reason


def test_where_neither_state_nor_observation_has_an_entry_the_reward_is_followed(store: Store) -> None:
    for name, shift in (("a", 0.0), ("b", 0.5)):
        arrays = {f"horizon.{output}": array for output, array in steps(np.ones((2, 9, 2)) + shift).items()}
        keep(store, name, {**arrays, "horizon.state": np.zeros((2, 9, 0)), "horizon.observation": np.zeros((2, 9, 0))})
    each = Amplified(pair=("a", "b"), environment="E", speaker=cell("0", 0, "a"))
    assert certifying.certify(each, None, READS, MATRIX, store).cross.max() == 1.0


def test_the_curve_of_a_replayed_pair_is_that_of_its_observation(store: Store) -> None:
    for name, shift in (("a", 0.0), ("b", 0.5)):
        arrays = {f"horizon.{output}": array for output, array in steps(np.ones((2, 9, 2)) + shift).items()}
        keep(store, name, {**arrays, "horizon.state": np.zeros((2, 9, 0))})
    each = Amplified(pair=("a", "b"), environment="E", speaker=cell("0", 0, "a"))
    store.comparisons.put_certificate(certifying.certify(each, None, READS, MATRIX, store).record)
    ((curve,),) = store.query("SELECT curve FROM internal.certificates").rows
    assert max(curve) > 0.1
