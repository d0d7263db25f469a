"""A cluster on a bad day: nodes are busy with somebody else's work, cannot reach the index, lose workers or their head.

The tests go by their order: the cluster grows from its head, which computes nothing and which the last one kills.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import psutil
import pytest

from audit.cluster.questions import SURVEY_SECONDS
from demo.nodes import Member, Nodes
from tests.conftest import Finished, Program, dumpers, rows, running, wait_until
from tests.faults.conftest import Scene
from tests.small_disks import small_disk

PATIENCE_SECONDS = 4.0
"""Instead of a minute and a half, where nobody is going to answer. An idle node may take longer on a slow machine."""

_IMPATIENT = """
import sys
from audit.cluster import questions, rounds
questions.SURVEY_SECONDS, questions.SILENT_SECONDS, rounds.LOOK_FOR_NODES_SECONDS = {patience}, 1.0, 1.0
from audit.guard import main
sys.argv[0] = "release-audit"
main()
"""

_SOON = "5"
"""Seconds for which Ray looks for its head before it gives up, instead of a minute."""

_ATTEMPTS = "2"
"""Of Ray to get into a cluster, a second apart, instead of twenty."""

_BUSY = """
import os, time, ray, ray.util.scheduling_strategies
ray.init(address=os.environ["HEAD"], log_to_driver=False)
(node,) = (each["NodeID"] for each in ray.nodes() if each["NodeManagerAddress"] == os.environ["NODE"])
there = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(node, soft=False)
Service = ray.remote(num_cpus=1, scheduling_strategy=there)(type("Service", (), {"starts": lambda self: True}))
services = [Service.remote() for _ in range(int(os.environ["CORES"]))]
ray.get([each.starts.remote() for each in services])
print("busy", flush=True)
time.sleep(600)
"""


@pytest.fixture(scope="module")
def nodes(environment: dict[str, str]) -> Iterator[Nodes]:
    with Nodes(environment) as started:
        started.start(slots=0)
        yield started


@pytest.fixture(scope="module")
def larger(nodes: Nodes) -> Member:
    """A node with three cores, at first the only one that computes."""
    return nodes.start(slots=3, RAY_gcs_rpc_server_reconnect_timeout_s=_SOON)


@pytest.fixture(scope="module")
def smaller(nodes: Nodes, larger: Member) -> Member:
    """Another one, which joins later."""
    return nodes.start(RAY_gcs_rpc_server_reconnect_timeout_s=_SOON)


def _audited(
    scene: Scene, nodes: Nodes, patience: float = SURVEY_SECONDS, variables: Mapping[str, str] = MappingProxyType({})
) -> Finished:
    return _impatient(scene, nodes, patience)(
        "run", scene.matrix, "--db", scene.database, "--address", nodes.address, **variables
    )


def _impatient(scene: Scene, nodes: Nodes, patience: float) -> Program:
    """Called by somebody on the head who soon takes for busy what is silent."""
    return replace(_on(nodes.members[0], scene), started_by=("-c", _IMPATIENT.format(patience=patience)))


@contextmanager
def _busy(nodes: Nodes, member: Member, cores: int) -> Iterator[None]:
    """As many of the node's cores are somebody else's."""
    head = nodes.members[0]
    variables = {**head.variables, "HEAD": nodes.address, "NODE": member.address, "CORES": str(cores)}
    with subprocess.Popen(
        [*head.prefix, sys.executable, "-c", _BUSY], env=variables, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    ) as other:  # fmt: skip
        try:
            assert other.stdout is not None
            assert other.stdout.readline() == "busy\n"
            yield
        finally:
            other.kill()


def test_all_nodes_are_busy(scene: Scene, nodes: Nodes, larger: Member) -> None:
    """Nobody waits for ever, or in silence; the caller's own part is stored, and the rest is made good."""
    with _busy(nodes, larger, 3):
        finished = _audited(scene, nodes, PATIENCE_SECONDS)
    assert finished.code == 3, finished.stdout + finished.stderr
    assert finished.stderr == ""
    assert f"waiting up to 4 s for {larger.address}: others may keep them busy" in finished.stdout
    assert f"{larger.address}: not used: it did not answer within 4 s" in finished.stdout
    failed = rows(scene.database, "SELECT status, reason FROM failures")
    assert {status for status, _ in failed} == {"worker-lost"}
    assert all(reason.endswith(f": {larger.address} did not answer within 4 s") for _, reason in failed), failed
    scene.made_good(finished)


