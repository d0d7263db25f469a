"""A machine on a bad day: processes that vanish, a Python that cannot be had, a clock that jumps."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import psutil
import pytest

from tests.conftest import (
    CHAOS,
    SPRING,
    descendants,
    dumpers,
    release,
    rows,
    running,
    wait_until,
    write_matrix,
)
from tests.faults.conftest import SMALL, STEADY, Scene

# Processes

LOST = (
    "release-audit: ended from within with exit code 1, as Ray does where a part of it was lost; "
    "what was dumped is stored, the same command continues from there\n"
)


def _named(parent: int, *names: str) -> list[int]:
    """Processes below one whose command line holds one of the names."""
    below = psutil.Process(parent).children(recursive=True)
    return [each.pid for each in below if any(name in " ".join(_command(each)) for name in names)]


def _command(process: psutil.Process) -> list[str]:
    try:
        return list(process.cmdline())
    except psutil.Error:
        return []


@pytest.fixture
def held(scene: Scene) -> Scene:
    """Steady releases and one that is slow, so that the audit is at its dumps when the test comes."""
    versions = [*STEADY, "1.19"]
    write_matrix(scene.matrix, list(map(release, versions)), [CHAOS, SPRING], **SMALL)
    return scene


@pytest.mark.parametrize("times", [1, 2])
def test_a_dumper_is_killed(held: Scene, shared_cache: Path, times: int) -> None:
    """Once, and it is tried again; each time, and the cell has failed."""
    with held.program.started("run", held.matrix, "--db", held.database) as harness:
        harness.wait_for("dumping 9/10")  # of eight cells and two controls, all but the slow one
        for _ in range(times):
            wait_until(lambda: dumpers(shared_cache), "the slow one runs")
            hit = dumpers(shared_cache)
            for pid in hit:
                with suppress(ProcessLookupError):  # a launcher ends when what it launched was killed
                    os.kill(pid, signal.SIGKILL)
            wait_until(partial(_gone, hit), "it is gone")
        finished = harness.finish()
    assert finished.code == 0
    failed = rows(held.database, "SELECT subject, status FROM failures")
    assert failed == ([] if times == 1 else [("tinysim-1.19/Spring", "crashed")])
    held.made_good(finished)


PARTS_OF_RAY: dict[str, tuple[str, dict[int, str]]] = {
    "workers": ("ray::_Worker", {0: ""}),
    "node": ("raylet/raylet", {3: LOST}),
    "head": ("gcs/gcs_server", {0: "", 3: LOST}),
}
"""What its processes are called, what an audit ends with that loses them, and what it says then. Ray looks for its head
for a minute before it gives up; an audit that needs no new worker may be done by then."""


@pytest.mark.parametrize("part", PARTS_OF_RAY)
def test_a_part_of_ray_is_killed(held: Scene, part: str) -> None:
    """Workers are replaced. Without a node or a head Ray ends the program, whose guard says so and leaves nobody."""
    name, ends = PARTS_OF_RAY[part]
    with held.program.started("run", held.matrix, "--db", held.database) as harness:
        harness.wait_for("dumping 8/")
        wait_until(lambda: _named(harness.process.pid, name), f"{name} runs")
        family = list(descendants(harness.process.pid))
        for pid in _named(harness.process.pid, name):
            os.kill(pid, signal.SIGKILL)
        finished = harness.finish()
    assert finished.code in ends, finished.stdout + finished.stderr
    assert "Traceback" not in finished.stdout + finished.stderr
    assert finished.stderr.endswith(ends[finished.code])  # Ray's core may have told of objects before
    assert bool(finished.stderr) == bool(ends[finished.code])
    wait_until(partial(_gone, family), "everything ends with the audit", within=30)
    assert rows(held.database, "SELECT * FROM changes WHERE newer LIKE '%1.19' AND older LIKE '%1.0'") == []
    assert rows(held.database, "SELECT count(*) FROM failures") == [(0,)]
    held.made_good(finished)


def test_the_program_is_killed(held: Scene) -> None:
    """As the system does it where memory runs out: its guard says so, and ends what is left of Ray."""
    with held.program.started("run", held.matrix, "--db", held.database) as harness:
        harness.wait_for("dumping 8/")
        family = list(descendants(harness.process.pid))
        os.kill(harness.program, signal.SIGKILL)
        finished = harness.finish()
    assert finished.code == 3
    assert "ended by SIGKILL, as the system does it where memory runs out; what was dumped" in finished.sentence
    wait_until(partial(_gone, family), "everything ends with the audit", within=30)
    held.made_good(finished)


def test_uv_is_killed(scene: Scene) -> None:
    """Nothing was found out about the releases, and nothing is said about them."""
    with socket.create_server(("127.0.0.1", 0)) as ear:  # an index that never answers
        environment = {
            "UV_DEFAULT_INDEX": f"http://127.0.0.1:{ear.getsockname()[1]}/simple",
            "UV_CACHE_DIR": str(scene.folder / "uv"),
            "RELEASE_AUDIT_CACHE": str(scene.folder / "cache"),
        }
        with scene.program.started("run", scene.matrix, "--db", scene.database, **environment) as harness:
            asking = partial(_named, harness.process.pid, "pip compile")
            wait_until(lambda: len(asking()) == len(STEADY), "uv asks for all releases")
            wait_until(lambda: _killed(asking()), "all of them are killed")
            finished = harness.finish()
    assert finished.code == 3, finished.stdout + finished.stderr
    failed = rows(scene.database, "SELECT status, reason FROM failures")
    assert set(failed) == {("worker-lost", "uv was ended by SIGKILL")}
    assert len(failed) == len(STEADY)
    scene.made_good(finished)


@pytest.mark.parametrize(
    ("version", "status", "code", "told"),
    [("3.10.4", "no-python", 3, "Failed to download"), ("3.99", "unresolved", 0, "No download found")],
)
def test_a_python_that_cannot_be_had(scene: Scene, version: str, status: str, code: int, told: str) -> None:
    """Where it is somewhere, this machine is at fault; where there is none in the world, the matrix is."""
    odd = {**release("1.19"), "python": version}
    write_matrix(scene.matrix, [*map(release, STEADY), odd], [SPRING, CHAOS], **SMALL)
    finished = scene.run(
        UV_PYTHON_INSTALL_MIRROR="http://127.0.0.1:9",
        UV_PYTHON_INSTALL_DIR=str(scene.folder / "pythons"),
        PYENV_ROOT=str(scene.folder / "pyenv"),
        UV_HTTP_RETRIES="0",
    )
    assert finished.code == code, finished.stdout + finished.stderr
    ((subject, found, reason),) = rows(scene.database, "SELECT subject, status, reason FROM failures")
    assert (subject, found) == ("tinysim-1.19", status)
    assert f"no Python {version} is installed, and uv could not download one: " in reason
    assert told in reason
    assert replace(scene, failing=subject).result() == scene.undisturbed
    write_matrix(scene.matrix, list(map(release, STEADY)), [SPRING, CHAOS], **SMALL)
    scene.made_good(finished)


def _killed(processes: list[int]) -> bool:
    """Whether none is left to be killed: the list of a busy machine's processes may lack one."""
    for pid in processes:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return not processes


