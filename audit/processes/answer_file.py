"""The arrays of an answer, read from a file that code under audit wrote: looked at from outside before any is loaded.

It is read once, so that nobody can change it after it was looked at. Every size that it claims is held against what is
there, so that nothing is unpacked, and no more memory is taken than a few times its length.
"""

from __future__ import annotations

import io
import math
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from audit import folders
from audit.failures import printable

LARGEST_BYTES = 2**28
"""Of one answer. The largest in a shipped matrix is under 20 MB; one beyond this is a fault, not a recording."""

MOST_ENTRIES = 2**26
"""Of all arrays of one answer. Small integers become numbers of eight bytes where they are compared, some of them
several times over: so many take about as much memory as the rest of an audit. A film of 2,000 steps fits."""

MOST_ARRAYS = 10_000
"""In one answer: twice as many as there may be quantities of a step."""

LONGEST_NAME = 1000

LARGEST_DIRECTORY = 2**24
"""Bytes of a zip's list of contents: more than so many names can take, and it is read whole."""

KINDS = "biuf"
"""Booleans, integers, floats: nothing else is ever recorded."""

Arrays = dict[str, NDArray[Any]]

_END = b"PK\x05\x06"
_END_64 = b"PK\x06\x07"
_END_BYTES, _END_64_BYTES = 22, 20


class DamagedAnswer(Exception):
    """The file is missing, cut off, of another format, or not what was asked for."""


def arrays(path: Path) -> Arrays:
    """Read all arrays; raise :class:`DamagedAnswer` where the file is anything but an uncompressed npz of numbers."""
    content = _read(path)
    _check_end(content[-_END_BYTES - _END_64_BYTES :])
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = archive.infolist()
        _check_members(members)
        found = {info.filename.removesuffix(".npy"): _array(archive, info) for info in members}
    if sum(array.size for array in found.values()) > MOST_ENTRIES:
        raise DamagedAnswer(f"the answer holds more than {MOST_ENTRIES} numbers")
    return found


def _read(path: Path) -> bytes:
    try:
        return folders.read_plain(path, LARGEST_BYTES)
    except folders.NotPlain:
        raise DamagedAnswer(f"the answer is larger than {LARGEST_BYTES} bytes, or not a file") from None
    except BlockingIOError:  # else the machine would be taken for exhausted, by the same number
        raise DamagedAnswer("the answer is held by a lease, and would have to be waited for") from None


def _check_end(end: bytes) -> None:
    """Check how long the list of contents is before it is read."""
    if end[-_END_BYTES:-18] != _END or end[-2:] != b"\0\0" or end[:-_END_BYTES].startswith(_END_64):
        raise DamagedAnswer("the answer does not end as an npz of a dumper does")
    if int.from_bytes(end[-10:-6], "little") > LARGEST_DIRECTORY:
        raise DamagedAnswer("the answer holds more names than anything could be recorded under")


def _check_members(members: list[zipfile.ZipInfo]) -> None:
    names = [info.filename for info in members]
    if len(names) > MOST_ARRAYS or len(set(names)) < len(names):
        raise DamagedAnswer(f"the answer holds {len(names)} arrays, or some of them twice")
    for info in members:
        if info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size or info.flag_bits & 1:
            raise DamagedAnswer("the answer is packed: a dumper writes it as it is")
        if len(info.filename) > LONGEST_NAME or printable(info.filename) != info.filename:
            raise DamagedAnswer("the answer holds an array without a proper name")
    if sum(info.file_size for info in members) > LARGEST_BYTES:
        raise DamagedAnswer(f"the answer unpacks to more than {LARGEST_BYTES} bytes")


def _array(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> NDArray[Any]:
    """One array, after its header has been held against the bytes that follow it."""
    with archive.open(info) as file:
        version = npy.read_magic(file)
        read_header = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}[version]
        shape, by_columns, dtype = read_header(file)
        if dtype.kind not in KINDS:
            raise DamagedAnswer(f"{info.filename.removesuffix('.npy')} has the dtype {dtype}")
        held = info.file_size - file.tell()
        if any(entries < 0 for entries in shape) or math.prod(shape) * dtype.itemsize != held:
            raise DamagedAnswer(
                f"{info.filename.removesuffix('.npy')} says {shape} of {dtype}, and {held} bytes follow"
            )
        flat = np.frombuffer(bytearray(file.read()), dtype=dtype)
    return flat.reshape(shape[::-1]).transpose() if by_columns else flat.reshape(shape)


def without_codes(value: Any) -> Any:
    """What was read from JSON, without anything in it that a terminal would obey."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {printable(key): without_codes(each) for key, each in value.items()}
    return [without_codes(each) for each in value] if isinstance(value, list) else value
