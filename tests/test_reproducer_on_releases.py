"""Reproducers of real releases run at both of them and show what was recorded."""

from __future__ import annotations

import datetime
import os
import re
import shlex
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from analysis import yardstick
from analysis.yardstick import Forced
from audit.asked.attachments import Attachment
from audit.asked.environment_rows import EnvironmentRow
from audit.asked.releases import ReleaseRequest
from audit.explanations import reproducer, reproducer_case, reproducer_issue
from audit.explanations.reproducer_case import Case, Outcome, Side, Step
from audit.installing import locks, uv
from audit.installing.locks import Release
from audit.planning import plan
from audit.processes.answers import CellAnswer
from audit.stimuli import stimulus
from audit.stimuli.stimulus import Batch
from tests.reproducer_cases import row

DAY = datetime.date(2026, 11, 1)
PACKAGES: dict[str, list[tuple[str, ...]]] = {
    "mujoco": [("gymnasium[mujoco]==0.29.1", f"mujoco=={version}", "numpy<2") for version in ("2.3.7", "3.0.0")],
    "numpy": [("gymnasium==0.29.1", f"numpy=={version}") for version in ("1.26.4", "2.1.3")],
    "gym": [("gym==0.26.2", "numpy==1.26.4"), ("gymnasium==0.29.1", "numpy==2.1.3")],
    "bindings": [(f"mujoco=={version}", "numpy==1.26.4") for version in ("3.2.7", "3.3.2")],
}
EGG = Attachment(
    main="scenes/egg.xml",
    files={
        "scenes/egg.xml": b"""<mujoco>
  <include file="table.xml"/>
  <worldbody>
    <body name="egg" pos="0 0 0.24">
      <joint type="slide" axis="0 0 1"/>
      <joint name="roll" axis="0 1 0"/>
      <geom type="ellipsoid" size="0.1 0.15 0.2"/>
    </body>
  </worldbody>
  <actuator><motor joint="roll"/></actuator>
  <sensor><framelinvel objtype="body" objname="egg"/></sensor>
</mujoco>
""",
        "scenes/table.xml": b'<mujoco><worldbody><geom type="box" size="0.5 0.5 0.05"/></worldbody></mujoco>\n',
    },
)
EGG_ALONE = Attachment(
    main="egg.xml",
    files={
        "egg.xml": EGG.files["scenes/egg.xml"]
        .replace(b'<include file="table.xml"/>', b"")
        .replace(b"<worldbody>", b'<worldbody><geom type="box" size="0.5 0.5 0.05"/>')
    },
)


def drawn(low: Sequence[float], high: Sequence[float], count: int) -> NDArray[np.float64]:
    return np.random.default_rng(0).uniform(low, high, (count, len(low)))


def actions(limit: float, count: int, size: int, dtype: str = "float32") -> NDArray[Any]:
    return np.random.default_rng(1).uniform(-limit, limit, (count, 1, size)).astype(dtype)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """An environment, two releases, and states of which some show that they differ."""

    environment: EnvironmentRow
    packages: str
    states: NDArray[np.float64]
    actions: NDArray[Any]
    scene: Attachment | None = None


SWINGS = drawn([-0.5, -1], [1.5, 1], 8)
ROLLS = drawn([-0.02, -0.1, -1, -1], [0, 0.1, 1, 1], 8)

SUBJECTS = {
    # The arm lies anywhere, the object somewhere below it: in few of these they touch.
    "Pusher": Subject(
        environment=row(id="Pusher-v4"),
        packages="mujoco",
        states=drawn([-1] * 7 + [-0.3] * 2 + [0] * 2 + [-1] * 11, [1] * 7 + [0.3] * 2 + [0] * 2 + [1] * 11, 64),
        actions=actions(2, 64, 7),
    ),
    "Pendulum": Subject(
        environment=row(id="Pendulum-v1", arguments={"g": 9.81}),
        packages="numpy",
        states=SWINGS,
        actions=actions(2, 8, 1),
    ),
    "Pendulum of gym": Subject(
        environment=row(id="Pendulum-v1"), packages="gym", states=SWINGS, actions=actions(2, 8, 1)
    ),
    "scene": Subject(
        environment=row(mjcf="egg.xml"),
        packages="bindings",
        states=ROLLS,
        actions=actions(1, 8, 1, "float64"),
        scene=EGG_ALONE,
    ),
    "scene with files": Subject(
        environment=row(mjcf="scenes/egg.xml", arguments={"frame_skip": 3}),
        packages="bindings",
        states=ROLLS,
        actions=actions(1, 8, 1, "float64"),
        scene=EGG,
    ),
}


