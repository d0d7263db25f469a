"""The reproducer: what is written for a change, and that it runs at both releases and shows what was recorded."""

from __future__ import annotations

import ast
import datetime
import json
import math
import os
import re
import shlex
import subprocess
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from analysis import yardstick
from analysis.yardstick import Forced
from audit import locks, plan, reproducer, reproducer_case, reproducer_issue, reproducer_script, stimulus, uv
from audit.answers import CellAnswer
from audit.attachments import Attachment
from audit.locks import Release
from audit.matrix import EnvironmentRow
from audit.releases import ReleaseRequest
from audit.reproducer_case import CannotReproduce, Case, Outcome, Side
from audit.stimulus import Batch
from tests.test_house import HOMES, HOSTS

METADATA = re.compile(r"(?m)^# /// script$\s(?P<content>(?:^#(?:| .*)$\s)+)^# ///$")  # as the standard has it

OLDER = Side(
    name="mujoco-2.3.7",
    requires=("gymnasium[mujoco]==0.29.1", "mujoco==2.3.7"),
    packages=(("gymnasium", "0.29.1"), ("mujoco", "2.3.7"), ("numpy", "1.26.4")),
    python="3.11.7",
    outcome=Outcome(state=(0.1, 2.0), observation=(0.1, 2.0, 3.0), reward=-0.5),
)
NEWER = replace(
    OLDER,
    name="mujoco-3.0.0",
    requires=("gymnasium[mujoco]==0.29.1", "mujoco==3.0.0"),
    packages=(("gymnasium", "0.29.1"), ("mujoco", "3.0.0"), ("numpy", "1.26.4")),
    outcome=Outcome(state=(0.1, 2.5), observation=(0.1, 2.25, 3.0), reward=-0.5),
)
SCENE = '<mujoco><worldbody><body name="b"><joint/><geom size="1"/></body></worldbody></mujoco>'


def row(**given: Any) -> EnvironmentRow:
    return EnvironmentRow.model_validate(given or {"id": "Pusher-v4"})


def case(**given: Any) -> Case:
    made = Case(
        environment=row(),
        kind="mujoco",
        older=OLDER,
        newer=NEWER,
        state=(0.1, 1 / 3),
        action=(0.25,),
        action_dtype="float32",
        states_beyond=31,
        states_forced=512,
        ratio=3.4e9,
        told=("first stage: constraint assembly (efc_D)", "dof_invweight0[obj_slidex]: 0.5 → 0.25"),
    )
    return replace(made, **given)


KINDS = {
    "registered on MuJoCo": case(),
    "registered with a state": case(environment=row(id="Pendulum-v1", arguments={"g": 9.81}), kind="state"),
    "discrete": case(environment=row(id="CartPole-v1"), kind="state", action=1),
    "two APIs": case(
        kind="state", older=replace(OLDER, packages=(("gym", "0.26.2"), ("mujoco", "2.3.7"), ("numpy", "1.26.4")))
    ),
    "gym": case(
        kind="state",
        older=replace(OLDER, packages=(("gym", "0.21.0"), ("numpy", "1.26.4"))),
        newer=replace(NEWER, packages=(("gym", "0.26.2"), ("numpy", "1.26.4"))),
    ),
    "scene": case(environment=row(mjcf="scenes/b.xml", arguments={"frame_skip": 5, "keyframe": "up"}), scene=SCENE),
    "scene with files": case(
        environment=row(mjcf="scenes/b.xml"),
        scene=Attachment(main="models/b.xml", files={"models/b.xml": b"<mujoco/>", "meshes/a.stl": b"\0"}),
    ),
    "task": case(environment=row(dm_control="walker/walk", arguments={"task_kwargs": {"time_limit": 5}})),
    "two Pythons": case(older=replace(OLDER, python="3.9.18")),
    "not numbers": case(
        state=(math.inf, -math.inf),
        older=replace(OLDER, outcome=replace(OLDER.outcome, reward=math.nan)),
        ratio=math.inf,
    ),
    "another length": case(older=replace(OLDER, outcome=replace(OLDER.outcome, observation=(0.1,)))),
    "many numbers": case(
        state=tuple(np.random.default_rng(0).normal(size=47)),
        older=replace(OLDER, outcome=replace(OLDER.outcome, observation=tuple(np.arange(350) / 7))),
        newer=replace(NEWER, outcome=replace(NEWER.outcome, observation=tuple(np.arange(350) / 7.5))),
    ),
}


