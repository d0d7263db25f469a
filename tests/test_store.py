from __future__ import annotations

import datetime
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from analysis.separation import Separation
from analysis.verdicts import Judgement, Verdict
from audit import summary
from audit.arrays import ArrayFiles
from audit.errors import StoreError, UsageError
from audit.failures import Failure
from audit.records import DumpRecord, NewDump, ProbeRecord, RunCell, RunRecord, RunRelease, StoredArray
from audit.stimulus import Stimulus
from audit.store import MIGRATIONS, Store

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


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "audit.duckdb") as opened:
        yield opened


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


# Migrations


def test_migrations_run_once_and_a_second_opening_finds_everything(tmp_path: Path) -> None:
    path = tmp_path / "results" / "audit.duckdb"
    with Store(path) as store:
        store.begin_run(RUN)
    with Store(path) as store:
        assert count(store, "internal.runs") == 1
        numbers = [row[0] for row in store.query("SELECT number FROM internal.migrations ORDER BY ALL").rows]
    assert numbers == sorted(int(file.name.split("_")[0]) for file in MIGRATIONS.glob("*.sql"))


def test_the_public_views_are_there_and_empty(store: Store) -> None:
    views = store.query("SELECT view_name FROM duckdb_views() WHERE schema_name = 'main' AND NOT internal").rows
    assert {row[0] for row in views} == VIEWS
    assert {view: count(store, view) for view in VIEWS} == dict.fromkeys(VIEWS, 0)


def test_pairs_has_the_columns_that_are_promised(store: Store) -> None:
    promised = "matrix, environment, older, newer, adjacent, verdict, first_step_separation, first_step_ulps, "
    promised += "horizon_separation, reason"
    assert store.query(f"SELECT {promised} FROM pairs").columns == tuple(promised.split(", "))
    assert store.query("SELECT * FROM pairs").columns == store.query("SELECT * FROM pairs_history").columns


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


def test_a_database_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE mine (number INTEGER)")
    with pytest.raises(StoreError, match="another version"):
        Store(path)


@pytest.mark.parametrize("content", [b"not a database at all\n" * 1000, b"x", bytes(20_000)])
def test_a_file_that_is_no_database_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "audit.duckdb"
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"audit\.duckdb"):
        Store(path)
    assert path.read_bytes() == content


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError):
        Store(tmp_path)


def test_reading_needs_a_database(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="run an audit first"):
        Store(tmp_path / "absent.duckdb", read_only=True)
    assert list(tmp_path.iterdir()) == []


def test_a_read_only_connection_refuses_to_write(tmp_path: Path) -> None:
    path = tmp_path / "audit.duckdb"
    with Store(path) as store:
        audited(store, {"a": "x", "b": "x"})
    with Store(path, read_only=True) as store:
        for sql in ("DELETE FROM internal.runs", "CREATE TABLE t (a INTEGER)", "DROP VIEW pairs"):
            with pytest.raises(UsageError, match="read-only"):
                store.query(sql)
        with pytest.raises(StoreError):
            store.begin_run(replace(RUN, run_id="second"))
        assert count(store, "pairs") == 1


def test_a_query_that_is_wrong_is_the_users_mistake(store: Store) -> None:
    with pytest.raises(UsageError, match="nowhere"):
        store.query("SELECT * FROM nowhere")
    with pytest.raises(UsageError):
        store.query("SELEKT")


def test_a_query_is_written_to_parquet(store: Store, tmp_path: Path) -> None:
    audited(store, {"a": "x", "b": "y"})
    path = tmp_path / "pairs.parquet"
    store.write_parquet("SELECT older, newer FROM pairs", path)
    assert store.query(f"SELECT * FROM '{path}'").rows == (("a", "b"),)
    with pytest.raises(UsageError):
        store.write_parquet("SELECT * FROM nowhere", path)


# Dumps


def new_dump(store: Store, key: str = "key", behaviour: str = "b", value: float = 1.0) -> NewDump:
    array = np.full((2, 3), value)
    stored = StoredArray(digest=store.arrays.put(array), dtype="float64", shape=(2, 3))
    return NewDump(
        record=DumpRecord(status="ok", reason="", behaviour=behaviour),
        key=key,
        machine="cpu-1",
        stimulus="s",
        outputs={"imposed": stored, "state": stored},
        description={"spaces": {}},
        steps=6,
        seconds=0.5,
    )


