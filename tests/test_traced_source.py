"""What functions are rewritten to, so that they tell what they assign."""

from __future__ import annotations

import types
from pathlib import Path
from typing import Any

import pytest

from dumper import source


def function(text: str, folder: Path, name: str = "f") -> types.FunctionType:
    """A function of a module that stands in a file."""
    path = folder / f"m{abs(hash(text))}.py"
    path.write_text(text, encoding="utf-8")
    scope: dict[str, Any] = {}
    exec(compile(text, str(path), "exec"), scope)
    found = scope[name]
    assert isinstance(found, types.FunctionType)
    return found


def told(made: types.FunctionType, *arguments: Any) -> tuple[list[tuple[str, Any]], Any]:
    """What a function tells of while it runs, and what it returns."""
    code = source.rewritten(made.__code__)
    assert code is not None
    seen: list[Any] = []

    def keep_attribute(site: Any, owner: Any, name: str) -> None:
        seen.extend((site, getattr(owner, name)))

    offered = (source.KEEP, seen.extend), (source.KEEP_ATTRIBUTE, keep_attribute)
    made.__globals__.update([*offered, (source.FROZEN, lambda value: value), (source.IMMUTABLE, frozenset([int]))])
    made.__code__ = code
    returned = made(*arguments)
    return [(site[1], value) for site, value in zip(seen[0::2], seen[1::2], strict=True)], returned


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("x = 1", ["x"]),
        ("x = y = 1", ["x", "y"]),
        ("x, (y, *z) = 1, (2, 3)", ["x", "y", "z"]),
        ("p += 1", ["p"]),
        ("x: float = 1", ["x"]),
        ("x: float", []),
        ("q[0][1] = 1", ["q"]),
        ("self.x = 1", ["self.x"]),
        ("self.q[0] += 1", ["self.q"]),
        ("self.other.x = 1", []),
        ("q.append(z := 1)", ["z"]),
        ("False and (z := 1)", []),
        ("x = [y for y in q]", ["x"]),
        ("x = lambda y: (z := y)", ["x"]),
        ("x = 1; y = 2", ["x", "y"]),
        ("for x in (1, 2): pass", ["x", "x"]),
        ("with self.entered() as x: pass", ["x"]),
        ("import math as x", []),
        ("del p", []),
    ],
)
def test_what_a_statement_assigns(tmp_path: Path, text: str, names: list[str]) -> None:
    class Owner:
        q = 1, 2
        other = types.SimpleNamespace()

        def __init__(self) -> None:
            self.q = [1, 2]  # type: ignore[assignment]

        def entered(self) -> Any:
            return memoryview(b"")

    made = function(f"def f(self):\n    p, q = 1, [[1, 2]]\n    {text}\n", tmp_path)
    assert [name for name, _ in told(made, Owner())[0]] == ["p", "q", *names]


def test_values_and_what_is_returned(tmp_path: Path) -> None:
    text = "def f(n, *, step=1):\n    'Count.'\n    total = 0\n    while (left := n - total) > 0:\n"
    text += "        total += step\n    return total\n"
    seen, returned = told(function(text, tmp_path), 2)
    assert returned == 2
    assert seen == [
        ("n", 2), ("step", 1), ("total", 0), ("left", 2), ("total", 1), ("left", 1), ("total", 2), ("left", 0),
        ("return", 2),
    ]  # fmt: skip


def test_a_traceback_points_to_the_same_line(tmp_path: Path) -> None:
    made = function("def f(x):\n    y = x\n    return y / 0\n", tmp_path)
    with pytest.raises(ZeroDivisionError) as caught:
        told(made, 1)
    assert caught.traceback[-1].lineno == 2


def test_functions_are_called_as_python_calls_them(tmp_path: Path) -> None:
    text = "class A:\n    @staticmethod\n    def b():\n        def c(): pass\n        return c\n\ndef d(): return A.b\n"
    made = function(text, tmp_path, "d")()
    assert source.name_of(made.__code__) == "A.b"
    assert source.name_of(made().__code__) == "A.b.<locals>.c"


def test_a_method_that_calls_its_parents(tmp_path: Path) -> None:
    text = "class A:\n    def g(self): return 1\n"
    text += "class B(A):\n    def g(self):\n        x = super().g()\n        return x\n"
    made = function(f"{text}\ndef f(): return B\n", tmp_path)()
    assert told(made.g, made()) == ([("x", 1), ("return", 1)], 1)


@pytest.mark.parametrize("content", [b"def f(:\n", b"\x00", b"\xff\xfe", b"", b"def f(other): pass", b"x = 1"])
def test_what_cannot_be_read_or_is_another_is_left_as_it_is(tmp_path: Path, content: bytes) -> None:
    made = function("def f(): pass\n", tmp_path)
    Path(made.__code__.co_filename).write_bytes(content)
    assert source.rewritten(made.__code__) is None


def test_what_has_no_file_has_no_source() -> None:
    scope: dict[str, Any] = {}
    exec("def f(): pass", scope)
    assert source.rewritten(scope["f"].__code__) is None
    assert source.name_of(scope["f"].__code__) is None
