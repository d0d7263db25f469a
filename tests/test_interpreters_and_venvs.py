"""Pythons that are found, and virtualenvs that are built, reused or built anew."""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from audit import folders
from audit.confining import confinement
from audit.failures import Failure
from audit.installing import interpreters, locks, source_builds, venvs
from audit.installing.interpreters import Interpreter
from audit.installing.locks import Lock
from audit.installing.venvs import Recipe
from audit.planning import building
from audit.processes.dumper_child import DumperChild
from tests import wheels
from tests.asked_releases import request, resolved
from tests.small_disks import small_disk

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture
def fresh_search() -> Iterator[None]:
    """Forget interpreters found before, and after: PYENV_ROOT changes, and changes back."""
    interpreters.forget()
    yield
    interpreters.forget()


# Interpreters


def planted(folder: Path, version: str, script: str | None = None) -> Path:
    """A Python of an inactive pyenv: this very one, or a script in its place."""
    path = folder / "versions" / version / "bin" / "python"
    path.parent.mkdir(parents=True)
    if script is None:
        path.symlink_to(sys.executable)
    else:
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
    return path


@pytest.mark.usefixtures("fresh_search")
def test_an_interpreter_on_the_path_is_found_where_there_is_no_pyenv(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = Path(os.path.realpath(sys.executable))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    monkeypatch.setenv("PATH", str(own.parent))
    monkeypatch.setenv("UV_PYTHON_INSTALL_DIR", str(tmp_path / "managed"))
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    found = interpreters.find_installed(version)
    assert os.path.realpath(found.path) == str(own)
    assert found.version.startswith(version)


@pytest.mark.usefixtures("fresh_search")
def test_an_interpreter_of_an_inactive_pyenv_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("UV_PYTHON_INSTALL_DIR", str(tmp_path / "managed"))
    said = 'echo "CPython 3.99.1"'
    planted(tmp_path, "3.99.0", said)
    newest = planted(tmp_path, "3.99.10", said)
    planted(tmp_path, "3.99.2", said)
    planted(tmp_path, "3.9.99", said)
    planted(tmp_path, "miniconda-latest", said)
    found = interpreters.find_installed("3.99")
    assert found == Interpreter(path=newest, implementation="CPython", version="3.99.1")


@pytest.mark.usefixtures("fresh_search")
def test_an_exact_version_takes_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    planted(tmp_path, "3.99.10")
    exact = planted(tmp_path, "3.99.1")
    assert interpreters.find_installed("3.99.1").path == exact


@pytest.mark.usefixtures("fresh_search")
def test_one_that_does_not_start_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    planted(tmp_path, "3.99.3", "exit 1")
    (tmp_path / "versions" / "3.99.2" / "bin").mkdir(parents=True)
    works = planted(tmp_path, "3.99.1")
    assert interpreters.find_installed("3.99").path == works


@pytest.mark.usefixtures("fresh_search")
def test_none_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    with pytest.raises(interpreters.NoInterpreter, match=r"no Python 3\.99 is installed"):
        interpreters.find_installed("3.99")


@pytest.mark.usefixtures("fresh_search")
def test_a_release_on_a_python_that_nobody_has_is_a_failure() -> None:
    failure = locks.resolve(replace(request("six"), python="3.99"))
    assert isinstance(failure, Failure)
    assert (failure.stage, failure.status) == ("resolve", "unresolved")
    assert "3.99" in failure.reason


def test_what_an_interpreter_says_of_itself(tmp_path: Path) -> None:
    found = interpreters.ask(Path(sys.executable))
    assert found is not None
    assert (found.implementation, found.version) == ("CPython", sys.version.split()[0])
    assert interpreters.ask(tmp_path / "absent") is None
    assert interpreters.ask(tmp_path) is None


def test_the_parts_of_a_python_do_not_lie_where_a_link_in_their_place_leads(tmp_path: Path) -> None:
    venv, elsewhere = tmp_path / "venv", tmp_path / "elsewhere"
    for folder in (venv / "bin", venv / "lib", elsewhere):
        folder.mkdir(parents=True)
    (venv / "bin" / "python").symlink_to(sys.executable)
    (venv / "lib64").symlink_to("lib")
    (venv / "share").symlink_to(elsewhere)
    found = confinement.interpreter_folders(venv / "bin" / "python")
    assert {venv / "bin", venv / "lib", venv / "lib64"} <= set(found)
    assert venv / "share" not in found


def test_a_python_that_links_to_itself_has_an_end(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to("python")
    assert confinement.interpreter_folders(tmp_path / "bin" / "python") == (tmp_path / "bin",)


# Virtualenvs


def test_a_virtualenv_is_built_once_rebuilt_for_another_recipe_and_removed_when_half_built() -> None:
    recipe = Recipe.of(resolved("six==1.16.0"))
    assert not venvs.ready(recipe)
    assert venvs.ensure(recipe, "r") is None
    assert venvs.ready(recipe)
    marker = recipe.folder / "marker"

    marker.touch()
    assert venvs.ensure(recipe, "r") is None
    assert marker.exists(), "what is ready is not built again"

    (recipe.folder / "recipe.json").unlink()
    assert not venvs.ready(recipe)
    assert venvs.ensure(recipe, "r") is None
    assert not marker.exists(), "what was half-built is gone"
    assert venvs.ready(recipe)

    marker.touch()
    other = replace(recipe, lock=recipe.lock + "\n")
    assert other.folder == recipe.folder
    assert not venvs.ready(other)
    assert venvs.ensure(other, "r") is None
    assert not marker.exists(), "what was made from another recipe is gone"
    assert venvs.ready(other)
    assert not venvs.ready(recipe)

    recipe.executable.unlink()
    recipe.executable.symlink_to("/nowhere")
    assert not venvs.ready(other), "its Python has to start"


def test_what_the_cache_of_uv_has_lost_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine may lose its power after uv has unpacked a wheel and before any of that is on the disk."""
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
    monkeypatch.setenv("UV_FIND_LINKS", str(tmp_path))
    monkeypatch.setenv("UV_OFFLINE", "1")
    wheels.write(tmp_path, "tiny", "1.0", {"tiny/__init__.py": "content = 1\n"}, ())
    digest = hashlib.sha256((tmp_path / "tiny-1.0-py3-none-any.whl").read_bytes()).hexdigest()
    lock = Lock.from_text(f"tiny==1.0 \\\n    --hash=sha256:{digest}\n")
    recipe = Recipe(key="t" * 32, lock=lock.text, python_version=sys.version.split()[0])
    assert venvs.ensure(recipe, "r") is None
    (installed,) = recipe.folder.glob("lib/*/site-packages/tiny/__init__.py")
    for unpacked in (tmp_path / "uv").rglob("tiny/__init__.py"):
        os.truncate(unpacked, 0)
    os.truncate(installed, 0)
    assert not venvs.finished(recipe)
    assert venvs.ensure(recipe, "r") is None
    assert installed.read_text(encoding="utf-8") == "content = 1\n"


def test_what_a_wheel_says_that_it_holds_is_not_held_in_memory(tmp_path: Path) -> None:
    """A list may be any number of times as long as its wheel."""
    record = tmp_path / "tiny-1.0.dist-info" / "RECORD"
    record.parent.mkdir()
    (tmp_path / "one").write_bytes(b"x")
    record.write_text("one,,1\n" * 100_000, encoding="utf-8")
    tracemalloc.start()
    try:
        assert venvs._holds(record)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 2**20


def test_a_python_that_does_not_start_once_is_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = Recipe.of(resolved("six==1.16.0"))
    assert venvs.ensure(recipe, "r") is None
    (recipe.folder / "marker").touch()
    start, starts = venvs._starts_now, iter([False, True])
    monkeypatch.setattr(venvs, "_starts_now", lambda each: next(starts) and start(each))
    assert venvs.ensure(recipe, "r") is None
    assert (recipe.folder / "marker").exists()
    folders.remove(recipe.folder)
    starts = iter([False, True])
    assert venvs.ensure(recipe, "r") is None, "also where it has just been built"


def test_what_does_not_build_is_a_failure_and_leaves_nothing() -> None:
    good = Recipe.of(resolved("six==1.16.0"))
    bad = replace(good, lock=re.sub(r"sha256:[0-9a-f]{64}", "sha256:" + "0" * 64, good.lock))
    failure = venvs.ensure(bad, "r")
    assert failure is not None
    assert (failure.subject, failure.stage, failure.status) == ("r", "build", "unbuilt")
    assert "hash" in failure.reason.lower()
    assert not bad.folder.exists()


def test_where_nothing_can_be_confined_the_machine_is_at_fault_and_what_was_built_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = Recipe.of(resolved("six==1.16.0"))
    assert venvs.ensure(recipe, "r") is None
    (recipe.folder / "marker").touch()
    launcher = tmp_path / "launcher.py"
    launcher.write_text("raise SystemExit('out of order')", encoding="utf-8")
    with monkeypatch.context() as broken:
        broken.setattr("audit.confining.confinement.LAUNCHER", launcher)
        assert not venvs.ready(recipe)
        failure = venvs.ensure(recipe, "r")
        assert failure is not None
        assert (failure.status, failure.is_infrastructure) == ("no-sandbox", True)
        assert "out of order" in failure.reason
        child = DumperChild(tmp_path, recipe, 60.0)
        try:
            trouble = child.await_answer(tmp_path / "answer", 60.0)
        finally:
            child.end()
    assert trouble is not None
    assert trouble.status == "no-sandbox"
    assert "exit code 1 before the command began: out of order" in trouble.reason
    assert (recipe.folder / "marker").exists()
    assert venvs.ready(recipe)


FULL = "1m,nr_inodes=1"
"""Of a disk on which nothing can be made."""


def test_a_full_disk_keeps_no_python_from_being_there() -> None:
    recipe = Recipe.of(resolved("six==1.16.0"))
    assert venvs.ensure(recipe, "r") is None
    (recipe.folder / "marker").touch()
    with small_disk(folders.cache() / "work", FULL):
        assert not venvs.ready(recipe)
        failure = venvs.ensure(recipe, "r")
        assert failure is not None
        assert (failure.stage, failure.status) == ("build", "disk-full")
    assert (recipe.folder / "marker").exists(), "it is as good as before"
    assert venvs.ready(recipe)


def test_a_full_disk_is_a_failure_where_a_virtualenv_cannot_even_be_locked() -> None:
    recipe = Recipe.of(resolved("six==1.16.0"))
    with small_disk(folders.cache() / "venvs", FULL):
        failure = venvs.ensure(recipe, "r")
    assert failure is not None
    assert (failure.stage, failure.status) == ("build", "disk-full")


def test_a_machine_without_memory_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its error says nothing."""

    def exhausted(*_: object, **__: object) -> None:
        raise MemoryError

    release = resolved("six==1.16.0")
    monkeypatch.setattr(source_builds, "resolve", exhausted)
    monkeypatch.setattr(folders, "locked", exhausted)
    for failure in (locks.resolve(request("six==1.15.0")), venvs.ensure(Recipe.of(release), "r")):
        assert isinstance(failure, Failure)
        assert (failure.status, failure.reason) == ("no-sandbox", "MemoryError")


def test_a_lock_that_cannot_be_remembered_is_one(own_cache: Path) -> None:
    with small_disk(own_cache / "locks", FULL):
        assert resolved("six==1.16.0").lock.version_of("six") == "1.16.0"
    assert list((own_cache / "locks").iterdir()) == []


class Silent:
    """Nobody is told."""

    def __init__(self) -> None:
        self.stages: list[tuple[str, int]] = []
        self.told: list[str] = []

    def stage(self, name: str, total: int) -> Silent:
        self.stages.append((name, total))
        return self

    def __enter__(self) -> Silent:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __call__(self, text: str) -> None:
        self.told.append(text)


def test_one_release_that_does_not_build_does_not_stop_the_others() -> None:
    good = resolved("six==1.16.0")
    broken = replace(good, request=replace(good.request, id="broken"), lock=Lock.from_text("six==1.16.0\n"))
    reporter = Silent()
    failures = building.build([good, broken], reporter)
    assert list(failures) == ["broken"]
    assert failures["broken"].status == "unbuilt"
    assert reporter.stages == [("building", 2)]
    assert sorted(reporter.told) == ["broken: unbuilt", "r"]
    assert venvs.ready(Recipe.of(good))
    assert building.build([good], reporter) == {}
    assert reporter.stages == [("building", 2)], "nothing to do is not a stage"


def test_the_recipe_is_saved_beside_the_virtualenv_without_the_environment_of_the_user() -> None:
    recipe = Recipe.of(resolved("six==1.16.0"))
    saved = json.loads(recipe.text())
    assert saved["key"] == recipe.key
    assert saved["lock"] == recipe.lock
    assert os.environ["RELEASE_AUDIT_CACHE"] in str(recipe.folder)