def test_a_dump_is_found_again_with_its_outputs(store: Store) -> None:
    dump = new_dump(store)
    store.put_dump(dump)
    assert store.dumps(["key", "other"]) == {"key": dump.record}
    assert store.outputs("b") == dump.outputs
    assert store.machine_of("b") == "cpu-1"
    assert store.dumps([]) == {}


def test_a_dump_is_stored_whole_or_not_at_all(store: Store) -> None:
    class Broken(dict[str, StoredArray]):
        def items(self) -> Any:
            yield "imposed", self["imposed"]
            raise RuntimeError("in the middle")

    good = new_dump(store)
    with pytest.raises(RuntimeError, match="in the middle"):
        store.put_dump(replace(good, outputs=Broken(good.outputs)))
    assert store.dumps(["key"]) == {}
    assert count(store, "internal.dumps") == count(store, "internal.behaviour_outputs") == 0
    store.put_dump(good)
    assert store.dumps(["key"]) == {"key": good.record}


def test_a_dump_that_the_database_refuses_half_way_leaves_nothing(store: Store) -> None:
    good = new_dump(store)
    nameless: dict[Any, StoredArray] = {**good.outputs, None: good.outputs["state"]}
    with pytest.raises(StoreError):
        store.put_dump(replace(good, outputs=nameless))
    assert count(store, "internal.dumps") == count(store, "internal.behaviour_outputs") == 0


def test_committed_dumps_outlive_a_store_that_was_never_closed(tmp_path: Path) -> None:
    path = tmp_path / "audit.duckdb"
    with Store(path) as store:
        store.put_dump(new_dump(store))
        # What is on the disk while the store is open is what a killed process leaves behind.
        (tmp_path / "killed").mkdir()
        for file in tmp_path.glob("audit.duckdb*"):
            shutil.copy(file, tmp_path / "killed" / file.name)
        shutil.copytree(tmp_path / "arrays", tmp_path / "killed" / "arrays")
    with Store(tmp_path / "killed" / "audit.duckdb") as left:
        assert set(left.dumps(["key"])) == {"key"}


def test_a_dump_whose_array_is_gone_is_not_reused_and_can_be_stored_again(store: Store) -> None:
    dump = new_dump(store)
    store.put_dump(dump)
    store.put_dump(new_dump(store, key="whole", behaviour="c", value=2.0))
    for path in store.arrays.folder.rglob(f"{dump.outputs['state'].digest}*"):
        path.unlink()
    assert set(store.dumps(["key", "whole"])) == {"whole"}
    store.put_dump(new_dump(store))
    assert set(store.dumps(["key", "whole"])) == {"key", "whole"}


def test_a_dump_without_a_behaviour_is_reused_too(store: Store) -> None:
    record = DumpRecord(status="unavailable", reason="NameNotFound", behaviour=None)
    store.put_dump(replace(new_dump(store), record=record, outputs={}, steps=0))
    assert store.dumps(["key"]) == {"key": record}


def test_equal_behaviours_share_their_outputs(store: Store) -> None:
    store.put_dump(new_dump(store, key="one"))
    store.put_dump(new_dump(store, key="other"))
    assert count(store, "internal.dumps") == 2
    assert count(store, "internal.behaviour_outputs") == 2


def test_arrays_are_kept_once_checked_on_reading_and_missed_when_gone(tmp_path: Path) -> None:
    arrays = ArrayFiles(folder=tmp_path)
    array = np.array([[1.5, np.nan, -0.0]])
    digest = arrays.put(array)
    assert arrays.put(array.copy()) == digest
    assert arrays.put(array.astype(np.float32)) != digest
    assert arrays.put(array.reshape(3, 1)) != digest
    assert arrays.put(np.array([[1.5, np.nan, 0.0]])) != digest
    assert arrays.get(digest).tobytes() == array.tobytes()
    path = next(tmp_path.rglob(f"{digest}*"))
    content = path.read_bytes()
    for damaged in (content[:-8] + bytes(8), content[:40], b"", content[:-1], b"PK\x03\x04" + content):
        path.write_bytes(damaged)
        with pytest.raises(StoreError, match="damaged"):
            arrays.get(digest)
        assert not path.exists(), "so that it is made anew"
    assert not arrays.has(digest)
    with pytest.raises(StoreError, match="missing or damaged"):
        arrays.get(digest)


