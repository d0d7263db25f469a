"""A machine on a bad day: processes that vanish, disks that fill up, an index that is away, a clock that jumps."""

from __future__ import annotations

import datetime
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psutil
import pytest

from tests.conftest import (
    CHAOS,
    SPRING,
    Finished,
    descendants,
    dumpers,
    release,
    rows,
    running,
    wait_until,
    write_matrix,
)
from tests.faults.conftest import SMALL, STEADY, Scene
from tests.package_index import PackageIndex, serving

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
    wait_until(partial(_gone, family), "everything ends with the audit", within=10)
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
    wait_until(partial(_gone, family), "everything ends with the audit", within=10)
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
            for pid in asking():
                os.kill(pid, signal.SIGKILL)
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
    assert scene.result() == scene.undisturbed
    write_matrix(scene.matrix, list(map(release, STEADY)), [SPRING, CHAOS], **SMALL)
    scene.made_good(finished)


def _gone(processes: list[int]) -> bool:
    return not any(running(pid) for pid in processes)


# Disks


@contextmanager
def small_disk(place: Path, size: str) -> Iterator[None]:
    """A disk of that size at the place; a filesystem in memory, which only root can mount."""
    place.mkdir(parents=True, exist_ok=True)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"no disk can be mounted here: {mounted.stderr.decode().strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def _make_room(place: Path) -> None:
    subprocess.run(["mount", "-o", "remount,size=32m", str(place)], check=True)


def _says_that_the_disk_is_full(finished: Finished) -> bool:
    """In a sentence that names something."""
    told = finished.sentence
    return ("the disk is full" in told or "No space left" in told) and "None" not in told


@pytest.mark.parametrize(("size", "stored"), [("64k", False), ("160k", False), ("320k", True)])
def test_the_disk_of_the_results_is_full(scene: Scene, size: str, stored: bool) -> None:
    """Before anything is stored, or in the middle; then there is room, and it goes on from there."""
    with small_disk(scene.database.parent, size):
        finished = scene.run()
        assert finished.code == 3, finished.stdout
        assert _says_that_the_disk_is_full(finished), finished.stderr
        assert bool(scene.stored()) == stored
        _make_room(scene.database.parent)
        scene.made_good(finished)


def test_the_disk_of_the_results_fills_up_and_is_emptied(scene: Scene) -> None:
    """What was stored before it was full is there, and used."""
    with small_disk(scene.database.parent, "16m"):
        (scene.database.parent / "ballast").write_bytes(b"0" * (16 * 2**20 - 300 * 2**10))
        finished = scene.run()
        (scene.database.parent / "ballast").unlink()
        assert finished.code == 3, "the disk was not full: make it smaller"
        assert _says_that_the_disk_is_full(finished), finished.stderr
        assert scene.stored()
        scene.made_good(finished)


def test_the_disk_of_the_virtualenvs_is_full(scene: Scene) -> None:
    cache = scene.folder / "cache"
    with small_disk(cache, "2m"):
        finished = scene.run(RELEASE_AUDIT_CACHE=str(cache), UV_LINK_MODE="copy")
        assert finished.code == 3
        assert finished.stderr == ""
        failed = rows(scene.database, "SELECT status, reason FROM failures")
        assert [status for status, _ in failed] == ["disk-full"] * len(STEADY), failed
        assert all("No space left on device" in reason for _, reason in failed)
        assert scene.stored() == {}
    scene.made_good(finished)


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


def test_the_clock_is_set_back_between_runs(scene: Scene, clock: Clock) -> None:
    """The last run is the latest, whatever its clock said."""
    scene.made_good()
    fewer = [release(version) for version in STEADY[:2]]
    write_matrix(scene.matrix, fewer, [SPRING, CHAOS], **SMALL)
    finished = scene.run(**clock.set(-400))
    assert finished.code == 0, finished.stdout + finished.stderr
    assert {row[2:4] for row in scene.result()} == {("tinysim-1.0", "tinysim-1.2")}
    write_matrix(scene.matrix, list(map(release, STEADY)), [SPRING, CHAOS], **SMALL)
    scene.made_good()


