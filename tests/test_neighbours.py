"""What is computed along releases equals what was computed over pairs of them, on stores made up at random."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.verdicts import Verdict
from audit.storage.migrating import MIGRATIONS
from audit.storage.records import CertificateRecord, RunCell, RunRelease
from audit.storage.store import Store
from tests import synthetic_store
from tests.stored_runs import RUN, cell, exercised, finish, judgement, release
from tests.synthetic_store import Size

VERDICTS = (Verdict.IDENTICAL, Verdict.ROUNDING, Verdict.AMPLIFIED, Verdict.CHANGED)
STATUSES = ("unavailable", "incomparable", "nondeterministic")
BEHAVIOURS = "wxyz"
_NUMBERS = itertools.count()


def define_pairs_as_before(store: Store) -> None:
    """The definition of ``pairs_history`` that joins all releases with each other, from the migrations, as a view."""
    first, second = ((MIGRATIONS / name).read_text() for name in ("001_initial.sql", "002_yardstick.sql"))
    for text, view in ((first, "internal.ranked_cells"), (second, "pairs_history")):
        (found,) = re.findall(rf"CREATE (?:OR REPLACE )?VIEW {re.escape(view)} AS(.*?);\n", text, re.S)
        body = str(found).replace("internal.ranked_cells", "before_ranked_cells")
        store.query(f"CREATE TEMP VIEW before_{view.removeprefix('internal.')} AS {body}")


def differing(store: Store, one: str, other: str) -> int:
    """Rows that only one of two queries has, counted as often as they occur."""
    sql = f"SELECT count(*) FROM (({one} EXCEPT ALL {other}) UNION ALL ({other} EXCEPT ALL {one}))"
    return int(store.query(sql).rows[0][0])


def assert_pairs_are_as_before(store: Store) -> None:
    assert differing(store, "FROM pairs_history", "FROM before_pairs_history") == 0
    latest = "FROM before_pairs_history WHERE run_id IN (SELECT run_id FROM internal.latest_runs)"
    assert differing(store, "FROM pairs", latest) == 0
    assert differing(store, "FROM neighbours", f"{latest} AND adjacent") == 0


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """One store for all examples: each is a run of its own, so that there is a history too."""
    with Store(tmp_path_factory.mktemp("shared") / "audit.duckdb") as store:
        define_pairs_as_before(store)
        yield store


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A run made up at random."""

    reads: str
    cells: tuple[RunCell, ...]
    releases: tuple[RunRelease, ...]
    verdicts: dict[tuple[str, str], tuple[Verdict, bool]]
    """By the ordered pair of behaviours; whether a certificate holds."""


@st.composite
def runs(draw: st.DrawFn) -> tuple[list[tuple[str, str]], list[list[Any]], str, dict[tuple[str, str], Any]]:
    """Releases (series, requires), cells by environment (behaviour, status, or not there), pairing, verdicts."""
    listed = draw(st.lists(st.tuples(st.sampled_from("AB"), st.sampled_from("123")), min_size=1, max_size=9))
    shown = st.one_of(st.sampled_from(BEHAVIOURS), st.sampled_from(STATUSES), st.none())
    cells = [draw(st.lists(shown, min_size=len(listed), max_size=len(listed))) for _ in range(2)]
    verdicts = {
        pair: (draw(st.sampled_from(VERDICTS)), draw(st.booleans()))
        for pair in itertools.combinations(BEHAVIOURS, 2)
        if draw(st.integers(0, 9))
    }
    return listed, cells, draw(st.sampled_from(["all", "adjacent", "against"])), verdicts


def write(store: Store, example: tuple[Any, ...]) -> Made:
    listed, shown, pairing, verdicts = example
    number = next(_NUMBERS)
    reads = f"reads {number}"
    releases = [release(f"r{place}", place, series, f"p=={asked}") for place, (series, asked) in enumerate(listed)]
    cells = [
        cell(f"r{place}", place, what if what in BEHAVIOURS else None, f"E{title}", "" if what in BEHAVIOURS else what)
        for title, row in enumerate(shown)
        for place, what in enumerate(row)
        if what is not None
    ]
    for (first, second), (verdict, certified) in verdicts.items():
        store.comparisons.put_comparison(first, second, reads, judgement(verdict), [])
        if verdict is Verdict.AMPLIFIED:
            store.comparisons.put_certificate(certificate(first, second, reads, certified))
    run = replace(
        RUN, run_id=f"run {number}", matrix=f"m{number % 2}", reads=reads, pairing=pairing,
        against="r0" if pairing == "against" else None,
    )  # fmt: skip
    finish(store, run, releases, cells, [exercised("E0")])
    return Made(reads=reads, cells=tuple(cells), releases=tuple(releases), verdicts=verdicts)


def certificate(first: str, second: str, reads: str, holds: bool) -> CertificateRecord:
    return CertificateRecord(
        first=first, second=second, reads=reads, certificate="holds" if holds else "unexplained", reason="",
        steps_per_decade=None, twin_slowest=None, twin_fastest=None, curve=[], twin_curves=[],
    )  # fmt: skip