def test_probes_and_stimuli_and_locks(store: Store) -> None:
    assert store.probe("k") is None
    probe = ProbeRecord(status="ok", reason="", layout={"state_size": 4})
    store.put_probe("k", probe)
    store.put_probe("none", ProbeRecord(status="unavailable", reason="r", layout=None))
    assert store.probe("k") == probe
    assert store.probe("none") == ProbeRecord(status="unavailable", reason="r", layout=None)
    stimulus = Stimulus(digest="ab" * 32, payload=b"bytes", trajectories=2, steps=3)
    store.put_stimuli([stimulus])
    store.put_stimuli([stimulus])
    ((file,),) = store.query("SELECT file FROM internal.stimuli").rows
    assert (store.path.parent / file).read_bytes() == b"bytes"
    locks = {"d": ("text", [("numpy", "1"), ("six", "2")])}
    store.put_locks(locks)
    store.put_locks({**locks, "e": ("", [])})
    assert count(store, "internal.locks") == 2
    assert count(store, "internal.lock_packages") == 2


# Pairs


def test_all_pairs_older_first(store: Store) -> None:
    audited(store, {"c": "x", "a": "x", "b": "x"})
    assert pairs(store) == {("c", "a"), ("c", "b"), ("a", "b")}
    assert pairs(store, where="adjacent") == {("c", "a"), ("a", "b")}


def test_adjacent_pairs(store: Store) -> None:
    audited(store, {"a": "x", "b": "x", "c": "x"}, replace(RUN, pairing="adjacent"))
    assert pairs(store) == {("a", "b"), ("b", "c")}


def test_pairs_against_one_release_older_or_newer(store: Store) -> None:
    audited(store, {"a": "x", "b": "x", "c": "x"}, replace(RUN, pairing="against", against="b"))
    assert pairs(store) == {("a", "b"), ("b", "c")}
    audited(store, {"a": "x", "b": "x", "c": "x"}, replace(RUN, run_id="2", pairing="against", against="a"))
    assert pairs(store) == {("a", "b"), ("a", "c")}


def test_neighbours_reach_over_a_release_without_a_dump(store: Store) -> None:
    audited(store, {"a": "x", "b": None, "c": "x", "d": "x"}, replace(RUN, pairing="adjacent"))
    assert pairs(store, where="verdict <> 'unavailable' OR older_behaviour IS NOT NULL") >= {("a", "c"), ("c", "d")}
    assert pairs(store) == {("a", "b"), ("b", "c"), ("a", "c"), ("c", "d")}


def test_a_pair_without_a_dump_says_whose_and_why(store: Store) -> None:
    audited(store, {"a": "x", "b": None})
    (row,) = store.query("SELECT verdict, reason, first_step_separation FROM pairs").rows
    assert row == ("unavailable", "b: has none", None)


def test_two_without_a_dump_both_say_why(store: Store) -> None:
    audited(store, {"a": None, "b": None})
    assert store.query("SELECT verdict, reason FROM pairs").rows == (("unavailable", "a: has none; b: has none"),)


def test_an_incomparable_cell_makes_its_pairs_incomparable(store: Store) -> None:
    releases = [release("a", 0), release("b", 1)]
    finish(store, RUN, releases, [cell("a", 0, "x"), cell("b", 1, None, status="incomparable")])
    assert store.query("SELECT verdict FROM pairs").rows == (("incomparable",),)


def test_neighbours_within_a_series_and_the_same_requirements_across_series(store: Store) -> None:
    releases = [
        release("then-1", 0, "then", "gym==1"),
        release("today-1", 1, "today", "gym==1"),
        release("then-2", 2, "then", "gym==2"),
        release("today-2", 3, "today", "gym==2"),
    ]
    cells = [cell(each.release, each.position, "x") for each in releases]
    finish(store, replace(RUN, pairing="adjacent"), releases, cells)
    assert pairs(store) == {
        ("then-1", "then-2"),
        ("today-1", "today-2"),
        ("then-1", "today-1"),
        ("then-2", "today-2"),
    }


def test_neighbours_are_counted_per_environment(store: Store) -> None:
    releases = [release(name, position) for position, name in enumerate("abc")]
    cells = [cell("a", 0, "x"), cell("c", 2, "x"), *(cell(name, i, "y", "F") for i, name in enumerate("abc"))]
    finish(store, RUN, releases, cells)
    assert pairs(store, where="adjacent AND environment = 'E'") == {("a", "c")}
    assert pairs(store, where="adjacent AND environment = 'F'") == {("a", "b"), ("b", "c")}


