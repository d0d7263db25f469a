"""A dumper that puts anything but a file where its answer is awaited, or a system that refuses: one cell has failed."""

from __future__ import annotations

import errno
import hashlib
import os
import sys
from pathlib import Path

import pytest

from audit import folders
from audit.cluster import crew
from audit.failures import Failure
from audit.installing import venvs
from audit.installing.locks import Lock
from audit.installing.venvs import Recipe
from audit.processes import dumper_process, dumper_request
from audit.processes.dumper_process import DumpJob
from audit.processes.dumper_request import CellTask
from tests import tinysim

pytestmark = pytest.mark.usefixtures("own_cache")

IN_PLACE = {
    "a folder": "mkdir 0.answer.npz",
    "a folder with something in it": "mkdir -p 0.answer.npz/in",
    "a pipe": "mkfifo 0.answer.npz",
    "a link that is too long": f"ln -s {'a' * 300} 0.answer.npz",
    "a link to itself": "ln -s 0.answer.npz 0.answer.npz",
    "a link to nowhere": "ln -s nowhere 0.answer.npz",
}


def served(script: str, *labels: str, interpreter: str = "/bin/sh") -> list[Failure]:
    """What becomes of cells whose Python is a script."""
    recipe = Recipe(key="k" * 32, lock="", python_version="3.11")
    recipe.executable.parent.mkdir(parents=True)
    recipe.executable.write_text(f"#!{interpreter}\n{script}\n", encoding="utf-8")
    recipe.executable.chmod(0o755)
    recipe.bytecode.mkdir()
    (recipe.folder / "recipe.json").write_text(recipe.text(), encoding="utf-8")
    cells = tuple(
        CellTask(
            task="probe", label=label, environment=label, kind="gymnasium", source=label, arguments="{}", edits="{}",
            attachment=None, given=None,
        )
        for label in labels
    )  # fmt: skip
    job = DumpJob(release="r", recipe=recipe, api=None, expect={}, cells=cells, timeout=20.0)
    found = [outcome.result for outcome in dumper_process.run(job)]
    assert all(isinstance(each, Failure) for each in found)
    return [each for each in found if isinstance(each, Failure)]


@pytest.mark.parametrize("what", IN_PLACE)
def test_something_else_is_where_the_answer_should_be(what: str) -> None:
    before = len(list(Path("/dev/fd").iterdir()))
    (failure,) = served(f"{IN_PLACE[what]}; sleep 60", "one")
    assert failure.status == "damaged"
    assert "not a file" in failure.reason or "cannot be read" in failure.reason
    assert len(list(Path("/dev/fd").iterdir())) == before
    assert list((folders.cache() / "work").iterdir()) == []


def test_what_says_that_all_was_imported_is_too_long_a_link() -> None:
    (failure,) = served(f"ln -s {'a' * 300} imported; exit 7", "one")
    assert (failure.status, failure.exit_code) == ("crashed", 7)


def test_a_python_that_is_not_there_is_named() -> None:
    (failure,) = served("exit 0", "one", interpreter="/nowhere/sh")
    assert failure.reason == "its Python could not be executed: No such file or directory"


def test_the_others_of_the_release_are_served() -> None:
    one, two = served("mkdir 0.answer.npz 1.answer.npz; sleep 60", "one", "two")
    assert (one.subject, one.status) == ("r/one", "damaged")
    assert (two.subject, two.status) == ("r/two", "damaged")


@pytest.mark.parametrize(("number", "status"), [(errno.ENOSPC, "disk-full"), (errno.EIO, "crashed")])
def test_the_system_refuses(monkeypatch: pytest.MonkeyPatch, number: int, status: str) -> None:
    def refuse(*_: object) -> list[Path]:
        raise OSError(number, os.strerror(number), "\x1b[31mrequest")

    monkeypatch.setattr(dumper_request, "write", refuse)
    one, two = served("exit 0", "one", "two")
    assert (one.status, two.status) == (status, status)
    assert os.strerror(number) in one.reason
    assert "\x1b" not in one.reason


def test_what_comes_through_ray_is_readable() -> None:
    assert crew.first_line(OSError("\x1b[36mray::run()\x1b[39m (pid=1)\nmore")) == "ray::run() (pid=1)"
    assert crew.first_line(OSError()) == "OSError"


@pytest.mark.parametrize("name", ["bytecode/x", "recipe.json/x"])
def test_a_wheel_that_installs_where_the_audit_keeps_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    tinysim.write_wheel(tmp_path, "squatter", "1.0", {f"squatter-1.0.data/data/{name}": ""}, ())
    monkeypatch.setenv("UV_FIND_LINKS", str(tmp_path))
    monkeypatch.setenv("UV_OFFLINE", "1")
    wheel = tmp_path / "squatter-1.0-py3-none-any.whl"
    lock = Lock.from_text(f"squatter==1.0 \\\n    --hash=sha256:{_digest(wheel)}\n")
    recipe = Recipe(key="s" * 32, lock=lock.text, python_version=sys.version.split()[0])
    failure = venvs.ensure(recipe, "r")
    assert failure is not None
    assert (failure.status, name.partition("/")[0] in failure.reason) == ("unbuilt", True), failure


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
