"""A few seconds of the fuzzing, and everything that it ever found."""

from __future__ import annotations

import io
import resource
import sys
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from audit.asked import matrix_file, yaml_lines, yaml_models
from audit.errors import MatrixError, UsageError
from audit.failures import Status
from audit.processes.answer_file import DamagedAnswer
from audit.processes.answers import CellAnswer
from audit.storage.store import Store
from tests import fuzz as fuzz_program
from tests import fuzzed_answers, fuzzed_matrices
from tests.fuzz import LEAST, fuzz, within
from tests.written_answers import read, recording, write
from tests.written_matrices import SMALLEST, plain, written

SECONDS = 1.0


def test_matrices_are_read_or_refused(tmp_path: Path) -> None:
    strategy = fuzzed_matrices.contents(fuzzed_matrices.MATRICES)
    check = fuzzed_matrices.matrix_is_read_or_refused
    assert fuzz(strategy, lambda content: check(tmp_path, content), seconds=SECONDS).total() >= LEAST


def test_laws_are_read_or_refused(tmp_path: Path) -> None:
    strategy = fuzzed_matrices.contents(fuzzed_matrices.LAWS)
    check = fuzzed_matrices.laws_are_read_or_refused
    assert fuzz(strategy, lambda content: check(tmp_path, content), seconds=SECONDS).total() >= LEAST


def test_answers_are_read_or_damaged(tmp_path: Path, store: Store) -> None:
    check = fuzzed_answers.answer_is_read_or_damaged
    found = fuzz(fuzzed_answers.contents(), lambda both: check(tmp_path / "a.npz", store, *both), seconds=SECONDS)
    assert found.total() >= LEAST


def test_each_reader_is_fuzzed_for_as_long_as_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[float] = []

    def fuzzed(*_: object, seconds: float, **__: object) -> Counter[str]:
        given.append(seconds)
        return Counter({"read": 1})

    monkeypatch.setattr(fuzz_program, "fuzz", fuzzed)
    monkeypatch.setattr(resource, "setrlimit", lambda *_: None)  # which would hold for all later tests here
    monkeypatch.setattr(sys, "argv", ["tests.fuzz", "--seconds", "7"])
    fuzz_program.main()
    assert given == [7.0, 7.0, 7.0]


def test_the_fuzzing_notices_what_is_neither_read_nor_refused() -> None:
    def crash(content: bytes) -> bool:
        if b"name" in content:
            raise KeyError("name")
        return True

    with pytest.raises(KeyError):
        fuzz(fuzzed_matrices.structured(fuzzed_matrices.MATRICES), crash, seconds=60)


def test_the_fuzzing_notices_what_takes_too_long() -> None:
    def endless() -> None:
        with within(1):
            while True:
                pass

    with pytest.raises(AssertionError, match="more than 1 seconds"):
        endless()


# Found by it


def test_aliases_of_aliases_are_not_written_out(tmp_path: Path) -> None:
    with pytest.raises(MatrixError, match="more than 200000 parts"):
        matrix_file.read(written(tmp_path, SMALLEST + fuzzed_matrices.BOMB))


def test_an_anchor_may_be_given_anew(tmp_path: Path) -> None:
    twice = SMALLEST + "description: &a x\nbaseline: &a a\n"
    assert matrix_file.read(written(tmp_path, twice)).matrix.baseline == "a", "and nothing is warned of"


def test_yaml_of_another_version_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MatrixError, match="version of YAML"):
        matrix_file.read(written(tmp_path, SMALLEST + "baseline:\n%YAML 9.9\n---\na: 1\n"))


def test_an_enormous_file_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "matrix.yaml"
    with path.open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(UsageError, match=f"larger than {yaml_models.LARGEST_BYTES} bytes"):
        matrix_file.read(path)


@pytest.mark.parametrize("text", [r'"\ud800": 1', r'name: "x\udfff"'])
def test_half_a_character_is_refused_in_words_that_can_be_printed(tmp_path: Path, text: str) -> None:
    with pytest.raises(MatrixError, match="cannot be read") as caught:
        matrix_file.read(written(tmp_path, text))
    str(caught.value).encode("utf-8")