def test_the_token_is_another(scene: Scene, nodes: Nodes) -> None:
    """Ray's core tells of each of its attempts, which nobody can keep it from; the sentence is the last line."""
    token = {"RAY_AUTH_TOKEN": "0" * 64, "RAY_AUTH_TOKEN_PATH": ""}
    finished = _audited(scene, nodes, variables={**token, "RAY_NUM_REDIS_GET_RETRIES": _ATTEMPTS})
    assert finished.code == 3, finished.stdout + finished.stderr
    assert "Traceback" not in finished.stdout + finished.stderr
    *attempts, sentence = finished.stderr.strip().splitlines()
    assert all("InvalidAuthToken" in line for line in attempts)
    assert sentence.startswith(f"release-audit: the Ray cluster at {nodes.address} could not be used: ")
    assert sentence.endswith("RAY_AUTH_MODE and the token have to be those of the head")
    scene.made_good(finished)


def test_a_node_is_busy_in_part(scene: Scene, nodes: Nodes, larger: Member) -> None:
    """No job waits for the cores that somebody else has, and it is told that they are not used."""
    with _busy(nodes, larger, 2):
        finished = _audited(scene, nodes)
    assert finished.code == 0, finished.stdout + finished.stderr
    assert scene.result() == scene.undisturbed
    assert f"{larger.address} works on fewer than its 3 cores: others may keep some busy" in finished.stdout


def test_a_node_joins_while_all_others_are_busy(
    scene: Scene, nodes: Nodes, larger: Member, request: pytest.FixtureRequest
) -> None:
    """It is noticed while the others are still waited for, and does all that there is."""
    arguments = ("run", scene.matrix, "--db", scene.database, "--address", nodes.address)
    with _busy(nodes, larger, 3), _impatient(scene, nodes, 20.0).started(*arguments) as harness:
        harness.wait_for(f"waiting up to 20 s for {larger.address}: others may keep them busy")
        joined = request.getfixturevalue("smaller")
        finished = harness.finish()
    assert finished.code == 0, finished.stdout + finished.stderr
    assert rows(scene.database, "SELECT * FROM failures") == []
    assert scene.result() == scene.undisturbed
    assert f"{larger.address}: not used: it did not answer within 20 s" in finished.stdout
    assert f"{joined.address}: " in finished.stdout.partition("Which node of the cluster did what:")[2]


def test_workers_on_one_node_are_killed(scene: Scene, nodes: Nodes, larger: Member, smaller: Member) -> None:
    program = _on(nodes.members[0], scene)
    with program.started("run", scene.matrix, "--db", scene.database, "--address", nodes.address) as harness:
        wait_until(lambda: dumpers(larger.cache), "the other node dumps")
        for worker in _workers(larger):
            with suppress(psutil.NoSuchProcess):  # it ended by itself
                worker.kill()
        finished = harness.finish()
    assert finished.code == 0, finished.stdout + finished.stderr
    assert "Traceback" not in finished.stdout + finished.stderr
    assert rows(scene.database, "SELECT * FROM failures") == []
    assert scene.result() == scene.undisturbed


def test_the_caller_is_killed(scene: Scene, nodes: Nodes, larger: Member, smaller: Member) -> None:
    """With its guard, so that nobody is left who could end anything: the other node does so by itself."""
    program = _on(nodes.members[0], scene)
    with program.started("run", scene.matrix, "--db", scene.database, "--address", nodes.address) as harness:
        wait_until(lambda: dumpers(larger.cache), "the other node dumps")
        left = [each.pid for each in _workers(larger)] + dumpers(larger.cache)
        os.killpg(harness.process.pid, signal.SIGKILL)
        finished = harness.finish()
    assert finished.code == -signal.SIGKILL
    wait_until(lambda: not any(map(running, left + dumpers(larger.cache))), "actors and dumpers end with the caller")
    scene.made_good(finished)


