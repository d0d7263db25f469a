"""Reproducers of resets, of edits and through adapters: an audit writes them, and each shows what the store has."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from audit.explanations.reproducer import folder_name
from audit.installing import uv
from audit.storage.store import Store
from tests.conftest import PINS, SPRING, STIMULUS, Program, rows

ADAPTER = '''\
"""A ball of tinysim, seen in centimetres."""

import numpy as np
import tinysim


def make(scale=100.0):
    ball = tinysim.Ball()
    ball.reset(seed=0)
    ball.scale = scale
    return ball


def layout(ball):
    return {"state_size": 2}


def actions(ball):
    return {"low": [-8.0], "high": [8.0]}


def impose(ball, state):
    ball.state = np.array(state)


def read(ball):
    return ball.state


def step(ball, action):
    observation, reward, terminated, truncated, _ = ball.step(action)
    return observation * ball.scale, reward, terminated, truncated


def reset(ball, seed):
    return ball.reset(seed=seed)[0] * ball.scale


def edit(ball, name, value):
    if not hasattr(ball, name):
        raise LookupError(name)
    setattr(ball, name, value)
'''
BALL = {"start": {"low": [0.0, -1.0], "high": [2.0, 1.0]}}
MUJOCO: dict[str, Any] = {"requires": ["gymnasium[mujoco]==1.3.0", "mujoco==3.10.0"], "pins": ["numpy<2"]}


def tiny(name: str, version: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "requires": [f"tinysim=={version}", "tinydep==1.0"], "pins": PINS, **more}


MATRIX: dict[str, Any] = {
    "name": "kinds",
    "python": "3.11",
    "exclude-newer": "2026-11-01",
    "pairs": "all",
    "stimulus": {**STIMULUS, "trajectories": 2, "steps": 20},
    "bank": {"states": 16},
    "releases": [
        tiny("starts", "1.0"),
        tiny("wider", "1.25"),
        tiny("shipped", "1.0", series="edited"),
        tiny("damped", "1.0", series="edited", edits={"damping": 0.4, "dt": 0.01}),
        tiny("ball", "1.0", series="adapted"),
        tiny("hard", "1.20", series="adapted", edits={"gravity": 9.7}),
        {"id": "arm", **MUJOCO, "series": "file"},
        {"id": "longer", **MUJOCO, "series": "file", "edits": {"body[@name='fingertip']@pos": "0.13 0 0"}},
    ],
    "environments": [
        {"id": "tinysim:tinysim/Ball-v0", "name": "Ball", "releases": ["starts", "wider"], **BALL},
        {"adapter": "gymnasium.py", "name": "Started", "releases": ["starts", "wider"], **BALL},
        {**SPRING, "releases": ["shipped", "damped"], "edits": {"stiffness": 3.0}},
        {"adapter": "gymnasium.py", "name": "Seen", "arguments": {"scale": 10.0}, "releases": ["ball", "hard"], **BALL},
        {"id": "Reacher-v5", "releases": ["arm", "longer"]},
    ],
}
CHANGES = {
    "Ball": ("starts", "wider", "reset"),
    "Started": ("starts", "wider", "reset"),
    "Spring": ("shipped", "damped", "step"),
    "Seen": ("ball", "hard", "step"),
    "Reacher-v5": ("arm", "longer", "step"),
}


@pytest.fixture(scope="module")
def audited(module_audit: Program) -> Program:
    folder = module_audit.folder
    (folder / "gymnasium.py").write_text(ADAPTER, encoding="utf-8")  # a name that must not hide the package
    (folder / "matrix.yaml").write_text(json.dumps(MATRIX), encoding="utf-8")
    done = module_audit("run", "matrix.yaml", "--db", folder / "audit.duckdb")
    assert done.code == 0, done.stdout + done.stderr
    return module_audit


def change(audited: Program, environment: str) -> Path:
    older, newer, _ = CHANGES[environment]
    behaviours = behaviours_of(audited, environment)
    name = folder_name(environment, older, newer, (behaviours[older], behaviours[newer]))
    return audited.folder / "reproducers" / name


def behaviours_of(audited: Program, environment: str) -> dict[str, str]:
    """By release."""
    sql = "SELECT release, behaviour FROM dumps WHERE environment = ?"
    return dict(rows(audited.folder / "audit.duckdb", sql, environment))


def run(audited: Program, folder: Path, command: str) -> subprocess.CompletedProcess[str]:
    """Run a command of the issue in the folder of the script, as a reader does."""
    words = shlex.split(command)
    assert words[0] == "uv"
    environment = {key: value for key, value in audited.environment.items() if key not in ("VIRTUAL_ENV", "PYTHONPATH")}
    return subprocess.run(
        [uv.executable(), *words[1:]],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.mark.parametrize("name", CHANGES)
def test_the_script_shows_the_difference_that_the_store_has(audited: Program, name: str) -> None:
    older, newer, shows = CHANGES[name]
    folder = change(audited, name)
    case = json.loads((folder / "case.json").read_text(encoding="utf-8"))
    assert (case["shows"], case["older"]["name"], case["newer"]["name"]) == (shows, older, newer)
    issue = (folder / "ISSUE.md").read_text(encoding="utf-8")
    printed = []
    for side in ("older", "newer"):
        done = run(audited, folder, case[side]["command"])
        assert done.returncode == 0, done.stderr
        printed.append(dict(line.split(" ", 1) for line in done.stdout.splitlines()[1:]))
        assert f"$ {case[side]['command']}\n{done.stdout}" in issue
        assert printed[-1]["as"].startswith(f"recorded with {case[side]['label']}; off ")
        for output, values in case[side]["outcome"].items():
            assert json.loads(printed[-1][output]) == values
    assert _differences(printed) == _differences_in_the_store(audited, name, case)


def _differences(printed: list[dict[str, str]]) -> list[float]:
    states = [json.loads(each["state"]) for each in printed]
    return [newer - older for older, newer in zip(*states, strict=True)]


def _differences_in_the_store(audited: Program, environment: str, case: dict[str, Any]) -> list[float]:
    """Of the state or seed that the case names, out of the recorded arrays."""
    older, newer, shows = CHANGES[environment]
    behaviours = behaviours_of(audited, environment)
    with Store(audited.folder / "audit.duckdb") as store:
        given = store.stimulus_of(behaviours[older])
        if shows == "reset":
            place: Any = given["reset.seeds"].tolist().index(case["seed"])
        else:
            place = given["forced.states"].tolist().index(case["state"]), 0
        batch = "reset.state" if shows == "reset" else "forced.state"
        one, other = (
            store.arrays.get(store.outputs(behaviours[name])[batch].digest)[place].tolist() for name in (older, newer)
        )
    return [after - before for before, after in zip(one, other, strict=True)]


def test_where_edits_tell_the_two_apart_the_script_asks_which_is_meant(audited: Program) -> None:
    done = run(audited, change(audited, "Spring"), "uv run reproduce.py")
    assert done.returncode == 1
    assert done.stderr.strip().endswith("say which one is meant: shipped or damped")


def test_the_adapter_is_the_users_own_file(audited: Program) -> None:
    assert (change(audited, "Seen") / "audited_adapter.py").read_text(encoding="utf-8") == ADAPTER


def test_no_path_of_this_machine_is_in_the_folders(audited: Program) -> None:
    written = [path for path in (audited.folder / "reproducers").rglob("*") if path.is_file()]
    assert len(written) == 3 * len(CHANGES) + 2
    for path in written:
        assert str(audited.folder) not in path.read_text(encoding="utf-8")


def test_explain_says_why_there_is_no_script(module_audit: Program) -> None:
    """CartPole's bounds became infinite at 1.0.0: nothing that is stepped or reset differs."""
    pair = "gymnasium==0.29.1", "gymnasium==1.0.0"
    options = "--with", "numpy==1.26.4", "--python", "3.11", "--exclude-newer", "2026-11-01", "--no-blame"
    for _ in range(2):  # found out, and told from the store
        done = module_audit("explain", "CartPole-v1", *pair, *options, "--db", module_audit.folder / "spaces.duckdb")
        assert done.code == 0, done.stderr
        assert "to show it        no script: no forced step and no reset shows it" in done.stdout
