"""What a release has written, wherever it put it, and who is at fault where a disk is full."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from audit import folders
from audit.cluster import descendants
from audit.confining import weighing
from audit.confining.weighing import Weight
from audit.installing import venvs
from audit.installing.venvs import Recipe
from audit.processes import answers, dumper_process
from audit.processes.answer_file import DamagedAnswer
from tests.conftest import wait_until
from tests.small_disks import small_disk
from tests.test_serving import served

pytestmark = pytest.mark.usefixtures("own_cache")


def test_files_are_weighed_and_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "file").write_bytes(b"x" * 2**20)
    (tmp_path / "link").symlink_to("/usr")
    found = weighing.of_folders(tmp_path)
    assert found.files == 3
    assert 2**20 <= found.size < 2**20 + 2**16
    assert not found.is_too_much
    assert weighing.of_folders(tmp_path / "absent") == Weight()


def dig(place: Path) -> None:
    """Make folders in folders, until nobody can say the path of the last."""
    place.mkdir()
    here = os.open(place, os.O_RDONLY)
    for _ in range(20):
        os.mkdir("d" * 250, dir_fd=here)
        inner = os.open("d" * 250, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)


def test_a_folder_too_deep_to_be_looked_into_is_not_seen(tmp_path: Path) -> None:
    dig(tmp_path / "deep")
    with pytest.raises(folders.Unseen) as caught:
        weighing.of_folders(tmp_path / "deep")
    assert caught.value.errno == errno.ENAMETOOLONG
    folders.remove(tmp_path / "deep")


@pytest.mark.parametrize(
    ("number", "raised"), [(errno.EACCES, folders.Unseen), (errno.EMFILE, OSError), (errno.ENOMEM, OSError)]
)
def test_what_cannot_be_looked_into_is_not_what_the_system_has_no_room_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, raised: type[OSError]
) -> None:
    def refuse(_: str) -> None:  # root may look into any
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(raised) as caught:
        weighing.of_folders(tmp_path)
    assert (type(caught.value) is folders.Unseen) == (number == errno.EACCES)


def test_a_disk_without_room() -> None:
    assert Weight(size=2**40, files=10).is_no_room
    assert Weight(size=2**20, files=10**6).is_no_room
    assert not Weight(size=2**40, files=10**6).is_no_room


FILLING = {
    "in a file": "head -c 4000000 /dev/zero > filler; sleep 60",
    "in a file without a name": "exec 3> filler; rm filler; head -c 4000000 /dev/zero >&3; sleep 60",
    "in a child's file without a name": "(exec 3> f; rm f; head -c 4000000 /dev/zero >&3; sleep 60) & sleep 60",
}


@pytest.mark.parametrize("how", FILLING)
def test_who_writes_more_than_it_may_is_ended(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weighing, "LARGEST_BYTES", 2**20)
    (failure,) = served(f"touch imported; {FILLING[how]}", "one")
    assert failure.status == "crashed"
    assert "was ended" in failure.reason


def test_who_has_answered_everything_may_not_write_on_while_the_answers_are_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(weighing, "LARGEST_BYTES", 2**20)
    monkeypatch.setattr(weighing, "WEIGH_SECONDS", 0.0)
    monkeypatch.setattr(dumper_process, "TRIES", 1)

    def read(path: Path, *_: object) -> None:
        (path.parent / "seen").touch()
        wait_until(lambda: weighing.of_folders(path.parent).is_too_much, "it wrote on")
        raise DamagedAnswer("nonsense")

    monkeypatch.setattr(answers, "read", read)
    filling = "until [ -e seen ]; do sleep 0.1; done; head -c 4000000 /dev/zero > filler; sleep 60"
    one, two = served(f"touch imported 1.answer.npz 0.answer.npz; {filling}", "one", "two")
    assert (one.reason, two.status) == ("nonsense", "crashed"), two
    assert two.reason.startswith("it wrote more than")


HIDDEN = """
import ctypes, os, sys, threading, time
file = open(sys.argv[1], "xb")
file.write(bytes(2**20))
file.flush()
os.unlink(sys.argv[1])
threading.Thread(target=time.sleep, args=(600,)).start()
print(flush=True)
ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[os.uname().machine], 0)
"""


def test_files_without_names_are_found_where_the_first_thread_has_ended(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HIDDEN, str(tmp_path / "file")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            wait_until(lambda: psutil.Process(process.pid).status() == psutil.STATUS_ZOMBIE, "its first thread ended")
            assert process.pid in descendants.below(os.getpid())
            found = weighing.of_nameless([process.pid], tmp_path.stat().st_dev)
            assert (found.files, found.size >= 2**20) == (1, True)
        finally:
            process.kill()


LOOKING = """
import ctypes, os, time
from audit import folders
from audit.confining import weighing
if os.getuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
for is_shown in (1, 0):
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        ctypes.CDLL(None).prctl(4, is_shown, 0, 0, 0)  # PR_SET_DUMPABLE
        os.write(send, b"x")
        time.sleep(600)
    os.read(receive, 1)
    for state in ("running", "ended"):
        try:
            print(state, weighing.of_nameless([child], 0).files)
        except folders.Unseen:
            print(state, "unseen")
        os.kill(child, 9)
        os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
