"""What an environment is made of: numbers, names of their entries, texts; and what is left out."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from audit.processes import answers
from audit.processes.answer_file import DamagedAnswer
from audit.processes.answers import CellAnswer
from dumper import anatomy, registered, serve, worlds
from tests.adapted_worlds import adapted, pendulum
from tests.small_environments import Box, Discrete, Modern, Toy
from tests.small_mujoco import Physics
from tests.written_answers import write


def added(value: Any, names: list[str] | None = None) -> Any:
    found = anatomy.Anatomy()
    found.add("field", value, names)
    return found


# Numbers and texts


@pytest.mark.parametrize(
    ("value", "dtype", "shape"),
    [
        (True, "bool", ()),
        (3, "int64", ()),
        (0.5, "float64", ()),
        (np.float32(0.5), "float32", ()),
        ([1, 2.5], "float64", (2,)),
        (((1, 2), (3, 4)), "int64", (2, 2)),
        (np.zeros((2, 3), np.uint8), "uint8", (2, 3)),
    ],
    ids=repr,
)
def test_numbers_keep_their_dtype_and_shape(value: Any, dtype: str, shape: tuple[int, ...]) -> None:
    found = added(value)
    assert (found.arrays["field"].dtype, found.arrays["field"].shape) == (np.dtype(dtype), shape)
    assert found.arrays["field"].tolist() == np.asarray(value).tolist()
    assert (found.names, found.texts) == ({"field": None}, {})


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("euler", "euler"),
        ("/somewhere/site-packages/hopper.xml", "hopper.xml"),
        (None, "None"),
        (1j, None),
        (10**400, repr(10**400)),
        ([1.0, "x"], "[1.0, 'x']"),
        ({"weight": np.float64(0.5), "range": (np.float32(1), 2)}, "{'weight': 0.5, 'range': [1.0, 2]}"),
        ({3, 1}, "['1', '3']"),
        (np.array([[b"S", b"F"]]), "[[b'S', b'F']]"),
        (object(), None),
        ([object()], None),
        (print, None),
        (np.array([None]), None),
    ],
    ids=lambda value: str(value).partition(" at 0x")[0][:30],
)
def test_all_else_is_text_the_same_under_every_numpy(value: Any, text: str | None) -> None:
    found = added(value)
    assert found.arrays == {}
    assert found.texts == ({} if text is None else {"field": text})


def test_a_list_that_holds_itself_is_not_told() -> None:
    endless: list[Any] = []
    endless.append(endless)
    assert (added(endless).arrays, added(endless).texts) == ({}, {})


def test_what_is_told_is_a_copy() -> None:
    value = np.ones(2)
    found = added(value)
    value[0] = 7
    assert found.arrays["field"].tolist() == [1.0, 1.0]


def test_large_arrays_and_long_texts_are_told_by_their_digest() -> None:
    large = np.arange(anatomy.LARGEST + 1.0)
    (text,) = added(large).texts.values()
    assert text.startswith("float64(100001,) sha256:")
    assert added(large + 1).texts["field"] != text
    assert added(np.arange(anatomy.LARGEST)).texts == {}
    assert added("x" * (anatomy.LONGEST + 1)).texts["field"].startswith("sha256:")


def test_entries_have_names_where_there_is_one_for_each() -> None:
    assert added(np.ones((2, 3)), ["a", "b"]).names == {"field": ["a", "b"]}
    assert added(np.ones(3), ["a", "b"]).names == {"field": None}
    assert added(1.0, ["a"]).names == {"field": None}
    assert added(np.ones((0, 3)), []).arrays == {}, "its size says it"


# Models


def model(**changes: Any) -> SimpleNamespace:
    fields = {
        "nbody": 2,
        "njnt": 2,
        "nq": 8,
        "nv": 7,
        "nu": 1,
        "body_mass": np.array([0.0, 1.5]),
        "body_user": np.zeros((2, 0)),
        "jnt_dofadr": np.array([0, 6], np.int32),
        "jnt_qposadr": np.array([0, 7], np.int32),
        "dof_damping": np.arange(7.0),
        "qpos0": np.zeros(8),
        "actuator_gear": np.ones((1, 6)),
        "mesh_vert": np.ones((9, 3)),
        "names": b"bytes",
        "name_bodyadr": np.zeros(2),
        "geom_rgba": np.zeros((1, 4)),
        "tex_data": np.zeros(9),
        "nbuffer": 1234,
        "M_rowadr": np.zeros(3),
        "opt": SimpleNamespace(timestep=0.01, gravity=np.array([0, 0, -9.81])),
        "stat": SimpleNamespace(extent=2.0),
        "vis": SimpleNamespace(shadow=1.0),
        "step": print,
    }
    return SimpleNamespace(**{**fields, **changes})


def of_model(**changes: Any) -> Any:
    found, made = anatomy.Anatomy(), model(**changes)
    anatomy.add_model(found, anatomy.Names(Physics(), made), made)
    return found


def test_a_model_is_told_by_name_without_what_does_not_act_on_a_step() -> None:
    found = of_model()
    assert set(found.arrays) == {
        "nbody", "njnt", "nq", "nv", "nu", "body_mass", "jnt_dofadr", "jnt_qposadr", "dof_damping", "qpos0",
        "actuator_gear", "mesh_vert", "opt.timestep", "opt.gravity", "stat.extent",
    }  # fmt: skip
    assert found.texts == {}
    assert found.names["body_mass"] == ["body0", "body1"]
    assert found.names["actuator_gear"] == ["actuator0"]
    assert found.names["opt.gravity"] is None
    assert found.names["mesh_vert"] is None


def test_entries_of_joints_with_several_are_numbered() -> None:
    found = of_model()
    assert found.names["dof_damping"] == [*(f"joint0[{k}]" for k in range(6)), "joint1"]
    assert found.names["qpos0"] == [*(f"joint0[{k}]" for k in range(7)), "joint1"]


def test_actuators_may_have_several_controls() -> None:
    assert of_model(nactuator=1, nu=3).names["actuator_gear"] == ["actuator0"]


# Registered environments


class Made(Modern):
    """Has attributes of many kinds."""

    LINK_MASS = 1.0
    dt = 0.2

    def __init__(self) -> None:
        super().__init__()
        self.gravity = 9.81
        self._weight = np.float32(0.1)
        self.integrator = "euler"
        self.sizes = [1.0, 2.0]
        self.render_mode = None
        self.np_random = np.random.default_rng(0)
        self.fullpath = "/somewhere/model.xml"

    @property
    def density(self) -> float:
        raise AssertionError("nothing is computed to be told")

    def reset(self, seed: int | None = None) -> Any:
        self.goal, self.seeded = float(seed or 0), 3.0
        return super().reset(seed)


def told(env: Any) -> Any:
    return anatomy.answer(registered.wrap(env))


def test_attributes_of_the_instance_and_of_its_classes_are_told() -> None:
    answer = told(Made())
    values = {name: array.tolist() for name, array in answer.arrays.items() if name.startswith("constant.attribute.")}
    assert {name.rpartition(".")[2]: value for name, value in values.items()} == {
        "LINK_MASS": 1.0,
        "TOP": 5.0,
        "dt": 0.2,
        "gravity": 9.81,
        "_weight": pytest.approx(0.1),
        "sizes": [1.0, 2.0],
        "tau": 0.02,
        "end": np.inf,
        "limit": np.inf,
        "elapsed": 0,
        "seeded": 3.0,
    }
    assert answer.meta["texts"]["attribute.integrator"] == "euler"
    assert answer.meta["texts"]["attribute.fullpath"] == "model.xml", "where a release is installed does not matter"


def test_what_another_seed_changes_is_no_constant() -> None:
    assert "constant.attribute.goal" not in told(Made()).arrays


def test_spaces_and_the_entry_of_the_registry_are_told() -> None:
    env = Modern()
    env.spec = SimpleNamespace(  # type: ignore[attr-defined]
        id="E-v0",
        max_episode_steps=200,
        reward_threshold=None,
        disable_env_checker=True,
        _kwargs={"weight": 0.5, "made": object()},
    )
    answer = told(env)
    arrays, texts = answer.arrays, answer.meta["texts"]
    assert arrays["constant.spec.max_episode_steps"].tolist() == 200
    assert arrays["constant.space.action.n"].tolist() == 2
    assert arrays["constant.space.observation.low"].tolist() == [-1.0, -np.inf]
    assert arrays["constant.space.observation.low"].dtype == np.float32
    assert (texts["spec.id"], texts["spec.reward_threshold"]) == ("E-v0", "None")
    assert texts["spec.kwargs.weight"] == "0.5"
    assert not {"spec.disable_env_checker", "spec.kwargs.made", "spec.kwargs"} & set(texts)
    assert texts["space.observation"] == "Box float32(2,)"


def test_a_space_in_parts_is_told_part_by_part() -> None:
    found = anatomy.Anatomy()
    parts = SimpleNamespace(spaces={"goal": Box(), "more": SimpleNamespace(spaces=(Discrete(), Box()))})
    anatomy.add_space(found, "space.observation", parts)
    assert found.arrays["space.observation.goal.low"].shape == (2,)
    assert found.arrays["space.observation.more.0.n"].tolist() == 2
    assert found.texts["space.observation.more.1"] == "Box float32(2,)"


def test_wrappers_are_told_the_outermost_first() -> None:
    class Limit(Modern):
        def __init__(self, env: Any) -> None:
            super().__init__()
            self.env = env

        @property
        def unwrapped(self) -> Any:
            return self.env.unwrapped

    class Order(Limit):
        pass

    assert told(Limit(Order(Modern()))).meta["texts"]["wrappers"] == "Limit Order"


def test_tables_have_an_anatomy_too() -> None:
    answer = told(Toy())
    assert answer.arrays["constant.attribute.tau"].tolist() == 0.02
    assert answer.meta["texts"]["attribute.P"].startswith("{1: {0: [[1.0, 1, 0.0, False]]}")


def test_adapters_tell_their_constants(tmp_path: Path) -> None:
    arrays = anatomy.answer(pendulum(length=2.5)).arrays
    assert arrays["constant.length"].tolist() == 2.5
    assert arrays["constant.gravity"].tolist() == 9.81
    assert arrays["constant.space.action.high"].tolist() == [5.0]
    assert anatomy.answer(adapted(tmp_path)).arrays["constant.space.action.n"].tolist() == 3


def test_it_is_answered_by_the_dumper(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(worlds, "make", lambda *_: registered.wrap(Made()))
    cell = {"task": "anatomy", "kind": "gymnasium", "source": "E", "arguments": {}, "files": {}, "edits": {}}
    answer = serve._answer({"api": None, "expect": {}}, cell)
    assert answer.status == "ok"
    read = answers.read(write(tmp_path / "a.npz", arrays=answer.arrays, meta=answer.meta), "anatomy", "E", None)
    assert read.arrays["constant.attribute.gravity"].shape == ()
    assert read.meta["names"]["attribute.gravity"] is None


# The answer


def constants(**changes: Any) -> dict[str, Any]:
    whole = {"constant.body_mass": np.array([0.0, 1.5]), "constant.opt.timestep": np.array(0.01)}
    return {name: array for name, array in (whole | changes).items() if array is not None}


def read_anatomy(folder: Path, arrays: Any = None, **changes: Any) -> CellAnswer:
    meta = {
        "names": {"body_mass": ["world", "torso"], "opt.timestep": None},
        "texts": {"attribute.integrator": "euler"},
        **changes,
    }
    path = write(folder / "a.npz", arrays=constants(**(arrays or {})), meta=meta)
    return answers.read(path, "anatomy", "E", None)


def test_an_anatomy_comes_back_as_it_was_told(tmp_path: Path) -> None:
    answer = read_anatomy(tmp_path)
    assert answer.arrays["constant.body_mass"].tolist() == [0.0, 1.5]
    assert answer.meta["names"]["body_mass"] == ["world", "torso"]


@pytest.mark.parametrize(
    "arrays",
    [
        {"constant.body_mass": None},
        {"constant.body_mass": np.zeros(3)},
        {"constant.body_mass": np.array(1.0)},
        {"constant.body_mass": np.array(["a", "b"])},
        {"constant.body_mass": np.zeros(2, complex)},
        {"constant.more": np.zeros(2)},
        {"more": np.zeros(2)},
        {"constant.opt.timestep": np.zeros(100_001)},
    ],
    ids=str,
)
def test_constants_that_are_none(tmp_path: Path, arrays: dict[str, Any]) -> None:
    with pytest.raises(DamagedAnswer):
        read_anatomy(tmp_path, arrays)


@pytest.mark.parametrize(
    "changes",
    [
        {"names": None},
        {"names": {"body_mass": ["world", "torso"]}},
        {"names": {"body_mass": "ab", "opt.timestep": None}},
        {"names": {"body_mass": ["world", 3], "opt.timestep": None}},
        {"names": {"body_mass": ["world", "torso"], "opt.timestep": ["t"]}},
        {"texts": None},
        {"texts": {"a": 3}},
        {"texts": {"body_mass": "1.5"}},
        {"texts": {"a": "x" * 20_000}},
        {"texts": {f"a{k}": "" for k in range(6000)}},
    ],
    ids=lambda changes: str(changes)[:60],
)
def test_names_and_texts_that_are_none(tmp_path: Path, changes: dict[str, Any]) -> None:
    with pytest.raises(DamagedAnswer):
        read_anatomy(tmp_path, **changes)


def test_an_anatomy_that_was_refused_holds_no_arrays(tmp_path: Path) -> None:
    with pytest.raises(DamagedAnswer):
        answers.read(write(tmp_path / "a.npz", status="unavailable", arrays=constants(), meta={}), "anatomy", "E", None)
