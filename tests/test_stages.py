"""How a step comes about, on a small simulator; and what is believed of an answer about it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from audit.processes import answers
from audit.processes.answer_file import DamagedAnswer
from audit.processes.answers import CellAnswer
from audit.stimuli import stimulus
from dumper import anatomy, quantities, registered, serve, stages, substeps, worlds
from dumper.record import Incomparable
from dumper.worlds import Unavailable, World
from tests.small_environments import Modern
from tests.small_mujoco import POINTS, Data, Model, Physics, simulator
from tests.written_answers import write


class Falling(World):  # type: ignore[misc]  # the dumper is not typed
    """Points on the small simulator."""

    def __init__(self, mujoco: Any, take: Callable[[Any, Any, Any], None]) -> None:
        self.mujoco, self.take = mujoco, take
        self.model = Model()
        self.data = Data(self.model)

    def layout(self) -> Any:
        return {"state_size": 2 * POINTS}

    def impose(self, state: Any) -> None:
        vars(self.data).update(time=0.0)
        self.data.qpos[:], self.data.qvel[:] = state[:POINTS], state[POINTS:]
        self.data.ctrl[:] = self.data.qacc_warmstart[:] = 0

    def read(self) -> Any:
        return np.concatenate([self.data.qpos, self.data.qvel])

    def stepper(self, action: Any) -> Any:
        def step(action: Any) -> Any:
            self.data.ctrl[:] = action
            self.take(self.mujoco, self.model, self.data)
            return self.read(), float(self.data.time), False, False, {}

        return step

    def watcher(self, rows: int) -> Any:
        return substeps.Substeps(self.mujoco, self.model, self.data, anatomy.Names(Physics(), self.model), rows)


def thrice(mujoco: Any, model: Any, data: Any) -> None:
    mujoco.mj_step(model, data, nstep=3)


STATES = np.array([[1.0, 1.0, 0.0, 0.0], [-0.1, -0.2, 0.0, 0.0], [1.0, -0.3, 0.0, 0.5]])
ACTIONS = np.array([[0.0, 1.0], [2.0, 0.0], [0.0, 0.0]])


def fallen(take: Any = thrice, mujoco: Any = None, **more: Any) -> Any:
    world = Falling(simulator() if mujoco is None else mujoco, take)
    return stages.record(world, {"states": STATES, "actions": ACTIONS, **more})


# On a small simulator


def test_stages_are_in_the_order_of_computation() -> None:
    answer = fallen()
    order = answer.meta["order"]
    assert set(order) == set(answer.arrays)
    first = [name[3:] for name in order if name.startswith("00.")]
    assert first == [
        "kinematics.xpos", "inertia.mass", "collision.ncon", "collision.pair", "collision.dist", "collision.pos",
        "collision.frame", "collision.includemargin", "collision.friction", "collision.solref", "collision.solimp",
        "constraint.ne", "constraint.nf", "constraint.nl", "constraint.nefc", "constraint.efc_type",
        "constraint.efc_id", "constraint.efc_J", "constraint.efc_pos", "actuation.ctrl", "solution.iterations",
        "solution.qacc", "integration.qpos", "integration.qvel",
    ]  # fmt: skip
    assert [name[:2] for name in order] == sorted(name[:2] for name in order)
    assert order[-5:] == [
        f"03.outputs.{name}" for name in ("state", "observation", "reward", "terminated", "truncated")
    ]
    assert (answer.meta["substeps"], answer.meta["recorded"], answer.meta["steps"]) == (3, 3, 3)


def test_each_substep_goes_on_from_the_one_before() -> None:
    arrays = fallen().arrays
    for number in (1, 2):
        before = arrays[f"{number - 1:02}.integration.qpos"]
        assert arrays[f"{number:02}.kinematics.xpos"][:, 1:, 0].tobytes() == before.tobytes()
    last = np.concatenate([arrays["02.integration.qpos"], arrays["02.integration.qvel"]], axis=1)
    assert last.tobytes() == arrays["03.outputs.state"].tobytes()


@pytest.mark.parametrize(
    "take",
    [
        thrice,
        lambda mujoco, model, data: [mujoco.mj_step(model, data) for _ in range(3)],
        lambda mujoco, model, data: (mujoco.mj_step2(model, data), mujoco.mj_step(model, data, 2)),
    ],
    ids=["at once", "one by one", "the first half way"],
)
def test_the_step_is_the_same_as_without(take: Any) -> None:
    arrays = fallen(take).arrays
    world = Falling(simulator(), take)
    step = world.stepper(ACTIONS[0])
    for row, (state, action) in enumerate(zip(STATES, ACTIONS, strict=True)):
        world.impose(state)
        _, reward, *_ = step(action)
        assert arrays["03.outputs.state"][row].tobytes() == world.read().tobytes()
        assert arrays["03.outputs.reward"][row] == reward


def test_lists_are_filled_up_and_counted() -> None:
    answer = fallen()
    arrays = answer.arrays
    assert arrays["00.collision.ncon"].tolist() == [0, 2, 1]
    np.testing.assert_array_equal(arrays["00.collision.dist"], [[np.nan] * 2, [-0.1, -0.2], [-0.3, np.nan]])
    assert arrays["00.collision.frame"].shape == (3, 2, 9)
    assert answer.meta["counts"]["00.collision.dist"] == "00.collision.ncon"
    assert answer.meta["counts"]["00.constraint.efc_J"] == "00.constraint.nefc"
    assert arrays["00.solution.iterations"].tolist() == [1, 3, 2]


def test_contacts_are_sorted_by_pair_and_constraints_follow() -> None:
    """The simulator has the lowest point first."""
    arrays = fallen().arrays
    assert arrays["00.collision.pair"][1].tolist() == [[0, 1], [0, 2]]
    assert arrays["00.constraint.efc_id"][1].tolist() == [0, 1]
    assert arrays["00.constraint.efc_pos"][1].tolist() == [-0.1, -0.2]
    assert arrays["00.constraint.efc_J"][1].tolist() == [[1, 0], [0, 1]]


def test_contacts_of_one_pair_are_sorted_by_place_but_for_rounding() -> None:
    def block(*places: tuple[float, float]) -> NDArray[np.float64]:
        lines = np.zeros((len(places), sum(quantities.CONTACT.values())))
        lines[:, 3:5] = places
        return lines

    blocks = [block((0.2, 0.1), (0.1, 0.3)), block((0.1 + 1e-9, 0.2), (0.1, 0.3))]
    lines, ranks = quantities._sorted_contacts(blocks, np.array([2, 0, 2]))
    assert lines[:, 3:5].tolist() == [[0.1, 0.3], [0.2, 0.1], [0.1 + 1e-9, 0.2], [0.1, 0.3]]
    assert ranks.tolist() == [1, 0, 0, 1]


def test_without_a_contact_anywhere_there_are_lists_of_nothing() -> None:
    world = Falling(simulator(), lambda mujoco, model, data: mujoco.mj_step(model, data))
    arrays = stages.record(world, {"states": STATES[:1] + 1, "actions": ACTIONS[:1]}).arrays
    assert arrays["00.collision.dist"].shape == (1, 0)
    assert arrays["00.collision.pos"].shape == (1, 0, 3)


def test_entries_have_names() -> None:
    meta = fallen().meta
    assert meta["names"]["qacc"] == ["joint0", "joint1"]
    assert meta["names"]["xpos"] == ["body0", "body1", "body2"]
    assert meta["geoms"] == ["geom0", "geom1", "geom2"]


def test_only_the_first_substeps_are_recorded() -> None:
    answer = fallen(lambda mujoco, model, data: mujoco.mj_step(model, data, 20))
    assert (answer.meta["substeps"], answer.meta["recorded"]) == (20, substeps.SUBSTEPS)
    assert answer.meta["order"][-1] == "08.outputs.truncated"
    assert answer.arrays["08.outputs.reward"] == pytest.approx(2.0)


def test_a_run_up_is_taken_and_not_watched() -> None:
    answer = fallen(run_up=np.stack([ACTIONS, ACTIONS], axis=1))
    once = fallen()
    assert answer.meta["steps"] == 9
    assert set(answer.arrays) == set(once.arrays)
    assert answer.arrays["03.outputs.reward"] == pytest.approx(0.9)
    assert once.arrays["03.outputs.reward"] == pytest.approx(0.3)


def test_other_data_are_stepped_as_they_are() -> None:
    other = Data(Model())

    def both(mujoco: Any, model: Any, data: Any) -> None:
        mujoco.mj_step(model, other, nstep=5)
        mujoco.mj_step2(model, other)
        mujoco.mj_step(model, data)

    assert fallen(both).meta["substeps"] == 1


def test_a_release_that_copies_its_data_does_so() -> None:
    copied = []

    def copy(dest: Data, model: Any, src: Data) -> None:
        copied.append(src)
        for name, value in vars(src).items():
            if isinstance(value, np.ndarray) and name != "below":
                getattr(dest, name)[...] = value

    assert fallen(mujoco=simulator(mj_copyData=copy)).arrays["00.collision.ncon"].tolist() == [0, 2, 1]
    assert len(copied) == 9


def test_the_simulator_is_left_as_it_was() -> None:
    mujoco = simulator()
    before = vars(mujoco).copy()
    fallen(mujoco=mujoco)
    assert vars(mujoco) == before

    def broken(mujoco: Any, model: Any, data: Any) -> None:
        mujoco.mj_step(model, data)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fallen(broken, mujoco)
    assert vars(mujoco) == before


def test_a_step_that_is_another_one_when_watched_is_incomparable() -> None:
    def suspicious(mujoco: Any, model: Any, data: Any) -> None:
        data.qvel += mujoco.mj_step.__name__ != "mj_step"
        mujoco.mj_step(model, data)

    with pytest.raises(Incomparable, match="watched, its step is another one"):
        fallen(suspicious)


def test_what_was_seen_must_be_what_was_computed() -> None:
    def otherwise(m: Any, d: Data, *_: int) -> None:
        d.qacc[:] = 0.0

    with pytest.raises(Incomparable, match="not what its step computed"):
        fallen(mujoco=simulator(mj_forwardSkip=otherwise))


def test_a_step_that_does_not_go_through_the_simulator_cannot_be_seen() -> None:
    kept = simulator()
    step = kept.mj_step
    with pytest.raises(Unavailable, match="do not go through"):
        fallen(lambda mujoco, model, data: step(model, data), kept)


def test_states_of_another_size_are_incomparable() -> None:
    with pytest.raises(Incomparable, match="its state has 4 entries, the stimulus 3"):
        stages.record(Falling(simulator(), thrice), {"states": np.zeros((2, 3)), "actions": ACTIONS[:2]})


def test_large_quantities_are_left_out_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "LARGEST", 17)
    answer = fallen()
    assert "00.collision.frame" not in answer.arrays
    assert "00.collision.frame" not in answer.meta["counts"]
    assert "01.collision.frame" in answer.arrays
    assert answer.meta["left_out"] == {"more than 17 entries": 1}


def test_a_sparse_jacobian_is_written_out() -> None:
    data = SimpleNamespace(
        efc_J_rownnz=np.array([2, 0, 1]),
        efc_J_rowadr=np.array([0, 2, 2]),
        efc_J_colind=np.array([0, 3, 1]),
        efc_J=np.array([5.0, 6.0, 7.0]),
    )
    assert quantities._written_out(data, 4).tolist() == [[5, 0, 0, 6], [0, 0, 0, 0], [0, 7, 0, 0]]


# The answer


def read(folder: Path, answer: Any, rows: int = 3, **changes: Any) -> CellAnswer:
    arrays = {name: array for name, array in (answer.arrays | changes.pop("arrays", {})).items() if array is not None}
    meta = {name: value for name, value in (answer.meta | changes).items() if value is not None}
    return answers.read(write(folder / "a.npz", arrays=arrays, meta=meta), "stages", "E", None, rows)


@pytest.mark.parametrize("answer", [fallen, lambda: stages.record(registered.wrap(Modern()), small())])
def test_stages_come_back_as_they_were_told(tmp_path: Path, answer: Any) -> None:
    told = answer()
    found = read(tmp_path, told)
    assert found.meta["order"] == told.meta["order"]
    assert {name: array.tobytes() for name, array in found.arrays.items()} == {
        name: array.tobytes() for name, array in told.arrays.items()
    }
    assert found.steps == 3


def small() -> dict[str, Any]:
    return {"states": STATES[:, :2], "actions": np.array([0, 1, 1])}


DIST = "00.collision.dist"


@pytest.mark.parametrize(
    "changes",
    [
        {"rows": 4},
        {"rows": 0},
        {"order": None},
        {"order": []},
        {"order": [DIST]},
        {"counts": None},
        {"counts": {DIST: "00.collision.elsewhere"}},
        {"counts": {"00.collision.elsewhere": "00.collision.ncon"}},
        {"counts": {"00.collision.ncon": "00.collision.ncon"}},
        {"counts": {DIST: "00.integration.qpos"}},
        {"dtypes": {"elsewhere": "float"}},
        {"dtypes": {DIST: 3}},
        {"lines": {"elsewhere": "a.py:1"}},
        {"lines": [DIST]},
        {"names": {"qacc": ["one"]}},
        {"names": {"qacc": "ab"}},
        {"names": {"ncon": ["one"]}},
        {"geoms": [1]},
        {"left_out": {"many": -1}},
        {"left_out": {"many": 1.5}},
        {"substeps": 0},
        {"recorded": "3"},
        {"recorded": 100},
        {"arrays": {DIST: None}},
        {"arrays": {"more": np.zeros(3)}},
        {"arrays": {DIST: np.zeros((3, 1))}},
        {"arrays": {DIST: np.zeros((3, 2), np.float32)}},
        {"arrays": {DIST: np.zeros((2, 2))}},
        {"arrays": {DIST: np.zeros((3, 2), "S1")}},
        {"arrays": {DIST: np.array(1.0)}},
        {"arrays": {"00.collision.ncon": np.array([0, 2, 3])}},
        {"arrays": {"00.collision.ncon": np.array([0, 2, -1])}},
        {"arrays": {"00.collision.ncon": np.array([0.0, 2.0, 1.0])}},
    ],
    ids=lambda changes: str(changes)[:70],
)
def test_stages_that_are_none(tmp_path: Path, changes: dict[str, Any]) -> None:
    with pytest.raises(DamagedAnswer):
        read(tmp_path, fallen(), **changes)


@pytest.mark.parametrize("name", ["xpos", "0.collision.x", "00.x", "00..x", "aa.collision.x"])
def test_quantities_have_a_place(tmp_path: Path, name: str) -> None:
    told = fallen()
    with pytest.raises(DamagedAnswer):
        read(tmp_path, told, order=[*told.meta["order"], name], arrays={name: np.zeros(3)})
    assert read(tmp_path, told, order=[*told.meta["order"], "00.a.x"], arrays={"00.a.x": np.zeros(3)}).status == "ok"


def test_a_name_twice_in_order_is_none(tmp_path: Path) -> None:
    told = fallen()
    with pytest.raises(DamagedAnswer):
        read(tmp_path, told, order=[*told.meta["order"], DIST])


def test_they_are_answered_by_the_dumper(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(worlds, "make", lambda *_: registered.wrap(Modern()))
    (tmp_path / "given.npz").write_bytes(stimulus.packed(small()))
    cell = {"task": "stages", "kind": "gymnasium", "source": "E", "arguments": {}, "files": {}, "edits": {}}
    answer = serve._answer({"api": None, "expect": {}}, {**cell, "given": str(tmp_path / "given.npz")})
    assert (answer.status, answer.reason) == ("ok", "")