def test_a_comparison_is_found_whichever_digest_is_greater(store: Store) -> None:
    audited(store, {"a": "zzz", "b": "aaa", "c": "zzz"})
    store.put_comparison("aaa", "zzz", RUN.reads, judgement(), [])
    found = store.query("SELECT older, newer, verdict, reason, first_step_separation FROM pairs ORDER BY ALL").rows
    assert found == (
        ("a", "b", "changed", "changed it is", 0.5),
        ("a", "c", "identical", "", 0.0),
        ("b", "c", "changed", "changed it is", 0.5),
    )
    assert pairs(store, "changes") == {("a", "b"), ("b", "c")}
    assert pairs(store, "amplified") == set()


def test_a_comparison_by_other_outputs_is_not_taken(store: Store) -> None:
    audited(store, {"a": "x", "b": "y"})
    store.put_comparison("x", "y", "state", judgement(), [])
    assert pairs(store, "changes") == set()
    assert store.compared("state") == {("x", "y")}
    assert store.compared(RUN.reads) == set()
    store.put_comparison("x", "y", RUN.reads, judgement(Verdict.AMPLIFIED), [])
    assert pairs(store, "amplified") == {("a", "b")}


def test_separations_of_infinite_and_unknown_size_are_kept(store: Store) -> None:
    audited(store, {"a": "y", "b": "x"})
    apart = Separation(
        output="state",
        same_bits=False,
        first_step=np.inf,
        first_step_ulps=None,
        horizon=np.inf,
        horizon_ulps=None,
        interface="state has shapes 3 and 4",
    )
    store.put_comparison("x", "y", RUN.reads, judgement(first=np.inf), [apart, Separation.none("reward")])
    columns = "older, newer, output, same_bits, first_step_separation, first_step_ulps, interface"
    assert store.query(f"SELECT {columns} FROM separations ORDER BY output").rows == (
        ("a", "b", "reward", True, 0.0, 0.0, ""),
        ("a", "b", "state", False, np.inf, None, "state has shapes 3 and 4"),
    )


def test_the_latest_finished_run_of_each_matrix_counts(store: Store) -> None:
    audited(store, {"a": "x", "b": "x"}, replace(RUN, run_id="first"))
    audited(store, {"a": "x", "c": "x"}, replace(RUN, run_id="second"))
    audited(store, {"a": "x", "d": "x"}, replace(RUN, run_id="other", matrix="n"))
    store.begin_run(replace(RUN, run_id="killed"))
    assert pairs(store, where="matrix = 'm'") == {("a", "c")}
    assert pairs(store, where="matrix = 'n'") == {("a", "d")}
    history = store.query("SELECT run_id, newer FROM pairs_history ORDER BY ALL").rows
    assert history == (("first", "b"), ("other", "d"), ("second", "c"))
    for view in ("releases", "dumps"):
        assert store.query(f"SELECT DISTINCT release FROM {view} WHERE matrix = 'm' ORDER BY ALL").rows == (
            ("a",),
            ("c",),
        )


def test_a_run_without_an_end_is_seen_nowhere_whatever_it_left(store: Store) -> None:
    audited(store, {"a": "x", "b": "x"}, replace(RUN, run_id="first"))
    audited(store, {"a": "x", "c": "x"}, replace(RUN, run_id="second"))
    store.query("UPDATE internal.runs SET finished = NULL WHERE run_id = 'second'")
    assert pairs(store) == pairs(store, "pairs_history") == {("a", "b")}
    assert store.query("SELECT release FROM releases ORDER BY ALL").rows == (("a",), ("b",))


def test_a_run_that_finishes_half_is_not_there(store: Store) -> None:
    store.begin_run(RUN)
    cells = [cell("a", 0, "x"), cell("b", 1, "x"), cell("b", 1, "y")]  # one cell twice: the database refuses
    with pytest.raises(StoreError):
        store.finish_run("run", 0, [release("a", 0), release("b", 1)], cells, [])
    assert count(store, "internal.run_releases") == count(store, "internal.run_cells") == 0
    assert store.query("SELECT finished FROM internal.runs").rows == ((None,),)
    assert pairs(store, "pairs_history") == set()
    store.finish_run("run", 3, [release("a", 0), release("b", 1)], cells[:2], [])
    assert pairs(store) == {("a", "b")}