"""


def test_an_ordinary_user_is_told_where_a_process_hides_its_files() -> None:
    done = subprocess.run([sys.executable, "-c", LOOKING], capture_output=True, text=True, check=True, cwd=folders.ROOT)
    assert done.stdout.splitlines() == ["running 0", "ended 0", "running unseen", "ended 0"]


# Whose fault it is


@pytest.mark.parametrize(
    ("script", "status", "told"),
    [
        ("exit 7", "disk-full", "the disk is full, with 0 MiB left: the process ended with exit code 7"),
        ("mkdir 0.answer.npz; sleep 60", "disk-full", "left: the answer is larger"),
        ("head -c 4000000 /dev/zero > filler; exit 7", "crashed", "it had filled the disk itself"),
        ("head -c 4000000 /dev/zero > filler; mkdir 0.answer.npz; sleep 60", "damaged", "filled the disk itself"),
        ("exec 3> f; rm f; head -c 4000000 /dev/zero >&3; exit 7", "crashed", "before it answered"),
    ],
)
def test_a_full_disk_is_the_machines_fault_unless_the_release_has_filled_it(
    monkeypatch: pytest.MonkeyPatch, script: str, status: str, told: str
) -> None:
    """The room that is missing without the release decides, not what it says or how it ends."""
    room = 5_000_000 if status != "disk-full" else 300_000
    monkeypatch.setattr(weighing, "LEAST_ROOM_BYTES", 3_000_000)
    with small_disk(folders.cache() / "work", str(room)):
        (failure,) = served(f"touch imported; {script}", "one")
    assert (failure.status, told in failure.reason) == (status, True), failure


def test_what_was_there_before_is_not_what_it_wrote(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytecode of earlier processes, and what this side put there: without them there would be room."""
    bytecode = folders.cache() / "venvs" / ("k" * 32) / "bytecode"

    def with_bytecode(recipe: Recipe) -> bool:
        (bytecode / "early.pyc").write_bytes(b"x" * 4_000_000)
        return True

    monkeypatch.setattr(venvs, "finished", with_bytecode)
    monkeypatch.setattr(weighing, "LEAST_ROOM_BYTES", 2**62)
    monkeypatch.setattr(Weight, "left_at", lambda _: Weight(size=2**62 - 1_000_000, files=10**6))
    (failure,) = served("touch imported; exit 7", "one")
    assert (failure.status, "the disk is full" in failure.reason) == ("disk-full", True), failure
    assert (bytecode / "early.pyc").exists()


def test_what_an_earlier_process_hid_is_not_what_the_machine_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    bytecode = folders.cache() / "venvs" / ("k" * 32) / "bytecode"

    def with_hidden(recipe: Recipe) -> bool:
        dig(bytecode / "deep")
        return True

    monkeypatch.setattr(venvs, "finished", with_hidden)
    (failure,) = served("touch imported; exit 7", "one")
    assert (failure.status, failure.exit_code) == ("crashed", 7), failure
    assert list(bytecode.iterdir()) == []


def test_what_fills_the_disk_beside_the_bytecode_does_not_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weighing, "LARGEST_BYTES", 2**20)
    bytecode = folders.cache() / "venvs" / ("k" * 32) / "bytecode"
    (failure,) = served(f"touch imported; head -c 4000000 /dev/zero > {bytecode}/filler; sleep 60", "one")
    assert (failure.status, "was ended" in failure.reason) == ("crashed", True), failure
    assert list(bytecode.iterdir()) == []


def test_where_there_is_room_nobody_is_believed_who_says_that_there_is_none() -> None:
    (failure,) = served("touch imported; echo 'OSError: [Errno 28] No space left on device' >&2; exit 1", "one")
    assert failure.status == "crashed"