@pytest.mark.parametrize("off", [300, -300])
def test_the_clock_jumps_during_a_run(held: Scene, clock: Clock, off: int) -> None:
    with held.program.started("run", held.matrix, "--db", held.database, **clock.set(0)) as harness:
        harness.wait_for("dumping 4/")
        clock.set(off)
        finished = harness.finish()
    assert finished.code == 0, finished.stdout + finished.stderr
    assert held.result() == held.undisturbed
    ((seconds,),) = rows(held.database, "SELECT max(seconds) FROM dumps")
    assert 0 <= seconds < 300
    held.made_good(finished)


# The index


@dataclass(kw_only=True)
class Moody(PackageIndex):
    """An index that gives wheels of another content than it says."""

    spoilt: str = ""
    """``short``: cut off in the middle; ``other``: of the right length, with other bytes."""

    def answer(self, path: str) -> tuple[str, bytes] | None:
        found = super().answer(path)
        if found is None or not path.startswith("/files/tinysim") or not self.spoilt:
            return found
        kind, content = found
        return kind, content[: len(content) // 2] if self.spoilt == "short" else content[:-4] + b"oops"


@pytest.fixture
def index(tmp_path: Path) -> Moody:
    """The steady versions, and what they depend on."""
    folder = tmp_path / "published"
    folder.mkdir()
    found = Moody(folder=folder)
    day = datetime.date(2026, 1, 1)
    for version in STEADY:
        found.publish(version, version, day)
    found.publish_dependency("1.0", day)
    return found


def _through(index: Moody, scene: Scene) -> dict[str, str]:
    """Wheels of the simulator come from this index, and nothing of it is remembered from before."""
    return {
        "UV_FIND_LINKS": "",
        "UV_INDEX": f"{index.address}/simple",
        "UV_HTTP_RETRIES": "0",
        "UV_HTTP_TIMEOUT": "5",
        "UV_CACHE_DIR": str(scene.folder / "uv"),
        "RELEASE_AUDIT_CACHE": str(scene.folder / "cache"),
    }


def test_the_index_goes_away_between_locks_and_wheels(scene: Scene, index: Moody) -> None:
    with serving(index):
        environment = _through(index, scene)
        with scene.program.started("run", scene.matrix, "--db", scene.database, **environment) as harness:
            harness.wait_for("resolving 3/")
            os.kill(harness.process.pid, signal.SIGKILL)
            harness.finish()
        shutil.rmtree(scene.folder / "uv")
    away = scene.run(**environment)
    assert away.code == 3, away.stdout + away.stderr
    assert "cannot be reached" in away.stderr or "unreachable" in away.stdout
    assert rows(scene.database, "SELECT count(*) FROM internal.dumps") == [(0,)]
    scene.made_good(away)


@pytest.mark.parametrize(
    ("spoilt", "status", "reason"),
    [("short", "unresolved", "has an invalid package format"), ("other", "unbuilt", "Failed to download `tinysim==")],
)
def test_the_index_gives_other_wheels_than_it_says(
    scene: Scene, index: Moody, spoilt: str, status: str, reason: str
) -> None:
    """Nothing of them is installed, and nothing is remembered of it."""
    with serving(index):
        environment = _through(index, scene)
        index.spoilt = spoilt
        finished = scene.run(**environment)
        assert finished.code == 3, finished.stdout + finished.stderr
        assert finished.stderr == ""
        failed = rows(scene.database, "SELECT status, reason FROM failures")
        assert [each for each, _ in failed] == [status] * len(STEADY), failed
        assert all(reason in told for _, told in failed), failed
        assert not list((scene.folder / "cache").glob("venvs/*/lib/*/site-packages/tinysim"))
        index.spoilt = ""
        scene.made_good(finished, **environment)


def test_the_index_no_longer_has_a_release(scene: Scene, index: Moody) -> None:
    with serving(index):
        environment = _through(index, scene)
        gone = index.uploaded.pop("tinysim-1.2-py3-none-any.whl")
        finished = scene.run(**environment)
        assert finished.code == 0, finished.stdout + finished.stderr
        ((status, reason),) = rows(scene.database, "SELECT status, reason FROM failures")
        assert status == "unresolved"
        assert "1.2" in reason
        index.uploaded["tinysim-1.2-py3-none-any.whl"] = gone
        shutil.rmtree(scene.folder / "uv")
        scene.made_good(finished, **environment)
