"""``diff``: two releases compared without a matrix, with the same cells, store and verdicts as with one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import PINS, Finished, Program, rows

SPRING = "tinysim:tinysim/Spring-v0"
BESIDE = [word for pin in (*PINS, "tinydep==1.0") for word in ("--with", pin)]
BOXES = Path(__file__).parent.parent / "matrices" / "scenes" / "boxes.xml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """A version that is changed held against the one before it, twice."""

    program: Program
    database: Path
    first: Finished
    again: Finished


@pytest.fixture(scope="module")
def compared(module_audit: Program) -> Compared:
    asked = ["diff", "tinysim==1.0", "tinysim==1.3", *BESIDE, "--env", SPRING, "--exclude-newer", "2026-11-01"]
    first, again = (module_audit(*asked, *more) for more in ([], ["--check"]))
    return Compared(
        program=module_audit, database=module_audit.folder / "results/audit.duckdb", first=first, again=again
    )


def test_a_change_is_found_and_explained(compared: Compared) -> None:
    assert compared.first.code == 0, compared.first.stderr
    found = rows(compared.database, "SELECT matrix, environment, older, newer, verdict, adjacent FROM pairs")
    assert found == [("diff-tinysim-1.0-tinysim-1.3", SPRING, "tinysim-1.0", "tinysim-1.3", "changed", True)]
    ((constants,),) = rows(compared.database, "SELECT constants FROM explanations")
    assert constants == 1
    assert re.search(r"damping: 0\.3 → 0\.3\d+", compared.first.stdout)


def test_again_nothing_is_dumped_and_a_check_fails(compared: Compared) -> None:
    assert compared.again.code == 1, compared.again.stderr
    assert "0 dumped now, 2 known from before" in compared.again.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("tinysim==1.0", "tinysim==9.9", *BESIDE, "--env", SPRING), "tinysim-9.9 cannot be resolved: "),
        (("tinysim==1.0", "tinysim=1", *BESIDE, "--env", SPRING), "'tinysim=1' is not a requirement"),
        (("tinysim==1.0", "tinysim==1.0", *BESIDE, "--env", SPRING), "the same"),
        (("tinysim==1.0", "tinysim==1.1", *BESIDE, "--env", ""), "'' is not the id of an environment"),
    ],
    ids=["a version that nobody has", "no requirement", "the same twice", "no name"],
)
def test_a_mistake_is_a_sentence(release_audit: Program, arguments: tuple[str, ...], said: str) -> None:
    finished = release_audit("diff", *arguments)
    assert finished.code == 2, finished.stdout
    assert said in finished.sentence


def test_without_an_environment_all_are_compared_that_both_have(release_audit: Program) -> None:
    finished = release_audit("diff", "gymnasium==1.2.3", "gymnasium==1.3.0", "--with", "numpy<2.4")
    assert finished.code == 0, finished.stderr
    database = release_audit.folder / "results" / "audit.duckdb"
    found = dict(rows(database, "SELECT environment, verdict FROM pairs"))
    assert {"Acrobot-v1", "CartPole-v1", "MountainCar-v0", "Pendulum-v1", "FrozenLake-v1"} <= set(found)
    assert {found["Acrobot-v1"], found["CartPole-v1"]} == {"identical"}


def test_a_scene_is_compared(release_audit: Program) -> None:
    """The release notes of mujoco 3.4.0 speak of collisions of boxes."""
    finished = release_audit("diff", "mujoco==3.3.7", "mujoco==3.4.0", "--with", "numpy<2.4", "--mjcf", BOXES)
    assert finished.code == 0, finished.stderr
    found = rows(release_audit.folder / "results/audit.duckdb", "SELECT environment, verdict FROM pairs")
    assert found == [("boxes", "changed")]
    assert "first differs in collision" in finished.stdout
