"""The file between the dumper and the orchestrator, damaged in any way."""

from __future__ import annotations

import fcntl
import io
import json
import os
import re
import signal
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from audit.processes import answer_file
from audit.processes.answer_file import DamagedAnswer
from tests.written_answers import META, head, read, recording, write, write_raw

UNHURRIED = settings(
    deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=100
)


class Bomb:
    """Says whether it was unpickled."""

    exploded = False

    def __reduce__(self) -> tuple[Any, ...]:
        return setattr, (Bomb, "exploded", True)


def test_pickled_objects_are_never_unpickled(tmp_path: Path) -> None:
    objects = np.full((2, 3), None, dtype=object)
    objects[0, 0] = Bomb()
    with pytest.raises(DamagedAnswer):
        read(write(tmp_path / "a.npz", arrays={**recording(), "horizon.reward": objects}))
    path = tmp_path / "pickle.npz"
    with path.open("wb") as file:
        np.save(file, objects, allow_pickle=True)
    with pytest.raises(DamagedAnswer):
        read(path)
    assert not Bomb.exploded


def test_what_was_looked_at_is_what_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that the dumper left writes to the file at the worst moment: right after it was found to be good."""
    path = write(tmp_path / "a.npz")
    check = answer_file._check_members

    def check_and_spoil(members: list[zipfile.ZipInfo]) -> None:
        check(members)
        path.write_bytes(b"x" * path.stat().st_size)

    monkeypatch.setattr(answer_file, "_check_members", check_and_spoil)
    found = read(path)
    assert path.read_bytes().strip(b"x") == b""
    assert all(np.array_equal(found.arrays[name], array) for name, array in recording().items())


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
            archive.writestr(name, header.getvalue() if name == "horizon.state.npy" else content)
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
    assert answer.status in {"ok", "unavailable", "incomparable", "nondeterministic", "raised"}
    assert answer.seconds >= 0
    assert answer.steps >= 0


# What a hostile dumper would put there


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    link = tmp_path / "link.npz"
    link.symlink_to(write(tmp_path / "a.npz"))
    with pytest.raises(DamagedAnswer):
        read(link)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.npz")
    with pytest.raises(DamagedAnswer, match="not a file"):
        read(tmp_path / "pipe.npz")


@pytest.fixture
def unasked() -> Iterator[None]:
    """Who holds a lease is asked by a signal to give it up, and ended by it."""
    before = signal.signal(signal.SIGIO, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGIO, before)


@pytest.mark.usefixtures("unasked")
def test_a_lease_is_not_waited_for_and_is_not_the_machines_fault(tmp_path: Path) -> None:
    path = write(tmp_path / "a.npz")
    with path.open("r+b") as file:
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        with pytest.raises(DamagedAnswer, match="held by a lease"):
            read(path)


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    path.touch()
    os.truncate(path, answer_file.LARGEST_BYTES + 1)
    with pytest.raises(DamagedAnswer, match="larger than 268435456 bytes"):
        read(path)


def test_what_is_packed_is_not_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez_compressed(path, meta=np.zeros(2**20, np.uint8))
    with pytest.raises(DamagedAnswer, match="packed"):
        read(path)


@pytest.mark.parametrize("shape", ["(1099511627776,)", "(-1,)", "(1048576, 1048576)", "(3,)"])
def test_a_header_is_held_against_what_follows_it(tmp_path: Path, shape: str) -> None:
    text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    header = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("meta.npy", header + bytes(16))
    with pytest.raises(DamagedAnswer, match=r"bytes follow|cannot be read"):
        read(tmp_path / "a.npz")


def test_a_list_of_contents_is_not_read_when_it_is_too_long(tmp_path: Path) -> None:
    path = write(tmp_path / "a.npz")
    data = bytearray(path.read_bytes())
    data[-10:-6] = (2**31).to_bytes(4, "little")
    path.write_bytes(data)
    with pytest.raises(DamagedAnswer, match="more names"):
        read(path)


def test_arrays_by_columns_come_back_as_they_were(tmp_path: Path) -> None:
    arrays = recording()
    arrays["horizon.reward"] = np.asfortranarray(arrays["horizon.reward"])
    found = read(write(tmp_path / "a.npz", arrays=arrays)).arrays["horizon.reward"]
    assert found.tobytes() == arrays["horizon.reward"].tobytes()


def test_no_code_for_a_terminal_comes_through(tmp_path: Path) -> None:
    evil = "\x1b[2J\x1b]0;title\x07\x1b]8;;http://x\x1b\\link\u202e\u061c\u2067\x9b31m"
    path = write(
        tmp_path / "a.npz", status="failed", reason=evil, detail=evil, arrays={}, meta={"names": {evil: [evil]}}
    )
    answer = read(path)
    for text in (answer.reason, answer.detail, json.dumps(answer.meta, ensure_ascii=False)):
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]", text)
    assert "link" in answer.reason
    assert "title" not in answer.reason


def test_a_name_with_codes_is_refused(tmp_path: Path) -> None:
    arrays = {**recording(), "\x1b[2J": np.zeros(3)}
    with pytest.raises(DamagedAnswer, match="proper name"):
        read(write(tmp_path / "a.npz", arrays=arrays))
