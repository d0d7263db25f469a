"""A store that is old, new, damaged, in use, or has lost files."""

from __future__ import annotations

import itertools
import os
import signal
from pathlib import Path

import duckdb
import pytest

from audit.storage import migrating
from tests.conftest import SPRING, release, rows, wait_until, write_matrix
from tests.faults.conftest import Scene


def test_two_audits_on_one_store(scene: Scene) -> None:
    with scene.program.started("run", scene.matrix, "--db", scene.database) as first:
        first.wait_for("probing 1/")
        program = first.program
        second = scene.run()
        finished = first.finish()
    assert finished.code == 0
    assert second.code == 3
    assert f"in use by process {program}" in second.sentence
    assert scene.result() == scene.undisturbed
    scene.made_good(finished)


def test_a_store_of_an_older_version(scene: Scene) -> None:
    scene.database.parent.mkdir()
    with duckdb.connect(str(scene.database)) as connection:
        connection.execute(migrating.migrations()[1].read_text(encoding="utf-8"))
        connection.execute("CREATE TABLE internal.migrations (number INTEGER)")
        connection.execute("INSERT INTO internal.migrations VALUES (1)")
        connection.execute("INSERT INTO internal.locks VALUES ('old', 'kept')")
    scene.made_good()
    assert rows(scene.database, "SELECT text FROM internal.locks WHERE lock_digest = 'old'") == [("kept",)]


def test_a_store_of_a_newer_version(audited: Scene) -> None:
    with duckdb.connect(str(audited.database)) as connection:
        connection.execute("INSERT INTO internal.migrations VALUES (999)")
    bytes_before = audited.database.read_bytes()
    finished = audited.run()
    assert finished.code == 3
    assert "was written by another version of release-audit (schema 999" in finished.sentence
    assert audited.database.read_bytes() == bytes_before
    with duckdb.connect(str(audited.database)) as connection:
        connection.execute("DELETE FROM internal.migrations WHERE number = 999")
    audited.made_good()


def test_a_file_that_is_no_store(scene: Scene) -> None:
    scene.database.parent.mkdir()
    scene.database.write_bytes(b"a letter to somebody" * 1000)
    finished = scene.run()
    assert finished.code == 3
    assert "cannot be used as a database" in finished.sentence
    assert scene.database.read_bytes() == b"a letter to somebody" * 1000
    scene.database.unlink()
    scene.made_good()


def test_a_store_that_was_cut_short(audited: Scene) -> None:
    os.truncate(audited.database, audited.database.stat().st_size // 2)
    finished = audited.run()
    assert finished.code == 3
    assert "cannot be used as a database" in finished.sentence
    audited.database.unlink()
    audited.made_good()


def _arrays(scene: Scene, suffix: str) -> list[Path]:
    return sorted((scene.database.parent / "arrays").rglob(f"*{suffix}"))


@pytest.mark.parametrize("suffix", [".npy", ".stimulus.npz", ".bank.npz"])
def test_files_that_are_gone(audited: Scene, suffix: str) -> None:
    before = audited.stored()
    for path in _arrays(audited, suffix):
        path.unlink()
    again = audited.run()
    assert again.code == 0, again.stdout + again.stderr
    assert audited.result() == audited.undisturbed
    assert before
    assert before.items() <= audited.stored().items()


@pytest.mark.parametrize(("suffix", "left"), [(".stimulus.npz", -40), (".bank.npz", 0)])
def test_files_that_were_cut_short(audited: Scene, suffix: str, left: int) -> None:
    """As a machine leaves them that lost its power: empty, or with so many of their bytes. They are made anew."""
    before = audited.stored()
    whole = {path: path.read_bytes() for path in _arrays(audited, suffix)}
    for path, content in whole.items():
        path.write_bytes(content[:left])
    with duckdb.connect(str(audited.database)) as connection:
        connection.execute("DELETE FROM internal.comparisons")
    again = audited.run()
    assert again.code == 0, again.stdout + again.stderr
    assert audited.result() == audited.undisturbed
    assert {path: path.read_bytes() for path in whole} == whole
    assert before
    assert before.items() <= audited.stored().items()


def test_arrays_that_were_cut_short(audited: Scene) -> None:
    """Some are empty, of some the header is left, of some all but the end."""
    for path, left in zip(_arrays(audited, ".npy"), itertools.cycle([0, 40, -8]), strict=False):
        path.write_bytes(path.read_bytes()[:left])
    _mended(audited)


def test_arrays_that_are_damaged(audited: Scene) -> None:
    """They are noticed when they are read, which is when something new is compared with them."""
    for path in _arrays(audited, ".npy"):
        path.write_bytes(path.read_bytes()[:-8] + b"12345678")
    _mended(audited)


def _mended(scene: Scene) -> None:
    """The run that finds a damaged array says so, and the next one makes all of them anew."""
    with duckdb.connect(str(scene.database)) as connection:
        connection.execute("DELETE FROM internal.comparisons")
    finished = scene.run()
    assert finished.code == 3
    assert "missing or damaged: run the same command again" in finished.sentence
    again = scene.run()
    assert again.code == 0, again.stdout + again.stderr
    assert scene.result() == scene.undisturbed


def test_a_folder_that_cannot_be_written(scene: Scene) -> None:
    scene.database.parent.write_text("a file, and no folder", encoding="utf-8")
    finished = scene.run()
    assert finished.code == 3
    assert str(scene.database.name) in finished.sentence or "results" in finished.sentence
    scene.database.parent.unlink()
    scene.made_good()


def test_a_reader_holds_the_store(audited: Scene) -> None:
    """Somebody has it open in DuckDB's own shell."""
    with duckdb.connect(str(audited.database), read_only=True):
        finished = audited.run()
    assert finished.code == 3
    assert f"in use by process {os.getpid()}" in finished.sentence
    audited.made_good()


def test_a_run_that_never_finished_is_not_shown(audited: Scene) -> None:
    more = write_matrix(audited.folder / "more.yaml", [release("1.0"), release("1.8")], [SPRING], name="steady")
    with audited.program.started("run", more, "--db", audited.database) as harness:
        harness.wait_for("dumping 2/")
        os.kill(harness.process.pid, signal.SIGKILL)
        harness.finish()
    wait_until(lambda: audited.result() == audited.undisturbed, "the finished run is shown")
    assert rows(audited.database, "SELECT count(*) FROM internal.runs WHERE finished IS NULL") == [(1,)]
