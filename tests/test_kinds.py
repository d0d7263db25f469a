"""Environments of every kind, end to end, on real wheels where the kind comes from somebody else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conftest import Program, release, rows, write_matrix

HERE = Path(__file__).parent
SCENE = HERE.parent / "matrices" / "scenes" / "boxes.xml"
RESULTS = "results/audit.duckdb"


def audit(program: Program, releases: list[dict[str, Any]], environment: dict[str, Any], **more: Any) -> Path:
    matrix = write_matrix(program.folder / "kind.yaml", releases, [environment], **{"bank": {"states": 64}} | more)
    done = program("run", matrix)
    assert done.code == 0, done.stdout + done.stderr
    return program.folder / RESULTS


def test_what_cannot_be_imposed_is_replayed_and_marked(release_audit: Program) -> None:
    hidden = {"id": "tinysim:tinysim/Hidden-v0", "name": "Hidden"}
    database = audit(release_audit, [release(version) for version in ("1.0", "1.1", "1.34", "1.35")], hidden)
    found = rows(
        database,
        "SELECT newer, verdict, evidence, outputs_changed FROM pairs WHERE older = 'tinysim-1.0' ORDER BY newer",
    )
    assert found[0] == ("tinysim-1.1", "identical", "replayed", "")
    assert found[1] == ("tinysim-1.34", "changed", "replayed", "observation, reward")
    assert found[2][1] in ("rounding", "amplified")
    ((coverage,),) = rows(database, "SELECT DISTINCT coverage FROM pairs")
    assert "cannot be imposed" in coverage


def test_a_table_is_compared_whole(release_audit: Program) -> None:
    """FrozenLake's probabilities are summed in another way from gymnasium 1.2.1 on; the lake is the same."""
    releases = [
        {"id": f"gymnasium-{version}", "requires": [f"gymnasium=={version}"], "pins": ["numpy<2.4"]}
        for version in ("1.1.1", "1.2.3")
    ]
    database = audit(release_audit, releases, {"id": "FrozenLake-v1"})
    ((verdict, evidence, states, ratio, coverage),) = rows(
        database, "SELECT verdict, evidence, states_forced, first_step_ratio, coverage FROM pairs"
    )
    assert (verdict, evidence, states, coverage) == ("rounding", "table", 152, "all 152 transitions")
    assert 0 < ratio < 2


def test_a_table_that_changed(release_audit: Program) -> None:
    releases = [{"id": "gymnasium", "requires": ["gymnasium==1.2.3"], "pins": ["numpy<2.4"]}]
    lakes = [
        {"id": "FrozenLake-v1", "name": "lake", "arguments": {"success_rate": 0.5}},
        {"id": "FrozenLake-v1", "name": "other", "arguments": {"success_rate": 0.5 + 1e-9}},
    ]
    matrix = write_matrix(release_audit.folder / "lakes.yaml", releases, lakes)
    done = release_audit("run", matrix)
    assert done.code == 0, done.stdout + done.stderr
    behaviours = rows(release_audit.folder / RESULTS, "SELECT DISTINCT behaviour FROM dumps")
    assert len(behaviours) == 2


@pytest.fixture(scope="module")
def scene(module_audit: Program) -> Path:
    releases = [
        {"id": f"mujoco-{version}", "requires": [f"mujoco=={version}"], "pins": ["numpy<2.4"]}
        for version in ("3.4.0", "3.5.0")
    ]
    boxes = {"mjcf": str(SCENE), "arguments": {"frame_skip": 5}, "bank": {"states": 64, "budget": 4000}}
    return audit(module_audit, releases, boxes)


def test_a_scene_of_ones_own_needs_no_gymnasium(scene: Path) -> None:
    packages = {package for (package,) in rows(scene, "SELECT DISTINCT package FROM release_packages")}
    assert "mujoco" in packages
    assert "gymnasium" not in packages
    ((environment, verdict, states),) = rows(scene, "SELECT environment, verdict, states_forced FROM pairs")
    assert (environment, states) == ("boxes", 72)
    assert verdict in ("identical", "rounding", "amplified")


def test_a_scene_says_what_was_touched(scene: Path) -> None:
    ((coverage, features, planted),) = rows(scene, "SELECT coverage, features, planted FROM environments")
    assert planted == "seen"
    assert "colliding pairs touched" in coverage
    counts = json.loads(features)
    contacts = [count for name, count in counts.items() if name.startswith("contact")]
    assert len(contacts) > 5
    assert sum(map(bool, contacts)) >= len(contacts) - 2


def test_an_adapter_of_ones_own(release_audit: Program) -> None:
    pendulum = {"adapter": str(HERE / "adapters" / "pendulum.py")}
    releases = [{"id": f"numpy-{version}", "requires": [f"numpy=={version}"]} for version in ("1.26.4", "2.1.3")]
    database = audit(release_audit, releases, pendulum, stimulus={"trajectories": 2, "steps": 50, "actions": "uniform"})
    ((environment, verdict, states),) = rows(database, "SELECT environment, verdict, states_forced FROM pairs")
    assert (environment, states) == ("pendulum", 66)
    assert verdict in ("identical", "rounding", "amplified")
    ((planted, constant),) = rows(database, "SELECT planted, constant FROM environments")
    assert planted == "seen"
    assert constant


def test_ones_own_states(release_audit: Program) -> None:
    states = np.random.default_rng(0).uniform(-1, 1, size=(10, 2))
    np.savez(release_audit.folder / "own.npz", states=states)
    spring = {"id": "tinysim:tinysim/Spring-v0", "name": "Spring", "bank": "own.npz"}
    database = audit(release_audit, [release("1.0"), release("1.3")], spring)
    ((verdict, forced, beyond, coverage),) = rows(
        database, "SELECT verdict, states_forced, states_beyond, coverage FROM pairs"
    )
    assert (verdict, forced, beyond) == ("changed", 10, 10)
    assert coverage.startswith("10 states")


def test_a_task_of_dm_control(release_audit: Program) -> None:
    releases = [
        {"id": "dm_control", "requires": ["dm_control==1.0.30", "mujoco==3.3.2"], "pins": ["numpy<2.4"]},
        {"id": "again", "requires": ["dm_control==1.0.30", "mujoco==3.3.2", "packaging"], "pins": ["numpy<2.4"]},
    ]
    database = audit(
        release_audit,
        releases,
        {"dm_control": "cartpole/balance", "bank": {"states": 32, "budget": 500}},
        stimulus={"trajectories": 2, "steps": 50, "actions": "uniform"},
    )
    ((environment, verdict, states),) = rows(database, "SELECT environment, verdict, states_forced FROM pairs")
    assert (environment, verdict, states) == ("cartpole/balance", "identical", 34)
