"""What is written for a change: a script, the numbers, the text of an issue."""

from __future__ import annotations

import ast
import json
import math
import re
import subprocess
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from audit.explanations import reproducer, reproducer_case, reproducer_issue, reproducer_script
from audit.explanations.reproducer_case import CannotReproduce, Case, Reset
from audit.installing import uv
from tests.reproducer_cases import EDITED, KINDS, NEWER, OLDER, RESET, case, row
from tests.test_house import HOMES, HOSTS

METADATA = re.compile(r"(?m)^# /// script$\s(?P<content>(?:^#(?:| .*)$\s)+)^# ///$")  # as the standard has it


@pytest.fixture(params=KINDS, ids=lambda name: name.replace(" ", "-"))
def any_case(request: pytest.FixtureRequest) -> Case:
    return KINDS[request.param]


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
        "sys", "tempfile", "contextlib", "xml.etree", "audited_adapter",
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
    given = any_case.given
    if isinstance(given, Reset):
        assert found["SEED"] == given.seed
    else:
        assert np.array(found["STATE"]).tobytes() == np.array(given.state).tobytes()
        np.testing.assert_array_equal(found["ACTION"], given.action)
        if not isinstance(given.action, int):
            assert found["ACTION"].dtype == given.action_dtype
    for side, recorded in zip(any_case.sides, found["RECORDED"].values(), strict=True):
        assert list(recorded) == ["state", "observation", "reward"][: len(side.outcome.outputs)]
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
    assert r"- dof\_invweight0\[obj\_slidex\]: 0.5 → 0.25" in text.splitlines()
    assert "| mujoco | 2.3.7 | 3.0.0 |" in text
    assert "The same in both: Python 3.11.7, gymnasium 0.29.1, numpy 1.26.4." in text
    for side in ("2.3.7", "3.0.0"):
        assert (
            f"$ uv run --with 'mujoco=={side}' reproduce.py\npython 3.11.7, gymnasium 0.29.1, mujoco {side}, " in text
        )
    assert "as recorded with mujoco 3.0.0; off mujoco 2.3.7 by 0.5 at state[1]\n" in text
    assert f"```python\n{reproducer_script.script(case())}```" in text
    assert "release-audit" in text


def test_no_name_of_a_package_is_markup_in_the_issue() -> None:
    told = "constant that differs: [a](http://x)<img src=x>[www.evil.example]: @everyone → `1`"
    text = reproducer_issue.issue(case(told=(told,)))
    for raw in ("[a](", "http://", "<img", "www.", "@everyone", "`1`"):
        assert raw not in text


