"""An audit on a real Ray cluster of several nodes that share no files, undisturbed, with a node lost, and mixed.

All nodes are processes of this machine. Each has a home and caches of its own and, where that is allowed, a network
namespace with an address of its own.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.metadata import distribution
from pathlib import Path

import psutil
import pytest
from packaging.requirements import Requirement

from audit import machine
from audit.installing import uv
from demo.nodes import Member, Nodes
from tests.conftest import (
    CHAOS,
    SPRING,
    Finished,
    Program,
    behaviours,
    dumpers,
    pairs,
    release,
    rows,
    running,
    wait_until,
    write_matrix,
)

FEW = {"bank": {"states": 16}, "stimulus": {"seed": 7, "trajectories": 2, "steps": 60, "actions": "uniform"}}
BALL = {"id": "tinysim:tinysim/Ball-v0", "name": "Ball", "start": {"low": [0.5, -1], "high": [1.5, 1]}}
ROOT = Path(__file__).resolve().parent.parent
_WATCHFUL = {"RAY_health_check_period_ms": "1000"}
"""Ray looks at its nodes every second instead of every three, and after five looks in vain says that one is gone."""
OTHER_CLASS = "/nowhere"
"""A library path: it can put another libm before the system's, so that it is part of a machine's class."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clustered:
    """A cluster of three nodes, and the same matrix audited on it and without it."""

    nodes: Nodes
    program: Program
    matrix: Path
    local: Path
    database: Path
    finished: Finished

    @property
    def name(self) -> str:
        return self.matrix.stem


@pytest.fixture(scope="module")
def nodes(environment: dict[str, str]) -> Iterator[Nodes]:
    with Nodes({**environment, **_WATCHFUL}) as started:
        started.start_several(3)
        yield started


@pytest.fixture(scope="module")
def program(nodes: Nodes, module_audit: Program) -> Program:
    """The program on the cluster's head."""
    head = nodes.members[0]
    return replace(module_audit, environment=head.variables, prefix=head.prefix)


@pytest.fixture(scope="module")
def clustered(nodes: Nodes, program: Program, module_audit: Program) -> Clustered:
    folder = module_audit.folder
    slow = [release("1.40", name="slow"), release("1.40", name="slow-and-stiffer", dependency="2.0")]
    matrix = write_matrix(folder / "clustered.yaml", [release("1.0"), *slow], [SPRING, CHAOS], **FEW)
    local = module_audit("run", matrix, "--db", folder / "local.duckdb")
    assert local.code == 0, local.stderr
    finished = program("run", matrix, "--db", folder / "cluster.duckdb", "--address", nodes.address)
    return Clustered(
        nodes=nodes,
        program=program,
        matrix=matrix,
        local=folder / "local.duckdb",
        database=folder / "cluster.duckdb",
        finished=finished,
    )


def test_a_cluster_says_what_one_machine_says(clustered: Clustered) -> None:
    assert clustered.finished.code == 0, clustered.finished.stderr
    assert pairs(clustered.database, clustered.name) == pairs(clustered.local, clustered.name)
    assert behaviours(clustered.database, clustered.name) == behaviours(clustered.local, clustered.name)
    verdicts = rows(clustered.database, "SELECT DISTINCT verdict FROM pairs ORDER BY ALL")
    assert verdicts == [("changed",), ("identical",)]


def test_nodes_build_what_they_run_and_no_more(clustered: Clustered) -> None:
    """Three virtualenvs are needed. The driver builds the baseline's, to ask it, on the node where it is."""
    built = [{path.parent.name for path in each.cache.glob("venvs/*/recipe.json")} for each in clustered.nodes.members]
    assert all(built)
    assert len(set.union(*built)) == 3
    assert sum(map(len, built)) <= 4  # one may be there twice, where a node would have been idle
    told = clustered.finished.stdout.partition("Which node of the cluster did what:")[2]
    assert told.count("virtualenvs built") == 3


def test_a_second_run_asks_no_cluster(clustered: Clustered) -> None:
    """All is known, so that it does not matter that there is nobody at the address."""
    again = clustered.program("run", clustered.matrix, "--db", clustered.database, "--address", "127.0.0.1:1")
    assert again.code == 0, again.stderr
    assert "0 dumped now, 6 known from before" in again.stdout


def test_a_node_that_is_killed_changes_nothing(clustered: Clustered) -> None:
    database = clustered.program.folder / "killed.duckdb"
    arguments = ("run", clustered.matrix, "--db", database, "--address", clustered.nodes.address)
    with clustered.program.started(*arguments) as harness:
        victim = wait_until(lambda: _at_work(clustered.nodes), "a node other than the driver's runs a slow release")
        family = [each.pid for each in victim.family()]
        victim.kill()
        finished = harness.finish()
    assert finished.code == 0, finished.stdout + finished.stderr
    assert not any(map(running, family))
    assert pairs(database, clustered.name) == pairs(clustered.local, clustered.name)
    assert behaviours(database, clustered.name) == behaviours(clustered.local, clustered.name)
    assert "then it was lost" in finished.stdout
    assert "raylet" not in finished.stdout + finished.stderr


