"""A copy of a database that another process is writing to: whole, as of a commit, and open to everybody."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pytest

from audit.errors import StoreError, UsageError
from audit.storage import database, snapshots
from audit.storage.store import Store
from tests.conftest import CHAOS, SPRING, Program, release, rows, write_matrix
from tests.recorded_behaviours import forced, keep
from tests.stored_runs import RUN, audited, count

SNAPSHOTS = 12
"""Of a database that is written to without a pause."""

WRITER = """\
import sys
from pathlib import Path
from audit.storage.store import Store
with Store(Path(sys.argv[1])) as store:
    store.query("SET checkpoint_threshold = '100KB'")
    store.query("CREATE TABLE internal.one (number BIGINT PRIMARY KEY, text VARCHAR)")
    store.query("CREATE TABLE internal.other (number BIGINT PRIMARY KEY)")
    number = 0
    while True:
        number += 1
        store.query("BEGIN")
        store.query("INSERT INTO internal.one SELECT ?, repeat('x', 5000)", [number])
        store.query("INSERT INTO internal.other VALUES (?)", [number])
        store.query("COMMIT")
        if number == 20:
            sys.stdout.write("ready\\n")
            sys.stdout.flush()
"""


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """A process that commits to two tables at once, again and again, with checkpoints in between."""
    with subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield
            assert process.poll() is None, "the writer does not notice"
        finally:
            process.kill()


def test_snapshots_of_a_database_that_is_written_to_are_whole_and_go_forward(tmp_path: Path) -> None:
    path, copy = tmp_path / "audit.duckdb", tmp_path / "copies" / "copy.duckdb"
    seen = [0]
    with writing(path):
        for _ in range(SNAPSHOTS):
            snapshots.take(path, copy, arrays=False)
            ((one, highest, other),) = rows(
                copy,
                "SELECT (SELECT count(*) FROM internal.one), (SELECT max(number) FROM internal.one),"
                " (SELECT count(*) FROM internal.other)",
            )
            assert one == highest == other, "a commit is there as a whole or not at all"
            seen.append(one)
    assert seen == sorted(seen)
    assert seen[-1] > seen[1] > 0
    assert [each.name for each in copy.parent.iterdir()] == ["copy.duckdb"], "nothing is left beside it"


def test_a_copy_into_which_a_checkpoint_fell_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "audit.duckdb"
    with Store(path) as store:
        audited(store, {"a": "x", "b": "x"})
    copied = shutil.copyfileobj
    falling = [b"first", b"second"]

    def disturbed(*given: Any) -> None:
        copied(*given)
        if falling:
            with path.open("r+b") as file:  # what a checkpoint does at its end: another header
                file.seek(2 * 4096 + 100)
                file.write(falling.pop())

    before = path.read_bytes()
    monkeypatch.setattr(shutil, "copyfileobj", disturbed)
    monkeypatch.setattr(snapshots, "TRIES", 2)
    with pytest.raises(StoreError, match="faster than it can be copied"):
        snapshots.take(path, tmp_path / "copy.duckdb", arrays=False)
    path.write_bytes(before)
    snapshots.take(path, tmp_path / "copy.duckdb", arrays=False)
    assert rows(tmp_path / "copy.duckdb", "SELECT older, newer FROM pairs") == [("a", "b")]


def test_a_copy_with_a_half_written_block_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, copy = tmp_path / "audit.duckdb", tmp_path / "copy.duckdb"
    with Store(path) as store:
        audited(store, {"a": "x", "b": "x"})
    ((block,),) = rows(path, "SELECT max(block_id) FROM pragma_metadata_info()")
    end = snapshots.HEADERS_BYTES + (block + 1) * 2**18
    copied = shutil.copyfileobj
    torn = [1, 2]

    def disturbed(file: Any, out: Any, *given: Any) -> None:
        copied(file, out, *given)
        if torn:
            out.seek(end - torn.pop())
            out.write(b"\xff")

    monkeypatch.setattr(shutil, "copyfileobj", disturbed)
    monkeypatch.setattr(snapshots, "TRIES", 1)
    with pytest.raises(StoreError, match=r"no copy of .*audit.duckdb can be opened: .*Corrupt database file"):
        snapshots.take(path, copy, arrays=False)
    monkeypatch.setattr(snapshots, "TRIES", 2)
    snapshots.take(path, copy, arrays=False)
    assert torn == []
    assert rows(copy, "SELECT older, newer FROM pairs") == [("a", "b")]


def test_a_copy_that_the_system_does_not_open_is_not_taken_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "audit.duckdb"
    with Store(path) as store:
        audited(store, {"a": "x", "b": "x"})
    copied, copies = shutil.copyfileobj, []

    def counted(*given: Any) -> None:
        copies.append(given)
        copied(*given)

    monkeypatch.setattr(shutil, "copyfileobj", counted)
    monkeypatch.setitem(database._CONFIG, "memory_limit", "100KB")
    with pytest.raises(StoreError, match="cannot be opened, read or written: Out of Memory"):
        snapshots.take(path, tmp_path / "copy.duckdb", arrays=False)
    assert len(copies) == 1


def test_arrays_come_along_where_they_are_wanted(tmp_path: Path) -> None:
    path = tmp_path / "results" / "audit.duckdb"
    with Store(path) as store:
        keep(store, "x", forced())
    for wanted in (False, True):
        target = tmp_path / f"copy-{wanted}" / "audit.duckdb"
        snapshots.take(path, target, arrays=wanted)
        assert (target.parent / "arrays").exists() == wanted
    with Store(target, read_only=True) as store:
        for name, array in store.outputs("x").items():
            assert store.arrays.get(array.digest).shape == forced()[name].shape


def test_what_is_no_snapshot_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "audit.duckdb"
    with Store(path) as store:
        store.begin_run(RUN)
    letter = tmp_path / "letter.txt"
    letter.write_text("dear reader")
    for target in (letter, path, tmp_path):
        with pytest.raises(UsageError, match="is left alone"):
            snapshots.take(path, target, arrays=False)
    assert letter.read_text() == "dear reader"
    with pytest.raises(UsageError, match="there is no database"):
        snapshots.take(tmp_path / "absent.duckdb", tmp_path / "copy.duckdb", arrays=False)
    for _ in range(2):  # the second replaces the first
        snapshots.take(path, tmp_path / "copy.duckdb", arrays=False)
    with Store(tmp_path / "copy.duckdb", read_only=True) as store:
        assert count(store, "internal.runs") == 1
    (tmp_path / "copy.duckdb.wal").write_bytes(b"")
    with pytest.raises(UsageError, match="open for writing"):
        snapshots.take(path, tmp_path / "copy.duckdb", arrays=False)


def test_results_can_be_read_while_an_audit_runs(release_audit: Program) -> None:
    """A finished audit, then one that a hanging release holds: `query` says what to do, and that works."""
    folder = release_audit.folder
    first = write_matrix(folder / "first.yaml", [release("1.0"), release("1.1")], [CHAOS])
    second = write_matrix(folder / "second.yaml", [release("1.0"), release("1.8")], [CHAOS, SPRING])
    assert release_audit("run", first, "--db", "audit.duckdb").code == 0
    with release_audit.started("run", second, "--db", "audit.duckdb") as harness:
        harness.wait_for("dumping 3/4")  # of what the first has not dumped, all but the hanging one
        program = harness.program
        refused = release_audit("query", "SELECT 1", "--db", "audit.duckdb")
        copied = release_audit("snapshot", "--db", "audit.duckdb")
        asked = release_audit("query", "--named", "verdicts", "--format", "csv", "--db", "audit-snapshot.duckdb")
        assert harness.process.poll() is None
        with duckdb.connect(str(folder / "audit-snapshot.duckdb"), read_only=True) as connection:
            found = connection.execute("SELECT matrix, verdict FROM neighbours").fetchall()
            cells = connection.execute("SELECT count(*) FROM internal.dumps WHERE status = 'ok'").fetchall()
    assert refused.code == 3
    assert f"in use by process {program}" in refused.sentence
    assert "`release-audit snapshot --db audit.duckdb`" in refused.sentence
    assert copied.code == 0, copied.stderr
    proposed = shlex.split(copied.stdout.rpartition(": ")[2])
    assert proposed == ["release-audit", "query", "--db", "audit-snapshot.duckdb", "--named", "verdicts"]
    assert asked.stdout.splitlines()[1].startswith("first,Chaos,1,1,")
    assert found == [("first", "identical")], "the run that goes on shows when it has ended"
    assert cells[0][0] >= 5, "what it has committed so far is there"
