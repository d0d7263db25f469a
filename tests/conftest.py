"""A wheelhouse with the tiny simulator, one cache of virtualenvs for the session, and ways to run the program."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import duckdb
import psutil
import pytest

from audit import folders
from audit.installing import uv_turns
from audit.installing.uv import Answer
from audit.storage.store import Store
from tests import tinysim

Found = TypeVar("Found")

PINS = ["gymnasium==1.3.0", "numpy<2.4"]
SPRING: dict[str, Any] = {
    "id": "tinysim:tinysim/Spring-v0", "name": "Spring", "start": {"low": [-1, -1], "high": [1, 1]},
}  # fmt: skip
CHAOS: dict[str, Any] = {
    "id": "tinysim:tinysim/Chaos-v0", "name": "Chaos", "start": {"low": [0.2, 0.2], "high": [0.8, 0.8]},
}  # fmt: skip
STIMULUS = {"seed": 7, "trajectories": 8, "steps": 60, "actions": "uniform"}

_PATIENCE_SECONDS = 300.0
"""For something to happen in a started program: seconds on an idle machine, ten times as many on a busy one."""

_LETTING_GO_SECONDS = 60.0
"""For the threads of a killed process to end: until then its files are locked."""

_LONGEST_RUN_SECONDS = 840.0
"""For one run of the program: the longest takes 60 on two idle cores."""

for _number in (signal.SIGINT, signal.SIGHUP):  # also where the tests were started with `nohup` or in the background
    if signal.getsignal(_number) == signal.SIG_IGN:
        signal.signal(_number, signal.SIG_DFL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A run of the program that has ended."""

    code: int
    stdout: str
    stderr: str

    @property
    def sentence(self) -> str:
        """What it said on standard error, which is one line that is not a traceback, but for what a system lacks."""
        assert "Traceback" not in self.stderr + self.stdout
        lines = [line for line in self.stderr.strip().splitlines() if not line.startswith("NOT PROTECTED: ")]
        assert len(lines) == 1, self.stderr
        assert lines[0].startswith("release-audit: ")
        return lines[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """A run of the program that goes on, at the head of its own process group as under a shell."""

    process: subprocess.Popen[bytes]
    folder: Path

    @property
    def stdout(self) -> str:
        return (self.folder / "stdout").read_text(encoding="utf-8")

    @property
    def program(self) -> int:
        """The number of the process that does the work: the one that was started is its guard."""
        (child,) = psutil.Process(self.process.pid).children()
        return int(child.pid)

    def wait_for(self, text: str) -> None:
        """Wait until it has printed the text."""
        wait_until(lambda: text in self.stdout or self.process.poll() is not None, f"{text!r} in {self.stdout}")
        assert text in self.stdout

    def finish(self, within: float = _PATIENCE_SECONDS) -> Finished:
        code = self.process.wait(within)
        return Finished(
            code=code, stdout=self.stdout, stderr=(self.folder / "stderr").read_text(encoding="utf-8", errors="replace")
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """The console script, run as a user does, in a folder of its own."""

    folder: Path
    environment: Mapping[str, str]
    prefix: tuple[str, ...] = ()
    """What runs it somewhere else, such as in a network namespace."""
    started_by: tuple[str, ...] = ("-m", "audit")
    """What Python is told to run."""

    def __call__(self, *arguments: str | Path, **environment: str) -> Finished:
        done = subprocess.run(
            self._command(arguments),
            cwd=self.folder,
            env={**self.environment, **environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=_LONGEST_RUN_SECONDS,
        )
        return Finished(code=done.returncode, stdout=done.stdout, stderr=done.stderr)

    @contextmanager
    def started(self, *arguments: str | Path, **environment: str) -> Iterator[Started]:
        """Start it; whatever the test does, it has ended afterwards."""
        folder = self.folder / f"started-{time.monotonic_ns()}"
        folder.mkdir()
        with (folder / "stdout").open("wb") as out, (folder / "stderr").open("wb") as err:
            process = subprocess.Popen(
                self._command(arguments),
                cwd=self.folder,
                env={**self.environment, **environment},
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
        try:
            yield Started(process=process, folder=folder)
        finally:
            process.kill()
            process.wait()

    def _command(self, arguments: Sequence[str | Path]) -> list[str]:
        return [*self.prefix, sys.executable, *self.started_by, *map(str, arguments)]


def wait_until(condition: Callable[[], Found | None], what: str, within: float = _PATIENCE_SECONDS) -> Found:
    """Ask again and again, with a deadline; what was found at last."""
    deadline = time.monotonic() + within
    while not (found := condition()):
        assert time.monotonic() < deadline, f"waited in vain: {what}"
        time.sleep(0.05)
    return found


def dumpers(cache: Path) -> list[int]:
    """Processes that run a Python of a virtualenv of this cache."""
    place = str(cache / "venvs")
    listed = psutil.process_iter(["cmdline", "status"])
    return [each.pid for each in listed if _runs(each) and any(place in part for part in each.info["cmdline"] or ())]


def descendants(pid: int) -> dict[int, str]:
    """The processes below one, with their names."""
    found: dict[int, str] = {}
    for each in psutil.Process(pid).children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # it ended in between
            found[each.pid] = each.name()
    return found


def running(pid: int) -> bool:
    """Whether a process is there and has not ended."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def _runs(process: Any) -> bool:
    return bool(process.info["status"] != psutil.STATUS_ZOMBIE)


def release(version: str, *, name: str = "", dependency: str = "1.0") -> dict[str, Any]:
    """A row of a matrix: a version of tinysim."""
    pins = [*PINS, f"tinydep=={dependency}"]
    return {"id": name or f"tinysim-{version}", "requires": [f"tinysim=={version}"], "pins": pins}


def write_matrix(
    path: Path, releases: Sequence[dict[str, Any]], environments: Sequence[dict[str, Any]], **more: Any
) -> Path:
    """Write a matrix, named as its file. JSON is YAML."""
    matrix = {
        "name": path.stem,
        "python": "3.11",
        "exclude-newer": "2026-11-01",
        "stimulus": STIMULUS,
        "releases": list(releases),
        "environments": list(environments),
        **more,
    }
    path.write_text(json.dumps(matrix, indent=1), encoding="utf-8")
    return path


def rows(database: Path, sql: str, *parameters: object) -> list[tuple[Any, ...]]:
    """Query a database, read-only; a program that was killed lets go of it a moment after its guard has ended."""
    deadline = time.monotonic() + _LETTING_GO_SECONDS
    while True:
        try:
            with duckdb.connect(str(database), read_only=True) as connection:
                return connection.execute(sql, list(parameters)).fetchall()
        except duckdb.IOException as error:
            if "lock" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def behaviours(database: Path, matrix: str) -> list[tuple[Any, ...]]:
    """What every cell of a matrix did."""
    return rows(
        database,
        "SELECT environment, release, status, reason, behaviour FROM dumps WHERE matrix = ? ORDER BY ALL",
        matrix,
    )


def pairs(database: Path, matrix: str) -> list[tuple[Any, ...]]:
    """Everything that the view says of the pairs of a matrix, but for which run it was and when."""
    return rows(database, "SELECT * EXCLUDE (run_id, finished) FROM pairs WHERE matrix = ? ORDER BY ALL", matrix)


@pytest.fixture(scope="session")
def wheelhouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheelhouse")
    tinysim.build(folder)
    return folder


@pytest.fixture(scope="session")
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def environment(wheelhouse: Path, shared_cache: Path) -> dict[str, str]:
    """The environment variables of a user who has the wheelhouse among the sources of uv."""
    own = {key: value for key, value in os.environ.items() if key not in ("RAY_ADDRESS", "COLUMNS", "FORCE_COLOR")}
    # The Python itself stands before the shims of a version manager, which uv would ask anew each time.
    path = f"{Path(sys.base_prefix) / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return own | {"UV_FIND_LINKS": str(wheelhouse), "RELEASE_AUDIT_CACHE": str(shared_cache), "PATH": path}


@pytest.fixture
def release_audit(environment: dict[str, str], tmp_path: Path) -> Program:
    return Program(folder=tmp_path, environment=environment)


@pytest.fixture(scope="module")
def module_audit(environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Program:
    """The program in a folder that the tests of a module share."""
    return Program(folder=tmp_path_factory.mktemp("module"), environment=environment)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "audit.duckdb") as opened:
        yield opened


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache that nobody else has. Pytest cannot remove folders as deep as some tests leave there."""
    monkeypatch.setenv("RELEASE_AUDIT_CACHE", str(tmp_path / "cache"))
    yield tmp_path / "cache"
    folders.remove(tmp_path / "cache")


@pytest.fixture
def sources(tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that uv takes packages from."""
    (tmp_path / "sources").mkdir()
    monkeypatch.setenv("UV_FIND_LINKS", str(tmp_path / "sources"))
    return tmp_path / "sources"


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is built, as often as it is."""
    done: list[str] = []
    build = uv_turns.build

    def noted(asked: Sequence[str], *more: Any) -> Answer:
        done.extend(each for each in asked if "==" in each)
        return build(asked, *more)

    monkeypatch.setattr(uv_turns, "build", noted)
    return done