@pytest.fixture(params=KINDS, ids=lambda name: name.replace(" ", "-"))
def any_case(request: pytest.FixtureRequest) -> Case:
    return KINDS[request.param]


# The texts


def constants(script: str) -> dict[str, Any]:
    """What the script assigns at its top level, and can be read without running it."""
    found = {}
    for node in ast.parse(script).body:
        if isinstance(node, ast.Assign):
            assert isinstance(node.targets[0], ast.Name)
            value = eval(ast.unparse(node.value), {"np": np, "float": float})
            found[node.targets[0].id] = value
    return found


def metadata(script: str) -> dict[str, Any]:
    (match,) = METADATA.finditer(script)
    return tomllib.loads("".join(line[2:] for line in match["content"].splitlines(keepends=True)))


def test_a_folder_has_three_files(tmp_path: Path, any_case: Case) -> None:
    script = reproducer.write(tmp_path / "new", any_case)
    assert script == tmp_path / "new" / "reproduce.py"
    assert {"reproduce.py", "ISSUE.md", "case.json"} <= {path.name for path in script.parent.iterdir()}


def test_the_script_is_python_3_8_and_imports_nothing_of_this_project(any_case: Case) -> None:
    tree = ast.parse(reproducer_script.script(any_case), feature_version=(3, 8))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert "numpy" in imported
    assert imported <= {
        "inspect", "os", "pathlib", "platform", "importlib", "numpy", "mujoco", "gymnasium", "gym", "dm_control",
    }  # fmt: skip
    assert ast.get_docstring(tree)


