"""What goes wrong stays where it is: packages that hang, crash, shout or fork; an audit that is hit from outside."""

from __future__ import annotations

import os
import shutil
import signal
from dataclasses import dataclass
from pathlib import Path

import pytest

from audit.asked.environment_rows import EnvironmentRow
from audit.asked.releases import ReleaseRequest
from audit.failures import Failure
from audit.installing import locks, venvs
from audit.installing.locks import Release
from audit.installing.venvs import Recipe
from audit.planning import plan
from audit.planning.plan import Cell
from tests.conftest import (
    CHAOS,
    PINS,
    SPRING,
    Finished,
    Program,
    Started,
    behaviours,
    descendants,
    dumpers,
    pairs,
    release,
    rows,
    running,
    wait_until,
    write_matrix,
)

pytestmark = pytest.mark.core
BASELINE = "tinysim-1.0"
FAULTY = ["1.0", "1.8", "1.9", "1.10", "1.11", "1.13", "1.14", "1.15", "1.16"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Faulty:
    """An audit of releases that misbehave."""

    database: Path
    finished: Finished
    left_behind: list[int]

    def verdict(self, environment: str, version: str) -> str:
        return str(self._pair("verdict", environment, version))

    def reason(self, environment: str, version: str) -> str:
        return str(self._pair("reason", environment, version))

    def separation(self, environment: str, version: str) -> float:
        return float(str(self._pair("first_step_separation", environment, version)))

    def _pair(self, column: str, environment: str, version: str) -> object:
        sql = f"SELECT {column} FROM pairs WHERE environment = ? AND newer = ?"
        ((value,),) = rows(self.database, sql, environment, f"tinysim-{version}")
        return value

    def failure(self, version: str) -> tuple[str, str, str, int | None]:
        """Status, reason, last words, signal; there is one failure and it is Spring's."""
        sql = "SELECT status, reason, stderr_tail, signal FROM failures WHERE subject = ?"
        ((status, reason, tail, number),) = rows(self.database, sql, f"tinysim-{version}/Spring")
        return status, reason, tail, number


@pytest.fixture(scope="module")
def faulty(module_audit: Program, shared_cache: Path) -> Faulty:
    folder = module_audit.folder
    matrix = write_matrix(
        folder / "faulty.yaml", list(map(release, FAULTY)), [SPRING, CHAOS], pairs={"against": BASELINE}
    )
    database = folder / "faulty.duckdb"
    finished = module_audit("run", matrix, "--db", database, "--timeout", "5")
    return Faulty(database=database, finished=finished, left_behind=dumpers(shared_cache))


def test_faults_do_not_stop_the_others(faulty: Faulty) -> None:
    assert faulty.finished.code == 0, faulty.finished.stderr
    failed = {subject for (subject,) in rows(faulty.database, "SELECT subject FROM failures")}
    assert failed == {"tinysim-1.8/Spring", "tinysim-1.9/Spring", "tinysim-1.16/Spring"}
    assert rows(faulty.database, "SELECT count(*) FROM dumps WHERE status = 'ok'") == [(2 * len(FAULTY) - 3,)]
    for version in FAULTY[1:]:
        assert faulty.verdict("Chaos", version) == "identical", version


def test_a_hang_is_a_timeout(faulty: Faulty) -> None:
    status, reason, _, number = faulty.failure("1.8")
    assert (status, number) == ("timeout", None)
    assert "no answer within 5 s" in reason
    assert faulty.verdict("Spring", "1.8") == "unavailable"


def test_a_crash_is_told_with_its_signal(faulty: Faulty) -> None:
    status, reason, _, number = faulty.failure("1.9")
    assert (status, number) == ("crashed", signal.SIGSEGV)
    assert "SIGSEGV" in reason
    assert "SIGSEGV" in faulty.reason("Spring", "1.9")


def test_an_exception_is_told_with_its_text(faulty: Faulty) -> None:
    status, reason, tail, _ = faulty.failure("1.16")
    assert (status, reason) == ("raised", "RuntimeError: the spring snapped")
    assert "Traceback" in tail
    assert "Traceback" not in faulty.finished.stdout + faulty.finished.stderr


def test_garbage_on_the_output_damages_nothing(faulty: Faulty) -> None:
    assert faulty.verdict("Spring", "1.10") == "identical"
    assert "garbage" not in faulty.finished.stdout + faulty.finished.stderr
    assert "\x1b" not in faulty.finished.stdout + faulty.finished.stderr


@pytest.mark.parametrize("version", ["1.11", "1.14"])
def test_forks_damage_nothing(faulty: Faulty, version: str) -> None:
    assert faulty.verdict("Spring", version) == "identical"


def test_nothing_is_left_behind(faulty: Faulty) -> None:
    assert faulty.left_behind == []


def test_not_a_number_is_a_change(faulty: Faulty) -> None:
    assert faulty.verdict("Spring", "1.13") == "changed"
    assert faulty.separation("Spring", "1.13") == float("inf")
    assert "observation" in faulty.reason("Spring", "1.13")


def test_a_state_that_reads_back_differently_is_incomparable(faulty: Faulty) -> None:
    assert faulty.verdict("Spring", "1.15") == "incomparable"
    assert "read back differently" in faulty.reason("Spring", "1.15")
    sql = "SELECT count(*) FROM separations WHERE environment = 'Spring' AND newer = 'tinysim-1.15'"
    assert rows(faulty.database, sql) == [(0,)]


# An audit that is hit from outside


def _survivors(family: dict[int, str]) -> list[str]:
    return [name for pid, name in family.items() if running(pid)]


def _interrupt(harness: Started) -> Finished:
    """Send what Ctrl-C sends: the signal goes to everything in the terminal's foreground."""
    family = descendants(harness.process.pid)
    os.killpg(harness.process.pid, signal.SIGINT)
    finished = harness.finish()
    wait_until(lambda: not _survivors(family), "everything ends with the harness")
    return finished


def test_interrupted_and_continued(release_audit: Program, shared_cache: Path) -> None:
    """A hanging release holds the audit where the test wants it. Meanwhile nobody else gets at the database."""
    folder = release_audit.folder
    matrix = write_matrix(folder / "held.yaml", [release("1.0"), release("1.8")], [CHAOS, SPRING])
    database = folder / "held.duckdb"
    with release_audit.started("run", matrix, "--db", database) as harness:
        harness.wait_for("dumping 5/6")  # of four cells and two controls, all but the hanging one
        program = harness.program
        second = release_audit("run", matrix, "--db", database)
        finished = _interrupt(harness)
    assert second.code == 3
    assert f"in use by process {program}" in second.sentence
    assert finished.code == 130
    assert "interrupted" in finished.sentence
    assert dumpers(shared_cache) == []
    continued = release_audit("run", matrix, "--db", database, "--timeout", "1.5")
    assert continued.code == 0, continued.stderr
    assert "0 dumped now, 3 known from before" in continued.stdout
    assert rows(database, "SELECT subject, status FROM failures") == [("tinysim-1.8/Spring", "timeout")]


def test_interrupted_while_asking_the_index(release_audit: Program) -> None:
    row = {"package": "tinysim", "versions": ">=1.0,<1.17"}
    matrix = write_matrix(release_audit.folder / "many.yaml", [row], [SPRING], **{"exclude-newer": None})
    with release_audit.started("run", matrix, RELEASE_AUDIT_CACHE=str(release_audit.folder / "empty")) as harness:
        wait_until(lambda: "uv" in descendants(harness.process.pid).values(), "uv is called")
        finished = _interrupt(harness)
    assert finished.code == 130
    assert "interrupted" in finished.sentence


def test_a_lost_worker_is_replaced(release_audit: Program, shared_cache: Path) -> None:
    folder = release_audit.folder
    few = {"bank": {"states": 0}, "stimulus": {"seed": 7, "trajectories": 2, "steps": 60, "actions": "uniform"}}
    matrix = write_matrix(folder / "lost.yaml", [release("1.0"), release("1.17")], [CHAOS, SPRING], **few)
    database = folder / "lost.duckdb"
    with release_audit.started("run", matrix, "--db", database) as harness:
        harness.wait_for("dumping 5/6")  # of four cells and two controls, all but the slow one
        workers = _workers_with_a_dumper(harness, shared_cache)
        assert len(workers) == 1
        os.kill(workers[0], signal.SIGKILL)
        finished = harness.finish()
    assert finished.code == 0, finished.stderr
    assert "4 dumped now" in finished.stdout
    assert rows(database, "SELECT verdict FROM pairs") == [("identical",), ("identical",)]
    assert rows(database, "SELECT count(*) FROM failures") == [(0,)]


def _workers_with_a_dumper(harness: Started, cache: Path) -> list[int]:
    busy = set(dumpers(cache))
    family = descendants(harness.process.pid)
    return [pid for pid, name in family.items() if name.startswith("ray::_Worker") and busy & set(descendants(pid))]


def test_two_audits_share_a_cache(release_audit: Program) -> None:
    """Both build the same virtualenvs at the same time."""
    folder = release_audit.folder
    matrix = write_matrix(folder / "shared.yaml", [release("1.0"), release("1.2")], [SPRING])
    cache = str(folder / "cache")
    with (
        release_audit.started("run", matrix, "--db", "one.duckdb", RELEASE_AUDIT_CACHE=cache) as one,
        release_audit.started("run", matrix, "--db", "other.duckdb", RELEASE_AUDIT_CACHE=cache) as other,
    ):
        assert (one.finish().code, other.finish().code) == (0, 0), one.finish().stderr + other.finish().stderr
    assert pairs(folder / "one.duckdb", "shared") == pairs(folder / "other.duckdb", "shared")
    assert behaviours(folder / "one.duckdb", "shared") == behaviours(folder / "other.duckdb", "shared")
    assert rows(folder / "one.duckdb", "SELECT verdict FROM pairs") == [("rounding",)]


# What an audit is built on is away


def test_an_index_that_is_away(release_audit: Program) -> None:
    matrix = write_matrix(release_audit.folder / "away.yaml", [release("1.0")], [SPRING])
    folder = release_audit.folder
    finished = release_audit(
        "run",
        matrix,
        UV_DEFAULT_INDEX="http://127.0.0.1:9/simple",
        UV_HTTP_RETRIES="0",
        UV_CACHE_DIR=str(folder / "uv"),
        RELEASE_AUDIT_CACHE=str(folder / "cache"),
    )
    assert finished.code == 3
    assert "the package index cannot be reached" in finished.sentence
    assert "127.0.0.1:9" in finished.sentence


def test_a_ray_cluster_that_is_away(release_audit: Program) -> None:
    matrix = write_matrix(release_audit.folder / "cluster.yaml", [release("1.0")], [SPRING])
    with release_audit.started("run", matrix, "--address", "127.0.0.1:1") as harness:
        finished = harness.finish()
    assert finished.code == 3
    assert "Ray cluster at 127.0.0.1:1 could not be used" in finished.sentence


# Virtualenvs that are no good


@pytest.fixture
def resolved(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Release:
    """A release, and a cache of its own."""
    monkeypatch.setenv("UV_FIND_LINKS", environment["UV_FIND_LINKS"])
    monkeypatch.setenv("RELEASE_AUDIT_CACHE", str(tmp_path))
    request = ReleaseRequest(
        id="one", requires=("tinysim==1.0",), pins=tuple(PINS), python="3.11", exclude_newer=None, series=""
    )
    found = locks.resolve(request)
    assert not isinstance(found, Failure)
    return found


@pytest.fixture
def recipe(resolved: Release) -> Recipe:
    """Its virtualenv, which has been built."""
    recipe = Recipe.of(resolved)
    assert venvs.ensure(recipe, "one") is None
    assert venvs.ready(recipe)
    return recipe


def _rebuilt(recipe: Recipe) -> bool:
    """Whether it is taken for no good, built anew, and whole afterwards."""
    mark = recipe.folder / "mark"
    mark.touch()
    suspected = not venvs.ready(recipe)
    assert venvs.ensure(recipe, "one") is None
    package = recipe.folder / "lib/python3.11/site-packages/tinysim/__init__.py"
    return suspected and not mark.exists() and venvs.ready(recipe) and package.is_file()


def test_a_good_virtualenv_is_kept(recipe: Recipe) -> None:
    assert not _rebuilt(recipe)


def test_a_half_built_virtualenv_is_built_anew(recipe: Recipe) -> None:
    (recipe.folder / "recipe.json").unlink()
    shutil.rmtree(recipe.folder / "lib/python3.11/site-packages/tinysim")
    assert _rebuilt(recipe)


def test_a_virtualenv_whose_python_does_not_start_is_built_anew(recipe: Recipe) -> None:
    recipe.executable.unlink()
    recipe.executable.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    recipe.executable.chmod(0o755)
    assert _rebuilt(recipe)


@pytest.mark.parametrize("kept", [0, None])
def test_a_virtualenv_that_lost_what_a_file_held_is_built_anew(recipe: Recipe, kept: int | None) -> None:
    """As a machine that lost its power leaves it, or somebody who cleans up."""
    package = recipe.folder / "lib/python3.11/site-packages/tinysim/__init__.py"
    content = package.read_bytes()
    package.unlink()  # uv's cache may have the same file
    if kept is not None:
        package.write_bytes(content[:kept])
    assert _rebuilt(recipe)
    assert package.read_bytes() == content


def test_a_virtualenv_whose_python_is_gone_is_built_anew_by_who_needs_it(resolved: Release, recipe: Recipe) -> None:
    """As on a node of a cluster where a Python was removed since: nobody looks before a dumper is started."""
    recipe.executable.unlink()
    recipe.executable.symlink_to("/nowhere/python")
    cell = Cell(release=resolved, environment=EnvironmentRow.model_validate(SPRING), position=0)
    (outcome,) = plan.job(cell, [cell.asked("probe")], 60.0).run()
    assert outcome.result.status == "ok", outcome.result
    assert venvs.ready(recipe)


def test_a_virtualenv_of_another_recipe_is_built_anew(recipe: Recipe) -> None:
    saved = recipe.folder / "recipe.json"
    saved.write_text(saved.read_text(encoding="utf-8").replace("tinysim==1.0", "tinysim==1.3"), encoding="utf-8")
    assert _rebuilt(recipe)
