"""What a confined command can do, what a system that lacks something says, and how a command ends."""

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
from audit.confining.protections import Protection
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


def test_where_namespaces_are_refused_the_rest_still_holds(folder: Path) -> None:
    """Within a confinement no other namespace can be made: such a system is tried out there."""
    if protections.missing():
        pytest.skip("this system lacks something already: see doctor")  # its own answers are tested by the audit
    inner = f"""
import os, sys
read, write = os.pipe()
os.set_inheritable(write, True)
launcher = [sys.executable, '-I', '-S', {str(LAUNCHER)!r}, 'report=%d' % write, 'write=.', 'read=/', '--']
child = os.fork()
if child == 0:
    os.execv(sys.executable, launcher)
os.waitpid(child, 0)
os.close(write)
print(os.read(read, 10000).decode())
"""
    needed = (*confinement.interpreter_folders(PYTHON), folders.ROOT)
    bounds = Bounds(folder=folder, needed=needed, cpu_seconds=60.0)
    with (folder.parent / "output").open("w+b") as output:
        child = confinement.start([PYTHON, "-I", "-S", "-c", inner], bounds, environment={}, output=output)
        child.process.wait(60)
        child.end()
        output.seek(0)
        lines = [line.partition("\t") for line in output.read().decode().splitlines() if line]
    told = {name: problem for name, _, problem in lines}
    assert "Operation not permitted" in told["new network"]
    assert (told["orphans"], told["landlock"], told["filter"]) == ("", "", "")
    by_name = {each.name: each for each in protections.judged(told)}
    assert by_name["network"].on
    assert "filter" in by_name["network"].told
    assert not by_name["writing"].on
    assert "permissions and times" in by_name["writing"].told
    assert not by_name["processes"].on
    assert not by_name["other processes"].on


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


UNMAPPED = f"""
import os, sys
sys.path.append({str(folders.ROOT)!r})
from confine import namespaces, system
own = os.getuid(), os.getgid()
try:
    system.unshare(system.NEW_MOUNTS)
except OSError:
    system.unshare(system.NEW_USER | system.NEW_MOUNTS)
    namespaces._map_to_itself(*own)
system.mount(None, "/", None, namespaces._RECURSIVE | namespaces._PRIVATE)
namespaces._set_attributes("/proc", namespaces._AT_RECURSIVE, added=namespaces._READ_ONLY)
system.gain_nothing()
system.drop_capabilities()
os.execv(sys.executable, [sys.executable, "-I", "-S", {str(LAUNCHER)!r}, *sys.argv[1:]])
"""
"""Starts the launcher where a user namespace can be made, but not mapped: the files that map it are read-only."""


def run_unmapped(folder: Path, script: str) -> tuple[int, str, dict[str, str]]:
    """Exit code, output and what the launcher told, on a system that lets nobody map a user namespace."""
    read, write = os.pipe()
    hidden = confinement.hidden_folders()
    options = [
        f"report={write}",
        f"write={folder}",
        *(f"read={path}" for path in confinement.all_but((*hidden, "/dev"))),
    ]
    options += [f"need={path}" for path in confinement.interpreter_folders(PYTHON)]
    command: list[str | Path] = [PYTHON, "-c", UNMAPPED, *options, "--", PYTHON, "-I", "-S", "-c", script]
    with os.fdopen(read, encoding="utf-8") as report:
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder, pass_fds=(write,), check=False)
        os.close(write)
        lines = [line.rstrip("\n").partition("\t") for line in report]
    return done.returncode, done.stdout + done.stderr, {name: problem for name, _, problem in lines}


def test_where_a_user_namespace_cannot_be_mapped_the_rest_still_holds(folder: Path, tmp_path: Path) -> None:
    if protections.missing():
        pytest.skip("this system lacks something already: see doctor")
    script = f"""
print('hello')
try:
    open({str(tmp_path / "outside")!r}, 'w')
except OSError as error:
    print(type(error).__name__)
"""
    code, output, told = run_unmapped(folder, script)
    assert (code, output) == (0, "hello\nPermissionError\n")
    assert "the system refuses new namespaces: Read-only file system" in told["new network"]
    assert (told["landlock"], told["filter"], told["launched"]) == ("", "", "")
    off = {each.name for each in protections.judged(told) if not each.on}
    assert {"processes", "other processes"} <= off


def test_where_there_is_no_network_namespace_only_local_sockets_can_be_opened(folder: Path) -> None:
    if protections.missing():
        pytest.skip("this system lacks something already: see doctor")
    _, output, told = run_unmapped(folder, SOCKETS)
    assert told["new network"]
    assert output.splitlines() == ["1", "2 1", "10 1", "16 1", "17 1", "38 1", "40 1"]


def test_without_mounts_of_its_own_writing_is_not_said_to_be_denied(folder: Path, tmp_path: Path) -> None:
    """Landlock leaves permissions and times of other files open. The machine's shared memory is closed."""
    if protections.missing():
        pytest.skip("this system lacks something already: see doctor")
    outside, shared = tmp_path / "outside", Path(f"/dev/shm/release-audit-test-{os.getpid()}")
    outside.touch()
    shared.write_text("mine", encoding="utf-8")
    script = f"""
import os
os.utime({str(outside)!r}, (1, 1))
for how in ('r', 'r+'):
    try:
        open({str(shared)!r}, how)
    except OSError as error:
        print(type(error).__name__)
"""
    try:
        code, output, told = run_unmapped(folder, script)
    finally:
        shared.unlink()
    assert (code, output) == (0, "PermissionError\nPermissionError\n")
    by_name = {each.name: each for each in protections.judged(told)}
    assert outside.stat().st_mtime == 1
    assert not by_name["writing"].on
    assert "permissions and times" in by_name["writing"].told
    assert by_name["reading"].on


def test_processes_that_can_be_seen_are_told() -> None:
    told = {"new processes": "", "proc": "Operation not permitted"}
    (others,) = [each for each in protections.judged(told) if each.name == "other processes"]
    assert not others.on
    assert "can see your other processes" in others.told


def test_a_namespace_without_a_filter_is_not_enough_for_the_network() -> None:
    told = {"new network": "", "filter": "no filter is known for this processor"}
    (network,) = [each for each in protections.judged(told) if each.name == "network"]
    assert not network.on
    assert "no filter is known" in network.told


def test_a_system_without_anything_says_so() -> None:
    off = {each.name for each in protections.judged({}) if not each.on}
    assert off == {
        "processes", "network", "writing", "reading", "other processes", "left behind", "privileges", "builds",
    }  # fmt: skip


def test_every_protection_has_a_name_and_a_sentence() -> None:
    names = [each.name for each in protections.all_here()]
    assert len(names) == len(set(names)) == 10
    assert all(isinstance(each, Protection) and each.told for each in protections.all_here())


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
