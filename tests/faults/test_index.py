"""An index that is away, stalls, or gives something else than it said."""

from __future__ import annotations

import datetime
import os
import shutil
import signal
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.conftest import (
    rows,
)
from tests.faults.conftest import STEADY, Scene
from tests.package_index import PackageIndex, serving


@dataclass(kw_only=True)
class Moody(PackageIndex):
    """An index that gives wheels of another content than it says."""

    spoilt: str = ""
    """``short``: cut off in the middle; ``other``: of the right length, with other bytes."""
    breaking: str = ""
    """A file of which only half is sent from the second time on: the first time, uv looks for its metadata."""
    given: list[str] = field(default_factory=list)

    def sent(self, path: str, content: bytes) -> int:
        self.given.append(path)
        breaks = path == f"/files/{self.breaking}" and self.given.count(path) > 1
        return len(content) // 2 if breaks else len(content)

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


@pytest.mark.parametrize("stalls", [True, False])
def test_the_index_breaks_off_within_a_wheel(scene: Scene, index: Moody, *, stalls: bool) -> None:
    """It says nothing about that release, and the others are done."""
    index.breaking, index.stalls = "tinysim-1.7-py3-none-any.whl", stalls
    with serving(index):
        environment = _through(index, scene)
        finished = scene.run(**environment)
        assert finished.code == 3, finished.stdout + finished.stderr
        ((subject, status, reason),) = rows(scene.database, "SELECT subject, status, reason FROM failures")
        assert (subject, status) == ("tinysim-1.7", "unreachable"), reason
        assert "Failed to download `tinysim==1.7`" in reason
        done = rows(scene.database, "SELECT DISTINCT release FROM dumps WHERE status = 'ok' ORDER BY ALL")
        assert done == [("tinysim-1.0",), ("tinysim-1.3",)]
        index.breaking = ""
        scene.made_good(finished, **environment)


def test_the_index_no_longer_has_a_release(scene: Scene, index: Moody) -> None:
    with serving(index):
        environment = _through(index, scene)
        gone = index.uploaded.pop("tinysim-1.7-py3-none-any.whl")
        finished = scene.run(**environment)
        assert finished.code == 0, finished.stdout + finished.stderr
        ((status, reason),) = rows(scene.database, "SELECT status, reason FROM failures")
        assert status == "unresolved"
        assert "1.7" in reason
        index.uploaded["tinysim-1.7-py3-none-any.whl"] = gone
        shutil.rmtree(scene.folder / "uv")
        scene.made_good(finished, **environment)