def test_the_script_is_in_order_for_a_linter(tmp_path: Path, any_case: Case) -> None:
    script = reproducer.write(tmp_path, any_case)
    command = ["ruff", "check", "--isolated", "--line-length=120", "--select=E,F,W,I,B", "--target-version=py38"]
    beside = Path(uv.executable()).parent
    done = subprocess.run(
        [beside / command[0], *command[1:], script], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stdout + script.read_text()


def test_the_dependencies_are_what_stays_the_same_and_the_commands_say_what_moves() -> None:
    script = reproducer_script.script(case())
    assert metadata(script) == {"requires-python": "==3.11.*", "dependencies": ["gymnasium==0.29.1", "numpy==1.26.4"]}
    told = ast.get_docstring(ast.parse(script)) or ""
    assert "uv run --with 'mujoco==2.3.7' reproduce.py\n" in told
    assert "uv run --with 'mujoco==3.0.0' reproduce.py\n" in told


def test_all_that_moves_is_in_the_command() -> None:
    newer = replace(NEWER, packages=(("glfw", "2.7.0"), ("mujoco", "3.0.0"), ("numpy", "2.1.0")))
    older, after = reproducer_case.commands(case(newer=newer))
    assert older == "uv run --with 'gymnasium==0.29.1' --with 'mujoco==2.3.7' --with 'numpy==1.26.4' reproduce.py"
    assert after == "uv run --with 'mujoco==3.0.0' --with 'glfw==2.7.0' --with 'numpy==2.1.0' reproduce.py"
    assert metadata(reproducer_script.script(case(newer=newer)))["dependencies"] == []


def test_two_pythons_are_in_the_commands() -> None:
    two = KINDS["two Pythons"]
    assert reproducer_case.commands(two)[0].startswith("uv run --python 3.9 --with")
    assert reproducer_case.commands(two)[1].startswith("uv run --python 3.11 --with")
    assert metadata(reproducer_script.script(two))["requires-python"] == ">=3.9"
    assert "| Python | 3.9.18 | 3.11.7 |" in reproducer_issue.issue(two)


def test_the_numbers_are_there_to_the_last_bit(any_case: Case) -> None:
    found = constants(reproducer_script.script(any_case))
    assert np.array(found["STATE"]).tobytes() == np.array(any_case.state).tobytes()
    np.testing.assert_array_equal(found["ACTION"], any_case.action)
    if not isinstance(any_case.action, int):
        assert found["ACTION"].dtype == any_case.action_dtype
    for side, recorded in zip(any_case.sides, found["RECORDED"].values(), strict=True):
        assert list(recorded) == ["state", "observation", "reward"]
        for name, values in side.outcome.outputs.items():
            np.testing.assert_array_equal(recorded[name], values)


def test_the_script_is_short() -> None:
    assert 60 <= len(reproducer_script.script(case()).splitlines()) <= 95


MANY = tuple((f"package{number}", "1.0") for number in range(4))


@pytest.mark.parametrize(
    ("older", "newer", "expected"),
    [
        ({}, {}, ("mujoco 2.3.7", "mujoco 3.0.0")),
        ({"requires": ("gymnasium[mujoco]",)}, {"requires": ("gymnasium",)}, ("mujoco 2.3.7", "mujoco 3.0.0")),
        ({"packages": NEWER.packages, "python": "3.9.1"}, {}, ("python 3.9", "python 3.11")),
        (
            {"requires": ("gym==0.26.2",), "packages": (("gym", "0.26.2"), ("numpy", "1.26.4"))},
            {"requires": ("gymnasium==0.29.1",), "packages": (("gymnasium", "0.29.1"), ("numpy", "2.0.0"))},
            ("gym 0.26.2", "gymnasium 0.29.1"),
        ),
        ({"packages": MANY, "requires": ()}, {"requires": ()}, ("mujoco-2.3.7", "mujoco-3.0.0")),
    ],
)
def test_the_two_are_called_by_what_moved(
    older: dict[str, Any], newer: dict[str, Any], expected: tuple[str, str]
) -> None:
    assert reproducer_case.labels(case(older=replace(OLDER, **older), newer=replace(NEWER, **newer))) == expected


def test_the_issue_says_what_a_maintainer_asks() -> None:
    text = reproducer_issue.issue(case())
    assert text.startswith(
        "# Pusher-v4: one step from the same state ends differently with mujoco 2.3.7 and mujoco 3.0.0\n"
    )
    assert "differs between mujoco 2.3.7 and mujoco 3.0.0 in state and observation." in text
    assert "up to 0.5 apart (`state[1]`)" in text
    assert "in 31 of 512 states" in text
    assert "Rounding does not explain it: at most they are 3.4e+09 times as far apart" in text
    assert "| `observation[1]` | 2.0 | 2.25 | 0.25 |" in text
    assert "- dof_invweight0[obj_slidex]: 0.5 → 0.25\n" in text
    assert "| mujoco | 2.3.7 | 3.0.0 |" in text
    assert "The same in both: Python 3.11.7, gymnasium 0.29.1, numpy 1.26.4." in text
    for side in ("2.3.7", "3.0.0"):
        assert (
            f"$ uv run --with 'mujoco=={side}' reproduce.py\npython 3.11.7, gymnasium 0.29.1, mujoco {side}, " in text
        )
    assert "as recorded with mujoco 3.0.0; off mujoco 2.3.7 by 0.5 at state[1]\n" in text
    assert f"```python\n{reproducer_script.script(case())}```" in text
    assert "release-audit" in text


def test_what_rounding_may_do_is_not_called_more() -> None:
    text = reproducer_issue.issue(case(ratio=2.3, states_beyond=0))
    assert "in 0 of 512 states" in text
    assert "Rounding may explain it: at most they are 2.3 times as far apart" in text


def test_nothing_names_a_host_a_home_or_a_path(tmp_path: Path, any_case: Case) -> None:
    reproducer.write(tmp_path, any_case)
    for name in ("reproduce.py", "ISSUE.md", "case.json"):
        text = (tmp_path / name).read_text(encoding="utf-8")
        assert not HOSTS.search(text)
        assert not HOMES.search(text)
        assert "://" not in text
        assert str(tmp_path) not in text
        assert "scenes/" not in text


def test_long_outputs_are_folded() -> None:
    assert "<summary>The whole output with mujoco 2.3.7</summary>" in reproducer_issue.issue(KINDS["many numbers"])
    assert "The whole output" not in reproducer_issue.issue(case())


def test_numbers_of_numpy_are_written_as_numbers(tmp_path: Path) -> None:
    reproducer.write(tmp_path, KINDS["many numbers"])
    assert "float64(" not in (tmp_path / reproducer.ISSUE).read_text(encoding="utf-8")


def test_machines_read_the_case(tmp_path: Path, any_case: Case) -> None:
    reproducer.write(tmp_path, any_case)
    read = json.loads((tmp_path / "case.json").read_text(encoding="utf-8"))
    assert tuple(map(float, read["state"])) == any_case.state
    assert read["older"]["packages"] == dict(any_case.older.packages)
    assert read["newer"]["command"] == reproducer_case.commands(any_case)[1]
    outcome = any_case.older.outcome
    np.testing.assert_array_equal(list(map(float, read["older"]["outcome"]["reward"])), [outcome.reward])
    assert read["newer"]["outcome"]["observation"] == list(any_case.newer.outcome.observation)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"environment": row(adapter="mine.py")}, "an adapter of your own"),
        ({"kind": "replay"}, "no state can be imposed on Pusher-v4"),
        ({"environment": row(id="Pusher-v4", edits={"gravity": 1.0})}, r"is edited \(gravity\)"),
        ({"newer": replace(OLDER, outcome=NEWER.outcome)}, "install the same"),
        ({"newer": replace(NEWER, outcome=OLDER.outcome)}, "are the same in both"),
        ({"environment": row(id="Ant-v5", arguments={"xml_file": "/somewhere/ant.xml"})}, "a file of this machine"),
        ({"environment": row(id="Ant-v5", arguments={"mass": math.inf})}, "not finite"),
        ({"environment": row(mjcf="b.xml")}, "is not at hand"),
        ({"environment": row(mjcf="b.xml"), "scene": '<mujoco><include file="a.xml"/></mujoco>'}, "other files"),
    ],
)
def test_what_cannot_be_reproduced_is_said_in_a_sentence(tmp_path: Path, given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(CannotReproduce, match=sentence):
        reproducer.write(tmp_path / "none", case(**given))
    assert not (tmp_path / "none").exists()


def test_the_names_of_folders() -> None:
    name = reproducer.folder_name
    assert name("Pusher-v4", "mujoco-2.3.7", "mujoco-3.0.0") == "Pusher-v4__mujoco-2.3.7__mujoco-3.0.0"
    odd = [name("walker/walk", "a", "b"), name("walker-walk", "a", "b"), name("walker:walk", "a", "b")]
    odd += [name("..", "a", "b"), name("x" * 400, "a", "b"), name("x" * 401, "a", "b")]
    assert len(set(odd)) == len(odd)
    assert all(re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._@+-]{0,150}", each) for each in odd)


# Real releases

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
        state=tuple(subject.states[index].tolist()),
        action=tuple(subject.actions[index, 0].tolist()),
        action_dtype=str(subject.actions.dtype),
        states_beyond=int((of_states >= yardstick.THRESHOLD).sum()),
        states_forced=len(of_states),
        ratio=float(of_states.max()),
        scene=subject.scene,
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
    reward = found.older.outcome.reward
    script.write_text(text.replace(f'"reward": [{reward!r}]', f'"reward": [{reward + 0.5!r}]'), encoding="utf-8")
    shown = run(script, reproducer_case.commands(found)[0]).splitlines()[-1]
    off = re.fullmatch(
        r"as recorded with neither; off numpy 2.1.3 by (\S+) at (\S+); off numpy 1.26.4 by (\S+) at (\S+)", shown
    )
    assert off, shown
    assert float(off[1]) < 1e-7
    assert float(off[3]) == pytest.approx(0.5)
    assert off[4] == "reward[0]"
