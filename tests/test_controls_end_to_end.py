"""Controls on the tiny simulator: releases that do not reproduce themselves, and an audit that could not have seen."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import tinysim
from tests.conftest import SPRING, Program, release, rows, write_matrix


@pytest.fixture(scope="module")
def audited(module_audit: Program) -> Path:
    releases = [release(version) for version in ("1.0", "1.1", "1.3", "1.30", "1.31", "1.32")]
    matrix = write_matrix(
        module_audit.folder / "wobbly.yaml", releases, [SPRING], bank={"states": 64}, pairs={"against": "tinysim-1.0"}
    )
    database = module_audit.folder / "audit.duckdb"
    done = module_audit("run", matrix, "--db", database, "--check")
    assert done.code == 1, done.stdout + done.stderr
    return database


def test_what_does_not_reproduce_itself_is_void_and_not_changed(audited: Path) -> None:
    found = dict(rows(audited, "SELECT newer, verdict FROM pairs"))
    assert found == {
        "tinysim-1.1": "identical",
        "tinysim-1.3": "changed",
        "tinysim-1.30": "nondeterministic",
        "tinysim-1.31": "nondeterministic",
        "tinysim-1.32": "nondeterministic",
    }


@pytest.mark.parametrize(
    ("version", "words"),
    [("1.30", "imposed again"), ("1.31", "between two processes"), ("1.32", "keeps something of the state before")],
)
def test_the_reason_says_how_it_showed(audited: Path, version: str, words: str) -> None:
    ((reason,),) = rows(audited, "SELECT reason FROM pairs WHERE newer = ?", f"tinysim-{version}")
    assert words in reason


def test_a_fault_was_planted_and_seen(audited: Path) -> None:
    ((baseline, reproduced, planted, constant, ratio),) = rows(
        audited, "SELECT baseline, reproduced, planted, constant, planted_ratio FROM environments"
    )
    assert (baseline, reproduced, planted, constant) == ("tinysim-1.0", "yes", "seen", "dt")
    assert ratio > 1e6


def test_a_second_run_runs_no_control_again(audited: Path, module_audit: Program) -> None:
    before = rows(audited, "SELECT count(*) FROM internal.dumps")
    done = module_audit("run", module_audit.folder / "wobbly.yaml", "--db", audited)
    assert done.code == 0
    assert "0 dumped now" in done.stdout
    assert rows(audited, "SELECT count(*) FROM internal.dumps") == before


_SPENT = """
import os, sys, tinydep

MARK = os.path.join(sys.pycache_prefix, "dumped")
SPENT = os.path.exists(MARK)
"""


def test_one_that_cannot_be_run_again_is_told_once_and_the_run_is_recorded(
    release_audit: Program, wheelhouse: Path
) -> None:
    """It is changed, so that it is asked to reproduce itself, and raises in every process but its first."""
    replaced = {
        "import tinydep\n": _SPENT,
        "damping = 0.3": "damping = 0.31",
        "        position, velocity = self.state\n": "        open(MARK, 'wb').close()\n"
        "        assert not SPENT, 'one process only'\n"
        "        position, velocity = self.state\n",
    }
    tinysim.write_plant(wheelhouse, tinysim.Plant(version="1.41", what="raises when run again", replaced=replaced))
    matrix = write_matrix(
        release_audit.folder / "spent.yaml", [release("1.0"), release("1.41")], [SPRING], bank={"states": 16}
    )
    for _ in range(2):
        done = release_audit("run", matrix, "--no-explain")
        assert done.code == 0, done.stdout + done.stderr
        database = release_audit.folder / "results/audit.duckdb"
        failed = rows(database, "SELECT subject, status, reason FROM failures")
        assert failed == [("tinysim-1.41/Spring (again)", "raised", "AssertionError: one process only")]
        assert rows(database, "SELECT verdict FROM pairs") == [("changed",)]


def test_an_audit_that_would_not_have_seen_a_change_says_so(release_audit: Program) -> None:
    matrix = write_matrix(
        release_audit.folder / "blind.yaml",
        [release("1.33"), release("1.33", name="twice")],
        [SPRING],
        bank={"states": 64},
    )
    done = release_audit("run", matrix)
    assert done.code == 3
    assert "BLIND: Spring" in done.stdout
    assert "The audit is blind" in done.stdout
    ((planted, constant),) = rows(
        release_audit.folder / "results/audit.duckdb", "SELECT planted, constant FROM environments"
    )
    assert (planted, constant) == ("missed", "dt")


def test_an_environment_without_a_constant_is_not_called_blind(release_audit: Program) -> None:
    chaos = {"id": "tinysim:tinysim/Chaos-v0", "name": "Chaos", "start": {"low": [0.2, 0.2], "high": [0.8, 0.8]}}
    matrix = write_matrix(release_audit.folder / "chaos.yaml", [release("1.0")], [chaos], bank={"states": 16})
    done = release_audit("run", matrix)
    assert done.code == 0, done.stdout
    ((planted, reason),) = rows(
        release_audit.folder / "results/audit.duckdb", "SELECT planted, reason FROM environments"
    )
    assert planted == "unknown"
    assert "no constant" in reason
