"""Whatever is in a matrix's file, nothing but the program's own errors comes out."""

from __future__ import annotations

import copy
import json
import math
import re
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from audit.asked.matrix_file import SHIPPED
from audit.errors import MatrixError, UsageError
from tests.written_matrices import outcome, plain, read

UNHURRIED = settings(
    deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=100
)


def is_refused_or_read(folder: Path, text: str) -> None:
    found = outcome(folder, text)
    if isinstance(found, MatrixError):
        assert found.problems
        assert all(problem.strip() for problem in found.problems)
    elif isinstance(found, UsageError):
        assert "cannot be read" in str(found)
    else:
        assert found.matrix.releases


VOCABULARY = """
name description python exclude-newer pins pairs outputs stimulus releases environments id requires versions package
with series prereleases low high position velocity seed trajectories steps actions start arguments coast against all
adjacent zero uniform state reward * a gym near bounded explicit generated edits a@b
"""
WORDS = st.sampled_from(VOCABULARY.split())
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    WORDS,
    st.text(max_size=5),
    st.just(10**30),
    st.just("{version}"),
)
DATA = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.one_of(WORDS, st.text(max_size=3)), inner, max_size=3)
    ),
    max_leaves=8,
)


def as_yaml(data: Any) -> str:
    """JSON, with YAML's words for what JSON has none for."""
    text = json.dumps(data, ensure_ascii=True)
    return re.sub(r"-?\bInfinity\b", ".inf", re.sub(r"\bNaN\b", ".nan", text))


def locations(data: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inside = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [here, *(place for key, value in inside for place in locations(value, (*here, key)))]


def replaced(data: Any, place: tuple[Any, ...], value: Any) -> Any:
    if not place:
        return value
    changed = copy.deepcopy(data)
    inner = changed
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    return changed


@UNHURRIED
@given(text=st.text(max_size=60))
@example(text="? [1, 2]\n: 3\n")
@example(text="? {a: b}\n: 3\n")
@example(text="a: &a [*a]\n")
@example(text="a: !!bool maybe\n")
@example(text="a: !!int many\n")
@example(text="a: !!python/object:os.system x\n")
@example(text="a: 2026-13-01\n")
@example(text="[" * 3000)
@example(text="{a: " * 3000)
@example(text="a: " + "[" * 1000 + "]" * 1000)
@example(text="\ud800")
@example(text="a: \x00")
@example(text="---\na: 1\n---\nb: 2\n")
def test_any_text_is_read_or_refused(tmp_path: Path, text: str) -> None:
    is_refused_or_read(tmp_path, text)


@UNHURRIED
@given(data=st.dictionaries(WORDS, DATA, max_size=6))
def test_any_data_is_read_or_refused(tmp_path: Path, data: Any) -> None:
    is_refused_or_read(tmp_path, as_yaml(data))


FULL = {
    **plain(SHIPPED / "smoke.yaml"),
    "pairs": {"against": "a"},
    "environments": [
        {"id": "E", "name": "n", "arguments": {"x": 1}, "releases": ["a"], "start": {"low": [0], "high": [1]}},
        {"id": "F", "coast": 1, "start": {"position": 0, "velocity": 0}, "steps": 3, "edits": {"a@b": "c"}},
    ],
    "releases": [
        {"id": "a", "requires": ["six"], "pins": ["numpy<2"], "python": "3.11", "series": "s", "edits": {"x": [1]}},
        {"package": "six", "versions": ">1", "with": ["numpy"], "id": "six-{version}", "exclude-newer": "2024-01-01"},
    ],
}


@UNHURRIED
@given(data=st.data(), value=DATA, explicit_only=st.booleans())
def test_a_matrix_with_anything_in_place_of_one_part_is_read_or_refused(
    tmp_path: Path, data: st.DataObject, value: Any, explicit_only: bool
) -> None:
    whole = {**FULL, "releases": FULL["releases"][:1]} if explicit_only else FULL
    place = data.draw(st.sampled_from(locations(whole)))
    is_refused_or_read(tmp_path, as_yaml(replaced(whole, place, value)))


@UNHURRIED
@given(data=st.data())
def test_a_matrix_with_characters_lost_or_inserted_is_read_or_refused(tmp_path: Path, data: st.DataObject) -> None:
    text = (SHIPPED / "smoke.yaml").read_text(encoding="utf-8")
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 12)))
    inserted = data.draw(st.text(alphabet="[]{}:,-?&*!|>'\"%@`#\n\t ab1", max_size=3))
    is_refused_or_read(tmp_path, text[:start] + inserted + text[end:])


def test_what_the_fuzzing_writes_is_yaml(tmp_path: Path) -> None:
    assert read(tmp_path, as_yaml(FULL)).matrix.releases[0].python == "3.11"
    loaded = YAML(typ="safe", pure=True).load(as_yaml({"a": math.inf, "b": -math.inf, "c": [None, True]}))
    assert loaded == {"a": math.inf, "b": math.inf, "c": [None, True]}
