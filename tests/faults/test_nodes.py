"""A cluster on a bad day: every node is busy with somebody else's work, the token is another one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from demo.nodes import Nodes
from tests.conftest import Finished, rows
from tests.faults.conftest import Scene

PATIENCE_SECONDS = 4.0
"""Instead of a minute and a half."""

_IMPATIENT = """
import sys
from audit.cluster import crew
crew.SURVEY_SECONDS, crew.SILENT_SECONDS = {patience}, 1.0
from audit.guard import main
sys.argv[0] = "release-audit"
main()
"""

_BUSY = """
import os, time, ray
ray.init(address=os.environ["HEAD"], log_to_driver=False)
work = ray.remote(num_cpus=1)(lambda: (print("busy", flush=True), time.sleep(600)))
ray.wait([work.remote()], timeout=0)
while ray.available_resources().get("CPU", 0):
    time.sleep(0.1)
print("busy", flush=True)
time.sleep(600)
"""


@pytest.fixture(scope="module")
def nodes(environment: dict[str, str]) -> Iterator[Nodes]:
    with Nodes(environment) as started:
        started.start()
        yield started


def _audited(scene: Scene, nodes: Nodes, **variables: str) -> Finished:
    """Run by somebody on the head who does not wait for long."""
    head = nodes.members[0]
    script = _IMPATIENT.format(patience=PATIENCE_SECONDS)
    arguments = ("run", str(scene.matrix), "--db", str(scene.database), "--address", nodes.address)
    done = subprocess.run(
        [*head.prefix, sys.executable, "-c", script, *arguments], cwd=scene.folder,
        env={**head.variables, "RELEASE_AUDIT_CACHE": scene.program.environment["RELEASE_AUDIT_CACHE"], **variables},
        capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip
    return Finished(code=done.returncode, stdout=done.stdout, stderr=done.stderr)


def test_all_nodes_are_busy(scene: Scene, nodes: Nodes) -> None:
    """Nobody waits for ever, or in silence; the caller's own part is stored, and the rest is made good."""
    head = nodes.members[0]
    with subprocess.Popen(
        [*head.prefix, sys.executable, "-c", _BUSY], env={**head.variables, "HEAD": nodes.address}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    ) as other:  # fmt: skip
        assert other.stdout is not None
        assert other.stdout.readline() == "busy\n"
        finished = _audited(scene, nodes)
        other.kill()
    assert finished.code == 3, finished.stdout + finished.stderr
    assert finished.stderr == ""
    assert f"waiting up to 4 s for {head.address}: others may keep them busy" in finished.stdout
    assert f"{head.address}: not used: it did not answer within 4 s" in finished.stdout
    failed = rows(scene.database, "SELECT status, reason FROM failures")
    assert {status for status, _ in failed} == {"worker-lost"}
    assert all(reason.endswith(f": {head.address} did not answer within 4 s") for _, reason in failed), failed
    scene.made_good(finished)


def test_the_token_is_another(scene: Scene, nodes: Nodes) -> None:
    """Ray's core tells of each of its attempts, which nobody can keep it from; the sentence is the last line."""
    finished = _audited(scene, nodes, RAY_AUTH_TOKEN="0" * 64, RAY_AUTH_TOKEN_PATH="")
    assert finished.code == 3, finished.stdout + finished.stderr
    assert "Traceback" not in finished.stdout + finished.stderr
    *attempts, sentence = finished.stderr.strip().splitlines()
    assert all("InvalidAuthToken" in line for line in attempts)
    assert sentence.startswith(f"release-audit: the Ray cluster at {nodes.address} could not be used: ")
    assert sentence.endswith("RAY_AUTH_MODE and the token have to be those of the head")
    scene.made_good(finished)
