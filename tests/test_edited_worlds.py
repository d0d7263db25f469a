"""Constants set otherwise: in registered environments, adapters and model files, before anything is stepped."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from audit.stimuli import stimulus
from dumper import registered, serve, worlds
from dumper.worlds import Unavailable
from tests.adapted_worlds import SMALL, adapted
from tests.small_environments import Modern

# In a registered environment


class Constants(Modern):
    """Constants of many types."""

    MASS = 1.0
    POWERS = (1.0, 2.0)

    def __init__(self) -> None:
        super().__init__()
        self.scale = np.float32(0.5)
        self.limits = np.array([1.0, 2.0], dtype=np.float32)
        self.counts = np.array([1, 2])
        self.torques = [-1.0, 0.0]
        self.kind = "book"
        self.times = 3
        self.options = SimpleNamespace(step=0.01)

    @property
    def fixed(self) -> float:
        return 1.0

    def advance(self, action: int) -> Any:
        self.state = self.state * self.MASS
        return super().advance(action)


def edited(name: str, value: Any) -> Constants:
    env = Constants()
    registered.wrap(env).edit(name, value)
    return env


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("MASS", 1.3, 1.3),
        ("MASS", 2, 2.0),
        ("POWERS", [3.0, 4.0], (3.0, 4.0)),
        ("scale", 0.25, np.float32(0.25)),
        ("torques", [-1.0, 0.5], [-1.0, 0.5]),
        ("kind", "nips", "nips"),
        ("times", 5, 5),
        ("tau", 1, 1.0),
    ],
)
def test_an_attribute_is_set_in_its_own_type(name: str, value: Any, expected: Any) -> None:
    found = getattr(edited(name, value), name)
    assert (type(found), found) == (type(expected), expected)
    assert Constants.MASS == 1.0, "the class is left alone"


def test_a_list_becomes_an_array_where_there_is_one() -> None:
    assert edited("limits", [3, 4]).limits.tolist() == [3.0, 4.0]
    assert edited("limits", [3, 4]).limits.dtype == np.float32
    assert edited("limits", 3).limits.tolist() == [3.0, 3.0]


def test_an_attribute_of_an_attribute() -> None:
    assert edited("options.step", 0.005).options.step == 0.005


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("LINK_MASS_3", 1.0, "it has no LINK_MASS_3 that could be edited"),
        ("options.stop", 1.0, "it has no options.stop that could be edited"),
        ("nothing.step", 1.0, "it has no nothing.step that could be edited"),
        ("fixed", 2.0, "its fixed is 1.0 and cannot be made 2.0"),
        ("MASS", "heavy", "its MASS is 1.0 and cannot be made 'heavy'"),
        ("POWERS", 1.0, r"its POWERS is \(1.0, 2.0\) and cannot be made 1.0"),
        ("limits", [1.0, 2.0, 3.0], "its limits is"),
        ("counts", [0.5, 1.0], "its counts is"),
    ],
)
def test_what_cannot_be_set_is_unavailable(name: str, value: Any, said: str) -> None:
    with pytest.raises(Unavailable, match=said):
        edited(name, value)


# In every world that is made


def answered(monkeypatch: pytest.MonkeyPatch, folder: Path, **cell: Any) -> Any:
    """What is answered about ``Constants``."""
    given = {"forced.states": np.array([[1.0, 2.0], [3.0, 4.0]]), "forced.actions": np.zeros((2, 1), np.int64)}
    (folder / "given.npz").write_bytes(stimulus.packed(given))
    monkeypatch.setattr(worlds, "_make", lambda *_: registered.wrap(Constants()))
    whole = {"task": "dump", "kind": "gymnasium", "source": "E", "arguments": {}, "files": {}, "plant": None, **cell}
    return serve._answer({"api": None, "expect": {}}, {**whole, "given": str(folder / "given.npz")})


def test_it_is_edited_before_it_is_stepped_and_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    plain = answered(monkeypatch, tmp_path, edits={})
    heavy = answered(monkeypatch, tmp_path, edits={"MASS": 2.0})
    assert "edits" not in plain.meta
    assert heavy.meta["edits"] == {"MASS": 2.0}
    assert heavy.meta["constants"]["MASS"] == "2.0"
    difference = heavy.arrays["forced.state"] - plain.arrays["forced.state"]
    assert difference[:, 0].tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_a_fault_is_planted_in_what_was_edited(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    planted = answered(monkeypatch, tmp_path, edits={"MASS": 2.0}, plant={"name": "MASS", "factor": 1.5})
    assert planted.meta["constants"]["MASS"] == "3.0"
    assert (planted.meta["edits"], planted.meta["planted"]) == ({"MASS": 2.0}, "MASS")


def test_a_probe_is_asked_of_what_was_edited(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert answered(monkeypatch, tmp_path, task="probe", edits={"MASS": 2.0}).status == "ok"
    found = answered(monkeypatch, tmp_path, task="probe", edits={"LINK_MASS_3": 2.0})
    assert (found.status, found.reason) == ("unavailable", "it has no LINK_MASS_3 that could be edited")


def test_a_world_that_cannot_be_edited_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = []
    world = worlds.World()
    world.close = lambda: closed.append(True)
    monkeypatch.setattr(worlds, "_make", lambda *_: world)
    with pytest.raises(Unavailable, match="it has no a that could be edited"):
        worlds.make("mjcf", "scene.xml", {}, {}, {"a": 1})
    assert closed == [True]


# In an adapter


EDITABLE = (
    SMALL
    + """
