"""Matrices and reference sets as nobody would write them: real ones with something else in place of some of it."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from audit.asked import attachments, matrix_file
from audit.asked.matrix_file import SHIPPED
from audit.asked.release_rows import ExplicitRow
from audit.errors import AuditError, MatrixError
from audit.installing import listing
from audit.laws import reference_file
from audit.planning import banks, plan
from tests.written_matrices import plain

MATRICES = sorted(SHIPPED.glob("*.yaml")) + sorted((SHIPPED / "paper").glob("*.yaml"))
LAWS = sorted((SHIPPED / "laws").glob("*.yaml"))

DIGITS = "9" * 5000
BOMB = "\n".join(
    ["b0: &b0 [x, x, x, x, x, x, x, x, x]"] + [f"b{i}: &b{i} [{', '.join([f'*b{i - 1}'] * 9)}]" for i in range(1, 10)]
)
NUMBERS = st.sampled_from(
    [0, -1, 1, 2**31, 2**63, 2**64, -(2**63), 10**400, 1e308, -1e308, 5e-324, float("nan"), float("inf"), -0.0, True]
)
TEXTS = st.sampled_from(
    [
        "",
        " ",
        "\x00",
        "\x1b[31m",
        "\u202e",
        "\ud800",
        "\ufeff",
        "é" * 300,
        "x" * 100_000,
        "a\nb",
        "*",
        "[",
        "[!",
        "**",
        "{version}",
        "{",
        "1e999999999",
        "-1e-999999999",
        "1e4000",
        DIGITS,
        f"{DIGITS}/{DIGITS}",
        "1/0",
        "0x10",
        "nan",
        "inf",
        "0000-00-00",
        "9999-12-31",
        "2026-13-01",
        "3.11",
        "3",
        "3." + DIGITS,
        "six",
        "six==",
        "six==1.*.1",
        "six @ file:///etc/passwd",
        "six==1; python_version < '3'",
        "six[" + "x," * 500 + "]",
        ">=1,<",
        "../../etc/passwd",
        "/dev/zero",
        "/dev/null",
        ".",
        "a/b",
        "walker/walk",
        "a@b",
        "@",
        "a@",
        "a.b.c[0]",
        "state[0]",
        "state[9" + "9" * 30 + "]",
        "cos(state[0])",
        "((((((x))))))",
        "x**12**12",
        "x**13",
        "(a+b+c)**12*(a+b+c)**12",
        "9**9**9",
        "1e308*1e308",
        "9" * 400 + "*x",
        "x." + "y" * 50,
        "lambda: x",
        "__import__('os')",
        "x if x else x",
        "x\x00",
        "-" * 400 + "x",
        "(" * 300 + "x" + ")" * 300,
        "f'{x}'",
        "1_000*x",
        "1j*x",
        "0.1e-4000*x",
        "1e-999999999*c",
        "0." + DIGITS + "*c",
        "x/0",
        "x/1e-320",
        "sqrt(-1)",
        "state[-1]",
    ]
)
SCALARS = st.one_of(NUMBERS, TEXTS, st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8))
VALUES = st.one_of(
    SCALARS,
    st.recursive(
        SCALARS,
        lambda inner: st.one_of(
            st.lists(inner, max_size=4), st.dictionaries(st.one_of(TEXTS, st.text(max_size=4)), inner, max_size=3)
        ),
        max_leaves=8,
    ),
    st.sampled_from(["deep", "long", "wide"]).map(
        lambda kind: {"deep": _nested(150), "long": ["x"] * 2000, "wide": {f"k{i}": i for i in range(500)}}[kind]
    ),
)
SNIPPETS = st.sampled_from(
    [
        BOMB,
        "? [a, b]\n: c",
        "? {a: b}",
        "a: &a [*a]",
        "<<: *x",
        "x: &x {a: 1}\n<<: *x",
        "<<: [1]",
        "%YAML 9.9\n---",
        "---",
        "...",
        "!!binary x",
        "a: !!binary '===='",
        "a: !!timestamp x",
        "a: !!set {x, y}",
        "a: !!omap [x]",
        "a: !!float x",
        "a: !!int 0b2",
        "a: !<tag:x> y",
        "a: !!python/name:os.system ''",
        "\ta: b",
        "a: 'x",
        'a: "\\ud800"',
        'a: "\\x00"',
        'a: "\\U00110000"',
        "a: |\n  x\n y",
        "a: >99\n x",
        "- - - - x",
        "name: twice\nname: twice",
        "a: " + "[" * 400,
        "a: " + "{a: " * 400,
        "a: " + "[" * 400 + "]" * 400,
        "a: 190:20:30",
        "a: 1_0",
        "a: 0o9",
        "a: .nan",
        "a: " + DIGITS,
        "a: 1e" + DIGITS,
        "a: -.inf",
        "&a : b",
        "*a : b",
        "a: *unknown",
        "@x",
        "`x",
        "%",
        "\x7f",
        "\x85",
        "\u2028",
        "a: 2001-99-99T00:00:00Z",
        "a: 2001-01-01T25:00:00Z",
        "a: 0001-01-01T00:00:00+24:00",
        "a: 2001-01-01T00:00:00-99:99",
    ]
)


def _nested(depth: int) -> Any:
    value: Any = "x"
    for _ in range(depth):
        value = [value]
    return value


def places(data: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inside = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [here, *(place for key, value in inside for place in places(value, (*here, key)))]


def as_yaml(data: Any) -> str:
    """JSON, with YAML's words for what JSON has none for."""
    text = json.dumps(data, ensure_ascii=True)
    return re.sub(r"-?\bInfinity\b", ".inf", re.sub(r"\bNaN\b", ".nan", text))