def laws(**changes: Any) -> bytes:
    data = {**plain(fuzzed_matrices.LAWS[-1]), "variables": {"c": "state[0]", "s": "state[1]"}, "relations": []}
    data |= {"parameters": {"g": 1}, "laws": {"law": {"vanishes": "g*c + s"}}, **changes}
    return fuzzed_matrices.as_yaml(data).encode()


@pytest.mark.parametrize("number", ["1e999999999", "-1e-999999999", "1e4000", 10**400, "9" * 5000, "1e-400"])
def test_a_constant_that_nothing_computes_with_is_refused_at_once(tmp_path: Path, number: Any) -> None:
    with within(20):
        assert not fuzzed_matrices.laws_are_read_or_refused(tmp_path, laws(parameters={"g": number}))


@pytest.mark.parametrize("number", [0, 0.0, "0e5", "1/3", "9.8", 1e-300, -2])
def test_other_constants_are_taken(tmp_path: Path, number: Any) -> None:
    given = laws(parameters={"g": number})
    assert fuzzed_matrices.laws_are_read_or_refused(tmp_path, given)


@pytest.mark.parametrize(
    "law",
    [
        "((((c+s)**12)**12)**12)**12",
        "(c+1)**12" + "*(s+1)**12" * 20,
        "(((((9**12)**12)**12)**12)**12)**12*c",
        "9e307**12*c",
        "c/1e-300*1e300",
        "1e-999999999*c",
        f"0.{'9' * 5000}*c",
    ],
)
def test_a_law_that_cannot_be_multiplied_out_is_refused_at_once(tmp_path: Path, law: str) -> None:
    with within(20):
        assert not fuzzed_matrices.laws_are_read_or_refused(tmp_path, laws(laws={"law": {"vanishes": law}}))


def test_of_very_many_and_very_long_problems_the_first_are_told(tmp_path: Path) -> None:
    wrong = SMALLEST + f"pins: [{', '.join(['[]'] * 2000)}]\noutputs: [{'x' * 50_000}]\n"
    with pytest.raises(MatrixError, match=r"and 195\d more") as caught:
        matrix_file.read(written(tmp_path, wrong))
    assert len(caught.value.problems) > 2000
    assert len(str(caught.value)) < 60_000


@pytest.mark.parametrize("name", ["", "a b", "lambda", "x:3", "1"])
def test_a_variable_without_a_proper_name_is_refused(tmp_path: Path, name: str) -> None:
    given = laws(variables={"c": "state[0]", "s": "state[1]", name: "state[2]"})
    assert not fuzzed_matrices.laws_are_read_or_refused(tmp_path, given)


def test_a_small_file_that_is_large_when_unpacked_is_damaged(tmp_path: Path) -> None:
    path = write(tmp_path / "a.npz")
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "|u1", "fortran_order": False, "shape": (2**27,)})
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
        with archive.open("bomb.npy", "w") as member:
            member.write(header.getvalue())
            for _ in range(2**7):
                member.write(bytes(2**20))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(DamagedAnswer):
        read(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2**26 / 1024


def test_a_long_name_in_an_answer_is_not_told_whole(tmp_path: Path) -> None:
    arrays = {**recording(), "x" * 60_000: np.zeros(1), "\x1b[2J" + "y" * 60_000: np.zeros(1)}
    with pytest.raises(DamagedAnswer, match="holds") as caught:
        read(write(tmp_path / "a.npz", arrays=arrays))
    assert len(str(caught.value)) < 5000
    assert "\x1b" not in str(caught.value)


def test_a_number_as_large_as_can_be_is_compared_without_a_warning(store: Store) -> None:
    arrays = recording()
    arrays["reset.state"][1, 0] = 1.7e308
    fuzzed_answers.is_stored_and_compared(store, CellAnswer(status=Status.OK, reason="", arrays=arrays))


def test_ten_thousand_releases_are_below_every_limit() -> None:
    rows = "\n".join(f'  - {{id: sim-{number}, requires: ["simulator=={number}.0.0"]}}' for number in range(10_000))
    assert len(rows) < yaml_models.LARGEST_BYTES
    assert yaml_lines.MOST_PARTS > 10_000 * 6
