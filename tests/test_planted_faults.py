"""Faults that act only somewhere: each must be found there, with the right output, and none right after a reset."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Program, release, rows, write_matrix

BALL: dict[str, Any] = {"id": "tinysim:tinysim/Ball-v0", "name": "Ball"}
FAULTS = {
    "1.20": "state, observation, reward",
    "1.21": "state, observation, reward",
    "1.22": "state, observation, reward",
    "1.23": "reward",
    "1.24": "terminated",
    "1.25": "reset",
}
REORDERED = "1.26"


@pytest.fixture(scope="module")
def audited(module_audit: Program) -> Path:
    """The faults twice: on a bank of states, and on the first step after reset under no action alone."""
    releases = [release(version) for version in ("1.0", *FAULTS, REORDERED)]
    database = module_audit.folder / "audit.duckdb"
    against = {"pairs": {"against": "tinysim-1.0"}}
    banked = write_matrix(module_audit.folder / "banked.yaml", releases, [BALL], **against)
    near = write_matrix(
        module_audit.folder / "near.yaml",
        releases,
        [BALL],
        **against,
        bank={"states": 0},
        stimulus={"trajectories": 8, "steps": 1, "actions": "zero", "start": {"position": 0.05, "velocity": 0.05}},
    )
    for matrix in (banked, near):
        done = module_audit("run", matrix, "--db", database)
        assert done.code == 0, done.stdout + done.stderr
    return database


@pytest.mark.parametrize(("version", "outputs"), FAULTS.items())
def test_a_fault_that_acts_only_somewhere_is_found_there(audited: Path, version: str, outputs: str) -> None:
    ((verdict, changed, reason),) = rows(
        audited,
        "SELECT verdict, outputs_changed, reason FROM pairs WHERE matrix = 'banked' AND newer = ?",
        f"tinysim-{version}",
    )
    assert (verdict, changed) == ("changed", outputs)
    assert (" only" in reason) == ("," not in outputs)


@pytest.mark.parametrize("version", FAULTS)
def test_the_first_step_after_a_reset_does_not_show_it(audited: Path, version: str) -> None:
    ((paper, outputs),) = rows(
        audited,
        "SELECT paper_verdict, outputs_changed FROM pairs WHERE matrix = 'near' AND newer = ?",
        f"tinysim-{version}",
    )
    assert paper == "identical"
    assert outputs == ("reset" if version == "1.25" else "")


def test_states_beyond_are_those_in_which_the_fault_acts(audited: Path) -> None:
    found = dict(
        rows(audited, "SELECT newer, states_beyond FROM pairs WHERE matrix = 'banked' AND outputs_changed <> 'reset'")
    )
    (forced,) = rows(audited, "SELECT DISTINCT states_forced FROM pairs WHERE matrix = 'banked'")
    assert forced == (520,)
    assert all(0 < found[f"tinysim-{version}"] < forced[0] for version in FAULTS if version != "1.25")


def test_another_order_of_summation_is_rounding(audited: Path) -> None:
    ((verdict, ratio, null),) = rows(
        audited,
        "SELECT verdict, first_step_ratio, null_ratio FROM pairs WHERE matrix = 'banked' AND newer = ?",
        f"tinysim-{REORDERED}",
    )
    assert verdict in ("rounding", "amplified")
    assert 0 < ratio < 10
    assert 0 < null < 1000
