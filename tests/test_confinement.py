"""What a confined command can do, and how it ends."""

from __future__ import annotations

import os
import pty
import pwd
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from audit import folders
from audit.confining import confinement, protections
from audit.confining.confinement import LAUNCHER, Bounds
from tests.conftest import running, wait_until

PYTHON = Path(sys.executable)


def run(folder: Path, script: str, *needs: Path, **bounds: float | int) -> tuple[int, str, dict[str, str]]:
    """Exit code, output, and what the launcher told."""
    needed = (*needs, *confinement.interpreter_folders(PYTHON))
    made = Bounds(folder=folder.resolve(), needed=needed, **{"cpu_seconds": 60.0, **bounds})  # type: ignore[arg-type]
    with (folder.parent / "output").open("w+b") as output:
        child = confinement.start([PYTHON, "-I", "-S", "-c", script], made, environment={}, output=output)
        try:
            code = child.process.wait(60)
        finally:
            child.end()
        output.seek(0)
        return code, output.read().decode(), child.told


def is_on(name: str) -> bool:
    """Whether this system has a protection; where it has not, doctor says so."""
    (found,) = [each for each in protections.all_here() if each.name == name]
    return found.on


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "own").mkdir()
    return tmp_path / "own"


def test_it_ends_as_the_command_ended(folder: Path) -> None:
    code, output, told = run(folder, "print('hello')")
    assert (code, output, told["launched"]) == (0, "hello\n", "")
    assert run(folder, "raise SystemExit(7)")[0] == 7
    assert run(folder, "import os; os.kill(os.getpid(), 11)")[0] == -11
    assert run(folder, "import os; os.kill(os.getpid(), 9)")[0] == -9


@pytest.fixture
def blocked() -> Iterator[None]:
    """As Ray's workers have it, and a shell's background."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    handlers = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGHUP, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE])
@pytest.mark.usefixtures("blocked")
def test_signals_end_it_wherever_it_was_started(folder: Path, number: signal.Signals) -> None:
    script = f"import os, signal; signal.signal({number:d}, signal.SIG_DFL); os.kill(os.getpid(), {number:d})"
    assert run(folder, script)[0] == -number
    asked = f"import signal; print(signal.getsignal({int(signal.SIGHUP)}) == signal.SIG_DFL)"
    assert run(folder, asked)[1] == "True\n"


def test_its_environment_and_home_are_its_own(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUDIT_TEST_TOKEN", "s3cret")
    _, output, _ = run(folder, "import os; print(sorted(os.environ), os.environ['HOME'])")
    assert "AUDIT_TEST_TOKEN" not in output
    assert str(folder / "home") in output
    assert run(folder, "open('mine', 'w').write('x'); print(open('mine').read())")[1] == "x\n"


def test_what_is_needed_may_be_a_link_within_something_needed(folder: Path, tmp_path: Path) -> None:
    """As the Python of a virtualenv is one, to a place that is hidden too and comes later in the order."""
    early, late = tmp_path / "a", tmp_path / "z"
    for each in (early, late):
        each.mkdir()
    (late / "text").write_text("hello", encoding="utf-8")
    (early / "link").symlink_to(late / "text")
    script = f"print(open({str(early / 'link')!r}).read())"
    code, output, told = run(folder, script, early, early / "link", late)
    assert (code, output) == (0, "hello\n"), told


def test_limits_hold(folder: Path) -> None:
    assert "MemoryError" in run(folder, "bytearray(40 * 2**30)")[1]
    assert run(folder, "while True: pass", cpu_seconds=0.0)[0] in (-24, -9)
    assert "File too large" in run(folder, "open('f', 'wb').truncate(9000)", largest_file=5000)[1]
    assert "Too many open files" in run(folder, "import os\nwhile True: os.dup(0)")[1]


def test_the_command_ends_when_the_orchestrator_does(folder: Path) -> None:
    script = f"""
import sys, subprocess, pathlib
sys.path.insert(0, {str(LAUNCHER.parent.parent)!r})
from audit.confining import confinement
folder = pathlib.Path({str(folder)!r})
bounds = confinement.Bounds(folder=folder, cpu_seconds=60)
child = confinement.start(["/bin/sleep", "600"], bounds, environment={{}}, output=subprocess.DEVNULL)
print(child.process.pid, flush=True)
sys.stdin.read()
"""
    with subprocess.Popen([PYTHON, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        launcher = int(owner.stdout.readline())
        assert running(launcher)
        owner.kill()
    wait_until(lambda: not running(launcher), "the launcher ended")


def test_what_goes_away_is_ended_and_counted(folder: Path) -> None:
    away = (
        "import os\nif os.fork() == 0:\n os.setsid()\n if os.fork(): os._exit(0)\n os.execv('/bin/sleep', ['s', '99'])"
    )
    _, _, told = run(folder, f"{away}\nos.wait()")
    assert told["left"] == "1"


def test_it_cannot_read_the_terminal_and_has_the_harmless_devices(folder: Path) -> None:
    master, terminal = pty.openpty()
    try:
        os.write(master, b"a password\n")
        script = f"""
