"""Quality on what others wrote: nulls stay silent, a known break is found where it acts, small faults are seen."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from analysis import yardstick
from analysis.yardstick import THRESHOLD, Forced
from tests.conftest import Program, rows, write_matrix

PINS = ["numpy<2.4"]
CLASSIC = ["Acrobot-v1", "CartPole-v1", "MountainCar-v0", "MountainCarContinuous-v0", "Pendulum-v1"]
BLOCK = 28
"""States of one null."""


@pytest.fixture(scope="module")
def shipped(module_audit: Program) -> Path:
    """Classic control and two MuJoCo environments, as one release of each has them."""
    releases = [{"id": "gymnasium", "requires": ["gymnasium[mujoco]==1.2.3", "mujoco==3.2.7"], "pins": PINS}]
    environments: list[dict[str, Any]] = [{"id": name} for name in (*CLASSIC, "Hopper-v5", "Reacher-v5")]
    matrix = write_matrix(
        module_audit.folder / "shipped.yaml",
        releases,
        environments,
        stimulus={"trajectories": 2, "steps": 10, "actions": "uniform"},
    )
    database = module_audit.folder / "audit.duckdb"
    done = module_audit("run", matrix, "--db", database)
    assert done.code == 0, done.stdout + done.stderr
    return database


def recordings(database: Path, environment: str) -> dict[str, NDArray[Any]]:
    found = rows(
        database,
        "SELECT output, array_digest FROM internal.behaviour_outputs JOIN dumps USING (behaviour)"
        " WHERE environment = ?",
        environment,
    )
    folder = database.parent / "arrays"
    return {output: np.load(folder / digest[:2] / f"{digest}.npy") for output, digest in found}


def nulls(arrays: dict[str, NDArray[Any]]) -> list[float]:
    """Each nudged copy as if it were another release, block by block of states, over the outputs of a step."""
    ratios = []
    for number in range(4):
        of_state = np.zeros(len(arrays["forced.reward"]))
        for output in ("state", "observation", "reward", "terminated"):
            value = Forced.of(arrays[f"forced.{output}"], arrays[f"nudged.{output}"])
            others = np.delete(value.nudged, number, axis=0)
            reading = yardstick.read(
                Forced(value=value.value, nudged=others), Forced(value=value.nudged[number], nudged=others[:0])
            )
            of_state = np.maximum(of_state, reading.ratios)
        blocks = np.array_split(of_state, len(of_state) // BLOCK)
        ratios += [float(block.max()) for block in blocks]
    return ratios


def wilson_upper(found: int, count: int, z: float = 1.96) -> float:
    rate = found / count
    centre = rate + z * z / (2 * count)
    spread = z * math.sqrt(rate * (1 - rate) / count + z * z / (4 * count * count))
    return (centre + spread) / (1 + z * z / count)


def test_nudged_copies_of_shipped_environments_are_never_called_changed(
    shipped: Path, record_property: Callable[[str, object], None]
) -> None:
    names = [name for (name,) in rows(shipped, "SELECT environment FROM environments")]
    ratios = [ratio for name in names for ratio in nulls(recordings(shipped, name))]
    alarms = sum(ratio >= THRESHOLD for ratio in ratios)
    record_property("nulls", f"{alarms} of {len(ratios)}, Wilson 95% at most {wilson_upper(alarms, len(ratios)):.4f}")
    assert len(ratios) >= 500
    assert alarms == 0
    assert wilson_upper(alarms, len(ratios)) < 0.01


def test_the_null_ratio_of_a_run_is_stored(shipped: Path) -> None:
    found = rows(shipped, "SELECT null_ratio FROM internal.behaviours JOIN dumps USING (behaviour)")
    assert len(found) == 7
    assert all(0 < ratio < THRESHOLD for (ratio,) in found)


def test_small_faults_are_seen_and_the_table_is_kept(module_audit: Program, shipped: Path) -> None:
    done = module_audit("sensitivity", module_audit.folder / "shipped.yaml", "--db", shipped)
    assert done.code == 0, done.stdout + done.stderr
    assert "seen from" in done.stdout
    # MountainCarContinuous keeps its state in single precision: what moves it by less is rounded away.
    missed = rows(
        shipped,
        "SELECT environment, constant, relative FROM sensitivity WHERE NOT detected"
        " AND relative >= CASE environment WHEN 'MountainCarContinuous-v0' THEN 1e-6 ELSE 1e-9 END",
    )
    assert missed == []
    found = rows(shipped, "SELECT environment, count(*) FROM sensitivity GROUP BY ALL")
    assert sorted(found) == [(name, 12) for name in sorted((*CLASSIC, "Hopper-v5", "Reacher-v5"))]


PUSHER_RELEASES = [
    {"id": f"mujoco-{version}", "requires": ["gymnasium[mujoco]==0.29.1", f"mujoco=={version}"], "pins": ["numpy<2"]}
    for version in ("2.3.7", "3.0.0")
]
PLAIN = {"trajectories": 4, "steps": 100, "actions": "uniform"}


@pytest.fixture(scope="module")
def pusher(module_audit: Program) -> Path:
    """The public case: the break shows in contacts that an arm under random actions does not make."""
    database = module_audit.folder / "pusher.duckdb"
    matrix = write_matrix(module_audit.folder / "pusher.yaml", PUSHER_RELEASES, [{"id": "Pusher-v4"}], stimulus=PLAIN)
    done = module_audit("run", matrix, "--db", database)
    assert done.code == 0, done.stdout + done.stderr
    return database


def test_pusher_changed_in_contact(pusher: Path) -> None:
    ((verdict, beyond, ratio, reason, coverage),) = rows(
        pusher, "SELECT verdict, beyond, first_step_ratio, reason, coverage FROM pairs"
    )
    assert verdict == "changed"
    assert ratio > 1e9
    assert "sought" in reason
    assert "7 of 7 colliding pairs touched" in coverage
    ((features,),) = rows(pusher, "SELECT features FROM environments")
    assert all(count for name, count in json.loads(features).items() if name != "terminates")
    assert len(beyond) >= 10


def test_states_visited_under_random_actions_do_not_show_it(module_audit: Program, pusher: Path) -> None:
    """400 of them, taken from plain rollouts of the environment, as somebody would who compares by hand."""
    recorded = recordings(pusher, "Pusher-v4")
    visited = recorded["horizon.state"].reshape(-1, recorded["horizon.state"].shape[-1])
    np.savez(module_audit.folder / "visited.npz", states=visited)
    matrix = write_matrix(
        module_audit.folder / "visited.yaml",
        PUSHER_RELEASES,
        [{"id": "Pusher-v4", "bank": "visited.npz"}],
        stimulus=PLAIN,
    )
    done = module_audit("run", matrix, "--db", pusher)
    assert done.code == 0, done.stdout + done.stderr
    ((verdict, states, coverage),) = rows(
        pusher, "SELECT verdict, states_forced, coverage FROM pairs WHERE matrix = 'visited'"
    )
    assert verdict in ("identical", "rounding", "amplified")
    assert states == len(visited) == 400
    assert "never touched" in coverage
