"""How steps come about on the real simulator: stages, anatomy and registry of releases, asked as an audit asks."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from audit.asked.attachments import Attachment
from audit.asked.environment_rows import EnvironmentRow
from audit.asked.releases import ReleaseRequest
from audit.installing import locks, venvs
from audit.installing.locks import Release
from audit.installing.venvs import Recipe
from audit.planning import plan
from audit.planning.plan import Cell, Recording
from audit.processes import dumper_process
from audit.processes.answers import CellAnswer
from audit.processes.dumper_request import CellTask
from audit.stimuli import stimulus
from audit.stimuli.stimulus import Batch

SCENE = Path(__file__).parent.parent / "matrices" / "scenes" / "boxes.xml"
DAY = datetime.date(2026, 11, 1)
VERSIONS = ("3.1.6", "3.2.7")


@pytest.fixture(scope="module")
def shared(shared_cache: Path) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RELEASE_AUDIT_CACHE", str(shared_cache))
        yield


def release(version: str) -> Release:
    requires = ("gymnasium[mujoco]==1.2.3", f"mujoco=={version}")
    pins = ("numpy<2.4",)
    found = locks.resolve(
        ReleaseRequest(id=version, requires=requires, pins=pins, python="3.11", exclude_newer=DAY, series="")
    )
    assert isinstance(found, Release), found
    return found


def cell(of: Release, attachment: Attachment | None = None, **row: Any) -> Cell:
    return Cell(release=of, environment=EnvironmentRow.model_validate(row), position=0, attachment=attachment)


def staged(of: Cell, states: NDArray[Any], actions: NDArray[Any], **more: NDArray[Any]) -> CellTask:
    given = stimulus.packed({"states": states, "actions": actions, **more})
    return replace(of.asked("stages", given), label=f"stages {of.environment.title} {len(more)}")


def hopper_states() -> tuple[NDArray[np.float64], NDArray[np.float32]]:
    """In the air, on the floor and in it, at a limit."""
    generator = np.random.default_rng(0)
    states = np.concatenate([[0, 1.25, 0, 0, 0, 0], np.zeros(6)]) + generator.normal(scale=0.05, size=(64, 12))
    states[::2, 1] -= 0.1
    states[::4, 4] = 0.1
    return states, generator.uniform(-1, 1, size=(64, 3)).astype(np.float32)


def ask(of: Release) -> dict[str, CellAnswer]:
    """Everything in one process; what was answered, by label."""
    hopper, pendulum = cell(of, id="Hopper-v5"), cell(of, id="Pendulum-v1")
    states, actions = hopper_states()
    forced = stimulus.assemble({"forced": Batch(starts=states, actions=actions[:, None])}, resets=0)
    angles = np.random.default_rng(1).normal(size=(16, 2))
    torques = np.linspace(-3, 3, 16, dtype=np.float32)[:, None]
    tasks = [
        replace(hopper.asked("registry"), label="registry"),
        replace(hopper.asked("anatomy"), label="anatomy"),
        Recording(cell=hopper, stimulus=forced).asked(),
        staged(hopper, states, actions),
        staged(hopper, states, actions, traced=np.array(True)),
        staged(pendulum, angles, torques),
    ]
    assert venvs.ensure(Recipe.of(of), of.id) is None
    outcomes = list(dumper_process.run(plan.job(hopper, tasks, 120.0)))
    assert all(isinstance(outcome.result, CellAnswer) for outcome in outcomes), outcomes
    return {outcome.label: outcome.result for outcome in outcomes if isinstance(outcome.result, CellAnswer)}


@pytest.fixture(scope="module")
def told(shared: None) -> dict[str, dict[str, CellAnswer]]:
    return {version: ask(release(version)) for version in VERSIONS}


@pytest.mark.parametrize("version", VERSIONS)
def test_watched_hoppers_step_as_unwatched_ones(told: dict[str, dict[str, CellAnswer]], version: str) -> None:
    watched, plain = told[version]["stages Hopper-v5 0"], told[version]["Hopper-v5"]
    assert (watched.status, watched.meta["substeps"]) == ("ok", 4)
    for output in ("state", "observation", "reward", "terminated", "truncated"):
        assert watched.arrays[f"04.outputs.{output}"].tobytes() == plain.arrays[f"forced.{output}"].tobytes()
    last = [watched.arrays[f"03.integration.{field}"] for field in ("qpos", "qvel")]
    assert np.concatenate(last, axis=1).tobytes() == plain.arrays["forced.state"].tobytes()


@pytest.mark.parametrize("version", VERSIONS)
def test_the_stages_of_a_hopper(told: dict[str, dict[str, CellAnswer]], version: str) -> None:
    answer = told[version]["stages Hopper-v5 0"]
    seen = [name.split(".")[1] for name in answer.meta["order"] if name.startswith("00.")]
    once = ["kinematics", "inertia", "collision", "constraint", "velocity", "actuation", "smooth", "solution"]
    four_times = [f"{stage} in evaluation {which}" for which in (2, 3, 4) for stage in once]
    assert list(dict.fromkeys(seen)) == [*once, *four_times, "integration"], "by Runge and Kutta's method"
    arrays = answer.arrays
    touching = arrays["00.collision.ncon"]
    assert touching.min() == 0 < touching.max()
    pairs = arrays["00.collision.pair"][touching > 0, 0].astype(int)
    assert {answer.meta["geoms"][pair[0]] for pair in pairs} == {"floor"}
    assert (arrays["00.collision.dist"][touching > 0, 0] < 0.01).all()
    assert {"pos", "frame", "friction", "solref", "solimp", "includemargin"} <= {
        name.split(".")[2] for name in arrays if name.startswith("00.collision.")
    }
    assert arrays["00.constraint.efc_J"].shape == (64, arrays["00.constraint.nefc"].max(), 6)
    assert answer.meta["names"]["xpos"] == ["world", "torso", "thigh", "leg", "foot"]
    mass, force = arrays["00.inertia.mass"], arrays["00.smooth.qfrc_smooth"]
    np.testing.assert_allclose(np.einsum("sij,sj->si", mass, arrays["00.smooth.qacc_smooth"]), force, atol=1e-8)


def test_two_releases_tell_the_same_quantities(told: dict[str, dict[str, CellAnswer]]) -> None:
    one, other = (told[version]["stages Hopper-v5 0"] for version in VERSIONS)
    assert one.meta["order"] == other.meta["order"]
    for name in ("00.kinematics.xpos", "00.inertia.mass", "00.collision.pair", "00.constraint.efc_J"):
        np.testing.assert_allclose(one.arrays[name], other.arrays[name], atol=1e-9)


def test_the_anatomy_of_a_hopper(told: dict[str, dict[str, CellAnswer]]) -> None:
    for answer in (told[version]["anatomy"] for version in VERSIONS):
        masses = dict(zip(answer.meta["names"]["body_mass"], answer.arrays["constant.body_mass"].tolist(), strict=True))
        assert masses["torso"] == pytest.approx(3.67, abs=0.01)
        assert answer.meta["names"]["dof_damping"][:3] == ["rootx", "rootz", "rooty"]
        assert answer.arrays["constant.opt.timestep"].tolist() == 0.002
        assert answer.arrays["constant.attribute.frame_skip"].tolist() == 4
        assert answer.arrays["constant.attribute._ctrl_cost_weight"].tolist() == 0.001
        assert answer.arrays["constant.spec.max_episode_steps"].tolist() == 1000
        assert answer.arrays["constant.space.action.high"].tolist() == [1.0, 1.0, 1.0]
        assert not [name for name in answer.arrays if "rgba" in name or "tex_" in name or "nbuffer" in name]


def test_the_step_of_a_pendulum(told: dict[str, dict[str, CellAnswer]]) -> None:
    answer = told[VERSIONS[0]]["stages Pendulum-v1 0"]
    seen = [name.removeprefix("00.PendulumEnv.step.") for name in answer.meta["order"]]
    wanted = ["u#0", "th#0", "thdot#0", "u#1", "costs#0", "newthdot#0", "newthdot#1", "newth#0", "self.state#0"]
    assert [name for name in seen if name in wanted] == wanted
    assert np.abs(answer.arrays["00.PendulumEnv.step.u#1"]).max() == 2.0
    assert answer.meta["dtypes"]["00.PendulumEnv.step.u#1"] == "float32"
    assert answer.meta["lines"]["00.PendulumEnv.step.newthdot#0"].startswith("pendulum.py:")


def test_the_python_of_a_hopper(told: dict[str, dict[str, CellAnswer]]) -> None:
    answer = told[VERSIONS[0]]["stages Hopper-v5 1"]
    assert {"00.HopperEnv.step.x_velocity#0", "00.HopperEnv._get_rew.ctrl_cost#0"} <= set(answer.arrays)
    reward = answer.arrays["00.HopperEnv._get_rew.reward#0"]
    assert reward.tobytes() == answer.arrays["01.outputs.reward"].tobytes()


def test_the_registry_of_a_release(told: dict[str, dict[str, CellAnswer]]) -> None:
    for answer in (told[version]["registry"] for version in VERSIONS):
        assert {"Hopper-v4", "Hopper-v5", "Pendulum-v1"} <= set(answer.meta["ids"])


@pytest.mark.usefixtures("shared")
def test_a_scene_with_a_sparse_jacobian_is_the_same_scene() -> None:
    of = release(VERSIONS[1])
    assert venvs.ensure(Recipe.of(of), of.id) is None
    found = []
    for layout in ("dense", "sparse"):
        text = SCENE.read_bytes().replace(b'cone="pyramidal"', b'cone="pyramidal" jacobian="%s"' % layout.encode())
        scene = cell(of, Attachment(main="scene.xml", files={"scene.xml": text}), mjcf="scene.xml")
        probe = scene.asked("probe")
        (probed,) = dumper_process.run(plan.job(scene, [probe], 120.0))
        assert isinstance(probed.result, CellAnswer)
        reference = np.array(probed.result.meta["layout"]["reference"])
        task = staged(scene, reference[None] - 0.01 * np.arange(3)[:, None], np.zeros((3, 2)))
        (outcome,) = dumper_process.run(plan.job(scene, [task], 120.0))
        assert isinstance(outcome.result, CellAnswer), outcome
        found.append(outcome.result)
    dense, sparse = found
    assert dense.arrays["00.constraint.nefc"].max() > 8
    assert dense.meta["order"] == sparse.meta["order"]
    np.testing.assert_array_equal(dense.arrays["00.constraint.efc_J"], sparse.arrays["00.constraint.efc_J"])
    np.testing.assert_allclose(
        dense.arrays["00.solution.qacc"], sparse.arrays["00.solution.qacc"], rtol=1e-6, atol=1e-6
    )