def _at_work(nodes: Nodes) -> Member | None:
    """A node but the driver's that runs a dumper, a slow release's: the baseline is at home with the driver."""
    return next((member for member in nodes.members[1:] if dumpers(member.cache)), None)


def test_classes_of_machines_are_not_mixed(nodes: Nodes, program: Program, tmp_path: Path) -> None:
    """A node of another class, which has Ray and nothing else, takes environments of its own or none."""
    bare = nodes.start(slots=3, python=_bare_python(tmp_path), LD_LIBRARY_PATH=OTHER_CLASS)
    here = machine.here()
    other = replace(here, library_path=OTHER_CLASS).digest
    matrix = write_matrix(
        tmp_path / "mixed.yaml", [release("1.0"), release("1.3"), release("1.99")], [SPRING, CHAOS, BALL], **FEW
    )
    database = tmp_path / "mixed.duckdb"
    finished = program("run", matrix, "--db", database, "--address", nodes.address)
    assert finished.code == 0, finished.stdout + finished.stderr
    by_class = "SELECT environment, list(DISTINCT machine) FROM dumps WHERE machine IS NOT NULL GROUP BY ALL"
    classes = rows(database, by_class)
    assert len(classes) == 3
    assert all(len(found) == 1 for _, found in classes)
    assert {found[0] for _, found in classes} == {here.digest, other}, finished.stdout
    verdicts = "SELECT environment, verdict FROM pairs WHERE newer = 'tinysim-1.3' ORDER BY ALL"
    assert rows(database, verdicts) == [("Ball", "identical"), ("Chaos", "identical"), ("Spring", "changed")]
    ((failed, stage, status),) = rows(database, "SELECT subject, stage, status FROM failures")
    assert (failed, stage, status) == ("tinysim-1.99", "build", "unbuilt")  # of the whole release, as on one machine
    assert list(bare.cache.glob("harness/*/pydantic")), "what the harness imports was installed there"


def _bare_python(folder: Path) -> Path:
    """A Python that has pip, Ray and what Ray requires, and nothing that only the harness needs."""
    python = folder / "bare" / "bin" / "python"
    assert uv.call("venv", "--seed", "--python", sys.executable, "--no-project", str(folder / "bare")).ok
    (packages,) = (folder / "bare" / "lib").glob("python*/site-packages")
    for place in _places("ray", set()):
        if not (packages / place.name).exists():
            (packages / place.name).symlink_to(place)
    for name, code in (("ray", 0), ("pydantic", 1)):
        assert subprocess.run([python, "-c", f"import {name}"], capture_output=True, check=False).returncode == code
    return python


def _places(name: str, seen: set[str]) -> set[Path]:
    """The files and folders of a distribution and of all that it requires, as they are installed here."""
    seen.add(name)
    found = distribution(name)
    tops = {file.parts[0] for file in found.files or () if file.parts[0] not in ("..", "__pycache__")}
    required = (Requirement(text) for text in found.requires or ())
    names = {each.name for each in required if each.marker is None or each.marker.evaluate({"extra": ""})} - seen
    places = {Path(str(found.locate_file(top))) for top in tops}
    return places.union(*(_places(each, seen) for each in names))


def test_a_client_address_is_refused_with_the_way_to_do_it(release_audit: Program) -> None:
    matrix = write_matrix(release_audit.folder / "client.yaml", [release("1.0")], [SPRING])
    finished = release_audit("run", matrix, "--address", "ray://127.0.0.1:10001")
    assert finished.code == 3
    assert "run release-audit on a machine of the cluster" in finished.sentence


def test_the_demonstration_interrupted_leaves_nothing_behind(release_audit: Program, tmp_path: Path) -> None:
    matrix = write_matrix(tmp_path / "shown.yaml", [release("1.0"), release("1.3")], [SPRING], **FEW)
    command = [sys.executable, "-m", "demo", str(matrix), "--db", str(tmp_path / "shown.duckdb")]
    log = tmp_path / "log"
    with log.open("wb") as output:
        shown = subprocess.Popen(
            command, cwd=ROOT, env=dict(release_audit.environment), stdout=output, stderr=output, start_new_session=True
        )
    try:
        wait_until(lambda: b"listing" in log.read_bytes() or shown.poll() is not None, "the audit begins")
        folder = log.read_text().partition("with its files in ")[2].partition("/node1")[0]
        before = _processes(folder)
        os.killpg(shown.pid, signal.SIGINT)
        wait_until(lambda: shown.poll() is not None, "it takes its nodes down")
        assert shown.returncode == 130, log.read_text()
    finally:
        shown.kill()
        shown.wait()
    assert len(before) >= 4, "three nodes and their head's store were running"
    assert _processes(folder) == []
    assert not Path(folder).exists()


def _processes(folder: str) -> list[int]:
    """Those that were called with something in the folder."""
    listed = psutil.process_iter(["cmdline"])
    return [each.pid for each in listed if any(folder in part for part in each.info["cmdline"] or ())]
