"""What is told at the end of a run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from analysis.verdicts import Verdict
from audit.failures import Status
from audit.installing.locks import Lock
from audit.reports import summary
from audit.storage.records import BlameRecord, ExplanationRecord
from audit.storage.store import Store
from tests.stored_runs import RUN, audited, cell, finish, judgement, release

EXPLAINED = ExplanationRecord(
    older_behaviour="x",
    newer_behaviour="y",
    environment="E",
    key="k",
    states=1,
    stage="",
    fields="",
    before=[],
    ratio=None,
    interface="",
    constants=0,
    unsteady=[],
    reason="",
)


def test_the_summary_counts_verdicts_and_names_what_is_missing(store: Store) -> None:
    releases = [release("a", 0), release("b", 1), replace(release("c", 2), status=Status.UNBUILT, reason="no compiler")]
    cells = [
        *(cell(each.release, each.position, behaviour) for each, behaviour in zip(releases, "xy", strict=False)),
        replace(cell("c", 2, None), status=Status.UNBUILT),
        cell("a", 0, "p", "F"),
        cell("b", 1, None, "F"),
    ]
    store.comparisons.put_comparison("x", "y", RUN.reads, judgement(Verdict.IDENTICAL, 0.0), [])
    finish(store, RUN, releases, cells)
    told = summary.summarise(store, "run")
    assert told.matrix == "m"
    assert told.counts == {"identical": 1, "unavailable": 3}
    assert told.environments == ("E", "F")
    assert told.silent_differences == 1
    assert [(each.subject, each.status, each.reason) for each in told.missing] == [
        ("c", "unbuilt", "no compiler"),
        ("b/F", "unavailable", "has none"),
    ]
    assert told.verdict("E", ("a", "b")) == "identical"
    assert told.changed == ()
    whole, part = told.groups
    assert (whole.boundaries, whole.environments) == ((("a", "b"), ("b", "c")), ("E",))
    assert (part.boundaries, part.environments) == ((("a", "b"),), ("F",))
    assert told.eventful(whole) == (("b", "c"),)


def test_the_summary_lists_changed_neighbours(store: Store) -> None:
    audited(store, {"a": "x", "b": "y", "c": "x"})
    store.comparisons.put_comparison("x", "y", RUN.reads, judgement(), [])
    told = summary.summarise(store, "run")
    assert told.counts == {"changed": 2, "identical": 1}
    assert [line.boundary for line in told.changed] == [("a", "b"), ("b", "c")]
    assert [line.boundary for line in told.urgent_first] == [("b", "c"), ("a", "b")]


def test_two_summaries_of_the_same_list_changes_in_the_same_order(store: Store) -> None:
    """What a summary proposes to explain is the first of them."""
    environments = [f"E{number:02}" for number in range(40)]
    cells = [cell(name, place, "xy"[place], each) for each in reversed(environments) for place, name in enumerate("ab")]
    store.comparisons.put_comparison("x", "y", RUN.reads, judgement(Verdict.CHANGED, 1.0), [])
    finish(store, RUN, [release("a", 0), release("b", 1)], cells)
    assert [line.environment for line in summary.summarise(store, "run").urgent_first] == environments


def test_a_cell_that_breaks_where_an_older_release_ran_is_told(store: Store) -> None:
    releases = [release("a", 0), release("b", 1), release("c", 2)]
    cells = [
        cell("a", 0, "x"), cell("b", 1, None, status="raised"), cell("c", 2, None),
        cell("a", 0, None, "F", status="raised"), cell("b", 1, None, "F", status="raised"), cell("c", 2, "y", "F"),
    ]  # fmt: skip
    finish(store, RUN, releases, cells)
    told = summary.summarise(store, "run")
    assert [each.subject for each in told.broken] == ["b/E"], "c lacks it, and nobody before b could run F"


def test_against_one_release_every_pair_is_told(store: Store) -> None:
    audited(store, {"a": "x", "b": "x", "c": "y"}, replace(RUN, pairing="against", against="a"))
    store.comparisons.put_comparison("x", "y", RUN.reads, judgement(), [])
    told = summary.summarise(store, "run")
    assert [line.boundary for line in told.neighbours] == [("a", "b"), ("a", "c")]
    assert [line.boundary for line in told.changed] == [("a", "c")]


@pytest.mark.parametrize(
    ("requires", "python", "version", "told", "is_open"),
    [
        ("p", "3.11.7", "2", "brought by p 1 → 2", False),
        ("p, with g = 2", "3.11.7", "1", "brought by edits: absent → g = 2", False),
        ("p, with g = 2", "3.11.7", "2", "brought by one or more of edits, p", True),
        ("p", "3.12.1", "2", "brought by one or more of Python, p", False),
    ],
)
def test_all_that_differs_is_a_suspect(
    store: Store, requires: str, python: str, version: str, told: str, is_open: bool
) -> None:
    """A search tells distributions and edits apart; nobody searches over Pythons."""
    older, newer = Lock.from_text("p==1\n"), Lock.from_text(f"p=={version}\n")
    store.put_locks({each.digest: (each.text, each.packages) for each in (older, newer)})
    rows = [
        replace(release("a", 0, requires="p"), lock_digest=older.digest),
        replace(release("b", 1, requires=requires), lock_digest=newer.digest, python=python),
    ]
    store.comparisons.put_comparison("x", "y", RUN.reads, judgement(), [])
    store.explanations.put_explanation(EXPLAINED, [], [])
    finish(store, RUN, rows, [cell("a", 0, "x"), cell("b", 1, "y")])
    (line,) = summary.summarise(store, "run").changed
    assert (line.explained, line.open) == (told, is_open)
    store.explanations.put_blame(("a/E", "b/E"), RUN.reads, BlameRecord(blamed=("p",), suspects=2, tried=1))
    (line,) = summary.summarise(store, "run").changed
    assert (line.explained, line.open) == ("brought by p", False)
