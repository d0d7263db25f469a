"""A real pair of releases, planned, audited, planned again, and asked for in SQL."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import signal
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import psutil
import pytest

from audit import __version__
from tests.conftest import Finished, Program, Started, rows, wait_until, write_matrix

RELEASES = [
    {"id": "gymnasium-0.29.1", "requires": ["gymnasium==0.29.1"], "pins": ["numpy<2"]},
    {"id": "gymnasium-1.3.0", "requires": ["gymnasium==1.3.0"], "pins": ["numpy<2.4"]},
]
CARTPOLE = {"id": "CartPole-v1", "start": {"low": [-0.05] * 4, "high": [0.05] * 4}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A real pair of gymnasium releases, planned, audited, planned again."""

    program: Program
    database: Path
    before: Finished
    run: Finished
    after: Finished

    def query(self, *arguments: str | Path) -> Finished:
        return self.program("query", *arguments, "--db", self.database)


@pytest.fixture(scope="module")
def planned(module_audit: Program) -> Planned:
    # Between the two the bounds of the observation space went from the largest float to infinity: not read here.
    outputs = ["state", "observation", "reward", "terminated", "truncated", "reset"]
    matrix = write_matrix(module_audit.folder / "real.yaml", RELEASES, [CARTPOLE], outputs=outputs)
    database = module_audit.folder / "results" / "real.duckdb"
    before = module_audit("plan", matrix, "--db", database)
    assert not database.parent.exists(), "a plan leaves nothing behind"
    run = module_audit("run", matrix, "--db", database)
    after = module_audit("plan", matrix, "--db", database)
    return Planned(program=module_audit, database=database, before=before, run=run, after=after)


# Plan and run


def test_plan_before_a_run(planned: Planned) -> None:
    assert planned.before.code == 0, planned.before.stderr
    assert "2 releases, 0 cells dumped, 2 to dump" in planned.before.stdout
    assert planned.before.stdout.count("to build") == 2


def test_real_releases_are_audited(planned: Planned) -> None:
    assert planned.run.code == 0, planned.run.stderr
    found = rows(planned.database, "SELECT matrix, environment, older, newer, adjacent, verdict FROM pairs")
    assert found == [("real", "CartPole-v1", "gymnasium-0.29.1", "gymnasium-1.3.0", True, "identical")]


def test_plan_after_a_run(planned: Planned) -> None:
    assert planned.after.code == 0, planned.after.stderr
    assert "2 releases, 2 cells dumped, 0 to dump" in planned.after.stdout
    assert planned.after.stdout.count("built") == 2
    assert rows(planned.database, "SELECT count(*) FROM internal.runs") == [(1,)]


def test_the_run_is_recorded(planned: Planned) -> None:
    columns = (
        "matrix_text, harness_version, python_version, uv_version, host, cpu_model, exit_code, finished >= started"
    )
    ((text, version, *others),) = rows(planned.database, f"SELECT {columns} FROM internal.runs")
    assert json.loads(text)["name"] == "real"
    assert version == __version__
    assert all(others[:-2])
    assert others[-2:] == [0, True]


def test_what_the_summary_proposes_can_be_run(planned: Planned) -> None:
    proposed = planned.run.stdout.partition("\nNext:\n")[2].partition("\n\n")[0].splitlines()
    verbs = [re.findall(" -m audit ([a-z]+)", command) for command in proposed]
    assert verbs == [["report"], ["query"], ["query"]], "nothing changed: nothing to explain"
    for command in proposed:
        folder, environment = planned.program.folder, planned.program.environment
        subprocess.run(command.strip(), shell=True, cwd=folder, env=environment, check=True)


# Query


def test_a_query_is_interrupted_at_once(planned: Planned) -> None:
    """Whatever number of threads DuckDB uses; the guard would kill it after a quarter of a minute."""
    endless = "SELECT sum(a.range * b.range % 7) FROM range(1000000000) a, range(100000) b"
    with planned.program.started("query", "--db", planned.database, endless) as harness:
        wait_until(lambda: _computed(harness) > 3, "the query is at work")
        os.killpg(harness.process.pid, signal.SIGINT)
        finished = harness.finish()
    assert finished.code == 130
    assert finished.sentence == "release-audit: interrupted; the query has no answer"


def _computed(harness: Started) -> float:
    """Seconds of its processor time."""
    with suppress(psutil.NoSuchProcess, ValueError):  # the guard has not started it yet
        return float(sum(psutil.Process(harness.program).cpu_times()[:2]))
    return 0.0


