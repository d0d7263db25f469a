"""What a system says that lacks something, what still holds there, and what is required where it was had once."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from audit import folders
from audit.confining import confinement, protections
from audit.confining.confinement import LAUNCHER, Bounds
from audit.confining.protections import Protection
from audit.failures import SHORTAGES, NoSandbox
from tests.test_confinement import PYTHON, SOCKETS, folder

__all__ = ["folder"]  # a fixture


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


def run_unmapped(folder: Path, script: str, *more: str) -> tuple[int, str, dict[str, str]]:
    """Exit code, output and what the launcher told, on a system that lets nobody map a user namespace."""
    read, write = os.pipe()
    hidden = confinement.hidden_folders()
    options = [
        f"report={write}",
        f"write={folder}",
        *(f"read={path}" for path in confinement.all_but((*hidden, "/dev"))),
    ]
    options += [f"need={path}" for path in confinement.interpreter_folders(PYTHON)]
    command: list[str | Path] = [PYTHON, "-c", UNMAPPED, *options, *more, "--", PYTHON, "-I", "-S", "-c", script]
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


@pytest.mark.parametrize(
    ("told", "on", "said"),
    [
        ({"landlock": "", "filter": ""}, True, "without network"),
        ({"landlock": "", "new network": ""}, False, "can connect out"),
        ({"landlock": ""}, False, "can connect out"),
        ({"landlock": "Function not implemented", "filter": ""}, False, "sees its credentials"),
    ],
)
def test_a_build_needs_the_network_to_be_off_as_well(told: dict[str, str], said: str, *, on: bool) -> None:
    (builds,) = [each for each in protections.judged(told) if each.name == "builds"]
    assert (builds.on, said in builds.told) == (on, True)


def test_a_system_without_anything_says_so() -> None:
    off = {each.name for each in protections.judged({}) if not each.on}
    assert off == {
        "processes", "network", "writing", "reading", "other processes", "left behind", "privileges", "builds",
    }  # fmt: skip


def test_every_protection_has_a_name_and_a_sentence() -> None:
    names = [each.name for each in protections.all_here()]
    assert len(names) == len(set(names)) == 10
    assert all(isinstance(each, Protection) and each.told for each in protections.all_here())


def test_what_worked_when_it_was_tried_is_required_ever_after(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A system that runs out of something may refuse a protection for a moment: nothing is started without it then."""
    if protections.missing():
        pytest.skip("this system lacks something already: see doctor")
    code, output, told = run_unmapped(folder, "print('hello')", "require=landlock", "require=new mounts")
    assert (code, told.get("launched")) == (125, None)
    assert (
        output == "confine: new mounts: the system refuses new namespaces: Read-only file system; "
        "it worked when it was tried\n"
    )
    said: list[str] = []

    def popen(command: list[str], **_: object) -> None:
        said.extend(command)
        raise OSError("not started")

    monkeypatch.setattr(subprocess, "Popen", popen)
    with pytest.raises(OSError, match="not started"):
        confinement.start(["/bin/true"], Bounds(folder=folder, cpu_seconds=1.0), environment={}, output=1)
    assert {"require=mounts", "require=landlock", "require=filter", "require=new network"} <= set(said)


@pytest.mark.parametrize(
    ("told", "code"),
    [({"landlock": "Cannot allocate memory", "filter": ""}, 0), ({"new network": "Too many open files"}, 0), ({}, -9)],
)
def test_a_system_that_is_short_of_something_is_not_one_without_a_protection(
    monkeypatch: pytest.MonkeyPatch, told: dict[str, str], code: int
) -> None:
    """What is found out once holds as long as the program runs."""
    tries = []

    class Child:
        process = subprocess.Popen(["/bin/true"])

        def __init__(self) -> None:
            self.process.wait()
            self.process.returncode = code
            self.told = told

        def end(self) -> None:
            tries.append(1)

    monkeypatch.setattr(confinement, "start", lambda *_, **__: Child())
    confinement.mechanisms.cache_clear()
    try:
        for _ in range(2):
            with pytest.raises(NoSandbox, match="the protections could not be tried"):
                confinement.mechanisms()
    finally:
        confinement.mechanisms.cache_clear()
    assert len(tries) == 2


def test_a_mechanism_that_the_system_does_not_have_is_no_shortage() -> None:
    assert "Function not implemented" not in SHORTAGES
    assert "Operation not permitted" not in SHORTAGES
    assert "No space left on device" not in SHORTAGES, "what `max_user_namespaces` of 0 comes to"
