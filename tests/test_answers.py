"""The file between the dumper and the orchestrator, written by the one and read by the other."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from audit import answers
from audit.answers import CellAnswer, DamagedAnswer
from audit.matrix import OUTPUTS
from audit.stimulus import Stimulus
from dumper import answers as dumper_answers
from dumper import record as dumper_record

UNHURRIED = settings(
    deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=200
)
STIMULUS = Stimulus(digest="d", payload=b"", trajectories=2, steps=3)
LAYOUT = {
    "kind": "state",
    "state_size": 2,
    "positions": 2,
    "quaternions": [],
    "reference": [0.0, 0.5],
    "action": {"type": "Discrete", "n": 2, "start": 0},
}
META = {"layout": LAYOUT, "steps": 6, "seconds": 0.25, "constants": {"gravity": "9.8"}}


def recording() -> dict[str, NDArray[Any]]:
    generator = np.random.default_rng(0)
    return {
        "imposed": generator.normal(size=(2, 2)),
        "state": generator.normal(size=(2, 3, 2)),
        "observation": generator.normal(size=(2, 3, 4)).astype(np.float32),
        "reward": generator.normal(size=(2, 3)),
        "terminated": generator.normal(size=(2, 3)) > 0,
        "truncated": np.zeros((2, 3), dtype=np.bool_),
        "structure": np.frombuffer(b"<f4(4,)", dtype=np.uint8),
    }


def write(path: Path, **changes: Any) -> Path:
    """A whole answer, but for the changes."""
    whole = {"status": "ok", "reason": "", "arrays": recording(), "meta": dict(META), "detail": "", **changes}
    dumper_answers.write(str(path), "E", dumper_answers.Answer(**whole))
    return path


def read(path: Path, environment: str = "E", stimulus: Stimulus | None = STIMULUS) -> CellAnswer:
    return answers.read(path, environment, stimulus)


def head(**changes: Any) -> dict[str, Any]:
    """What the description in the file begins with, but for the changes."""
    return {
        "format": 1,
        "status": "ok",
        "reason": "",
        "detail": "",
        "environment": "E",
        "arrays": sorted(recording()),
        **META,
        **changes,
    }


def write_raw(path: Path, description: Any, arrays: dict[str, Any] | None = None) -> Path:
    """A file that the dumper would not write."""
    text = description if isinstance(description, bytes) else json.dumps(description).encode()
    np.savez(path, meta=np.frombuffer(text, dtype=np.uint8), **(recording() if arrays is None else arrays))
    return path


# Whole


def test_an_answer_comes_back_as_it_was_written(tmp_path: Path) -> None:
    answer = read(write(tmp_path / "answer.npz"))
    assert (answer.status, answer.reason, answer.detail) == ("ok", "", "")
    assert {**answer.meta, "seconds": answer.seconds, "steps": answer.steps} == META
    assert set(answer.arrays) == {"imposed", "structure", *OUTPUTS}
    for name, array in recording().items():
        assert answer.arrays[name].dtype == array.dtype
        assert answer.arrays[name].shape == array.shape
        assert answer.arrays[name].tobytes() == array.tobytes()
    assert [path.name for path in tmp_path.iterdir()] == ["answer.npz"], "the temporary name is gone"


def test_both_sides_agree_on_format_and_outputs(tmp_path: Path) -> None:
    assert read(write_raw(tmp_path / "a.npz", head(format=dumper_answers.FORMAT))).status == "ok"
    assert dumper_record.OUTPUTS == OUTPUTS


@pytest.mark.parametrize("status", ["unavailable", "incomparable", "failed"])
def test_an_answer_without_arrays(tmp_path: Path, status: str) -> None:
    path = write(tmp_path / "a.npz", status=status, reason="why", arrays={}, meta={}, detail="Traceback: ü")
    answer = read(path)
    assert (answer.status, answer.reason, answer.detail) == (status, "why", "Traceback: ü")
    assert (answer.arrays, answer.meta) == ({}, {})


def test_a_probe_answers_with_a_layout(tmp_path: Path) -> None:
    answer = read(write(tmp_path / "a.npz", arrays={}, meta={"layout": LAYOUT}), stimulus=None)
    assert answer.meta["layout"] == LAYOUT


def test_what_is_not_a_number_may_be_recorded(tmp_path: Path) -> None:
    arrays = {**recording(), "reward": np.array([[np.nan, np.inf, -np.inf]] * 2)}
    assert np.isnan(read(write(tmp_path / "a.npz", arrays=arrays)).arrays["reward"][0, 0])


# Damaged


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(DamagedAnswer, match="cannot be read"):
        read(tmp_path / "absent.npz")
    with pytest.raises(DamagedAnswer):
        read(tmp_path)


def test_another_environment(tmp_path: Path) -> None:
    with pytest.raises(DamagedAnswer, match="something else"):
        read(write(tmp_path / "a.npz"), environment="F")


@pytest.mark.parametrize(
    "changes",
    [
        {"format": 2},
        {"format": None},
        {"status": "fine"},
        {"status": ["ok"]},
        {"arrays": ["state"]},
        {"arrays": None},
    ],
    ids=str,
)
def test_another_format(tmp_path: Path, changes: dict[str, Any]) -> None:
    with pytest.raises(DamagedAnswer):
        read(write_raw(tmp_path / "a.npz", head(**changes)))


@pytest.mark.parametrize("missing", ["format", "status", "reason", "detail", "environment", "arrays"])
def test_a_description_that_lacks_something(tmp_path: Path, missing: str) -> None:
    description = {name: value for name, value in head().items() if name != missing}
    with pytest.raises(DamagedAnswer):
        read(write_raw(tmp_path / "a.npz", description))


@pytest.mark.parametrize(
    "changes",
    [{"seconds": "soon"}, {"seconds": [1]}, {"steps": "many"}, {"steps": [6]}, {"steps": 10**30}],
    ids=str,
)
def test_numbers_that_the_store_could_not_keep(tmp_path: Path, changes: dict[str, Any]) -> None:
    with pytest.raises(DamagedAnswer):
        read(write_raw(tmp_path / "a.npz", head(**changes)))


@pytest.mark.parametrize(
    "text", [b"", b"{", b"[]", b"3", b"null", b"\xff\xfe", b"[" * 100_000], ids=lambda text: repr(text[:3])
)
def test_a_description_that_is_no_description(tmp_path: Path, text: bytes) -> None:
    with pytest.raises(DamagedAnswer):
        read(write_raw(tmp_path / "a.npz", text))


@pytest.mark.parametrize("missing", sorted(recording()))
def test_a_missing_array(tmp_path: Path, missing: str) -> None:
    arrays = {name: array for name, array in recording().items() if name != missing}
    with pytest.raises(DamagedAnswer):
        read(write(tmp_path / "a.npz", arrays=arrays))
    with pytest.raises(DamagedAnswer, match="something else"):
        read(write_raw(tmp_path / "a.npz", head(), arrays))


def test_an_array_too_many(tmp_path: Path) -> None:
    with pytest.raises(DamagedAnswer):
        read(write(tmp_path / "a.npz", arrays={**recording(), "more": np.zeros(3)}))


@pytest.mark.parametrize("status", ["unavailable", "incomparable", "failed"])
def test_arrays_where_nothing_was_recorded(tmp_path: Path, status: str) -> None:
    with pytest.raises(DamagedAnswer):
        read(write(tmp_path / "a.npz", status=status))


@pytest.mark.parametrize("name", sorted(recording()))
@pytest.mark.parametrize("shape", [(), (2,), (3, 3), (2, 4), (0, 0)])
def test_a_wrong_shape(tmp_path: Path, name: str, shape: tuple[int, ...]) -> None:
    if (name == "imposed" and shape[:1] == (2,)) or (name == "structure" and len(shape) == 1):
        return
    with pytest.raises(DamagedAnswer, match=name):
        read(write(tmp_path / "a.npz", arrays={**recording(), name: np.zeros(shape)}))


@pytest.mark.parametrize(
    ("name", "shape"),
    [("imposed", (2,)), ("imposed", (2, 5)), ("state", (2, 3)), ("state", (2, 3, 5)), ("reward", (2, 3, 1))],
)
def test_entries_that_do_not_fit_each_other(tmp_path: Path, name: str, shape: tuple[int, ...]) -> None:
    """The imposed states and the recorded ones have as many entries as the state; a reward is one number."""
    with pytest.raises(DamagedAnswer, match="shape"):
        read(write(tmp_path / "a.npz", arrays={**recording(), name: np.zeros(shape)}))


@pytest.mark.parametrize("dtype", ["S4", "U4", "c16", "M8[s]", "V8", [("x", "f8")]], ids=str)
def test_an_array_of_something_else_than_numbers(tmp_path: Path, dtype: Any) -> None:
    with pytest.raises(DamagedAnswer, match="reward"):
        read(write(tmp_path / "a.npz", arrays={**recording(), "reward": np.zeros((2, 3), dtype=dtype)}))


class Bomb:
    """Says whether it was unpickled."""

    exploded = False

    def __reduce__(self) -> tuple[Any, ...]:
        return setattr, (Bomb, "exploded", True)


def test_pickled_objects_are_never_unpickled(tmp_path: Path) -> None:
    objects = np.full((2, 3), None, dtype=object)
    objects[0, 0] = Bomb()
    with pytest.raises(DamagedAnswer):
        read(write(tmp_path / "a.npz", arrays={**recording(), "reward": objects}))
    path = tmp_path / "pickle.npz"
    with path.open("wb") as file:
        np.save(file, objects, allow_pickle=True)
    with pytest.raises(DamagedAnswer):
        read(path)
    assert not Bomb.exploded


@pytest.mark.parametrize(
    "layout",
    [
        None,
        {},
        [],
        "x",
        {**LAYOUT, "state_size": "two"},
        {**LAYOUT, "state_size": -1},
        {**LAYOUT, "state_size": 3},
        {**LAYOUT, "quaternions": [7]},
        {**LAYOUT, "quaternions": 3},
        {**LAYOUT, "reference": [0.0]},
        {**LAYOUT, "reference": None},
        {**LAYOUT, "action": 3},
        {**LAYOUT, "action": {}},
        {**LAYOUT, "action": {"type": "Box"}},
        {**LAYOUT, "action": {"type": "Discrete", "n": "x", "start": 0}},
        {**LAYOUT, "state_size": float("inf")},
    ],
    ids=str,
)
def test_a_layout_that_is_none(tmp_path: Path, layout: Any) -> None:
    with pytest.raises(DamagedAnswer):
        read(write(tmp_path / "a.npz", arrays={}, meta={"layout": layout}), stimulus=None)


def test_a_probe_without_a_layout(tmp_path: Path) -> None:
    with pytest.raises(DamagedAnswer):
        read(write(tmp_path / "a.npz", arrays={}, meta={}), stimulus=None)


def test_a_bare_array_is_no_answer(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    with path.open("wb") as file:
        np.save(file, np.zeros(3))
    with pytest.raises(DamagedAnswer):
        read(path)


def test_an_archive_of_something_else(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("meta", json.dumps(head()))
        archive.writestr("state.npy", b"nothing")
    with pytest.raises(DamagedAnswer):
        read(path)


def test_an_array_that_claims_more_than_there_is(tmp_path: Path) -> None:
    """A header with a huge shape must not be believed before the bytes are there."""
    header = io.BytesIO()
    shape = {"descr": "<f8", "fortran_order": False, "shape": (2, 3, 10**15)}
    np.lib.format.write_array_header_1_0(header, shape)
    path = write(tmp_path / "a.npz")
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, header.getvalue() if name == "state.npy" else content)
    with pytest.raises(DamagedAnswer):
        read(path)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return write(tmp_path_factory.mktemp("answers") / "a.npz").read_bytes()


def same_or_damaged(folder: Path, whole: bytes, damaged: bytes) -> None:
    """A damaged file is refused, unless the damage touched nothing that is read."""
    path = folder / "a.npz"
    path.write_bytes(damaged)
    try:
        answer = read(path)
    except DamagedAnswer:
        return
    assert answer.status == "ok"
    assert {**answer.meta, "seconds": answer.seconds, "steps": answer.steps} == META
    for name, array in recording().items():
        assert answer.arrays[name].tobytes() == array.tobytes()


@UNHURRIED
@given(length=st.integers(0, 10_000))
@example(length=0)
@example(length=4)
def test_a_file_cut_off_is_damaged(tmp_path: Path, whole: bytes, length: int) -> None:
    path = tmp_path / "a.npz"
    path.write_bytes(whole[: length % len(whole)])
    with pytest.raises(DamagedAnswer):
        read(path)


@UNHURRIED
@given(place=st.integers(0, 2**20), bit=st.integers(0, 7))
def test_a_flipped_bit_is_noticed_or_does_not_matter(tmp_path: Path, whole: bytes, place: int, bit: int) -> None:
    damaged = bytearray(whole)
    damaged[place % len(whole)] ^= 1 << bit
    same_or_damaged(tmp_path, whole, bytes(damaged))


@UNHURRIED
@given(place=st.integers(0, 2**20), patch=st.binary(min_size=1, max_size=8))
def test_overwritten_bytes_are_noticed_or_do_not_matter(tmp_path: Path, whole: bytes, place: int, patch: bytes) -> None:
    at = place % len(whole)
    same_or_damaged(tmp_path, whole, whole[:at] + patch + whole[at + len(patch) :])


@UNHURRIED
@given(content=st.binary(max_size=200))
@example(content=b"PK\x03\x04")
@example(content=b"PK\x05\x06" + bytes(18))
@example(content=b"\x93NUMPY\x01\x00")
@example(content=b"\x80\x04.")
def test_garbage_is_damaged(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.npz"
    path.write_bytes(content)
    with pytest.raises(DamagedAnswer):
        read(path)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@UNHURRIED
@given(name=st.sampled_from(sorted(head())), value=JSON)
def test_anything_in_the_description_is_believed_or_damaged(tmp_path: Path, name: str, value: Any) -> None:
    path = write_raw(tmp_path / "a.npz", head(**{name: value}))
    try:
        answer = read(path)
    except DamagedAnswer:
        return
    assert answer.status in {"ok", "unavailable", "incomparable", "failed"}
    assert answer.seconds >= 0
    assert answer.steps >= 0