def resolved(requires: Sequence[str]) -> Release:
    request = ReleaseRequest(
        id="+".join(requires).replace("==", "-"),
        requires=tuple(requires),
        pins=(),
        python="3.11",
        exclude_newer=DAY,
        series="",
        source=("gym",),
    )
    release = locks.resolve(request)
    assert isinstance(release, Release), release
    return release


def dumped(subject: Subject, release: Release) -> CellAnswer:
    """What the dumper records in the release's virtualenv."""
    cell = plan.Cell(release=release, environment=subject.environment, position=0, attachment=subject.scene)
    forced = Batch(starts=subject.states, actions=subject.actions)
    given = stimulus.assemble({"forced": forced, "nudged": stimulus.nudged(forced, 4, 0)}, 0)
    (outcome,) = plan.job(cell, [plan.Recording(cell=cell, stimulus=given).asked()], 60.0).run()
    assert isinstance(outcome.result, CellAnswer), outcome.result
    assert outcome.result.status == "ok", outcome.result.reason
    return outcome.result


def side(release: Release, answer: CellAnswer, index: int) -> Side:
    arrays = {name: answer.arrays[f"forced.{name}"][index, 0] for name in ("state", "observation", "reward")}
    return Side(
        name=release.id,
        requires=release.request.requires,
        packages=release.lock.packages,
        python=release.interpreter.version,
        outcome=Outcome(
            state=tuple(arrays["state"].tolist()),
            observation=tuple(arrays["observation"].ravel().tolist()),
            reward=float(arrays["reward"]),
        ),
    )


@cache
def recorded(name: str) -> Case:
    """The forced state that shows the change most, as an audit finds it."""
    subject = SUBJECTS[name]
    older, newer = (resolved(requires) for requires in PACKAGES[subject.packages])
    before, after = dumped(subject, older), dumped(subject, newer)
    of_states = np.max([ratios(before, after, output) for output in ("state", "observation", "reward")], axis=0)
    index = int(np.argmax(of_states))
    return Case(
        environment=subject.environment,
        kind=before.meta["layout"]["kind"],
        older=side(older, before, index),
        newer=side(newer, after, index),
        given=Step(
            state=tuple(subject.states[index].tolist()),
            action=tuple(subject.actions[index, 0].tolist()),
            action_dtype=str(subject.actions.dtype),
        ),
        beyond=int((of_states >= yardstick.THRESHOLD).sum()),
        tried=len(of_states),
        ratio=float(of_states.max()),
        attached=subject.scene,
    )


def ratios(older: CellAnswer, newer: CellAnswer, output: str) -> NDArray[np.float64]:
    first, second = (
        Forced.of(each.arrays[f"forced.{output}"], each.arrays[f"nudged.{output}"]) for each in (older, newer)
    )
    return yardstick.read(first, second).ratios


def run(script: Path, command: str) -> str:
    """Run a command of the issue in the folder of the script, as a reader does."""
    words = shlex.split(command)
    assert words[0] == "uv"
    environment = {key: value for key, value in os.environ.items() if key not in ("VIRTUAL_ENV", "PYTHONPATH")}
    done = subprocess.run(
        [uv.executable(), *words[1:]],
        cwd=script.parent,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", SUBJECTS)
def test_the_script_shows_what_was_recorded(
    name: str, shared_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RELEASE_AUDIT_CACHE", str(shared_cache))
    found = recorded(name)
    assert found.ratio >= yardstick.THRESHOLD
    script = reproducer.write(tmp_path / "change", found)
    text = (script.parent / reproducer.ISSUE).read_text(encoding="utf-8")
    for each, command in zip(found.sides, reproducer_case.commands(found), strict=True):
        shown = run(script, command)
        assert shown == reproducer_issue.printed(found, each)
        assert f"$ {command}\n{shown}" in text


def test_another_outcome_is_told_how_far_it_is_from_both(
    shared_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RELEASE_AUDIT_CACHE", str(shared_cache))
    found = recorded("Pendulum")
    script = reproducer.write(tmp_path, found)
    text = script.read_text(encoding="utf-8")
    (reward,) = found.older.outcome.outputs["reward"]
    script.write_text(text.replace(f'"reward": [{reward!r}]', f'"reward": [{reward + 0.5!r}]'), encoding="utf-8")
    shown = run(script, reproducer_case.commands(found)[0]).splitlines()[-1]
    off = re.fullmatch(
        r"as recorded with neither; off numpy 2.1.3 by (\S+) at (\S+); off numpy 1.26.4 by (\S+) at (\S+)", shown
    )
    assert off, shown
    assert float(off[1]) < 1e-7
    assert float(off[3]) == pytest.approx(0.5)
    assert off[4] == "reward[0]"