import os
for path in ({os.ttyname(terminal)!r}, '/dev/tty', '/dev/ptmx', '/dev/pts/ptmx'):
    try:
        print(os.read(os.open(path, os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK), 100))
    except OSError as error:
        print(type(error).__name__)
for path in ('/dev/zero', '/dev/urandom', '/dev/random', '/dev/full'):
    assert len(open(path, 'rb', buffering=0).read(8)) == 8
assert open('/dev/null', 'r+b', buffering=0).write(b'x') == 1
with open('/dev/shm/own', 'w+') as file:
    assert file.write('x') == 1
"""
        code, output, _ = run(folder, script)
    finally:
        os.close(master)
        os.close(terminal)
    if is_on("reading"):
        assert set(output.splitlines()) <= {"PermissionError", "FileNotFoundError"}
        assert code == 0


SOCKETS = """
import socket
for family in (1, 2, 10, 16, 17, 38, 40):  # unix, inet, inet6, netlink, packet, alg, vsock
    try:
        socket.socket(family, socket.SOCK_DGRAM if family not in (38, 40) else socket.SOCK_STREAM).close()
        print(family)
    except OSError as error:
        print(family, error.errno)
"""


def test_only_sockets_that_stay_in_its_network_can_be_opened(folder: Path) -> None:
    """Refused as not permitted (1), whether or not the machine knows the family."""
    _, output, _ = run(folder, SOCKETS)
    if is_on("network"):
        assert output.splitlines() == ["1", "2", "10", "16", "17 1", "38 1", "40 1"]


def test_starting_costs_little(folder: Path) -> None:
    """No figure is asserted, only that nothing is waited for: a second would be a timeout somewhere."""
    bounds = Bounds(folder=folder, cpu_seconds=60.0)
    spent = []
    for _ in range(5):
        began = time.monotonic()
        child = confinement.start(["/bin/true"], bounds, environment={}, output=subprocess.DEVNULL)
        child.process.wait(60)
        child.end()
        spent.append(time.monotonic() - began)
    assert min(spent) < 1.0


def test_everything_but_the_hidden_folders_is_covered_once() -> None:
    found = confinement.all_but(("/usr/lib", "/tmp"))
    assert "/usr/bin" in found
    assert "/usr/lib" not in found
    assert "/usr" not in found
    assert "/" not in found


def test_what_is_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where somebody set HOME or TMPDIR to something else."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    own = os.path.realpath(pwd.getpwuid(os.getuid()).pw_dir)
    found = confinement.hidden_folders()
    assert {"/tmp", "/run", str(tmp_path / "home"), str(tmp_path / "temporary")} <= set(found)
    assert own in found or own in ("/", "/usr/sbin", "/usr/bin")
    assert "/" not in found


def test_a_folder_that_cannot_be_listed_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "locked" / "home").mkdir(parents=True)
    real = Path.iterdir

    def listed(path: Path) -> Iterator[Path]:
        if path == tmp_path / "locked":  # root may list any
            raise PermissionError
        return real(path)

    monkeypatch.setattr(Path, "iterdir", listed)
    hidden = frozenset([str(tmp_path / "locked" / "home")])
    assert list(confinement._split(str(tmp_path), hidden)) == [str(tmp_path / "open")]


def test_a_command_that_cannot_be_executed_is_told(folder: Path) -> None:
    bounds = Bounds(folder=folder, cpu_seconds=60.0)
    child = confinement.start([folder / "absent"], bounds, environment={}, output=subprocess.DEVNULL)
    child.process.wait(60)
    child.end()
    assert (child.launched, child.unexecuted) == (True, "No such file or directory")


def test_nothing_stays_open_where_the_launcher_cannot_be_started(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise BlockingIOError

    monkeypatch.setattr(subprocess, "Popen", refuse)
    before = len(list(Path("/dev/fd").iterdir()))
    with pytest.raises(BlockingIOError):
        confinement.start(["/bin/true"], Bounds(folder=folder, cpu_seconds=1.0), environment={}, output=1)
    assert len(list(Path("/dev/fd").iterdir())) == before


def test_a_deep_or_locked_folder_is_removed(tmp_path: Path) -> None:
    place = tmp_path / "deep"
    place.mkdir()
    here = os.open(place, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d", dir_fd=here)
        inner = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)
    place.chmod(0o500)
    folders.remove(place)
    assert not place.exists()
