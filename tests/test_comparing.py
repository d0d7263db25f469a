from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from analysis.verdicts import Verdict
from audit import comparing
from audit.errors import StoreError
from audit.matrix import OUTPUTS
from audit.records import DumpRecord, NewDump, RunCell, StoredArray
from audit.store import Store

READS = comparing.reads(OUTPUTS)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "audit.duckdb") as opened:
        yield opened


def cell(release: str, behaviour: str | None, environment: str = "E", position: int = 0) -> RunCell:
    return RunCell(
        environment=environment,
        release=release,
        position=position,
        cell_key=None,
        status="ok",
        reason="",
        behaviour=behaviour,
        reused=False,
    )


def recording(**changes: NDArray[Any]) -> dict[str, NDArray[Any]]:
    whole: dict[str, NDArray[Any]] = {
        "imposed": np.zeros((2, 2)),
        "state": np.ones((2, 3, 2)),
        "observation": np.ones((2, 3, 2), np.float32),
        "reward": np.zeros((2, 3)),
        "terminated": np.zeros((2, 3), np.bool_),
        "truncated": np.zeros((2, 3), np.bool_),
        "structure": np.frombuffer(b"<f4(2,)", dtype=np.uint8),
    }
    assert set(changes) <= set(whole)
    return {**whole, **changes}


def keep(store: Store, behaviour: str, machine: str = "here", **changes: Any) -> None:
    outputs = {
        name: StoredArray(digest=store.arrays.put(array), dtype=str(array.dtype), shape=array.shape)
        for name, array in recording(**changes).items()
    }
    store.put_dump(
        NewDump(
            record=DumpRecord(status="ok", reason="", behaviour=behaviour),
            key=f"key of {behaviour}",
            machine=machine,
            stimulus="s",
            outputs=outputs,
            description={},
            steps=6,
            seconds=0.0,
        )
    )


def verdict(store: Store) -> tuple[Any, ...]:
    comparing.compare(store, ("a", "b"), OUTPUTS)
    ((found),) = store.query(
        "SELECT verdict, reason, first_step_separation, horizon_separation FROM internal.comparisons"
    ).rows
    return found


# Which


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


# How


def test_the_same_outputs_are_identical(store: Store) -> None:
    keep(store, "a")
    comparing.compare(store, ("a", "a"), OUTPUTS)
    assert store.compared(READS) == {("a", "a")}
    assert store.query("SELECT verdict, first_step_separation FROM internal.comparisons").rows == (("identical", 0.0),)
    assert store.query("SELECT count(*) FROM internal.output_separations WHERE same_bits").rows == ((len(OUTPUTS),),)


def test_imposed_states_that_differ_are_never_compared(store: Store) -> None:
    keep(store, "a")
    keep(store, "b", imposed=np.full((2, 2), 1e-300), state=np.zeros((2, 3, 2)))
    assert verdict(store) == ("incomparable", "the states that were imposed read back differently", None, None)
    assert store.query("SELECT count(*) FROM internal.output_separations").rows == ((0,),)


def test_a_sign_of_zero_in_the_imposed_state_is_another_state(store: Store) -> None:
    keep(store, "a")
    keep(store, "b", imposed=-np.zeros((2, 2)))
    assert verdict(store)[0] == "incomparable"


def test_dumps_of_two_kinds_of_cpu_are_never_compared(store: Store) -> None:
    keep(store, "a")
    keep(store, "b", machine="other", reward=np.ones((2, 3)))
    found = verdict(store)
    assert found[0] == "incomparable"
    assert "machines of different kinds" in found[1]


def test_a_change_in_each_output_is_found_and_named(store: Store) -> None:
    keep(store, "a")
    for index, output in enumerate(OUTPUTS):
        whole = recording()[output]
        changed: dict[str, Any] = {output: ~whole if whole.dtype == np.bool_ else whole + whole.dtype.type(0.5)}
        keep(store, f"b{index}", **changed)
        comparing.compare(store, ("a", f"b{index}"), OUTPUTS)
        ((verdict, reason),) = store.query(
            "SELECT verdict, reason FROM internal.comparisons WHERE second = ?", [f"b{index}"]
        ).rows
        assert verdict == Verdict.CHANGED
        assert reason.startswith(f"{output} apart by")
        assert reason.count("apart") == 1


def test_equal_numbers_in_another_structure_are_changed(store: Store) -> None:
    keep(store, "a")
    keep(store, "b", structure=np.frombuffer(b'{"x": "<f8()"}', dtype=np.uint8))
    assert verdict(store)[:2] == ("changed", "observation has another structure")


def test_a_change_of_shape_is_changed(store: Store) -> None:
    keep(store, "a")
    keep(store, "b", observation=np.ones((2, 3, 5), np.float32))
    assert verdict(store) == ("changed", "observation has shapes 2 and 5", np.inf, np.inf)


def test_outputs_that_are_not_read_are_kept_all_the_same(store: Store) -> None:
    keep(store, "a")
    keep(store, "b", state=np.zeros((2, 3, 2)))
    comparing.compare(store, ("a", "b"), ["observation"])
    assert store.query("SELECT verdict, reads FROM internal.comparisons").rows == (
        ("identical", comparing.reads(["observation"])),
    )
    assert store.query("SELECT output FROM internal.output_separations WHERE NOT same_bits").rows == (("state",),)


def test_one_pair_can_be_judged_by_several_choices_of_outputs(store: Store) -> None:
    keep(store, "a")
    keep(store, "b", state=np.zeros((2, 3, 2)))
    comparing.compare(store, ("a", "b"), ["observation"])
    comparing.compare(store, ("a", "b"), ["state"])
    found = store.query("SELECT reads, verdict FROM internal.comparisons ORDER BY reads").rows
    assert found == ((comparing.reads(["observation"]), "identical"), (comparing.reads(["state"]), "changed"))


def test_an_array_that_is_gone_stops_the_comparison_with_a_sentence(store: Store) -> None:
    keep(store, "a")
    keep(store, "b", reward=np.ones((2, 3)))
    for path in store.arrays.folder.rglob("*.npy"):
        path.unlink()
    with pytest.raises(StoreError, match="missing or damaged"):
        comparing.compare(store, ("a", "b"), OUTPUTS)
    assert store.compared(READS) == set()
