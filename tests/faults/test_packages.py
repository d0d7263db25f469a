"""Packages that misbehave: each costs its own cell at most, and the reason says what it did."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import CHAOS, SPRING, Finished, Program, dumpers, pairs, release, rows, write_matrix
from tests.faults import misbehaving
from tests.faults.conftest import SMALL, STEADY, Result, steady
from tests.faults.misbehaving import MISBEHAVIOURS, Misbehaviour

TIMEOUT = "4"


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """One audit of all of them beside the steady ones, and the same again."""

    database: Path
    first: Finished
    again: Finished
    result: list[tuple[Any, ...]]
    result_again: list[tuple[Any, ...]]
    left_behind: list[int]

    def failure(self, subject: str) -> tuple[str, str] | None:
        found = rows(self.database, "SELECT status, reason FROM failures WHERE subject = ?", subject)
        return found[0] if found else None

    def verdict(self, environment: str, newer: str) -> str:
        sql = "SELECT verdict FROM pairs WHERE environment = ? AND older = 'tinysim-1.0' AND newer = ?"
        ((verdict,),) = rows(self.database, sql, environment, newer)
        return str(verdict)


@pytest.fixture(scope="module")
def day(module_audit: Program, faulty_wheels: Path, shared_cache: Path) -> Day:
    versions = [*STEADY, *map(misbehaving.version, MISBEHAVIOURS)]
    matrix = write_matrix(module_audit.folder / "steady.yaml", list(map(release, versions)), [SPRING, CHAOS], **SMALL)
    database = module_audit.folder / "day.duckdb"
    asked = ("run", matrix, "--db", database, "--timeout", TIMEOUT, "--no-explain")
    first = module_audit(*asked)
    result, left_behind = pairs(database, "steady"), dumpers(shared_cache)
    again = module_audit(*asked)
    return Day(
        database=database, first=first, again=again, result=result, result_again=pairs(database, "steady"),
        left_behind=left_behind,
    )  # fmt: skip


def test_the_day_ends_well(day: Day) -> None:
    assert (day.first.code, day.again.code) == (0, 0), day.first.stdout + day.first.stderr
    assert "Traceback" not in day.first.stdout + day.first.stderr
    assert "\x1b" not in day.first.stdout + day.first.stderr


def test_steady_releases_are_unharmed(day: Day, undisturbed: Result) -> None:
    assert steady(day.result) == undisturbed.pairs
    assert steady(day.result_again) == undisturbed.pairs


def test_nobody_is_left_behind(day: Day) -> None:
    assert day.left_behind == []


@pytest.mark.parametrize("each", MISBEHAVIOURS, ids=lambda each: each.name)
def test_a_package_that(day: Day, each: Misbehaviour) -> None:
    name = f"tinysim-{misbehaving.version(each)}"
    failure = day.failure(f"{name}/Spring")
    if each.status:
        assert failure is not None, day.verdict("Spring", name)
        assert failure[0] == each.status, failure
        assert each.reason in failure[1], failure
        assert day.verdict("Spring", name) == "unavailable"
    else:
        assert failure is None
        assert day.verdict("Spring", name) == each.verdict
    assert day.verdict("Chaos", name) == ("identical" if each.spares_others else "unavailable")


def test_a_second_run_says_the_same(day: Day) -> None:
    assert day.result_again == day.result
