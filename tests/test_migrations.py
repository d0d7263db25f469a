"""Migrations: what an older version of the program stored is read by this one, and never by one that cannot."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from audit.errors import StoreError
from audit.storage.migrating import MIGRATIONS
from audit.storage.records import BlameRecord
from audit.storage.store import Store
from tests.stored_runs import RUN, audited, count, judgement


def test_migrations_run_once_and_a_second_opening_finds_everything(tmp_path: Path) -> None:
    path = tmp_path / "results" / "audit.duckdb"
    with Store(path) as store:
        store.begin_run(RUN)
    with Store(path) as store:
        assert count(store, "internal.runs") == 1
        numbers = [row[0] for row in store.query("SELECT number FROM internal.migrations ORDER BY ALL").rows]
    assert numbers == sorted(int(file.name.split("_")[0]) for file in MIGRATIONS.glob("*.sql"))


def test_a_database_of_the_version_before_is_migrated_with_what_is_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, first = tmp_path / "audit.duckdb", tmp_path / "migrations"
    first.mkdir()
    shutil.copy(MIGRATIONS / "001_initial.sql", first)
    monkeypatch.setattr("audit.storage.migrating.MIGRATIONS", first)
    with Store(path) as store:
        store.begin_run(RUN)
        row = ("x", "y", RUN.reads, "changed", "because", 0.5, 2.0, 1.0)
        store.query(f"INSERT INTO internal.comparisons VALUES {row}")
        for position, (name, behaviour) in enumerate([("a", "x"), ("b", "y")]):
            columns = f"'run', '{name}', {position}, '', '', '3', NULL, 'ready', ''"
            store.query(f"INSERT INTO internal.run_releases VALUES ({columns})")
            store.query(
                "INSERT INTO internal.run_cells VALUES "
                f"('run', 'E', '{name}', {position}, 'k{name}', 'ok', '', '{behaviour}', false)"
            )
        store.query("UPDATE internal.runs SET finished = started, exit_code = 0")
    monkeypatch.undo()
    with pytest.raises(StoreError, match="schema 1, this version reads"):
        Store(path, read_only=True)
    with Store(path) as store:
        columns = "older, newer, verdict, reason, first_step_ratio, states_forced, paper_verdict, outputs_changed"
        assert store.query(f"SELECT {columns} FROM pairs").rows == (
            ("a", "b", "changed", "because", None, None, "changed", ""),
        )
        assert {view: count(store, view) for view in ("environments", "certificates", "sensitivity")} == {
            "environments": 0, "certificates": 0, "sensitivity": 0,
        }  # fmt: skip


def test_a_database_of_a_later_version_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "audit.duckdb"
    with Store(path):
        pass
    with duckdb.connect(str(path)) as connection:
        connection.execute("INSERT INTO internal.migrations VALUES (99)")
    for read_only in (True, False):
        with pytest.raises(StoreError, match=r"another version .*schema 99"):
            Store(path, read_only=read_only)
    with duckdb.connect(str(path)) as connection:  # the refusal let go of the file
        assert connection.execute("SELECT max(number) FROM internal.migrations").fetchall() == [(99,)]


def test_blames_that_were_kept_by_title_alone_are_searched_for_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, before = tmp_path / "audit.duckdb", tmp_path / "migrations"
    before.mkdir()
    for file in MIGRATIONS.glob("00[1-9]_*.sql"):
        shutil.copy(file, before)
    monkeypatch.setattr("audit.storage.migrating.MIGRATIONS", before)
    with Store(path) as store:
        audited(store, {"a": "x", "b": "y"})
        store.comparisons.put_comparison("x", "y", RUN.reads, judgement(), [])
        store.query("INSERT INTO internal.blames VALUES ('E', 'l', 'm', ['numpy 1 → 2'], 2, 3)")
    monkeypatch.undo()
    with Store(path) as store:
        assert count(store, "blames") == 0
        record = BlameRecord(blamed=("numpy 1 → 2",), suspects=2, tried=3)
        store.explanations.put_blame(("a/E", "b/E"), RUN.reads, record)
        assert store.explanations.blamed(("a/E", "b/E"), RUN.reads) == record
        assert store.explanations.blamed(("a/E", "b/E"), "reward") is None
        assert store.explanations.blamed(("a/F", "b/E"), RUN.reads) is None
        assert store.query("SELECT older, newer, blamed FROM blames").rows == (("a", "b", ["numpy 1 → 2"]),)


def test_what_laws_said_before_is_shown_by_the_runs_that_were_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was kept by the names of reference sets, of which a run that comes later has its own."""
    path, before = tmp_path / "audit.duckdb", tmp_path / "migrations"
    before.mkdir()
    for file in MIGRATIONS.glob("00[1-8]_*.sql"):
        shutil.copy(file, before)
    monkeypatch.setattr("audit.storage.migrating.MIGRATIONS", before)
    views = {
        "screenings": "SELECT older, newer, laws, setting, law, tested, ratio, broken FROM screenings ORDER BY ALL",
        "attributions": "SELECT release, laws, law, explanation, parameters FROM attributions ORDER BY ALL",
    }
    with Store(path) as store:
        audited(store, {"a": "x", "b": "y"})
        store.comparisons.put_comparison("x", "y", RUN.reads, judgement(), [])
        for name in ("one", "two"):
            screened = ("x", "y", name, "shipped", "energy", 1e-9, 1e-2, 1e7, 1e-4, True, 1e-4, "k")
            store.query(f"INSERT INTO internal.screenings VALUES {screened}")
            explained = ("y", name, "shipped", "energy", "fault", "m is 2", ["m"], [2.0], [1.0], 1e-8, 1e-7, "", "k")
            store.query(f"INSERT INTO internal.attributions VALUES {explained}")
        shown = {view: store.query(sql).rows for view, sql in views.items()}
    monkeypatch.undo()
    assert [len(each) for each in shown.values()] == [2, 2]
    with Store(path) as store:
        assert {view: store.query(sql).rows for view, sql in views.items()} == shown
        assert (store.laws.screened(), store.laws.attributed()) == (set(), set()), "it is asked again by content"
        audited(store, {"a": "x", "b": "y"}, replace(RUN, run_id="later"))
        assert {view: count(store, view) for view in views} == {"screenings": 0, "attributions": 0}
