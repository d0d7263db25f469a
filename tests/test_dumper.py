"""What runs inside a release's virtualenv: its language, and its trust in what it imported."""

from __future__ import annotations

import ast
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from audit.installing import interpreters
from audit.processes.dumper_request import DUMPER, PROTOCOL
from audit.stimuli import stimulus
from dumper import record, registered, serve, worlds
from dumper.worlds import Unavailable, World
from tests.small_environments import Modern

FILES = sorted(DUMPER.glob("*.py"))
RELEASES = {"mujoco", "dm_control"}


# Its language


def imported(tree: ast.AST) -> set[str]:
    """Top-level names that are imported anywhere under ``tree``."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "a relative import"
            names.add(str(node.module).split(".")[0])
    return names


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 8))


def test_there_are_files() -> None:
    assert {"__main__.py", "serve.py", "worlds.py", "registered.py", "record.py", "bank.py", "answers.py"} <= {
        path.name for path in FILES
    }


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_syntax_is_that_of_python_3_8(path: Path) -> None:
    parsed(path)


def test_newer_syntax_would_be_noticed() -> None:
    with pytest.raises(SyntaxError):
        ast.parse("match 1:\n    case 1:\n        pass\n", feature_version=(3, 8))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_only_the_standard_library_and_numpy_are_imported(path: Path) -> None:
    allowed = {*sys.stdlib_module_names, "numpy", "dumper"}
    assert imported(parsed(path)) - allowed <= RELEASES


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_release_is_imported_where_it_is_needed_and_not_before(path: Path) -> None:
    """Nothing of it, not even numpy, is there when the dumper begins to serve."""
    late = (ast.FunctionDef, ast.ClassDef)
    top = ast.Module(body=[node for node in parsed(path).body if not isinstance(node, late)], type_ignores=[])
    assert not imported(top) & RELEASES


def test_mujoco_is_imported_for_registered_environments() -> None:
    assert "mujoco" in imported(parsed(DUMPER / "registered.py"))


def test_a_real_python_3_8_compiles_it_and_has_what_it_imports() -> None:
    try:
        old = interpreters.find_installed("3.8")
    except interpreters.NoInterpreter:
        pytest.skip("no Python 3.8 here")
    assert old.version.startswith("3.8.")
    modules = sorted(set().union(*(imported(parsed(path)) for path in FILES)) - {"numpy", "dumper", *RELEASES})
    script = (
        "import importlib, json, sys\n"
        "files, modules = json.load(sys.stdin)\n"
        "for name in files: compile(open(name, encoding='utf-8').read(), name, 'exec')\n"
        "for name in modules: importlib.import_module(name)\n"
    )
    given = json.dumps([[str(path) for path in FILES], modules])
    done = subprocess.run([old.path, "-I", "-c", script], input=given, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_both_sides_speak_one_protocol() -> None:
    assert serve.PROTOCOL == PROTOCOL


# Its trust in what it imported


def test_the_imported_version_is_the_requested_one() -> None:
    serve._import_release({"api": "numpy", "expect": {"numpy": np.__version__}})
    serve._import_release({"api": None, "expect": {"numpy": np.__version__}})


def test_a_release_that_cannot_be_imported_says_so() -> None:
    with pytest.raises(ModuleNotFoundError):
        serve._import_release({"api": "no_such_package", "expect": {}})


def test_another_version_than_the_locked_one_is_refused() -> None:
    with pytest.raises(serve.WrongVersion, match=rf"numpy {np.__version__} is installed, 0\.1 was asked for"):
        serve._import_release({"api": "numpy", "expect": {"numpy": "0.1"}})


def test_a_package_from_outside_the_virtualenv_is_refused() -> None:
    with pytest.raises(serve.WrongVersion, match="outside the virtualenv"):
        serve._import_release({"api": "json", "expect": {}})


def test_a_module_that_says_it_is_another_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    version = np.__version__
    monkeypatch.setattr(np, "__version__", "0.0.1")
    with pytest.raises(serve.WrongVersion, match=r"numpy says it is 0\.0\.1"):
        serve._import_release({"api": "numpy", "expect": {"numpy": version}})


def test_a_request_in_another_protocol_is_refused(tmp_path: Path) -> None:
    request = tmp_path / "request.json"
    request.write_text(json.dumps({"protocol": 99, "cells": []}))
    command = [sys.executable, "-I", str(DUMPER / "__main__.py"), str(request)]
    lifeline = subprocess.Popen(
        command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    with lifeline as child:
        assert child.wait(60) == 1
        assert child.stderr is not None
        assert child.stderr.read().strip() == f"the request speaks protocol 99, this dumper {PROTOCOL}"


def test_the_dumper_ends_with_whoever_started_it(tmp_path: Path) -> None:
    """Its standard input is its lifeline: closed, by whatever end of the other side, it takes the group with it."""
    package = tmp_path / "stuck.py"
    package.write_text("import time\ntime.sleep(3600)\n")
    request = {"protocol": serve.PROTOCOL, "api": "stuck", "expect": {}, "cells": []}
    (tmp_path / "request.json").write_text(json.dumps(request))
    starter = (
        "import sys; sys.path.insert(0, sys.argv[1]); sys.argv = ['', sys.argv[2], sys.argv[3]]\n"
        "import runpy; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    command = [
        sys.executable,
        "-c",
        starter,
        str(tmp_path),
        str(DUMPER / "__main__.py"),
        str(tmp_path / "request.json"),
    ]
    with subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True) as child:
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(1)
        assert child.stdin is not None
        child.stdin.close()
        assert child.wait(60) == -signal.SIGKILL


# Its answers


class Refusing(World):  # type: ignore[misc]  # the dumper is not typed
    """Raises when it is asked anything."""

    def __init__(self, error: Exception) -> None:
        self.error = error
        self.closed = False

    def layout(self) -> Any:
        raise self.error

    def close(self) -> None:
        self.closed = True


def answered(monkeypatch: pytest.MonkeyPatch, make: Any, **cell: Any) -> Any:
    monkeypatch.setattr(worlds, "make", make)
    whole = {
        "task": "probe",
        "kind": "gymnasium",
        "source": "E",
        "arguments": {},
        "files": {},
        "edits": {},
        "plant": None,
        **cell,
    }
    return serve._answer({"api": None, "expect": {}}, whole)


@pytest.mark.parametrize(
    ("error", "status", "reason"),
    [
        (Unavailable("has none"), "unavailable", "has none"),
        (record.Incomparable("does not fit"), "incomparable", "does not fit"),
        (record.NotReproduced("not twice"), "nondeterministic", "not twice"),
        (ZeroDivisionError("by zero"), "failed", "ZeroDivisionError: by zero"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_error_is_an_answer(monkeypatch: pytest.MonkeyPatch, error: Exception, status: str, reason: str) -> None:
    world = Refusing(error)
    answer = answered(monkeypatch, lambda *_: world)
    assert (answer.status, answer.reason) == (status, reason)
    assert bool(answer.detail) == (status == "failed")
    assert world.closed


def test_an_error_that_is_its_own_cause_is_an_answer_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def probe(*_: object) -> None:
        error = ValueError("round and round")
        raise error from error

    monkeypatch.setitem(serve._TASKS, "probe", probe)
    assert serve._answer({}, {"task": "probe"}).reason == "ValueError: round and round"


def test_an_environment_that_cannot_be_made_is_an_answer_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def make(*_: Any) -> Any:
        raise Unavailable("NameNotFound: E")

    assert answered(monkeypatch, make).status == "unavailable"


def test_a_fault_is_planted_in_a_fresh_world_and_nowhere_else(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Falling(Modern):
        def __init__(self) -> None:
            super().__init__()
            self.aside, self.gravity = 3.0, 9.8

        def advance(self, action: int) -> Any:
            self.state = self.state - self.gravity * 0.01
            return super().advance(action)

    states = np.array([[1.0, 2.0], [3.0, 4.0]])
    given = {"forced.states": states, "forced.actions": np.zeros((2, 1), np.int64)}
    (tmp_path / "given.npz").write_bytes(stimulus.packed(given))

    def dump(plant: Any) -> Any:
        given = str(tmp_path / "given.npz")
        return answered(monkeypatch, lambda *_: registered.wrap(Falling()), task="dump", given=given, plant=plant)

    plain, moved, aside = dump(None), dump({"name": None, "factor": 2.0}), dump({"name": "aside", "factor": 2.0})
    assert "planted" not in plain.meta
    assert (moved.meta["planted"], aside.meta["planted"]) == ("gravity", "aside")
    assert moved.meta["constants"]["gravity"] == repr(19.6)
    np.testing.assert_allclose(plain.arrays["forced.state"] - moved.arrays["forced.state"], 0.098)
    assert aside.arrays["forced.state"].tobytes() == plain.arrays["forced.state"].tobytes()


def test_where_no_constant_acts_nothing_can_be_planted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    given = {"forced.states": np.ones((2, 2)), "forced.actions": np.zeros((2, 1), np.int64)}
    (tmp_path / "given.npz").write_bytes(stimulus.packed(given))
    answer = answered(
        monkeypatch,
        lambda *_: registered.wrap(Modern()),
        task="dump",
        given=str(tmp_path / "given.npz"),
        plant={"name": None, "factor": 2.0},
    )
    assert (answer.status, answer.reason) == (
        "incomparable",
        "moving tau, TOP by a tenth made no difference to any forced step",
    )


@pytest.mark.parametrize("error", [ValueError(""), ValueError("a\nlast"), KeyError("k")], ids=repr)
def test_the_last_line_of_an_error(error: Exception) -> None:
    told = serve._last_line(error)
    assert told.startswith(f"{type(error).__name__}: ")
    assert "\n" not in told
    assert len(told) > len(type(error).__name__) + 2
