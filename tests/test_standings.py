"""What a night calls new, known or not audited, on runs made up in a store: false alarms, and changes that hide."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence

import pytest

from analysis.verdicts import Verdict, incomparable
from audit.nights import standings
from audit.nights.standings import Question, RunFindings
from audit.nights.waivers import Waivers
from audit.reports import summary
from audit.reports.summaries.value import AuditSummary
from audit.storage.records import RunCell, RunRelease, Standing
from audit.storage.store import Store
from audit.verbs.running import is_alarming
from tests.stored_runs import RUN, cell, exercised, finish, judgement, release

NOBODY = Waivers(day=datetime.date(2026, 1, 1))


def question(*due: str, nightly: bool = True, packages: Mapping[str, str] | None = None) -> Question:
    return Question(
        run_id=RUN.run_id, outputs=("state",), due=due if nightly else None, reported=(), waivers=NOBODY,
        nightly=nightly, packages=packages or {},
    )  # fmt: skip


def told(met: RunFindings, standing: Standing = Standing.NEW) -> list[tuple[str, str, str]]:
    return [(each.older, each.newer, each.verdict) for each in met.of(standing)]


def audited(store: Store, releases: Sequence[RunRelease], shown: Sequence[str | None], **statuses: str) -> None:
    """A run on one environment; releases that show nothing have a status."""
    cells: list[RunCell] = [
        cell(each.release, each.position, behaviour, status=statuses.get(each.release, ""))
        for each, behaviour in zip(releases, shown, strict=True)
    ]
    finish(store, RUN, releases, cells, [exercised(baseline=releases[0].release)])


def changed(store: Store, *pairs: tuple[str, str]) -> None:
    for one, other in pairs:
        store.comparisons.put_comparison(one, other, RUN.reads, judgement(Verdict.CHANGED), [])


def one_after_the_other(*names: str) -> list[RunRelease]:
    return [release(name, place) for place, name in enumerate(names)]


WORSE = [("raised", "broken"), ("incomparable", "incomparable"), ("nondeterministic", "nondeterministic")]


@pytest.mark.parametrize(("status", "verdict"), WORSE)
def test_a_release_that_does_worse_than_change_is_told_once(store: Store, status: str, verdict: str) -> None:
    audited(store, one_after_the_other("a", "b", "c"), ["x", None, None], b=status, c=status)
    met = standings.meet(store, question("b"))
    assert told(met) == [("a", "b", verdict)]
    assert met.not_audited == ()
    assert told(standings.meet(store, question("c"))) == [], "it is as wrong as the one before"
    assert told(standings.meet(store, question("c")), Standing.KNOWN) == [("a", "b", verdict), ("a", "c", verdict)]


def test_another_fault_than_that_of_the_release_before_is_new(store: Store) -> None:
    audited(store, one_after_the_other("a", "b", "c"), ["x", None, None], b="incomparable", c="crashed")
    assert told(standings.meet(store, question("c"))) == [("a", "c", "broken")]


def test_a_release_that_is_mended_is_not_alarming(store: Store) -> None:
    audited(store, one_after_the_other("a", "b", "c"), ["x", None, "x"], b="raised")
    assert told(standings.meet(store, question("c"))) == []


def test_nothing_is_said_across_a_release_that_the_machine_failed_at(store: Store) -> None:
    """What changed with it is known, and would be told anew of the next."""
    changed(store, ("x", "y"))
    audited(store, one_after_the_other("a", "b", "c"), ["x", None, "y"], b="no-python")
    met = standings.meet(store, question("c"))
    assert told(met) + told(met, Standing.KNOWN) == []


def test_states_that_read_back_otherwise_are_told(store: Store) -> None:
    store.comparisons.put_comparison("x", "y", RUN.reads, incomparable("they read back differently"), [])
    audited(store, one_after_the_other("a", "b", "c"), ["x", "y", "y"])
    assert told(standings.meet(store, question("b", "c"))) == [("a", "b", "incomparable")]


@pytest.mark.parametrize("status", ["incomparable", "nondeterministic"])
def test_a_run_that_is_checked_ends_with_one_for_them(store: Store, status: str) -> None:
    audited(store, one_after_the_other("a", "b"), ["x", None], b=status)
    met = standings.meet(store, question(nightly=False))
    assert told(met) == [("a", "b", status)]
    assert is_alarming(summary.summarise(store, RUN.run_id), AuditSummary(matrix="m", exit_code=0, changes=met.changes))


@pytest.mark.parametrize("status", ["unavailable", "nondeterministic"])
def test_what_no_older_release_could_do_is_not_audited(store: Store, status: str) -> None:
    audited(store, one_after_the_other("a", "b"), [None, None], a=status, b=status)
    met = standings.meet(store, question("b"))
    assert told(met) == []
    assert [(each.subject, each.status) for each in met.not_audited] == [("b/E", status)]


def two_series(store: Store, shown: Sequence[str | None], **statuses: str) -> None:
    """A version in two series, then the next one in both."""
    releases = [
        release(f"{series}-{version}", place, series, f"package=={version}")
        for place, (series, version) in enumerate([("old", "1"), ("old", "2"), ("new", "1"), ("new", "2")])
    ]
    audited(store, releases, shown, **statuses)


def test_two_series_that_differ_do_not_differ_anew_with_every_release(store: Store) -> None:
    changed(store, ("x", "y"))
    two_series(store, ["x", "x", "y", "y"])
    met = standings.meet(store, question("old-2", "new-2"))
    assert told(met) == []
    assert ("old-2", "new-2", "changed") in told(met, Standing.KNOWN)


def test_two_series_that_begin_to_differ_are_told(store: Store) -> None:
    """Though each step is within rounding."""
    for one, other in [("w", "x"), ("w", "y")]:
        store.comparisons.put_comparison(one, other, RUN.reads, judgement(Verdict.ROUNDING), [])
    changed(store, ("x", "y"))
    two_series(store, ["w", "x", "w", "y"])
    assert told(standings.meet(store, question("old-2", "new-2"))) == [("old-2", "new-2", "changed")]


def test_what_stays_broken_in_a_series_is_not_held_against_the_other(store: Store) -> None:
    two_series(store, ["x", "x", None, None], **{"new-1": "raised", "new-2": "raised"})
    assert told(standings.meet(store, question("old-2", "new-2"))) == []


def test_versions_of_two_packages_above_one_release_are_held_against_their_own(store: Store) -> None:
    changed(store, ("x", "y"))
    audited(store, one_after_the_other("base", "dep-2", "dep-3", "sim-2"), ["x", "x", "y", "x"])
    packages = {"dep-2": "dep", "dep-3": "dep", "sim-2": "sim"}
    assert told(standings.meet(store, question("sim-2", packages=packages))) == []
    assert told(standings.meet(store, question("dep-3", packages=packages))) == [("dep-2", "dep-3", "changed")]
    assert told(standings.meet(store, question("sim-2"))) == [("dep-3", "sim-2", "changed")], "so it was"