def test_failures_releases_and_packages_are_seen_through_their_views(store: Store) -> None:
    store.begin_run(RUN)
    store.put_locks({"d": ("six==2\n", [("six", "2")])})
    failure = Failure(
        subject="b",
        stage="resolve",
        status="unresolved",
        reason="no",
        exit_code=1,
        stderr_tail="error: no",
        seconds=0.5,
    )
    died = Failure(subject="a/E", stage="dump", status="crashed", reason="SIGSEGV", signal=11)
    releases = [replace(release("a", 0), lock_digest="d"), replace(release("b", 1), status="unresolved", reason="no")]
    store.finish_run("run", 0, releases, [cell("a", 0, None), cell("b", 1, None)], [failure, died])
    assert store.query("SELECT subject, exit_code, signal, stderr_tail FROM failures ORDER BY subject").rows == (
        ("a/E", None, 11, ""),
        ("b", 1, None, "error: no"),
    )
    assert store.query("SELECT * FROM release_packages").rows == (("m", "a", "six", "2"),)
    assert store.query("SELECT release, status, lock_text FROM releases ORDER BY position").rows == (
        ("a", "ready", "six==2\n"),
        ("b", "unresolved", None),
    )


@pytest.mark.parametrize("signals", [(None, 11), (11, None), (None, None)])
def test_failures_with_and_without_a_signal_in_any_order(store: Store, signals: tuple[int | None, ...]) -> None:
    store.begin_run(RUN)
    failures = [
        Failure(subject=f"{index}", stage="dump", status="crashed", reason="", signal=number)
        for index, number in enumerate(signals)
    ]
    store.finish_run("run", 0, [], [], failures)
    assert store.query("SELECT signal FROM failures ORDER BY subject").rows == tuple((each,) for each in signals)


def test_what_a_release_says_of_itself_is_stored_even_when_it_is_not_a_number(store: Store) -> None:
    layout = {"reference": [float("nan"), float("inf")]}
    store.put_probe("k", ProbeRecord(status="ok", reason="", layout=layout))
    store.put_dump(replace(new_dump(store), description={"time_step": float("nan")}))
    found = store.probe("k")
    assert found is not None
    assert str(found.layout) == str(layout)
    assert set(store.dumps(["key"])) == {"key"}


def test_one_cell_that_failed_in_two_stages_is_two_failures(store: Store) -> None:
    store.begin_run(RUN)
    failures = [Failure(subject="a/E", stage=stage, status="crashed", reason="") for stage in ("probe", "dump")]
    store.finish_run("run", 0, [], [], failures)
    assert count(store, "failures") == 2


# The summary


def test_the_summary_counts_verdicts_and_names_what_is_missing(store: Store) -> None:
    releases = [release("a", 0), release("b", 1), replace(release("c", 2), status="unbuilt", reason="no compiler")]
    cells = [
        *(cell(each.release, each.position, behaviour) for each, behaviour in zip(releases, "xy", strict=False)),
        replace(cell("c", 2, None), status="unbuilt"),
        cell("a", 0, "p", "F"),
        cell("b", 1, None, "F"),
    ]
    store.put_comparison("x", "y", RUN.reads, judgement(Verdict.IDENTICAL, 0.0), [])
    finish(store, RUN, releases, cells)
    told = summary.summarise(store, "run")
    assert told.matrix == "m"
    assert told.counts == {"identical": 1, "unavailable": 3}
    assert told.environments == ("E", "F")
    assert told.silent_differences == 1
    assert [(each.subject, each.status, each.reason) for each in told.missing] == [
        ("c", "unbuilt", "no compiler"),
        ("b/F", "unavailable", "has none"),
    ]
    assert told.verdict("E", ("a", "b")) == "identical"
    assert told.changed == ()
    whole, part = told.groups
    assert (whole.boundaries, whole.environments) == ((("a", "b"), ("b", "c")), ("E",))
    assert (part.boundaries, part.environments) == ((("a", "b"),), ("F",))
    assert told.eventful(whole) == (("b", "c"),)


def test_the_summary_lists_changed_neighbours(store: Store) -> None:
    audited(store, {"a": "x", "b": "y", "c": "x"})
    store.put_comparison("x", "y", RUN.reads, judgement(), [])
    told = summary.summarise(store, "run")
    assert told.counts == {"changed": 2, "identical": 1}
    assert [line.boundary for line in told.changed] == [("a", "b"), ("b", "c")]


# Two at once


def test_a_database_in_use_by_another_process_names_it(tmp_path: Path) -> None:
    path = tmp_path / "audit.duckdb"
    with Store(path):
        script = (
            "import sys; from pathlib import Path; from audit.store import Store; from audit.errors import StoreError\n"
            "try:\n    Store(Path(sys.argv[1]))\nexcept StoreError as error:\n    sys.stdout.write(str(error))"
        )
        done = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True)
    assert "is in use by process" in done.stdout
