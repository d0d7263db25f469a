"""The store: one file, one writer, whole transactions, refusals with a sentence."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from audit import digests
from audit.errors import DamagedStore, StoreError, UsageError
from audit.failures import Status
from audit.stimuli.bank import Bank, Coverage
from audit.stimuli.stimulus import Stimulus, packed
from audit.storage.records import DumpRecord, NewDump, ProbeRecord, StoredArray
from audit.storage.store import Store
from tests.stored_runs import RUN, VIEWS, audited, count


def test_the_public_views_are_there_and_empty(store: Store) -> None:
    views = store.query("SELECT view_name FROM duckdb_views() WHERE schema_name = 'main' AND NOT internal").rows
    assert {row[0] for row in views} == VIEWS
    assert {view: count(store, view) for view in VIEWS} == dict.fromkeys(VIEWS, 0)


def test_pairs_has_the_columns_that_are_promised(store: Store) -> None:
    promised = "matrix, environment, older, newer, adjacent, verdict, first_step_separation, first_step_ulps, "
    promised += "horizon_separation, reason, paper_verdict, first_step_ratio, null_ratio, states_forced, "
    promised += "states_beyond, outputs_changed, coverage, certificate, growth_steps_per_decade"
    assert store.query(f"SELECT {promised} FROM pairs").columns == tuple(promised.split(", "))
    assert store.query("SELECT * FROM pairs").columns == store.query("SELECT * FROM pairs_history").columns


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


@pytest.mark.parametrize("mode", [0o000, 0o444])
@pytest.mark.skipif(os.getuid() == 0, reason="root may read and write everything")
def test_a_database_that_the_system_refuses_is_not_called_damaged(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "audit.duckdb"
    with Store(path):
        pass
    path.chmod(mode)
    with pytest.raises(
        StoreError, match=r"audit\.duckdb cannot be opened, read or written: .*: Permission denied$"
    ) as met:
        Store(path)
    assert not isinstance(met.value, DamagedStore)


def test_what_cannot_be_written_is_not_called_damaged(store: Store) -> None:
    store.begin_run(RUN)
    with pytest.raises(StoreError, match="could not be written: Constraint Error") as met:
        store.begin_run(RUN)
    assert not isinstance(met.value, DamagedStore)


@pytest.mark.parametrize("how", ["cut short", "overwritten"])
def test_damage_that_is_come_upon_is_called_so(tmp_path: Path, how: str) -> None:
    """Wherever it is: what describes a database lies anywhere in its file, and is read when it is needed."""
    whole, damaged = tmp_path / "audit.duckdb", tmp_path / "damaged.duckdb"
    with Store(whole) as store:
        store.put_locks({str(number): (digests.digest(str(number)) * 100, []) for number in range(500)})
    content = whole.read_bytes()
    found = []
    for place in range(2**16, len(content), 2**16):
        damaged.write_bytes(
            content[:place] + (bytes(2**12) + content[place + 2**12 :] if how == "overwritten" else b"")
        )
        try:
            with Store(damaged) as store:
                store.put_locks({})
                store.query("SELECT sum(length(text)) FROM internal.locks")
                store.put_locks({"new": ("text", [])})
        except DamagedStore as error:
            found.append(str(error))
    assert found
    assert all("cannot be used as a database" in each for each in found)


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"Is a directory$") as met:
        Store(tmp_path)
    assert not isinstance(met.value, DamagedStore)


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


def test_a_signal_while_the_database_works_is_an_interruption(store: Store) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGUSR1, interrupt)
    waker = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGUSR1))
    try:
        waker.start()
        with pytest.raises(KeyboardInterrupt):
            store.query("SELECT count(*) FROM range(10000000000000) WHERE range % 7 = 3")
    finally:
        waker.join()
        signal.signal(signal.SIGUSR1, before)
    assert store.query("SELECT 1").rows == ((1,),)


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
        record=DumpRecord(status=Status.OK, reason="", behaviour=behaviour),
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
    store.put_dumps([dump])
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
        store.put_dumps([replace(good, outputs=Broken(good.outputs))])
    assert store.dumps(["key"]) == {}
    assert count(store, "internal.dumps") == count(store, "internal.behaviour_outputs") == 0
    store.put_dumps([good])
    assert store.dumps(["key"]) == {"key": good.record}


def test_a_dump_that_the_database_refuses_half_way_leaves_nothing(store: Store) -> None:
    good = new_dump(store)
    nameless: dict[Any, StoredArray] = {**good.outputs, None: good.outputs["state"]}
    with pytest.raises(StoreError):
        store.put_dumps([replace(good, outputs=nameless)])
    assert count(store, "internal.dumps") == count(store, "internal.behaviour_outputs") == 0


def test_committed_dumps_outlive_a_store_that_was_never_closed(tmp_path: Path) -> None:
    path = tmp_path / "audit.duckdb"
    with Store(path) as store:
        store.put_dumps([new_dump(store)])
        # What is on the disk while the store is open is what a killed process leaves behind.
        (tmp_path / "killed").mkdir()
        for file in tmp_path.glob("audit.duckdb*"):
            shutil.copy(file, tmp_path / "killed" / file.name)
        shutil.copytree(tmp_path / "arrays", tmp_path / "killed" / "arrays")
    with Store(tmp_path / "killed" / "audit.duckdb") as left:
        assert set(left.dumps(["key"])) == {"key"}


def test_a_dump_whose_array_is_gone_is_not_reused_and_can_be_stored_again(store: Store) -> None:
    dump = new_dump(store)
    store.put_dumps([dump])
    store.put_dumps([new_dump(store, key="whole", behaviour="c", value=2.0)])
    for path in store.arrays.folder.rglob(f"{dump.outputs['state'].digest}*"):
        path.unlink()
    assert set(store.dumps(["key", "whole"])) == {"whole"}
    store.put_dumps([new_dump(store)])
    assert set(store.dumps(["key", "whole"])) == {"key", "whole"}


def test_a_dump_without_a_behaviour_is_reused_too(store: Store) -> None:
    record = DumpRecord(status=Status.UNAVAILABLE, reason="NameNotFound", behaviour=None)
    store.put_dumps([replace(new_dump(store), record=record, outputs={}, steps=0)])
    assert store.dumps(["key"]) == {"key": record}


def test_equal_behaviours_share_their_outputs(store: Store) -> None:
    store.put_dumps([new_dump(store, key="one")])
    store.put_dumps([new_dump(store, key="other")])
    assert count(store, "internal.dumps") == 2
    assert count(store, "internal.behaviour_outputs") == 2


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "cut short": lambda whole: whole[:-40],
    "half": lambda whole: whole[: len(whole) // 2],
    "other bytes": lambda whole: whole[:200] + bytes(byte ^ 255 for byte in whole[200:230]) + whole[230:],
    "a letter": lambda _: b"a letter to somebody",
    "an array": lambda _: b"\x93NUMPY\x01\x00",
    "nothing in it": lambda _: packed({}),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_bank_counts_as_gone_and_is_made_anew(store: Store, damage: str) -> None:
    states = np.arange(20.0).reshape(10, 2)
    coverage = Coverage(sources={"given": 10}, features=None, fastest=1.0)
    bank = Bank(states=states, actions=states, source=np.zeros(10, np.uint8), coverage=coverage)
    store.put_bank("key", bank)
    (path,) = (store.path.parent / "arrays").rglob("*.bank.npz")
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    assert store.bank("key") is None
    store.put_bank("key", bank)
    found = store.bank("key")
    assert isinstance(found, Bank)
    assert (found.states == states).all()


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_stimulus_counts_as_gone_and_is_made_anew(store: Store, damage: str) -> None:
    payload = packed({"forced.states": np.arange(20.0)})
    stimulus = Stimulus(digest="s", payload=payload, batches={"forced": (5, 1)}, resets=0)
    store.put_stimuli([stimulus])
    store.put_dumps([new_dump(store)])
    (path,) = (store.path.parent / "arrays").rglob("*.stimulus.npz")
    path.write_bytes(DAMAGES[damage](payload))
    assert store.stimulus_of("b") == {}
    store.put_stimuli([stimulus])
    assert store.stimulus_of("b").keys() == {"forced.states"}


def test_a_stimulus_that_was_cut_short_is_written_anew_before_anybody_reads_it(store: Store) -> None:
    stimulus = Stimulus(digest="s", payload=packed({"a": np.arange(9)}), batches={"forced": (5, 1)}, resets=0)
    store.put_stimuli([stimulus])
    (path,) = (store.path.parent / "arrays").rglob("*.stimulus.npz")
    path.write_bytes(b"")
    store.put_stimuli([stimulus])
    assert path.read_bytes() == stimulus.payload


def test_probes_and_stimuli_and_locks(store: Store) -> None:
    assert store.probe("k") is None
    probe = ProbeRecord(status=Status.OK, reason="", layout={"state_size": 4})
    store.put_probe("k", probe)
    store.put_probe("none", ProbeRecord(status=Status.UNAVAILABLE, reason="r", layout=None))
    assert store.probe("k") == probe
    assert store.probe("none") == ProbeRecord(status=Status.UNAVAILABLE, reason="r", layout=None)
    stimulus = Stimulus(digest="ab" * 32, payload=b"bytes", batches={"horizon": (2, 3), "forced": (5, 1)}, resets=0)
    store.put_stimuli([stimulus])
    store.put_stimuli([stimulus])
    ((file, trajectories, steps),) = store.query("SELECT file, trajectories, steps FROM internal.stimuli").rows
    assert (trajectories, steps) == (2, 11)
    assert (store.path.parent / file).read_bytes() == b"bytes"
    locks = {"d": ("text", [("numpy", "1"), ("six", "2")])}
    store.put_locks(locks)
    store.put_locks({**locks, "e": ("", [])})
    assert count(store, "internal.locks") == 2
    assert count(store, "internal.lock_packages") == 2


def test_what_a_release_says_of_itself_is_stored_even_when_it_is_not_a_number(store: Store) -> None:
    layout = {"reference": [float("nan"), float("inf")]}
    store.put_probe("k", ProbeRecord(status=Status.OK, reason="", layout=layout))
    store.put_dumps([replace(new_dump(store), description={"time_step": float("nan")})])
    found = store.probe("k")
    assert found is not None
    assert str(found.layout) == str(layout)
    assert set(store.dumps(["key"])) == {"key"}


# Two at once


def test_a_database_in_use_by_another_process_names_it(tmp_path: Path) -> None:
    path = tmp_path / "audit.duckdb"
    with Store(path):
        script = (
            "import sys; from pathlib import Path\n"
            "from audit.errors import StoreError; from audit.storage.store import Store\n"
            "try:\n    Store(Path(sys.argv[1]))\nexcept StoreError as error:\n    sys.stdout.write(str(error))"
        )
        done = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True)
    assert "is in use by process" in done.stdout