def _gone(processes: list[int]) -> bool:
    return not any(running(pid) for pid in processes)


# The clock


@pytest.fixture(scope="module")
def clock(tmp_path_factory: pytest.TempPathFactory) -> Clock:
    """A clock that can be set while a program runs, for wall time and not for durations."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no compiler: the clock that is put before a program's libraries is written in C")
    folder = tmp_path_factory.mktemp("clock")
    source = Path(__file__).with_name("shifted_clock.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", folder / "clock.so", source, "-ldl"], check=True)
    return Clock(library=folder / "clock.so", setting=folder / "seconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """Where the library reads how far the clock is off."""

    library: Path
    setting: Path

    def set(self, days: int) -> dict[str, str]:
        self.setting.write_text(str(days * 86400), encoding="utf-8")
        return {"LD_PRELOAD": str(self.library), "SHIFTED_CLOCK": str(self.setting)}


def test_the_clock_is_set_back_between_runs(audited: Scene, clock: Clock) -> None:
    """The last run is the latest, whatever its clock said."""
    fewer = [release(version) for version in STEADY[:2]]
    write_matrix(audited.matrix, fewer, [SPRING, CHAOS], **SMALL)
    finished = audited.run(**clock.set(-400))
    assert finished.code == 0, finished.stdout + finished.stderr
    assert {row[2:4] for row in audited.result().pairs} == {("tinysim-1.0", "tinysim-1.7")}
    write_matrix(audited.matrix, list(map(release, STEADY)), [SPRING, CHAOS], **SMALL)
    audited.made_good()


def test_the_clock_jumps_during_a_run(held: Scene, clock: Clock) -> None:
    """Ahead, and then back to before the run began."""
    with held.program.started("run", held.matrix, "--db", held.database, **clock.set(0)) as harness:
        for shown, off in (("dumping 2/", 300), ("dumping 5/", -300)):
            harness.wait_for(shown)
            clock.set(off)
        finished = harness.finish()
    assert finished.code == 0, finished.stdout + finished.stderr
    assert held.result() == held.undisturbed
    ((seconds,),) = rows(held.database, "SELECT max(seconds) FROM dumps")
    assert 0 <= seconds < 300
    held.made_good(finished)
