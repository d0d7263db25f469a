"""Changes that others shipped, explained on real wheels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Program, rows

PUSHER = ("Pusher-v4", "mujoco==2.3.7", "mujoco==3.0.0", "--with", "gymnasium[mujoco]==0.29.1", "--with", "numpy<2")
DAY = ("--exclude-newer", "2026-11-01", "--python", "3.11")


@pytest.fixture(scope="module")
def database(module_audit: Program) -> Path:
    return module_audit.folder / "audit.duckdb"


@pytest.fixture(scope="module")
def pusher(module_audit: Program, database: Path) -> dict[str, Any]:
    done = module_audit("explain", *PUSHER, *DAY, "--json", "-", "--db", database)
    assert done.code == 0, done.stderr
    return dict(json.loads(done.stdout))


def test_the_compiled_quantity_behind_pushers_change_is_named(pusher: dict[str, Any]) -> None:
    named = [each.partition(":")[0] for each in pusher["constants"]]
    assert {"dof_invweight0[obj_slidex]", "dof_invweight0[obj_slidey]"} <= set(named)


def test_it_acts_from_the_assembly_of_constraints_on_and_not_before(pusher: dict[str, Any]) -> None:
    assert (pusher["verdict"], pusher["stage"]) == ("changed", "constraint")
    assert {"efc_diagApprox", "efc_R"} <= set(pusher["fields"].split(", "))
    assert pusher["before"] == ["kinematics", "inertia", "collision"]


def test_of_four_distributions_that_differ_the_simulator_is_blamed(pusher: dict[str, Any]) -> None:
    assert pusher["packages"] == ["mujoco 2.3.7 → 3.0.0"]
    assert pusher["searched"] is True


def test_a_second_time_it_is_told_from_the_store(module_audit: Program, database: Path, pusher: dict[str, Any]) -> None:
    before = rows(database, "SELECT count(*) FROM internal.examinations")
    again = module_audit("explain", *PUSHER, *DAY, "--json", "-", "--db", database)
    assert json.loads(again.stdout) == pusher
    assert rows(database, "SELECT count(*) FROM internal.examinations") == before


def test_a_script_is_left_that_says_how_to_be_run(pusher: dict[str, Any]) -> None:
    script = Path(pusher["reproducer"])
    assert "uv run --with 'mujoco==2.3.7'" in script.read_text(encoding="utf-8")
    issue = (script.parent / "ISSUE.md").read_text(encoding="utf-8")
    assert "dof_invweight0[obj_slidex]" in issue.replace("\\", ""), "names are escaped, as Markdown wants it"


def test_a_lost_column_is_explained_as_an_interface_change(module_audit: Program, database: Path) -> None:
    same = "gymnasium[mujoco]==1.3.0"
    done = module_audit(
        "explain", "Reacher-v4=Reacher-v5", same, same, "--with", "mujoco==3.10.0", *DAY, "--db", database
    )
    assert done.code == 0, done.stderr
    assert "interface change  the observation lost entry 10, which is always 0" in done.stdout
    assert "first differs in  outputs: observation" in done.stdout


def test_of_an_environment_in_python_the_first_variable_that_differs_is_named(
    module_audit: Program, database: Path
) -> None:
    pair = "numpy==1.26.4", "numpy==2.1.0"
    done = module_audit("explain", "Pendulum-v1", *pair, "--with", "gymnasium==0.29.1", *DAY, "--db", database)
    assert done.code == 0, done.stderr
    assert "first differs in  PendulumEnv.step: costs" in done.stdout
    assert "brought by        numpy 1.26.4 → 2.1.0" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("Pendulum-v1", "numpy==2.1.0", "numpy==2.1.0"), "are the same release"),
        (("Pendulum-v1", "numpy==2.1.0", "not a version!"), "is not a requirement"),
        (("Pendulum-v1", "numpy==2.0.0", "numpy==2.1.0"), "there is nothing to explain"),
        (("Nothing-v1", "numpy==1.26.4", "numpy==2.1.0"), "does not offer Nothing-v1"),
        (("Pendulum-v1", "numpy==1.26.4", "numpy==99.0"), "cannot be"),
    ],
)
def test_what_cannot_be_explained_is_said_in_a_sentence(
    module_audit: Program, database: Path, arguments: tuple[str, ...], told: str
) -> None:
    done = module_audit("explain", *arguments, "--with", "gymnasium==0.29.1", *DAY, "--db", database)
    assert done.code == 2
    assert told in done.stderr
    assert "Traceback" not in done.stderr
