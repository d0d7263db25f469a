"""What makes ``run --check`` end with 1: all that changed or broke, but for what somebody accepted."""

from __future__ import annotations

import datetime
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.verdicts import Verdict
from audit.asked import matrix_file
from audit.dumps.counts import DumpCounts
from audit.nights import standings
from audit.nights.standings import Question
from audit.nights.waivers import Waiver, Waivers
from audit.pipeline import AuditResult
from audit.reports import summary
from audit.reports.summaries.value import AuditSummary
from audit.storage.store import Store
from audit.verbs import running
from audit.verbs.running import is_alarming
from tests.conftest import SPRING, write_matrix
from tests.conftest import release as row
from tests.stored_runs import RUN, audited, cell, exercised, finish, judgement, release

DAY = datetime.date(2026, 1, 1)


def accepted(environment: str, older: str, newer: str) -> Waiver:
    return Waiver(environment=environment, older=older, newer=newer, reason="r", who="w", until=DAY)


@pytest.fixture
def drifted(store: Store) -> Store:
    """On one environment three releases differ by rounding from the next, and the ends by more; another one jumps."""
    releases = [release(str(place), place) for place in range(3)]
    for one, other, verdict in [("a", "b", "rounding"), ("b", "c", "rounding"), ("a", "c", "changed"),
                                ("x", "y", "changed")]:  # fmt: skip
        store.comparisons.put_comparison(one, other, RUN.reads, judgement(Verdict(verdict)), [])
    shown = {"Drifts": "abc", "Jumps": "xyy"}
    cells = [
        cell(str(place), place, behaviour, environment=title)
        for title, row in shown.items()
        for place, behaviour in enumerate(row)
    ]
    finish(store, RUN, releases, cells, environments=[exercised(title, baseline="0") for title in shown])
    return store


def is_alarm(store: Store, *waivers: Waiver) -> bool:
    question = Question(run_id=RUN.run_id, outputs=("state",), reported=(), waivers=Waivers(waivers=waivers, day=DAY))
    met = standings.meet(store, question)
    told = AuditSummary(matrix="m", exit_code=0, changes=met.changes)
    return is_alarming(summary.summarise(store, RUN.run_id), told)


def test_a_waiver_that_an_earlier_run_had_use_for_is_used(store: Store, tmp_path: Path) -> None:
    store.comparisons.put_comparison("x", "y", RUN.reads, judgement(Verdict.CHANGED), [])
    earlier = replace(RUN, run_id="earlier", started=RUN.started - datetime.timedelta(days=1))
    audited(store, {"0": "x", "1": "y"}, earlier, [exercised(baseline="0")])
    audited(store, {"0": "x"}, RUN, [exercised(baseline="0")])
    file = matrix_file.read(write_matrix(tmp_path / "m.yaml", [row("1.0")], [SPRING]))
    result = AuditResult(run_id="run", counts=DumpCounts(), failures=(), blind=(), empty=False)
    waivers = Waivers(waivers=(accepted("E", "0", "1"), accepted("E", "0", "9")), day=DAY)
    (unused,) = running.met_by(file, result, waivers, store).notes
    assert "0 → 9 is not used" in unused


JUMP, DRIFT = accepted("Jumps", "0", "1"), accepted("Drifts", "0", "2")


@pytest.mark.parametrize(("waivers", "alarm"), [((), True), ((JUMP,), True), ((DRIFT,), True), ((JUMP, DRIFT), False)])
def test_a_waiver_excuses_what_it_names_alone(drifted: Store, waivers: tuple[Waiver, ...], alarm: bool) -> None:
    assert is_alarm(drifted, *waivers) == alarm
