"""Named queries on the store of a real audit: releases of the tiny simulator with planted differences."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest
from click.testing import CliRunner

from analysis.verdicts import Verdict
from audit.errors import UsageError
from audit.storage import named_queries
from audit.storage.records import BlameRecord
from audit.storage.store import Store
from audit.verbs import results_verbs
from tests.conftest import CHAOS, SPRING, Program, release, write_matrix
from tests.stored_runs import RUN, audited, exercised, judgement
from tests.test_neighbours import assert_pairs_are_as_before, define_pairs_as_before

RELEASES = [
    release("1.0"),
    release("1.1"),  # the same code
    release("1.2"),  # Spring: rounding
    release("1.3"),  # Spring: another damping
    release("1.12"),  # Spring as in 1.0; no Chaos
    release("1.7"),  # Chaos: rounding, which it amplifies
    release("1.98"),  # cannot be resolved
    release("1.0", name="other-dependency", dependency="2.0"),  # Spring: another stiffness
]

Answer = list[dict[str, Any]]


@pytest.fixture(scope="module")
def real(module_audit: Program) -> Path:
    """The database of a real audit, run twice so that it has a history."""
    matrix = write_matrix(module_audit.folder / "real.yaml", RELEASES, [SPRING, CHAOS])
    database = module_audit.folder / "real.duckdb"
    for _ in range(2):
        finished = module_audit("run", matrix, "--db", database)
        assert finished.code == 0, finished.stderr
    return database


@pytest.fixture(scope="module")
def opened(real: Path) -> Iterator[Store]:
    with Store(real) as store:
        yield store


def ask(store: Store, name: str, *settings: str) -> Answer:
    query = named_queries.find(name)
    table = store.query(query.sql, query.values(settings))
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows]


def picked(answer: Answer, *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row[column] for column in columns) for row in answer]


def test_neighbours_of_a_real_audit_are_as_before(opened: Store) -> None:
    define_pairs_as_before(opened)
    assert_pairs_are_as_before(opened)
    assert opened.query("SELECT count(*) FROM neighbours").rows[0][0] > len(RELEASES)


def test_safe_upgrades(opened: Store) -> None:
    found = ask(opened, "safe-upgrades", "environment=Spring")
    assert picked(found, "first", "last", "releases", "boundaries", "lacking") == [
        ("tinysim-1.12", "tinysim-1.7", 2, 0, 0),
        ("tinysim-1.0", "tinysim-1.2", 3, 1, 0),
    ]
    strict = ask(opened, "safe-upgrades", "environment=Chaos")
    assert picked(strict, "first", "last", "releases") == [("tinysim-1.0", "tinysim-1.3", 4)]
    (same_physics,) = ask(opened, "safe-upgrades", "environment=Chaos", "comparable=steps")
    assert (same_physics["first"], same_physics["last"]) == ("tinysim-1.0", "other-dependency")
    assert (same_physics["releases"], same_physics["boundaries"], same_physics["lacking"]) == (6, 2, 2)


def test_first_change(opened: Store) -> None:
    assert picked(ask(opened, "first-change"), "environment", "last_before", "first_changed", "changes") == [
        ("Spring", "tinysim-1.2", "tinysim-1.3", 3)
    ]


def test_changes_with_where_they_begin(opened: Store) -> None:
    found = ask(opened, "changes", "environment=Spr*")
    assert picked(found, "older", "newer") == [
        ("tinysim-1.2", "tinysim-1.3"), ("tinysim-1.3", "tinysim-1.12"), ("tinysim-1.7", "other-dependency"),
    ]  # fmt: skip
    assert all(row["first_step_ratio"] > 1000 and row["stage"] and row["constants"] == 1 for row in found)
    assert ask(opened, "changes", "environment=Chaos") == []


def test_largest_changes_by_package(opened: Store) -> None:
    found = ask(opened, "largest-changes")
    assert {row["package"] for row in found} == {"tinysim", "tinydep"}
    (dependency,) = ask(opened, "largest-changes", "package=tinydep")
    assert dependency["newer"] == "other-dependency"
    assert (dependency["older_version"], dependency["newer_version"]) == ("1.0", "2.0")


def test_constants_behind_changes(opened: Store) -> None:
    found = {row["field"]: row for row in ask(opened, "constants")}
    assert set(found) == {"attribute.damping", "attribute.stiffness"}
    assert found["attribute.damping"]["boundaries"] == 2
    assert found["attribute.damping"]["example"].startswith("0.3")
    assert found["attribute.stiffness"]["newer"] == "other-dependency"


def test_same_behaviour(opened: Store) -> None:
    found = ask(opened, "same-behaviour", "environment=Spring")
    returned = {row["first"]: (row["releases"], row["last"], row["stretches"]) for row in found}
    assert returned["tinysim-1.0"] == (4, "tinysim-1.7", 2)
    assert sum(row["releases"] for row in found) == len(RELEASES) - 1


def test_failed(opened: Store) -> None:
    found = ask(opened, "failed")
    assert ("tinysim-1.98", "unresolved") in picked(found, "subject", "status")
    assert ("tinysim-1.12/Chaos", "unavailable") in picked(found, "subject", "status")
    assert picked(ask(opened, "failed", "status=unres*"), "subject", "night") == [("tinysim-1.98", None)]
    assert all(row["reason"] for row in found)


def test_slowest_cells(opened: Store) -> None:
    found = ask(opened, "slowest-cells", "limit=3")
    assert len(found) == 3
    seconds = [row["seconds"] for row in found]
    assert seconds == sorted(seconds, reverse=True)
    assert seconds[0] == opened.query("SELECT max(seconds) FROM dumps").rows[0][0] > 0


def test_boundary_history(opened: Store) -> None:
    found = ask(opened, "boundary-history", "environment=Spring", "newer=tinysim-1.3")
    assert picked(found, "older", "verdict") == [("tinysim-1.2", "changed")] * 2
    assert found[0]["finished"] < found[1]["finished"]


def test_verdicts(opened: Store) -> None:
    by_environment = {row["environment"]: row for row in ask(opened, "verdicts")}
    assert [by_environment["Spring"][name] for name in ("identical", "rounding", "changed")] == [2, 1, 3]
    assert by_environment["Chaos"]["amplified"] == 2
    assert by_environment["Chaos"]["without_verdict"] > 0


def test_packages_moved(opened: Store) -> None:
    found = ask(opened, "packages-moved", "newer=other-dependency", "older=tinysim-1.7")
    assert picked(found, "package", "older_version", "newer_version") == [
        ("tinydep", "1.0", "2.0"), ("tinysim", "1.7", "1.0"),
    ]  # fmt: skip


def test_disk(opened: Store, real: Path) -> None:
    found = ask(opened, "disk")
    assert {row["used_by"] for row in found} == {"Spring", "Chaos", "controls and earlier runs"}
    digests = {
        row[0]: row[1] for row in opened.query("SELECT array_digest, any_value(bytes) FROM arrays GROUP BY ALL").rows
    }
    for digest, size in digests.items():
        whole = (real.parent / "arrays" / digest[:2] / f"{digest}.npy").stat().st_size
        assert size < whole <= size + 256, "the header of a file"
    assert max(row["bytes"] for row in found) <= sum(digests.values()) <= sum(row["bytes"] for row in found)


def test_blamed(opened: Store) -> None:
    found = opened.query("SELECT release, cell_key FROM internal.run_cells WHERE environment = 'Spring'").rows
    cells = dict(found)
    ((reads,),) = opened.query("SELECT reads FROM internal.latest_runs").rows
    record = BlameRecord(blamed=("tinydep 1.0 → 2.0",), suspects=2, tried=3)
    opened.explanations.put_blame((cells["tinysim-1.7"], cells["other-dependency"]), reads, record)
    assert picked(ask(opened, "blamed"), "distribution", "older", "newer") == [
        ("tinydep 1.0 → 2.0", "tinysim-1.7", "other-dependency")
    ]


# What the tiny simulator does not have


def test_never_touched(store: Store) -> None:
    audited(store, {"a": "x", "b": "x"}, environments=[exercised()])
    assert picked(ask(store, "never-touched"), "environment", "never_touched", "states") == [("E", "contact a c", 4)]


def test_unexplained_growth(store: Store) -> None:
    store.comparisons.put_comparison("x", "y", RUN.reads, judgement(Verdict.AMPLIFIED), [])
    audited(store, {"a": "x", "b": "y"})
    assert picked(ask(store, "unexplained-growth"), "older", "newer", "certificate") == [("a", "b", "none")]


def test_nights_and_what_failed_in_the_last_one(store: Store) -> None:
    for night, exit_code in (("2026-01-01", 0), ("2026-01-02", 1)):
        store.query(
            "INSERT INTO internal.nights (matrix, night, started, exit_code, first, news, new_changes, waived_changes,"
            " known_changes, not_audited, summary, question)"
            f" VALUES ('m', '{night}', '{night}', {exit_code}, false, ['p 2'], {exit_code}, 0, 0, 0, '', '')"
        )
    audited(store, {"a": "x", "b": None}, replace(RUN, run_id="second"))
    store.query("INSERT INTO internal.failures VALUES ('second', 'b', 'build', 'unbuilt', 'no', 1, NULL, '', 2.0)")
    assert picked(ask(store, "nights"), "night", "exit_code", "new_changes") == [
        ("2026-01-02", 1, 1),
        ("2026-01-01", 0, 0),
    ]
    assert picked(ask(store, "failed"), "subject", "status", "night") == [("b", "unbuilt", "2026-01-02")]


def test_every_named_query_is_asked_here() -> None:
    text = Path(__file__).read_text(encoding="utf-8")
    assert [query.name for query in named_queries.every() if f', "{query.name}"' not in text] == []


# From the command line


@pytest.fixture
def small(release_audit: Program) -> Program:
    with Store(release_audit.folder / "small.duckdb") as store:
        store.comparisons.put_comparison("x", "y", RUN.reads, judgement(Verdict.CHANGED), [])
        audited(store, {"a": "x", "b": "x", "c": "y"})
    return release_audit


def test_named_queries_are_listed_with_a_line_each(release_audit: Program) -> None:
    for arguments in (["--named"], ["--named", "list"]):
        finished = release_audit("query", *arguments)
        assert finished.code == 0, finished.stderr
        lines = finished.stdout.splitlines()
        assert len(lines) == 1 + len(named_queries.every())
        assert any(line.startswith("safe-upgrades") and "comparable=trajectories" in line for line in lines)


def test_a_named_query_in_every_form(small: Program) -> None:
    call = ("query", "--named", "safe-upgrades", "--set", "environment=E", "--db", "small.duckdb")
    table = small(*call)
    assert (table.code, table.stderr) == (0, "")
    assert table.stdout.split()[:4] == ["matrix", "environment", "series", "first"]
    (row,) = json.loads(small(*call, "--format", "json").stdout)
    assert (row["first"], row["last"], row["releases"]) == ("a", "b", 2)
    ((*_, line),) = [list(csv.DictReader(io.StringIO(small(*call, "--format", "csv").stdout)))]
    assert (line["first"], line["last"]) == ("a", "b")
    assert small(*call, "--format", "parquet", "--output", "ranges.parquet").code == 0
    assert duckdb.read_parquet(str(small.folder / "ranges.parquet")).fetchall()[0][3:6] == ("a", "b", 2)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "give either SQL or --named"),
        ((" ",), "give either SQL or --named"),
        (("SELECT 1", "--named", "disk"), "give either SQL or --named"),
        (("--named", "nothing"), "there is no query 'nothing'; there are blamed"),
        (("--named", "changes", "--set", "colour=red"), "it has environment=*"),
        (("--named", "changes", "--set", "environment"), "it has environment=*"),
        (("--named", "disk", "--set", "a=b"), "it has no parameters"),
        (("SELECT 1", "--set", "a=b"), "add --named NAME"),
        (("--named", "slowest-cells", "--set", "limit=many"), "the query failed"),
    ],
)
def test_mistakes_are_told(tmp_path: Path, arguments: tuple[str, ...], told: str) -> None:
    with Store(tmp_path / "small.duckdb"):
        pass
    failed = CliRunner().invoke(results_verbs.query, [*arguments, "--db", str(tmp_path / "small.duckdb")]).exception
    assert isinstance(failed, UsageError)
    assert told in str(failed)
