"""Files that an environment is made of: found before any work, part of the cell's key."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from audit.asked import attachments, matrix_file
from audit.asked.attachments import Attachment
from audit.errors import UsageError

ROOM = "<mujoco><worldbody/></mujoco>"


def write(folder: Path, files: dict[str, str]) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")


def read(folder: Path, *environments: dict[str, Any]) -> dict[str, Attachment]:
    """The attachments of a matrix that lies in ``matrices`` below the folder."""
    matrix = {
        "name": "m",
        "python": "3.11",
        "releases": [{"id": "a", "requires": ["mujoco==3.1.0"]}],
        "environments": list(environments),
    }
    (folder / "matrices").mkdir(exist_ok=True)
    path = folder / "matrices" / "m.yaml"
    path.write_text(json.dumps(matrix))
    return attachments.read(matrix_file.read(path))


def scene(folder: Path, text: str, files: dict[str, str] | None = None) -> Attachment:
    write(folder / "matrices", {"scene.xml": text, **(files or {})})
    return read(folder, {"mjcf": "scene.xml"})["scene"]


def test_registered_environments_and_tasks_have_none(tmp_path: Path) -> None:
    assert read(tmp_path, {"id": "CartPole-v1"}, {"dm_control": "walker/walk"}) == {}


def test_a_scene_brings_itself(tmp_path: Path) -> None:
    assert scene(tmp_path, ROOM) == Attachment(main="scene.xml", files={"scene.xml": ROOM.encode()})


def test_a_scene_brings_what_it_includes_and_what_that_includes(tmp_path: Path) -> None:
    files = {"robot.xml": '<mujoco><include file="arm.xml"/></mujoco>', "arm.xml": ROOM, "other.xml": ROOM}
    found = scene(tmp_path, '<mujoco><worldbody><include file="robot.xml"/></worldbody></mujoco>', files)
    assert set(found.files) == {"scene.xml", "robot.xml", "arm.xml"}


def test_files_that_include_each_other_are_read_once(tmp_path: Path) -> None:
    back = '<mujoco><include file="scene.xml"/></mujoco>'
    found = scene(tmp_path, '<mujoco><include file="robot.xml"/></mujoco>', {"robot.xml": back})
    assert set(found.files) == {"scene.xml", "robot.xml"}


@pytest.mark.parametrize(
    ("settings", "places"),
    [
        ("", {"a.obj", "b.png", "c.png"}),
        ('<compiler meshdir="meshes"/>', {"meshes/a.obj", "b.png", "meshes/c.png"}),
        ('<compiler texturedir="textures"/>', {"a.obj", "textures/b.png", "c.png"}),
        ('<compiler assetdir="assets"/>', {"assets/a.obj", "assets/b.png", "assets/c.png"}),
        (
            '<compiler assetdir="assets" texturedir="textures"/>',
            {"assets/a.obj", "textures/b.png", "assets/c.png"},
        ),
        ('<compiler meshdir="m"/><compiler texturedir="t"/>', {"m/a.obj", "t/b.png", "m/c.png"}),
    ],
)
def test_assets_are_sought_where_the_compiler_is_told(tmp_path: Path, settings: str, places: set[str]) -> None:
    text = (
        f'<mujoco>{settings}<asset><mesh file="a.obj"/><texture file="b.png"/><hfield file="c.png"/></asset></mujoco>'
    )
    found = scene(tmp_path, text, dict.fromkeys(places, "data"))
    assert set(found.files) == {"scene.xml", *places}
    assert found.main == "scene.xml"


def test_an_asset_above_the_scene_keeps_its_place_beside_it(tmp_path: Path) -> None:
    write(tmp_path, {"meshes/a.obj": "data"})
    found = scene(tmp_path, '<mujoco><asset><mesh file="../meshes/a.obj"/></asset></mujoco>')
    assert set(found.files) == {"matrices/scene.xml", "meshes/a.obj"}
    assert found.main == "matrices/scene.xml"


@pytest.mark.parametrize(
    "inner",
    ['<include file="parts/arm.xml"/>', '<asset><mesh file="a.obj"/></asset>'],
    ids=["an include in an include", "the scene's meshdir"],
)
def test_names_in_an_included_file_are_relative_to_the_scene(tmp_path: Path, inner: str) -> None:
    text = '<mujoco><compiler meshdir="meshes"/><include file="parts/robot.xml"/></mujoco>'
    files = {"parts/robot.xml": f"<mujoco>{inner}</mujoco>", "parts/arm.xml": ROOM, "meshes/a.obj": "data"}
    assert len(scene(tmp_path, text, files).files) == 3


def test_every_side_of_a_cube_is_brought(tmp_path: Path) -> None:
    text = '<mujoco><asset><texture type="cube" fileright="r.png" fileleft="l.png"/></asset></mujoco>'
    assert set(scene(tmp_path, text, {"r.png": "1", "l.png": "2"}).files) == {"scene.xml", "r.png", "l.png"}


# What is wrong is said before any work


def test_a_scene_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"scene\.xml cannot be read: No such file"):
        read(tmp_path, {"mjcf": "scene.xml"})


@pytest.mark.parametrize("text", ['<include file="gone.xml"/>', '<asset><mesh file="gone.obj"/></asset>'])
def test_a_part_that_is_not_there(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError, match=r"gone.* cannot be read"):
        scene(tmp_path, f"<mujoco>{text}</mujoco>")


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        scene(tmp_path, '<mujoco><asset><mesh file=""/></asset></mujoco>')


@pytest.mark.parametrize("text", ["", "<mujoco>", "words", "<mujoco></mujoco><more/>", "<mujoco>&nbsp;</mujoco>"])
def test_a_scene_that_is_not_xml(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError, match=r"scene\.xml is not XML"):
        scene(tmp_path, text)


def test_an_included_file_that_is_not_xml_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"robot\.xml is not XML"):
        scene(tmp_path, '<mujoco><include file="robot.xml"/></mujoco>', {"robot.xml": "<"})


def test_an_adapter_is_compiled_and_not_run(tmp_path: Path) -> None:
    write(tmp_path / "matrices", {"own.py": "raise SystemExit(3)\n"})
    found = read(tmp_path, {"adapter": "own.py", "name": "mine"})
    assert found == {"mine": Attachment(main="own.py", files={"own.py": b"raise SystemExit(3)\n"})}


@pytest.mark.parametrize("source", ["def (:", "x = \0", "  indented = 1", "return = 2"])
def test_an_adapter_that_is_not_python(tmp_path: Path, source: str) -> None:
    write(tmp_path / "matrices", {"own.py": source})
    with pytest.raises(UsageError, match=r"own\.py is not Python"):
        read(tmp_path, {"adapter": "own.py"})


# The key


def test_names_contents_and_the_main_file_decide_the_digest() -> None:
    different = [
        Attachment(main="a", files={"a": b"1", "b": b"2"}),
        Attachment(main="b", files={"a": b"1", "b": b"2"}),
        Attachment(main="a", files={"a": b"2", "b": b"1"}),
        Attachment(main="a", files={"a": b"1", "c": b"2"}),
        Attachment(main="a", files={"a": b"1"}),
        Attachment(main="a", files={"a": b"1b2"}),
    ]
    assert len({each.digest for each in different}) == len(different)
    assert Attachment(main="a", files={"b": b"2", "a": b"1"}).digest == different[0].digest