def test_a_node_cannot_reach_the_index(scene: Scene, nodes: Nodes, larger: Member, smaller: Member) -> None:
    """It has most of the cores, and what is tried there in vain is done elsewhere."""
    _without_virtualenvs(nodes)
    cut_off = nodes.start(slots=6, UV_DEFAULT_INDEX="http://127.0.0.1:9/simple", UV_HTTP_RETRIES="0")
    finished = _on(nodes.members[0], scene)("run", scene.matrix, "--db", scene.database, "--address", nodes.address)
    assert finished.code == 0, finished.stdout + finished.stderr
    assert rows(scene.database, "SELECT * FROM failures") == []
    assert scene.result() == scene.undisturbed
    assert f"{cut_off.address}: 0 cells in " in finished.stdout
    assert (cut_off.cache / "venvs").exists(), "it was tried there"


def test_a_node_has_a_full_disk(scene: Scene, nodes: Nodes, larger: Member, smaller: Member, tmp_path: Path) -> None:
    """So has this one, beside the one that cannot reach the index."""
    _without_virtualenvs(nodes)
    cache = tmp_path / "cache"
    with small_disk(cache, "2m"):
        cramped = nodes.start(slots=6, RELEASE_AUDIT_CACHE=str(cache))
        finished = _on(nodes.members[0], scene)("run", scene.matrix, "--db", scene.database, "--address", nodes.address)
        assert (cache / "venvs").exists(), "it was tried there"
    assert finished.code == 0, finished.stdout + finished.stderr
    assert rows(scene.database, "SELECT * FROM failures") == []
    assert scene.result() == scene.undisturbed
    assert f"{cramped.address}: 0 cells in " in finished.stdout


def _without_virtualenvs(nodes: Nodes) -> None:
    for member in nodes.members:
        shutil.rmtree(member.cache / "venvs", ignore_errors=True)


def test_the_caller_may_be_on_any_node(scene: Scene, nodes: Nodes, larger: Member) -> None:
    if not larger.network:
        pytest.skip("this system does not let nodes have namespaces")
    elsewhere = nodes.start(alone=True, RAY_gcs_rpc_server_reconnect_timeout_s=_SOON)
    finished = _on(elsewhere, scene)("run", scene.matrix, "--db", scene.database, "--address", nodes.address)
    assert finished.code == 0, finished.stdout + finished.stderr
    assert scene.result() == scene.undisturbed
    assert f"{larger.address}: " in finished.stdout.partition("Which node of the cluster did what:")[2]


def test_the_head_is_killed(scene: Scene, nodes: Nodes, larger: Member) -> None:
    """Ray ends the caller, whose guard says so, and what it had on the other node; the rest is made good elsewhere."""
    program = _on(nodes.members[0], scene)
    arguments = ("run", scene.matrix, "--db", scene.database, "--address", nodes.address)
    with program.started(*arguments, RAY_gcs_rpc_server_reconnect_timeout_s=_SOON) as harness:
        wait_until(lambda: dumpers(larger.cache), "the other node dumps")
        left = [each.pid for each in _workers(larger)] + dumpers(larger.cache)
        nodes.members[0].kill()
        finished = harness.finish()
    assert finished.code == 3, finished.stdout + finished.stderr
    assert "Traceback" not in finished.stdout + finished.stderr
    assert "as Ray does where a part of it was lost; what was dumped is stored" in finished.stderr.splitlines()[-1]
    wait_until(lambda: not any(map(running, left)), "actors and dumpers end with the caller")
    scene.made_good(finished)


def _on(member: Member, scene: Scene) -> Program:
    own = {"RELEASE_AUDIT_CACHE": scene.program.environment["RELEASE_AUDIT_CACHE"]}
    return replace(scene.program, environment={**member.variables, **own}, prefix=member.prefix)


def _workers(member: Member) -> Sequence[psutil.Process]:
    """The actors on a node that belong to an audit."""
    return [each for each in member.family() if _is_worker(each)]


def _is_worker(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):  # it has ended in between
        return "ray::_Worker" in " ".join(process.cmdline())
    return False