@st.composite
def structured(draw: st.DrawFn, files: list[Path]) -> bytes:
    """A real one with some of its parts replaced, taken out, renamed, repeated, or taken from elsewhere in it."""
    data = plain(draw(st.sampled_from(files)))
    for _ in range(draw(st.integers(1, 3))):
        chosen = places(data)[1:]
        if not chosen:
            break
        *around, last = draw(st.sampled_from(chosen))
        inner = data
        for key in around:
            inner = inner[key]
        kind = draw(st.sampled_from(["replace", "replace", "replace", "remove", "rename", "repeat", "splice"]))
        if kind == "replace":
            inner[last] = draw(VALUES)
        elif kind == "remove":
            del inner[last]
        elif kind == "rename" and isinstance(inner, dict):
            inner[draw(st.one_of(TEXTS, st.text(max_size=4)))] = inner.pop(last)
        elif kind == "repeat" and isinstance(inner, list):
            inner *= draw(st.integers(2, 40))
        elif kind == "splice":
            other = data
            for key in draw(st.sampled_from(chosen)):
                other = other[key] if _has(other, key) else other
            inner[last] = copy.deepcopy(other)
    return as_yaml(data).encode("utf-8", "surrogatepass")


def _has(data: Any, key: Any) -> bool:
    return (
        key in data if isinstance(data, dict) else isinstance(data, list) and isinstance(key, int) and key < len(data)
    )


@st.composite
def textual(draw: st.DrawFn, files: list[Path]) -> bytes:
    """A real one with lines lost, doubled or inserted, and bytes overwritten."""
    lines = draw(st.sampled_from(files)).read_text(encoding="utf-8").splitlines()
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(lines)))
        end = draw(st.integers(start, min(len(lines), start + 4)))
        kind = draw(st.sampled_from(["lose", "double", "insert", "insert", "value"]))
        if kind == "lose":
            del lines[start:end]
        elif kind == "double":
            lines[start:start] = lines[start:end]
        elif kind == "insert":
            pad = " " * draw(st.sampled_from([0, 0, 2, 4]))
            lines[start:end] = [pad + line for line in draw(SNIPPETS).splitlines()]
        elif start < len(lines) and ":" in lines[start]:
            lines[start] = lines[start].split(":")[0] + ": " + draw(st.one_of(TEXTS, SNIPPETS))
    content = bytearray("\n".join(lines).encode("utf-8", "surrogatepass"))
    for _ in range(draw(st.integers(0, 2))):
        if content:
            content[draw(st.integers(0, len(content) - 1))] = draw(st.integers(0, 255))
    return bytes(content)


def contents(files: list[Path]) -> st.SearchStrategy[bytes]:
    return st.one_of(structured(files), textual(files), st.binary(max_size=60), st.text(max_size=60).map(_encoded))


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def matrix_is_read_or_refused(folder: Path, content: bytes) -> bool:
    """Whether it is read; then what is done with it before anything is run works too, or is refused."""
    path = folder / "matrix.yaml"
    path.write_bytes(content)
    try:
        file = matrix_file.read(path)
        if all(isinstance(row, ExplicitRow) for row in file.matrix.releases):  # the others ask the index
            listing.expand(file)
        for row in file.matrix.environments:
            assert row.title
            plan.arguments_text(row)
            plan.edits_text(row.edits)
        attachments.read(file)
        banks.check_files(file)
    except AuditError as error:
        is_told_in_a_sentence(error)
        return False
    return True


def laws_are_read_or_refused(folder: Path, content: bytes) -> bool:
    path = folder / "laws.yaml"
    path.write_bytes(content)
    try:
        file = reference_file.read(path)
        assert file.settings
        assert np.isfinite(file.laws.compiled.coefficients).all()
    except AuditError as error:
        is_told_in_a_sentence(error)
        return False
    return True


def is_told_in_a_sentence(error: Exception) -> None:
    """It can be printed, and somebody can read it."""
    assert str(error).strip()
    str(error).encode("utf-8")
    assert len(str(error)) < 100_000
    if isinstance(error, MatrixError):
        assert error.problems
        assert all(problem.strip() for problem in error.problems)
