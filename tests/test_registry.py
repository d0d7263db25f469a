"""Which environments a release has registered: asked without making one."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from audit.processes import answers
from audit.processes.answer_file import DamagedAnswer
from dumper import serve, worlds
from tests.written_answers import write

IDS = ["Hopper-v5", "Acrobot-v1", "Hopper-v4", "tinysim/Spring-v0"]


def asked(monkeypatch: pytest.MonkeyPatch, **published: Any) -> Any:
    """What a package answers whose ``envs`` publish this."""
    monkeypatch.setitem(sys.modules, "somegym", ModuleType("somegym"))
    envs = ModuleType("somegym.envs")
    vars(envs).update(published)
    monkeypatch.setitem(sys.modules, "somegym.envs", envs)

    def make(*_: Any) -> Any:
        raise AssertionError("a world was made")

    monkeypatch.setattr(worlds, "make", make)
    return serve._answer({"api": None, "expect": {}}, {"task": "registry", "kind": "somegym", "source": ""})


@pytest.mark.parametrize(
    "registry",
    [dict.fromkeys(IDS), SimpleNamespace(env_specs=dict.fromkeys(IDS))],
    ids=["gymnasium", "gym up to 0.25"],
)
def test_all_versions_are_told_in_order_and_no_world_is_made(monkeypatch: pytest.MonkeyPatch, registry: Any) -> None:
    answer = asked(monkeypatch, registry=registry)
    assert (answer.status, answer.arrays) == ("ok", {})
    assert answer.meta == {"ids": ["Acrobot-v1", "Hopper-v4", "Hopper-v5", "tinysim/Spring-v0"]}


def test_a_package_without_a_registry_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = asked(monkeypatch)
    assert (answer.status, answer.reason) == ("unavailable", "somegym has no registry that could be asked")


@pytest.mark.parametrize("kind", ["mjcf", "adapter"])
def test_kinds_that_are_not_registered_have_none(kind: str) -> None:
    answer = serve._answer({"api": None, "expect": {}}, {"task": "registry", "kind": kind, "source": ""})
    assert answer.status == "unavailable"


# The answer


def read(folder: Path, **changes: Any) -> Any:
    return answers.read(
        write(folder / "a.npz", **{"arrays": {}, "meta": {"ids": ["A-v0", "B-v1"]}, **changes}), "registry", "E", None
    )


def test_a_registry_comes_back_as_it_was_told(tmp_path: Path) -> None:
    assert read(tmp_path).meta["ids"] == ["A-v0", "B-v1"]
    assert read(tmp_path, meta={"ids": []}).meta["ids"] == []


@pytest.mark.parametrize(
    "ids",
    [None, "A-v0", ["B-v1", "A-v0"], ["A-v0", "A-v0"], ["A-v0", 3], [f"E{k:05}" for k in range(9000)], ["A" * 20_000]],
)
def test_a_registry_that_is_none(tmp_path: Path, ids: Any) -> None:
    with pytest.raises(DamagedAnswer):
        read(tmp_path, meta={"ids": ids})


def test_a_registry_has_no_arrays(tmp_path: Path) -> None:
    with pytest.raises(DamagedAnswer, match="holds arrays"):
        read(tmp_path, arrays={"ids": [1.0]})
    with pytest.raises(DamagedAnswer):
        read(tmp_path, meta={})
