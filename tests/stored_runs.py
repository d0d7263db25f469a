"""Runs made up for tests of the store: releases, cells and behaviours without a simulator."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence

from analysis.verdicts import Judgement, Verdict
from audit.records import RunCell, RunRecord, RunRelease
from audit.store import Store

RUN = RunRecord(
    run_id="run",
    matrix="m",
    matrix_text="name: m",
    pairing="all",
    against=None,
    reads="state,reward",
    started=datetime.datetime(2026, 1, 1),
    harness_version="0",
    python_version="3",
    uv_version="0",
    host="h",
    cpu_model="c",
    cpu_flags="f",
    libc="l",
    machine="d",
)
VIEWS = frozenset(
    [
        "pairs",
        "pairs_history",
        "changes",
        "amplified",
        "separations",
        "releases",
        "release_packages",
        "dumps",
        "failures",
    ]
)


def release(name: str, position: int, series: str = "", requires: str = "") -> RunRelease:
    return RunRelease(
        release=name,
        position=position,
        series=series,
        requires=requires or f"package=={name}",
        python="3.11.7",
        lock_digest=None,
        status="ready",
        reason="",
    )


def cell(name: str, position: int, behaviour: str | None, environment: str = "E", status: str = "") -> RunCell:
    return RunCell(
        environment=environment,
        release=name,
        position=position,
        cell_key=f"{name}/{environment}",
        status=status or ("ok" if behaviour else "unavailable"),
        reason="" if behaviour else "has none",
        behaviour=behaviour,
        reused=False,
    )


def judgement(verdict: Verdict = Verdict.CHANGED, first: float | None = 0.5) -> Judgement:
    return Judgement(verdict=verdict, reason=f"{verdict} it is", first_step=first, first_step_ulps=None, horizon=1.0)


def finish(store: Store, run: RunRecord, releases: Sequence[RunRelease], cells: Sequence[RunCell]) -> None:
    store.begin_run(run)
    store.finish_run(run.run_id, 0, releases, cells, [])


def audited(store: Store, behaviours: Mapping[str, str | None], run: RunRecord = RUN) -> None:
    """A run of releases in one series on one environment, each with its behaviour or none."""
    names = list(behaviours)
    releases = [release(name, position) for position, name in enumerate(names)]
    finish(store, run, releases, [cell(name, position, behaviours[name]) for position, name in enumerate(names)])


def pairs(store: Store, view: str = "pairs", where: str = "true") -> set[tuple[str, str]]:
    rows = store.query(f"SELECT older, newer FROM {view} WHERE {where}").rows
    assert len(set(rows)) == len(rows)
    return {(older, newer) for older, newer in rows}


def count(store: Store, table: str) -> int:
    return int(store.query(f"SELECT count(*) FROM {table}").rows[0][0])
