"""A dumper that puts anything but a file where its answer is awaited, or a system that refuses: one cell has failed."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import resource
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from audit import folders
from audit.cluster import crew
from audit.confining import confinement
from audit.failures import Failure, NoSandbox
from audit.installing import venvs
from audit.installing.locks import Lock
from audit.installing.venvs import Recipe
from audit.processes import answer_file, dumper_process, dumper_request
from audit.processes.dumper_process import DumpJob
from audit.processes.dumper_request import CellTask
from tests import wheels

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
    recipe = Recipe(key="k" * 32, lock="", python_version="3.99.1")
    recipe.executable.parent.mkdir(parents=True)
    recipe.executable.write_text(f"#!{interpreter}\n{script}\n", encoding="utf-8")
    recipe.executable.chmod(0o755)
    recipe.bytecode.mkdir()
    (recipe.folder / "recipe.json").write_text(recipe.text(), encoding="utf-8")
    (recipe.folder / "files.json").write_text("{}", encoding="utf-8")
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


def test_a_python_that_is_gone_and_cannot_be_had_again_is_the_machines_fault() -> None:
    one, two = served("exit 0", "one", "two", interpreter="/nowhere/sh")
    assert (one.stage, one.status, two.status) == ("build", "no-python", "no-python")
    assert "no Python 3.99.1 is installed" in one.reason


def test_a_python_that_stays_away_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(venvs, "ensure", lambda *_: None)
    (failure,) = served("exit 0", "one", interpreter="/nowhere/sh")
    assert failure.status == "no-python"
    assert failure.reason == "its Python could not be executed: No such file or directory"


def test_the_others_of_the_release_are_served() -> None:
    one, two = served("mkdir 0.answer.npz 1.answer.npz; sleep 60", "one", "two")
    assert (one.subject, one.status) == ("r/one", "damaged")
    assert (two.subject, two.status) == ("r/two", "damaged")


@pytest.mark.parametrize(("number", "status"), [(errno.ENOSPC, "disk-full"), (errno.EIO, "no-sandbox")])
def test_the_system_refuses(monkeypatch: pytest.MonkeyPatch, number: int, status: str) -> None:
    def refuse(*_: object) -> list[Path]:
        raise OSError(number, os.strerror(number), "\x1b[31mrequest")

    monkeypatch.setattr(dumper_request, "write", refuse)
    one, two = served("exit 0", "one", "two")
    assert (one.status, two.status) == (status, status)
    assert os.strerror(number) in one.reason
    assert "\x1b" not in one.reason


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (OSError(errno.EMFILE, "Too many open files"), "no-sandbox"),
        (MemoryError(), "no-sandbox"),
        (OSError(errno.EIO, "Input/output error"), "damaged"),
    ],
)
def test_the_system_refuses_to_read_an_answer(monkeypatch: pytest.MonkeyPatch, error: Exception, status: str) -> None:
    def refuse(*_: object) -> dict[str, object]:
        raise error

    monkeypatch.setattr(answer_file, "arrays", refuse)
    (failure,) = served("touch imported 0.answer.npz; sleep 60", "one")
    assert (failure.status, (str(error) or "MemoryError") in failure.reason) == (status, True), failure


def test_a_protection_that_cannot_be_tried_is_the_machines_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    def busy() -> None:
        raise NoSandbox("the protections could not be tried within 30 s")

    monkeypatch.setattr(confinement, "mechanisms", busy)
    (failure,) = served("touch imported; exit 7", "one")
    assert (failure.status, "could not be tried" in failure.reason) == ("no-sandbox", True), failure


@pytest.fixture
def few_files() -> Iterator[None]:
    """Two more files can be opened, by the real limit: enough for a request, too few for a dumper."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(path.name) for path in Path("/dev/fd").iterdir())
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 3, most[1]))
    opened: list[int] = []
    try:
        with contextlib.suppress(OSError):
            while True:
                opened.append(os.open("/dev/null", os.O_RDONLY))
        for _ in range(2):
            os.close(opened.pop())
        yield
    finally:
        for handle in opened:
            os.close(handle)
        resource.setrlimit(resource.RLIMIT_NOFILE, most)


@pytest.mark.usefixtures("few_files")
def test_no_more_files_can_be_opened() -> None:
    (failure,) = served("exit 0", "one")
    assert failure.status == "no-sandbox"
    assert "it could not be served: [Errno 24] Too many open files" in failure.reason


def test_what_comes_through_ray_is_readable() -> None:
    assert crew.first_line(OSError("\x1b[36mray::run()\x1b[39m (pid=1)\nmore")) == "ray::run() (pid=1)"
    assert crew.first_line(OSError()) == "OSError"


@pytest.mark.parametrize("name", ["bytecode/x", "recipe.json/x"])
def test_a_wheel_that_installs_where_the_audit_keeps_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    wheels.write(tmp_path, "squatter", "1.0", {f"squatter-1.0.data/data/{name}": ""}, ())
    monkeypatch.setenv("UV_FIND_LINKS", str(tmp_path))
    monkeypatch.setenv("UV_OFFLINE", "1")
    wheel = tmp_path / "squatter-1.0-py3-none-any.whl"
    lock = Lock.from_text(f"squatter==1.0 \\\n    --hash=sha256:{_digest(wheel)}\n")
    recipe = Recipe(key="s" * 32, lock=lock.text, python_version=sys.version.split()[0])
    failure = venvs.ensure(recipe, "r")
    assert failure is not None
    assert (failure.status, name.partition("/")[0] in failure.reason) == ("unbuilt", True), failure


def test_a_wheel_with_folders_in_folders_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python walks down recursively, and has an end before a path has."""
    wheels.write(tmp_path, "deep", "1.0", {"deep/" + "d/" * 1200 + "x": ""}, ())
    monkeypatch.setenv("UV_FIND_LINKS", str(tmp_path))
    monkeypatch.setenv("UV_OFFLINE", "1")
    lock = Lock.from_text(f"deep==1.0 \\\n    --hash=sha256:{_digest(tmp_path / 'deep-1.0-py3-none-any.whl')}\n")
    recipe = Recipe(key="d" * 32, lock=lock.text, python_version=sys.version.split()[0])
    assert venvs.ensure(recipe, "r") is None
    assert venvs.ready(recipe)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