def constants(handle): return {"x": handle["x"]}
def move(handle, name, factor): handle[name] *= factor
def edit(handle, name, value):
    if name not in handle:
        raise KeyError(name)
    handle[name] = float(value)
"""
)


def test_an_adapter_edits_itself_and_is_described_anew(tmp_path: Path) -> None:
    world = adapted(tmp_path, EDITABLE)
    world.edit("x", 7)
    assert world.layout()["reference"] == [7.0]
    assert world.description()["constants"] == {"x": "7.0"}


@pytest.mark.parametrize(
    ("source", "said"), [(SMALL, "its adapter has no function edit"), (EDITABLE, "it has no y that could be edited")]
)
def test_what_an_adapter_cannot_edit_is_unavailable(tmp_path: Path, source: str, said: str) -> None:
    with pytest.raises(Unavailable, match=said):
        adapted(tmp_path, source).edit("y", 1)


# In a model's file


class Model:
    """Compiles like the bindings: a file, with what it includes beside it, or a text."""

    @staticmethod
    def from_xml_path(filename: str) -> str:
        text = Path(filename).read_text(encoding="utf-8")
        for included in ("beside.xml", "../above.xml"):
            text += (Path(filename).parent / included).read_text(encoding="utf-8")
        if "unreadable" in text:
            raise ValueError("XML Error:\n  unreadable")
        return text

    @staticmethod
    def from_xml_string(xml: str, assets: Any = None) -> str:
        return f"{xml} {assets}"


TEXT = "<mujoco><option/><body name='arm'><body name='tip' pos='1 2 3'/></body></mujoco>"


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A model file, compiled by bindings that show what they read."""
    monkeypatch.setitem(sys.modules, "mujoco", SimpleNamespace(MjModel=Model))
    monkeypatch.setattr(worlds, "_make", lambda kind, source, arguments, files: getattr(Model, kind)(source))
    (tmp_path / "models").mkdir()
    (tmp_path / "above.xml").write_text("<above/>")
    (tmp_path / "models" / "beside.xml").write_text("<beside/>")
    (tmp_path / "models" / "model.xml").write_text(TEXT)
    return str(tmp_path / "models" / "model.xml")


def compiled(source: str, edits: dict[str, Any], how: str = "from_xml_path") -> Any:
    before = dict(vars(Model))
    try:
        return worlds.make(how, source, {}, {}, edits)
    finally:
        assert dict(vars(Model)) == before, "the bindings are left as they were"


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        ({"body[@name='tip']@pos": "0.13 0 0"}, '<body name="tip" pos="0.13 0 0" />'),
        ({"body[@name='tip']@pos": [0.13, 0, 1e-3]}, '<body name="tip" pos="0.13 0 0.001" />'),
        ({"body[@name='arm']/body@pos": 1.5}, '<body name="tip" pos="1.5" />'),
        ({"option@timestep": 0.005}, '<option timestep="0.005" />'),
        ({"option@on": True}, '<option on="true" />'),
    ],
)
def test_a_model_is_compiled_from_an_edited_copy(model: str, edits: dict[str, Any], expected: str) -> None:
    read_by_bindings = compiled(model, edits)
    assert expected in read_by_bindings
    assert read_by_bindings.endswith("<beside/><above/>"), "what it includes is found from where it lies"
    assert Path(model).read_text(encoding="utf-8") == TEXT


def test_everything_that_a_path_leads_to_is_edited(model: str) -> None:
    assert compiled(model, {"body@gravcomp": 1}).count('gravcomp="1"') == 2


def test_a_model_that_is_handed_over_as_text(model: str) -> None:
    assert 'timestep="0.005"' in compiled(TEXT, {"option@timestep": 0.005}, "from_xml_string")


@pytest.mark.parametrize(
    ("edits", "said"),
    [
        ({"body[@name='nobody']@pos": 1}, r"no model file that it is made of has body\[@name='nobody'\]@pos"),
        ({"option@x": "unreadable"}, "its edited model file does not compile: XML Error: unreadable"),
    ],
)
def test_a_model_that_cannot_be_edited_is_unavailable(model: str, edits: dict[str, Any], said: str) -> None:
    with pytest.raises(Unavailable, match=said):
        compiled(model, edits)


def test_a_model_that_is_no_xml_is_unavailable(model: str) -> None:
    Path(model).write_text("<mujoco>")
    with pytest.raises(Unavailable, match="its model file cannot be edited: no element found"):
        compiled(model, {"option@timestep": 1})


def test_without_mujoco_there_is_no_model_file(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(Unavailable, match="mujoco cannot be imported"):
        compiled(model, {"option@timestep": 1})