@given(examples=st.lists(runs(), min_size=4, max_size=4))
@settings(max_examples=5, deadline=None)
def test_neighbours_and_all_pairs_are_those_that_joining_finds(shared: Store, examples: list[tuple[Any, ...]]) -> None:
    for example in examples:
        write(shared, example)
    assert_pairs_are_as_before(shared)


@given(example=runs())
@settings(max_examples=15, deadline=None)
def test_safe_ranges_are_those_that_trying_all_finds(shared: Store, example: tuple[Any, ...]) -> None:
    made = write(shared, example)
    matrix = f"m{int(made.reads.split()[1]) % 2}"
    columns = "environment, series, comparable, first, last, releases, boundaries, lacking"
    found = shared.query(f"SELECT {columns} FROM safe_ranges WHERE matrix = ?", [matrix]).rows
    assert len(set(found)) == len(found)
    assert set(found) == set(expected_ranges(made))


def expected_ranges(made: Made) -> Iterator[tuple[Any, ...]]:
    """Every range of releases is tried; those that lie in another one are dropped."""
    series_of = {each.release: each.series for each in made.releases}
    keys = sorted({(each.environment, series_of[each.release]) for each in made.cells})
    for (environment, series), comparable in itertools.product(keys, ("trajectories", "steps")):
        listed = [c for c in made.cells if c.environment == environment and series_of[c.release] == series]
        there = [each for each in listed if each.behaviour is not None]
        safe = [
            (start, stop)
            for start, stop in itertools.combinations(range(len(there) + 1), 2)
            if all(goes(made, one, other, comparable) for one, other in itertools.combinations(there[start:stop], 2))
        ]
        for start, stop in safe:
            if any((a, b) != (start, stop) and a <= start and stop <= b for a, b in safe):
                continue
            chosen = there[start:stop]
            moved = sum(a.behaviour != b.behaviour for a, b in itertools.pairwise(chosen))
            span = [c for c in listed if chosen[0].position <= c.position <= chosen[-1].position]
            lacking = len(span) - len(chosen)
            ends = chosen[0].release, chosen[-1].release
            yield (environment, series, comparable, *ends, len(chosen), moved, lacking)


def goes(made: Made, one: RunCell, other: RunCell, comparable: str) -> bool:
    if one.behaviour == other.behaviour:
        return True
    first, second = sorted([str(one.behaviour), str(other.behaviour)])
    verdict, holds = made.verdicts.get((first, second), (Verdict.CHANGED, False))
    if verdict is Verdict.AMPLIFIED:
        return comparable == "steps" and holds
    return verdict in (Verdict.IDENTICAL, Verdict.ROUNDING)


def test_rounding_is_not_transitive_and_ranges_overlap(store: Store) -> None:
    for pair, verdict in {
        ("x", "y"): Verdict.ROUNDING,
        ("y", "z"): Verdict.ROUNDING,
        ("x", "z"): Verdict.CHANGED,
    }.items():
        store.comparisons.put_comparison(*pair, RUN.reads, judgement(verdict), [])
    releases = [release(name, place) for place, name in enumerate("abcd")]
    cells = [cell(name, place, behaviour) for place, (name, behaviour) in enumerate(zip("abcd", "xyyz", strict=True))]
    finish(store, RUN, releases, cells)
    found = store.query("SELECT first, last, releases FROM safe_ranges WHERE comparable = 'steps' ORDER BY first").rows
    assert found == (("a", "c", 3), ("b", "d", 3))


def test_a_behaviour_that_comes_back_is_one_behaviour_and_two_stretches(store: Store) -> None:
    releases = [release(name, place) for place, name in enumerate("abcd")]
    cells = [
        cell(name, place, shown) for place, (name, shown) in enumerate(zip("abcd", ["x", None, "y", "x"], strict=True))
    ]
    finish(store, RUN, releases, cells)
    assert store.query("SELECT behaviour, releases, first, last, members FROM behaviours ORDER BY ALL").rows == (
        ("x", 2, "a", "d", ["a", "d"]), ("y", 1, "c", "c", ["c"]),
    )  # fmt: skip
    stretches = store.query("SELECT number, behaviour, first, last, releases FROM stretches ORDER BY number").rows
    assert stretches == ((1, "x", "a", "a", 1), (2, "y", "c", "c", 1), (3, "x", "d", "d", 1))


def test_a_filter_on_neighbours_takes_all_other_pairs_out_of_the_plan(tmp_path: Path) -> None:
    """The other pairs are joined by ``position <``: a plan without that condition cannot visit them."""
    path = tmp_path / "audit.duckdb"
    synthetic_store.make(path, Size(releases=40, environments=2, behaviours=5, series=2))
    with Store(path) as store:
        define_pairs_as_before(store)
        assert_pairs_are_as_before(store)
        for view in ("neighbours", "pairs WHERE adjacent", "changes WHERE adjacent", "explanations WHERE adjacent"):
            assert other_pairs(store, view) == 0, view
        assert other_pairs(store, "pairs") > 0


def other_pairs(store: Store, view: str) -> int:
    """How many joins of a plan compare positions within a series."""
    (plan,) = (row[1] for row in store.query(f"EXPLAIN (FORMAT json) SELECT count(*) FROM {view}").rows)
    return len(re.findall(r"CASE\s+WHEN \(\(?older_series (?:!=|<>) newer_series", plan))
