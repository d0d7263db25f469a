"""``release-audit diagnose``: trajectories from files, held against laws, on the real command line."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from numpy.typing import NDArray

from analysis.algebra.screening import Unit
from analysis.paper.systems import AcrobotParameters, AcrobotRun, drawn, reacher_samples
from audit.errors import UsageError
from audit.laws import diagnosing_files, reference_file
from audit.laws.diagnosing_files import Diagnosed
from tests.conftest import Finished, Program

Floats = NDArray[np.float64]

SPRING = """\
name: spring
environments: [Spring]
variables: {x: "observation[0]", v: "observation[1]"}
parameters: {k: 4}
laws: {energy: {conserved: "LAW"}}
"""


@cache
def acrobot(m2: float = 1.0, seed: int = 0, trajectories: int = 8, torque: float = 0.0) -> Floats:
    """Trajectories of the analytic Acrobot, at a step at which its energy can be read."""
    parameters = AcrobotParameters(m2=m2)
    return np.array(
        drawn(AcrobotRun(parameters=parameters, dt=0.005, trajectories=trajectories, steps=400, torque=torque), seed)
    )


def saved(folder: Path, name: str, observation: Floats, **more: Any) -> Path:
    path = folder / f"{name}.npz"
    np.savez(path, observations=observation, **more)
    return path


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """Trajectories of a system with a mass that is too large, and of two that are as specified."""

    heavy: Path
    healthy: Path
    other: Path


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    folder = tmp_path_factory.mktemp("trajectories")
    return Files(
        heavy=saved(folder, "heavy", acrobot(m2=1.3)),
        healthy=saved(folder, "healthy", acrobot(seed=1)),
        other=saved(folder, "other", acrobot(seed=2)),
    )


def laws(finished: Finished) -> dict[str, str]:
    """The row of each law in the table that was printed."""
    return {name: line for line in finished.stdout.splitlines() for name in ("unit-norm θ1", "unit-norm θ2", "energy")
            if line.startswith(f"{name}  ")}  # fmt: skip


# What it finds


@pytest.mark.parametrize("check", [True, False])
def test_a_wrong_constant_is_named_with_its_value(release_audit: Program, files: Files, check: bool) -> None:
    given = ("diagnose", files.heavy, "--reference", "acrobot", "--against", files.healthy)
    finished = release_audit(*given, *(["--check"] if check else []))
    assert finished.stderr == ""
    assert finished.code == (1 if check else 0)
    assert "energy: LINK_MASS_2 is 1.3, specified 1\n" in finished.stdout
    table = laws(finished)
    assert table["energy"].rstrip().endswith("broken")
    assert all(table[f"unit-norm {angle}"].rstrip().endswith("holds as well as there") for angle in ("θ1", "θ2"))
    assert list(release_audit.folder.iterdir()) == [], "it leaves nothing behind"


def test_of_two_systems_that_are_as_specified_nothing_is_said(release_audit: Program, files: Files) -> None:
    finished = release_audit("diagnose", files.other, "--reference", "acrobot", "--against", files.healthy, "--check")
    assert (finished.code, finished.stderr) == (0, "")
    assert "broken" not in finished.stdout
    assert " is 1" not in finished.stdout
    assert "energy: consistent with specification" in finished.stdout


def test_a_constant_is_named_without_another_system(release_audit: Program, files: Files) -> None:
    finished = release_audit("diagnose", files.heavy, "--reference", "acrobot", "--check")
    assert (finished.code, finished.stderr) == (1, "")
    assert "LINK_MASS_2 is 1.3, specified 1" in finished.stdout
    table = laws(finished)
    assert "how much is too much needs another system: --against" in table["energy"]
    assert "holds to " in table["unit-norm θ1"]


def test_blocks_may_be_the_unit(release_audit: Program, files: Files) -> None:
    given = ("diagnose", files.heavy, "--reference", "acrobot", "--against", files.healthy, "--unit", "block")
    finished = release_audit(*given)
    assert finished.code == 0, finished.stderr
    assert laws(finished)["energy"].rstrip().endswith("broken")


def test_poses_are_taken_together(release_audit: Program) -> None:
    """Trajectories of a single sample each, as a log of a robot at rest has them."""
    folder = release_audit.folder
    longer = saved(folder, "longer", reacher_samples(l2=0.13, count=400)[0][:, None])
    right = saved(folder, "right", reacher_samples(seed=1, count=400)[0][:, None])
    finished = release_audit("diagnose", longer, "--reference", "reacher-v4", "--against", right, "--check")
    assert (finished.code, finished.stderr) == (1, "")
    assert "fk-x: link2 is 0.13, specified 0.11" in finished.stdout
    assert "fk-y: link2 is 0.13, specified 0.11" in finished.stdout


def test_a_reference_set_of_ones_own(release_audit: Program) -> None:
    times = np.linspace(0, 3, 200)[None, :, None]
    phases = np.arange(8.0)[:, None, None]
    swings = np.concatenate([np.cos(1.5 * times + phases), -1.5 * np.sin(1.5 * times + phases)], axis=-1)
    path = saved(release_audit.folder, "swings", swings)
    reference = release_audit.folder / "spring.yaml"
    reference.write_text(SPRING.replace("LAW", "v**2 + k*x**2"), encoding="utf-8")
    finished = release_audit("diagnose", path, "--reference", reference)
    assert finished.code == 0, finished.stderr
    assert "energy: k is 2.25, specified 4" in finished.stdout


# What it leaves out, and says so


def test_so_few_trajectories_that_nothing_can_be_called_broken(release_audit: Program) -> None:
    heavy = saved(release_audit.folder, "heavy", acrobot(m2=1.3, trajectories=3))
    healthy = saved(release_audit.folder, "healthy", acrobot(seed=1, trajectories=3))
    finished = release_audit("diagnose", heavy, "--reference", "acrobot", "--against", healthy)
    assert (finished.code, finished.stderr) == (0, "")
    assert "so few trajectories cannot show more than p = 0.15, so nothing can be called broken" in finished.stdout
    assert laws(finished)["energy"].rstrip().endswith("holds as well as there")
    assert "LINK_MASS_2 is 1.3" in finished.stdout, "a constant needs no other system"


def test_what_is_driven_conserves_nothing(release_audit: Program) -> None:
    driven = saved(release_audit.folder, "driven", acrobot(torque=1.0), actions=np.full((8, 400), 2))
    finished = release_audit("diagnose", driven, "--reference", "acrobot", "--check")
    assert (finished.code, finished.stderr) == (0, "")
    assert f"{driven} has actions, and energy is conserved only where nothing drives: left out" in finished.stdout
    assert list(laws(finished)) == ["unit-norm θ1", "unit-norm θ2"]


# In one sentence


def bad_inputs(folder: Path) -> dict[str, tuple[Path, str, str]]:
    """Trajectories, the reference, and what is said."""
    good = saved(folder, "good", acrobot())
    gap = acrobot().copy()
    gap[2, 7, 4] = np.nan
    without = folder / "without.npz"
    np.savez(without, state=acrobot()[..., :4])
    references = {"unknown": "v**2 + k*q", "root": "v**2 + sqrt(x)"}
    for name, law in references.items():
        (folder / f"{name}.yaml").write_text(SPRING.replace("LAW", law), encoding="utf-8")
    return {
        "missing columns": (without, "acrobot", "'observation[0]' needs observation, and the trajectories have"),
        "few entries": (saved(folder, "few", acrobot()[..., :5]), "acrobot", "needs entry 5 of observation"),
        "not a number": (saved(folder, "gap", gap), "acrobot", "w1 = observation[4] is not a number at sample 7"),
        "one sample": (saved(folder, "one", acrobot()[0, :1]), "acrobot", "has 1 samples, and at least 2 are needed"),
        "no samples": (saved(folder, "none", acrobot()[:0]), "acrobot", "there are no trajectories"),
        "unknown reference": (good, "acrobat", "there is no reference set 'acrobat'"),
        "unknown variable": (good, str(folder / "unknown.yaml"), "laws.energy, line 5: 'v**2 + k*q' names q, and"),
        "no polynomial": (good, str(folder / "root.yaml"), "line 5: 'v**2 + sqrt(x)' is not a polynomial"),
        "no file": (folder / "absent.npz", "acrobot", "there is no file "),
        "all driven": (
            saved(folder, "driven", acrobot(), states=acrobot()[..., :4], actions=np.zeros((8, 401))),
            "acrobot-state",
            "no law of acrobot-state can be held against ",
        ),
    }  # fmt: skip


BAD = [
    "missing columns", "few entries", "not a number", "one sample", "no samples", "unknown reference",
    "unknown variable", "no polynomial", "no file", "all driven",
]  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_whatever_is_wrong_is_told_in_one_sentence(release_audit: Program, what: str) -> None:
    path, reference, told = bad_inputs(release_audit.folder)[what]
    finished = release_audit("diagnose", path, "--reference", reference)
    assert (finished.code, finished.stdout) == (2, "")
    assert told in finished.sentence


def test_a_reference_is_needed(release_audit: Program, files: Files) -> None:
    finished = release_audit("diagnose", files.healthy)
    assert finished.code == 2
    assert "--reference" in finished.sentence


# The same in this process, where many cases are cheap


def diagnosed(path: Path, reference: str = "acrobot", against: Path | None = None) -> Diagnosed:
    return diagnosing_files.diagnose(reference_file.find(reference), path, against, Unit.TRAJECTORY)


def test_the_file_that_is_wrong_is_the_one_that_is_named(tmp_path: Path, files: Files) -> None:
    saved(tmp_path, "lone", acrobot()[0, :1])
    for tested, against in ((files.healthy, tmp_path / "lone.npz"), (tmp_path / "lone.npz", files.healthy)):
        with pytest.raises(UsageError, match=r"lone\.npz: trajectory 0 has 1 samples"):
            diagnosed(tested, against=against)


def test_too_few_samples_to_read_a_constant_off_are_enough_to_hold_laws_against(tmp_path: Path) -> None:
    found = diagnosed(saved(tmp_path, "few", reacher_samples(count=5)[0]), "reacher-v4")
    assert all(line.said.startswith("holds to") for line in found.laws)
    assert all("5 samples are too few for" in each.told for each in found.attributions)
    assert found.attributions


def test_data_without_actions_are_taken_as_undriven_and_told_so(tmp_path: Path) -> None:
    silent = diagnosed(saved(tmp_path, "silent", acrobot()))
    assert any("has no actions: it is taken to be driven by nothing" in note for note in silent.notes)
    np.savez(tmp_path / "coasting.npz", observation=acrobot(), action=np.ones((*acrobot().shape[:2], 1)))
    assert not diagnosed(tmp_path / "coasting.npz").notes


def test_a_world_model_that_explodes_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(
        UsageError, match=r"huge\.npz: trajectory 0 reaches \d\.\de\+\d+, which is no state of a system"
    ):
        diagnosed(saved(tmp_path, "huge", 1e200 * acrobot()))


def test_units_do_not_make_a_law_broken(tmp_path: Path) -> None:
    laws = tmp_path / "millimetres.yaml"
    laws.write_text(
        "name: mm\nenvironments: [x]\nvariables: {x: 'observation[0]', y: 'observation[1]'}\n"
        "laws: {circle: {vanishes: x**2 + y**2 - 1000000}}\n"
    )
    angle = np.linspace(0, 6, 400)
    single = (1000 * np.stack([np.cos(angle), np.sin(angle)], axis=-1)).astype(np.float32).astype(np.float64)
    assert not diagnosed(saved(tmp_path, "mm", single), str(laws)).found
    assert diagnosed(saved(tmp_path, "wide", 1.001 * single), str(laws)).found


def test_what_else_a_file_holds_does_not_matter(tmp_path: Path) -> None:
    np.savez(tmp_path / "more.npz", observation=acrobot(), dt=0.005, env_id="Acrobot-v1")
    assert not diagnosed(tmp_path / "more.npz").found
    np.savez(tmp_path / "text.npz", observation=np.array(["a", "b"]))
    with pytest.raises(UsageError, match=r"observation in .* is not an array of numbers"):
        diagnosed(tmp_path / "text.npz")


def test_an_episode_that_ended_early_is_left_out_and_told(tmp_path: Path) -> None:
    rows = [(episode, step, *values) for episode, each in enumerate(acrobot()) for step, values in enumerate(each)]
    rows = [row for row in rows if row[0] != 0 or row[1] < 3]
    given = np.array(rows)
    names = ["episode", "step", *(f"observation_{place}" for place in range(given.shape[1] - 2))]
    path = tmp_path / "ended.parquet"
    table = ", ".join(f"c{place} AS {name}" for place, name in enumerate(names))
    csv = tmp_path / "ended.csv"
    np.savetxt(csv, given, delimiter=",", header=",".join(f"c{place}" for place in range(len(names))), comments="")
    duckdb.sql(f"COPY (SELECT {table} FROM read_csv('{csv}')) TO '{path}' (FORMAT parquet)")
    found = diagnosed(path, against=path)
    assert any(note.startswith("2 trajectories are less than half as long as the others") for note in found.notes)


def test_too_short_for_laws_without_constants(tmp_path: Path) -> None:
    lone = saved(tmp_path, "lone", np.zeros((1, 11)))
    with pytest.raises(UsageError, match=r"lone\.npz: trajectory 0 has 1 samples"):
        diagnosed(lone, "inverted-double-pendulum")


def test_single_precision_breaks_no_law(tmp_path: Path) -> None:
    """As gymnasium observes it: a log of any shipped Acrobot must not be called broken."""
    found = diagnosed(saved(tmp_path, "single", acrobot().astype(np.float32)))
    assert not found.found
    assert [line.said.split()[0] for line in found.laws] == ["holds", "holds", "how"]


def test_a_vanishing_law_is_broken_by_its_size_alone(tmp_path: Path) -> None:
    scaled = acrobot() * np.array([1.0001, 1, 1, 1, 1, 1])
    found = diagnosed(saved(tmp_path, "scaled", scaled))
    assert found.found
    assert found.laws[0].said.startswith("broken by 0.000")
    assert found.laws[1].said.startswith("holds to ")


def test_the_action_that_does_nothing_drives_nothing(tmp_path: Path) -> None:
    coasting = saved(tmp_path, "coasting", acrobot(), actions=np.full((8, 400), 1))
    assert [line.law for line in diagnosed(coasting).laws] == ["unit-norm θ1", "unit-norm θ2", "energy"]
    assert diagnosed(coasting).notes == ()
    pushed = saved(tmp_path, "pushed", acrobot(), actions=np.zeros((8, 400), int))
    assert [line.law for line in diagnosed(pushed).laws] == ["unit-norm θ1", "unit-norm θ2"]
    assert len(diagnosed(pushed).notes) == 1


def test_along_poses_nothing_is_conserved(tmp_path: Path) -> None:
    """They are of many trajectories, each of which has an energy of its own."""
    found = diagnosed(saved(tmp_path, "poses", acrobot(trajectories=200)[:, :1]))
    assert [line.law for line in found.laws] == ["unit-norm θ1", "unit-norm θ2"]
    assert found.attributions == ()
    assert found.notes[0].endswith("has single samples, and energy is conserved only along a trajectory: left out")


def test_where_the_other_system_is_driven_the_law_is_left_out_too(tmp_path: Path, files: Files) -> None:
    driven = saved(tmp_path, "driven", acrobot(torque=1.0), actions=np.full((8, 400), 2))
    found = diagnosed(files.healthy, against=driven)
    assert [line.law for line in found.laws] == ["unit-norm θ1", "unit-norm θ2"]
    assert found.notes[0].startswith(str(driven))