def test_what_rounding_may_do_is_not_called_more() -> None:
    text = reproducer_issue.issue(case(ratio=2.3, beyond=0))
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
    given = any_case.given
    if isinstance(given, Reset):
        assert (read["shows"], read["seed"]) == ("reset", given.seed)
    else:
        assert (read["shows"], tuple(map(float, read["state"]))) == ("step", given.state)
    assert read["older"]["packages"] == dict(any_case.older.packages)
    assert read["newer"]["command"] == reproducer_case.commands(any_case)[1]
    outcome = any_case.older.outcome.outputs
    assert list(read["older"]["outcome"]) == list(outcome)
    for name, values in outcome.items():
        np.testing.assert_array_equal(list(map(float, read["older"]["outcome"][name])), values)
    assert read["newer"]["outcome"]["observation"] == list(any_case.newer.outcome.observation)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"environment": row(adapter="mine.py"), "kind": "adapter"}, "adapter of mine is not at hand"),
        ({"kind": "replay"}, "no state can be imposed on Pusher-v4"),
        ({"newer": replace(OLDER, outcome=NEWER.outcome)}, "install the same"),
        ({"newer": replace(NEWER, outcome=OLDER.outcome)}, "are the same in both"),
        (RESET | {"newer": replace(NEWER, outcome=RESET["older"].outcome)}, "in this reset of Pusher-v4 state and obs"),
        ({"environment": row(id="Ant-v5", arguments={"xml_file": "/somewhere/ant.xml"})}, "a file of this machine"),
        ({"newer": replace(NEWER, edits={"mesh@file": "/somewhere/ant.stl"})}, "the edits of Pusher-v4 name a file"),
        ({"environment": row(id="Ant-v5", arguments={"mass": math.inf})}, "not finite"),
        ({"environment": row(mjcf="b.xml")}, "is not at hand"),
        ({"environment": row(mjcf="b.xml"), "attached": '<mujoco><include file="a.xml"/></mujoco>'}, "other files"),
    ],
)
def test_what_cannot_be_reproduced_is_said_in_a_sentence(tmp_path: Path, given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(CannotReproduce, match=sentence):
        reproducer.write(tmp_path / "none", case(**given))
    assert not (tmp_path / "none").exists()


def test_the_issue_of_a_reset_speaks_of_seeds() -> None:
    text = reproducer_issue.issue(KINDS["reset on MuJoCo"])
    assert text.startswith("# Pusher-v4: a reset from the same seed starts elsewhere with mujoco 2.3.7 and mujoco 3.0")
    assert "in 30 of 32 seeds" in text
    assert "| after the reset |" in text
    assert "step" not in text.replace("frame_skip", "")


def test_where_only_edits_differ_the_command_names_the_side_and_the_issue_says_what_is_edited() -> None:
    edited = KINDS["edited"]
    assert reproducer_case.commands(edited) == ("uv run reproduce.py shipped", "uv run reproduce.py heavier")
    text = reproducer_issue.issue(edited)
    assert "in heavier `MASS` = 1.3, `POWERS` = [1.0, 2.5], `kind` = nips. This is not how the distributions" in text
    assert "| distribution |" not in text
    found = constants(reproducer_script.script(edited))["EDITS"]
    assert found == {"shipped": {}, "heavier": {"MASS": 1.3, "POWERS": [1.0, 2.5], "kind": "nips"}}


def test_what_is_edited_in_both_needs_no_name() -> None:
    alike = KINDS["edited alike"]
    assert reproducer_case.commands(alike)[0] == "uv run --with 'mujoco==2.3.7' reproduce.py"
    assert "Set otherwise by the script in both: `dt` = 0.01." in reproducer_issue.issue(alike)


def test_an_adapter_is_beside_the_script_under_a_name_that_hides_no_package(tmp_path: Path) -> None:
    reproducer.write(tmp_path, KINDS["adapter"])
    assert (tmp_path / "audited_adapter.py").read_bytes().startswith(b"def make(")
    assert not (tmp_path / "mujoco.py").exists()


def test_why_there_is_no_script_is_left_in_its_place(tmp_path: Path) -> None:
    assert reproducer.told(tmp_path) == ""
    script = reproducer.write(tmp_path, case(**EDITED))
    assert reproducer.told(tmp_path) == str(script)
    reproducer.write_why_not(tmp_path, "no script: it is in spaces")
    assert reproducer.told(tmp_path) == "no script: it is in spaces"
    assert [path.name for path in tmp_path.iterdir()] == ["NO-SCRIPT.txt"]
    assert reproducer.told(reproducer.write(tmp_path, case()).parent).endswith("reproduce.py")


def test_the_names_of_folders() -> None:
    def name(environment: str, older: str, newer: str, shown: str = "x") -> str:
        return reproducer.folder_name(environment, older, newer, (shown, "y"))

    assert name("Pusher-v4", "mujoco-2.3.7", "mujoco-3.0.0").startswith("Pusher-v4__mujoco-2.3.7__mujoco-3.0.0-")
    assert name("E", "a", "b") != name("E", "a", "b", "z"), "what another matrix calls so"
    odd = [name("walker/walk", "a", "b"), name("walker-walk", "a", "b"), name("walker:walk", "a", "b")]
    odd += [name("..", "a", "b"), name("x" * 400, "a", "b"), name("x" * 401, "a", "b")]
    assert len(set(odd)) == len(odd)
    assert all(re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._@+-]{0,150}", each) for each in odd)