def test_query_as_table(planned: Planned) -> None:
    finished = planned.query("SELECT older, newer, verdict FROM pairs")
    assert finished.code == 0
    lines = [line.split() for line in finished.stdout.splitlines()]
    assert lines == [["older", "newer", "verdict"], ["gymnasium-0.29.1", "gymnasium-1.3.0", "identical"]]


def test_query_as_csv(planned: Planned) -> None:
    finished = planned.query("SELECT release, 'a,\"b\"' AS odd FROM releases ORDER BY position", "--format", "csv")
    assert list(csv.reader(io.StringIO(finished.stdout))) == [
        ["release", "odd"],
        ["gymnasium-0.29.1", 'a,"b"'],
        ["gymnasium-1.3.0", 'a,"b"'],
    ]


def test_query_as_json(planned: Planned) -> None:
    finished = planned.query("SELECT verdict, horizon_separation FROM pairs", "--format", "json")
    assert json.loads(finished.stdout) == [{"verdict": "identical", "horizon_separation": 0.0}]


def test_json_without_numbers_that_json_lacks(planned: Planned) -> None:
    def refuse(constant: str) -> Any:
        raise AssertionError(f"{constant} is not JSON")

    finished = planned.query("SELECT 'inf'::DOUBLE AS far, 'nan'::DOUBLE AS odd", "--format", "json")
    assert finished.code == 0
    json.loads(finished.stdout, parse_constant=refuse)


def test_query_to_files(planned: Planned) -> None:
    for form in ("csv", "json", "parquet"):
        path = planned.program.folder / f"pairs.{form}"
        finished = planned.query("SELECT * FROM pairs", "--format", form, "--output", path)
        assert finished.code == 0, finished.stderr
        with duckdb.connect() as connection:
            assert connection.execute(f"SELECT verdict FROM '{path}'").fetchall() == [("identical",)]


def test_a_table_in_a_file_is_the_table(planned: Planned) -> None:
    sql = "SELECT older, verdict FROM pairs"
    path = planned.program.folder / "new" / "folder" / "pairs.txt"
    assert planned.query(sql, "--output", path).code == 0
    assert path.read_text(encoding="utf-8") == planned.query(sql).stdout == planned.query(sql, "--output", "-").stdout
    assert path.read_text(encoding="utf-8").split() == ["older", "verdict", "gymnasium-0.29.1", "identical"]


@pytest.mark.parametrize(
    "command",
    [
        ("query", "SELECT 1", "--output"),
        ("query", "SELECT 1", "--format", "csv", "--output"),
        ("query", "SELECT 1", "--format", "parquet", "--output"),
        ("report", "--output"),
        ("snapshot", "--output"),
        ("figure", "smoke.yaml", "--output"),
        ("explain", "E", "one", "two", "--json"),
        ("run", "smoke.yaml", "--json"),
        ("nightly", "smoke.yaml", "--junit"),
        ("diff", "one", "two", "--markdown"),
    ],
)
def test_a_file_that_cannot_be_written_is_a_mistake_in_the_call(planned: Planned, command: tuple[str, ...]) -> None:
    in_a_file = planned.database / "out" / "file.svg"
    finished = planned.program(*command, in_a_file, "--db", planned.database)
    assert (finished.code, finished.stdout) == (2, "")
    assert f"{in_a_file} cannot be written: {planned.database} is not a folder" in finished.sentence


@pytest.mark.parametrize("form", ["csv", "json", "parquet"])
def test_missing_folders_are_made(planned: Planned, form: str) -> None:
    path = planned.program.folder / f"made for {form}" / "below" / "file"
    finished = planned.query("SELECT 1", "--format", form, "--output", path)
    assert finished.code == 0, finished.stderr
    assert path.is_file()


def test_parquet_needs_a_file(planned: Planned) -> None:
    finished = planned.query("SELECT 1", "--format", "parquet")
    assert finished.code == 2
    assert "--output" in finished.sentence


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM internal.runs",
        "DROP VIEW pairs",
        "CREATE TABLE mine (number INTEGER)",
        "SELECT * FROM nowhere",
        "SELEC",
    ],
)
def test_query_neither_writes_nor_crashes(planned: Planned, sql: str) -> None:
    content = planned.database.read_bytes()
    finished = planned.query(sql)
    assert finished.code == 2
    assert "the query failed" in finished.sentence
    assert planned.database.read_bytes() == content


def test_query_of_a_missing_database(release_audit: Program) -> None:
    finished = release_audit("query", "SELECT 1", "--db", "missing.duckdb")
    assert finished.code == 2
    assert "there is no database at missing.duckdb" in finished.sentence
    assert list(release_audit.folder.iterdir()) == []
