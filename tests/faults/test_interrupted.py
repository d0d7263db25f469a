"""An audit that is ended from outside, at any stage and in any way: the same command makes it good."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import CHAOS, SPRING, Finished, descendants, dumpers, release, running, wait_until, write_matrix
from tests.faults.conftest import SMALL, STEADY, Scene

STAGES = {
    "asking-the-index": "listing 1/1",
    "resolving": "resolving 1/",
    "building": "building 1/",
    "probing": "probing 1/",
    "filling-banks": "filling banks 1/",
    "starting-to-dump": "filling banks 2/",
    "dumping": "dumping 3/",
    "comparing": "comparing 1/",
    "looking-again": "(again)",
    "explaining": "examining 1/",
}
"""What is printed when an audit is there. It goes on while it is hit: a little later will do as well."""
LAST = "explaining"
"""Nothing is announced after it: a slow release keeps the audit there."""


def _hit(scene: Scene, shown: str, *, number: signal.Signals, group: bool, **environment: str) -> Finished:
    """Send a signal when the text has been printed; wait until the whole family has ended."""
    arguments = ("run", scene.matrix, "--db", scene.database)
    with scene.program.started(*arguments, **environment) as harness:
        harness.wait_for(shown)
        family = descendants(harness.process.pid)
        (os.killpg if group else os.kill)(harness.process.pid, number)
        finished = harness.finish()
        wait_until(lambda: not [pid for pid in family if running(pid)], f"{family} end with the harness")
    return finished


@pytest.mark.parametrize("stage", STAGES)
def test_control_c_while(staged: Scene, own_venvs_if_building: dict[str, str], stage: str) -> None:
    environment = own_venvs_if_building
    finished = _hit(staged, STAGES[stage], number=signal.SIGINT, group=True, **environment)
    assert finished.code == 130, finished.stderr
    assert "interrupted; what was dumped is stored" in finished.sentence
    staged.made_good(finished, **environment)


@pytest.mark.parametrize("stage", STAGES)
def test_killed_while(staged: Scene, own_venvs_if_building: dict[str, str], stage: str) -> None:
    environment = own_venvs_if_building
    finished = _hit(staged, STAGES[stage], number=signal.SIGKILL, group=False, **environment)
    assert finished.code == -signal.SIGKILL
    assert "Traceback" not in finished.stderr
    cache = Path({**staged.program.environment, **environment}["RELEASE_AUDIT_CACHE"])
    assert (cache / "locks").is_dir(), "it is the one in use"
    wait_until(lambda: not dumpers(cache), "dumpers end with the harness")
    staged.made_good(finished, **environment)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_ended_by(scene: Scene, number: signal.Signals) -> None:
    """As a service manager does it, or a terminal that is closed."""
    finished = _hit(scene, "dumping 2/", number=number, group=False)
    assert finished.code == 130
    assert "interrupted" in finished.sentence
    scene.made_good(finished)


def test_killed_again_and_again(scene: Scene) -> None:
    """Each run gets a little further."""
    for shown in ("probing 1/", "dumping 1/", "dumping 2/"):
        before = scene.stored()
        _hit(scene, shown, number=signal.SIGKILL, group=False)
        assert before.items() <= scene.stored().items()
    scene.made_good()


def test_nobody_reads_what_is_printed(scene: Scene) -> None:
    """As in `release-audit run … | head -1`."""
    command = [sys.executable, "-m", "audit", "run", str(scene.matrix), "--db", str(scene.database)]
    harness = subprocess.Popen(
        command,
        cwd=scene.folder,
        env=scene.program.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert harness.stdout is not None
    assert harness.stderr is not None
    with harness.stdout, harness.stderr:
        harness.stdout.readline()
        harness.stdout.close()
        told = harness.stderr.read()
        assert harness.wait() == 3
    assert told == (
        b"release-audit: nobody reads any more what is printed; what was dumped is stored, the same command continues\n"
    )
    scene.made_good()


@pytest.fixture
def staged(request: pytest.FixtureRequest, scene: Scene) -> Scene:
    """The scene, with a slow release where it has to stay at its last stage."""
    if request.node.callspec.params["stage"] == LAST:
        write_matrix(scene.matrix, list(map(release, [*STEADY, "1.19"])), [CHAOS, SPRING], **SMALL)
    return scene


@pytest.fixture
def own_venvs_if_building(request: pytest.FixtureRequest, scene: Scene) -> dict[str, str]:
    """Nothing is built where all virtualenvs are there."""
    if request.node.callspec.params["stage"] != "building":
        return {}
    return {"RELEASE_AUDIT_CACHE": str(scene.folder / "cache")}
