"""The public views: which pairs there are, which are neighbours, what is told of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from analysis.separation import Separation
from analysis.verdicts import Evidence, Verdict
from analysis.yardstick import Reading
from audit.errors import StoreError
from audit.failures import Failure, Status
from audit.storage.records import PlantedFault
from audit.storage.store import Store
from tests.stored_runs import RUN, audited, cell, count, exercised, finish, judgement, pairs, release


def reading(*ratios: float) -> Reading:
    return Reading(
        ratios=np.array(ratios), separation=0.25, ulps=None, beyond_separation=0.25, relative=1.0, state=0, entry=0
    )


# Pairs


def test_all_pairs_older_first(store: Store) -> None:
    audited(store, {"c": "x", "a": "x", "b": "x"})
    assert pairs(store) == {("c", "a"), ("c", "b"), ("a", "b")}
    assert pairs(store, where="adjacent") == {("c", "a"), ("a", "b")}


def test_adjacent_pairs(store: Store) -> None:
    audited(store, {"a": "x", "b": "x", "c": "x"}, replace(RUN, pairing="adjacent"))
    assert pairs(store) == {("a", "b"), ("b", "c")}


def test_pairs_against_one_release_older_or_newer(store: Store) -> None:
    audited(store, {"a": "x", "b": "x", "c": "x"}, replace(RUN, pairing="against", against="b"))
    assert pairs(store) == {("a", "b"), ("b", "c")}
    audited(store, {"a": "x", "b": "x", "c": "x"}, replace(RUN, run_id="2", pairing="against", against="a"))
    assert pairs(store) == {("a", "b"), ("a", "c")}


def test_neighbours_reach_over_a_release_without_a_dump(store: Store) -> None:
    audited(store, {"a": "x", "b": None, "c": "x", "d": "x"}, replace(RUN, pairing="adjacent"))
    assert pairs(store, where="verdict <> 'unavailable' OR older_behaviour IS NOT NULL") >= {("a", "c"), ("c", "d")}
    assert pairs(store) == {("a", "b"), ("b", "c"), ("a", "c"), ("c", "d")}


def test_a_pair_without_a_dump_says_whose_and_why(store: Store) -> None:
    audited(store, {"a": "x", "b": None})
    (row,) = store.query("SELECT verdict, reason, first_step_separation FROM pairs").rows
    assert row == ("unavailable", "b: has none", None)


def test_two_without_a_dump_both_say_why(store: Store) -> None:
    audited(store, {"a": None, "b": None})
    assert store.query("SELECT verdict, reason FROM pairs").rows == (("unavailable", "a: has none; b: has none"),)


def test_an_incomparable_cell_makes_its_pairs_incomparable(store: Store) -> None:
    releases = [release("a", 0), release("b", 1)]
    finish(store, RUN, releases, [cell("a", 0, "x"), cell("b", 1, None, status="incomparable")])
    assert store.query("SELECT verdict FROM pairs").rows == (("incomparable",),)


def test_neighbours_within_a_series_and_the_same_requirements_across_series(store: Store) -> None:
    releases = [
        release("then-1", 0, "then", "gym==1"),
        release("today-1", 1, "today", "gym==1"),
        release("then-2", 2, "then", "gym==2"),
        release("today-2", 3, "today", "gym==2"),
    ]
    cells = [cell(each.release, each.position, "x") for each in releases]
    finish(store, replace(RUN, pairing="adjacent"), releases, cells)
    assert pairs(store) == {
        ("then-1", "then-2"),
        ("today-1", "today-2"),
        ("then-1", "today-1"),
        ("then-2", "today-2"),
    }


def test_neighbours_are_counted_per_environment(store: Store) -> None:
    releases = [release(name, position) for position, name in enumerate("abc")]
    cells = [cell("a", 0, "x"), cell("c", 2, "x"), *(cell(name, i, "y", "F") for i, name in enumerate("abc"))]
    finish(store, RUN, releases, cells)
    assert pairs(store, where="adjacent AND environment = 'E'") == {("a", "c")}
    assert pairs(store, where="adjacent AND environment = 'F'") == {("a", "b"), ("b", "c")}


def test_a_comparison_is_found_whichever_digest_is_greater(store: Store) -> None:
    audited(store, {"a": "zzz", "b": "aaa", "c": "zzz"})
    store.comparisons.put_comparison("aaa", "zzz", RUN.reads, judgement(), [])
    found = store.query("SELECT older, newer, verdict, reason, first_step_separation FROM pairs ORDER BY ALL").rows
    assert found == (
        ("a", "b", "changed", "changed it is", 0.5),
        ("a", "c", "identical", "", 0.0),
        ("b", "c", "changed", "changed it is", 0.5),
    )
    assert pairs(store, "changes") == {("a", "b"), ("b", "c")}
    assert pairs(store, "amplified") == set()


def test_a_comparison_by_other_outputs_is_not_taken(store: Store) -> None:
    audited(store, {"a": "x", "b": "y"})
    store.comparisons.put_comparison("x", "y", "state", judgement(), [])
    assert pairs(store, "changes") == set()
    assert store.comparisons.compared("state") == {("x", "y")}
    assert store.comparisons.compared(RUN.reads) == set()
    store.comparisons.put_comparison("x", "y", RUN.reads, judgement(Verdict.AMPLIFIED), [])
    assert pairs(store, "amplified") == {("a", "b")}


def test_separations_of_infinite_and_unknown_size_are_kept(store: Store) -> None:
    audited(store, {"a": "y", "b": "x"})
    apart = Separation(
        output="state",
        same_bits=False,
        first_step=np.inf,
        first_step_ulps=None,
        horizon=np.inf,
        horizon_ulps=None,
        interface="state has shapes 3 and 4",
    )
    evidence = [
        Evidence(output="state", same_bits=False, horizon=apart, interface=apart.interface),
        Evidence(output="reward", same_bits=True),
        Evidence(output="observation", same_bits=False, reading=reading(np.inf, 5.0)),
    ]
    store.comparisons.put_comparison("x", "y", RUN.reads, judgement(first=np.inf), evidence)
    columns = "older, newer, output, same_bits, first_step_separation, first_step_ulps, interface, first_step_ratio"
    assert store.query(f"SELECT {columns}, states_beyond FROM separations ORDER BY output").rows == (
        ("a", "b", "observation", False, 0.25, None, "", np.inf, 1),
        ("a", "b", "reward", True, 0.0, 0.0, "", 0.0, 0),
        ("a", "b", "state", False, np.inf, None, "state has shapes 3 and 4", 0.0, 0),
    )


# What stands beside a verdict


def test_a_comparison_brings_its_evidence_into_the_view(store: Store) -> None:
    audited(store, {"a": "x", "b": "y"}, environments=[exercised()])
    store.comparisons.put_comparison("x", "y", RUN.reads, judgement(), [])
    columns = (
        "verdict, paper_verdict, first_step_ratio, states_forced, states_beyond, outputs_changed, beyond, coverage"
    )
    assert store.query(f"SELECT {columns}, evidence FROM pairs").rows == (
        (
            "changed", "rounding", 2e6, 4, 2, "state, reward", [1, 3], "4 states; 1 of 2 colliding pairs touched",
            "forced",
        ),
    )  # fmt: skip


def test_releases_with_the_same_behaviour_are_identical_on_all_states_of_the_bank(store: Store) -> None:
    audited(store, {"a": "x", "b": "x"}, environments=[exercised(states=512)])
    columns = "verdict, paper_verdict, first_step_ratio, states_forced, states_beyond, outputs_changed, certificate"
    assert store.query(f"SELECT {columns} FROM pairs").rows == (("identical", "identical", 0.0, 512, 0, "", None),)


def test_a_run_without_environments_still_has_pairs(store: Store) -> None:
    audited(store, {"a": "x", "b": "x"})
    assert store.query("SELECT verdict, coverage, states_forced FROM pairs").rows == (("identical", "", None),)


def test_a_release_that_does_not_reproduce_itself_voids_its_pairs(store: Store) -> None:
    releases = [release("a", 0), release("b", 1), release("c", 2)]
    cells = [
        cell("a", 0, "x"),
        replace(cell("b", 1, None, status="nondeterministic"), reason="forced.state differs"),
        cell("c", 2, None, status="incomparable"),
    ]
    finish(store, RUN, releases, cells)
    found = store.query("SELECT older, newer, verdict, paper_verdict, reason FROM pairs ORDER BY ALL").rows
    assert found == (
        ("a", "b", "nondeterministic", "nondeterministic", "b: forced.state differs"),
        ("a", "c", "incomparable", "incomparable", "c: has none"),
        ("b", "c", "nondeterministic", "nondeterministic", "b: forced.state differs; c: has none"),
    )


def test_the_null_of_a_pair_is_the_larger_of_its_releases(store: Store) -> None:
    audited(store, {"a": "x", "b": "y", "c": "z"})
    for behaviour, null in (("x", 0.5), ("y", 2.0), ("z", None)):
        store.query("INSERT INTO internal.behaviours VALUES (?, ?)", [behaviour, null])
    found = store.query("SELECT older, newer, null_ratio FROM pairs ORDER BY ALL").rows
    assert found == (("a", "b", 2.0), ("a", "c", 0.5), ("b", "c", 2.0))


def test_environments_of_the_latest_run_are_seen(store: Store) -> None:
    audited(store, {"a": "x"}, replace(RUN, run_id="first"), [exercised(planted=PlantedFault.MISSED)])
    audited(store, {"a": "x"}, replace(RUN, run_id="second"), [exercised(), exercised("F", features=None, states=0)])
    found = store.query("SELECT environment, planted, constant, features->>'contact a b' FROM environments ORDER BY 1")
    assert found.rows == (("E", "seen", "gravity", "4"), ("F", "seen", "gravity", None))


def test_the_latest_finished_run_of_each_matrix_counts(store: Store) -> None:
    audited(store, {"a": "x", "b": "x"}, replace(RUN, run_id="first"))
    audited(store, {"a": "x", "c": "x"}, replace(RUN, run_id="second"))
    audited(store, {"a": "x", "d": "x"}, replace(RUN, run_id="other", matrix="n"))
    store.begin_run(replace(RUN, run_id="killed"))
    assert pairs(store, where="matrix = 'm'") == {("a", "c")}
    assert pairs(store, where="matrix = 'n'") == {("a", "d")}
    history = store.query("SELECT run_id, newer FROM pairs_history ORDER BY ALL").rows
    assert history == (("first", "b"), ("other", "d"), ("second", "c"))
    for view in ("releases", "dumps"):
        assert store.query(f"SELECT DISTINCT release FROM {view} WHERE matrix = 'm' ORDER BY ALL").rows == (
            ("a",),
            ("c",),
        )


def test_a_run_without_an_end_is_seen_nowhere_whatever_it_left(store: Store) -> None:
    audited(store, {"a": "x", "b": "x"}, replace(RUN, run_id="first"))
    audited(store, {"a": "x", "c": "x"}, replace(RUN, run_id="second"))
    store.query("UPDATE internal.runs SET finished = NULL WHERE run_id = 'second'")
    assert pairs(store) == pairs(store, "pairs_history") == {("a", "b")}
    assert store.query("SELECT release FROM releases ORDER BY ALL").rows == (("a",), ("b",))


def test_a_run_that_finishes_half_is_not_there(store: Store) -> None:
    store.begin_run(RUN)
    cells = [cell("a", 0, "x"), cell("b", 1, "x"), cell("b", 1, "y")]  # one cell twice: the database refuses
    with pytest.raises(StoreError):
        store.finish_run("run", 0, [release("a", 0), release("b", 1)], cells, [exercised()], [])
    assert count(store, "internal.run_releases") == count(store, "internal.run_cells") == 0
    assert count(store, "internal.run_environments") == 0
    assert store.query("SELECT finished FROM internal.runs").rows == ((None,),)
    assert pairs(store, "pairs_history") == set()
    store.finish_run("run", 3, [release("a", 0), release("b", 1)], cells[:2], [exercised()], [])
    assert pairs(store) == {("a", "b")}


def test_failures_releases_and_packages_are_seen_through_their_views(store: Store) -> None:
    store.begin_run(RUN)
    store.put_locks({"d": ("six==2\n", [("six", "2")])})
    failure = Failure(
        subject="b",
        stage="resolve",
        status=Status.UNRESOLVED,
        reason="no",
        exit_code=1,
        stderr_tail="error: no",
        seconds=0.5,
    )
    died = Failure(subject="a/E", stage="dump", status=Status.CRASHED, reason="SIGSEGV", signal=11)
    releases = [
        replace(release("a", 0), lock_digest="d"),
        replace(release("b", 1), status=Status.UNRESOLVED, reason="no"),
    ]
    store.finish_run("run", 0, releases, [cell("a", 0, None), cell("b", 1, None)], [], [failure, died])
    assert store.query("SELECT subject, exit_code, signal, stderr_tail FROM failures ORDER BY subject").rows == (
        ("a/E", None, 11, ""),
        ("b", 1, None, "error: no"),
    )
    assert store.query("SELECT * FROM release_packages").rows == (("m", "a", "six", "2"),)
    assert store.query("SELECT release, status, lock_text FROM releases ORDER BY position").rows == (
        ("a", "ready", "six==2\n"),
        ("b", "unresolved", None),
    )


@pytest.mark.parametrize("signals", [(None, 11), (11, None), (None, None)])
def test_failures_with_and_without_a_signal_in_any_order(store: Store, signals: tuple[int | None, ...]) -> None:
    store.begin_run(RUN)
    failures = [
        Failure(subject=f"{index}", stage="dump", status=Status.CRASHED, reason="", signal=number)
        for index, number in enumerate(signals)
    ]
    store.finish_run("run", 0, [], [], [], failures)
    assert store.query("SELECT signal FROM failures ORDER BY subject").rows == tuple((each,) for each in signals)


def test_one_cell_that_failed_in_two_stages_is_two_failures(store: Store) -> None:
    store.begin_run(RUN)
    failures = [Failure(subject="a/E", stage=stage, status=Status.CRASHED, reason="") for stage in ("probe", "dump")]
    store.finish_run("run", 0, [], [], [], failures)
    assert count(store, "failures") == 2
