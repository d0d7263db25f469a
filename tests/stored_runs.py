"""Runs made up for tests of the store: releases, cells and behaviours without a simulator."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from analysis.verdicts import Judgement, Verdict
from audit.failures import Status
from audit.storage.records import PlantedFault, Repeated, RunCell, RunEnvironment, RunRecord, RunRelease
from audit.storage.store import Store

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
        "environments",
        "certificates",
        "sensitivity",
        "screenings",
        "attributions",
        "reproductions",
        "explanations",
        "constant_differences",
        "stage_differences",
        "blames",
        "releases",
        "release_packages",
        "dumps",
        "neighbours",
        "stretches",
        "behaviours",
        "safe_ranges",
        "arrays",
        "failures",
        "nights",
        "night_changes",
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
        status=Status.READY,
        reason="",
    )


def cell(name: str, position: int, behaviour: str | None, environment: str = "E", status: str = "") -> RunCell:
    return RunCell(
        environment=environment,
        release=name,
        position=position,
        cell_key=f"{name}/{environment}",
        status=Status(status or ("ok" if behaviour else "unavailable")),
        reason="" if behaviour else "has none",
        behaviour=behaviour,
        reused=False,
    )


def judgement(verdict: Verdict = Verdict.CHANGED, first: float | None = 0.5) -> Judgement:
    changed = verdict is Verdict.CHANGED
    return Judgement(
        verdict=verdict,
        paper_verdict=Verdict.ROUNDING,
        reason=f"{verdict} it is",
        first_step=first,
        first_step_ulps=None,
        first_step_ratio=2e6 if changed else 0.5,
        horizon=1.0,
        states_forced=4,
        states_beyond=2 if changed else 0,
        outputs_changed="state, reward" if changed else "",
        beyond=(1, 3) if changed else (),
    )


def exercised(environment: str = "E", **changes: Any) -> RunEnvironment:
    """An environment whose controls are as they should be, but for the changes."""
    row = RunEnvironment(
        environment=environment,
        baseline="a",
        evidence="forced",
        states=4,
        coverage="4 states; 1 of 2 colliding pairs touched",
        features='{"contact a b": 4, "contact a c": 0}',
        reproduced=Repeated.YES,
        planted=PlantedFault.SEEN,
        constant="gravity",
        planted_ratio=1e7,
        reason="",
    )
    return replace(row, **changes)


def finish(
    store: Store,
    run: RunRecord,
    releases: Sequence[RunRelease],
    cells: Sequence[RunCell],
    environments: Sequence[RunEnvironment] = (),
) -> None:
    store.begin_run(run)
    store.finish_run(run.run_id, 0, releases, cells, environments, [])


def audited(
    store: Store,
    behaviours: Mapping[str, str | None],
    run: RunRecord = RUN,
    environments: Sequence[RunEnvironment] = (),
) -> None:
    """A run of releases in one series on one environment, each with its behaviour or none."""
    names = list(behaviours)
    releases = [release(name, position) for position, name in enumerate(names)]
    cells = [cell(name, position, behaviours[name]) for position, name in enumerate(names)]
    finish(store, run, releases, cells, environments)


def pairs(store: Store, view: str = "pairs", where: str = "true") -> set[tuple[str, str]]:
    rows = store.query(f"SELECT older, newer FROM {view} WHERE {where}").rows
    assert len(set(rows)) == len(rows)
    return {(older, newer) for older, newer in rows}


def count(store: Store, table: str) -> int:
    return int(store.query(f"SELECT count(*) FROM {table}").rows[0][0])
