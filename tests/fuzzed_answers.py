"""Answers as no dumper would write them: whole ones with parts of the archive, of its arrays, of its JSON replaced."""

from __future__ import annotations

import io
import json
import struct
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from audit.asked.matrix import OUTPUTS
from audit.comparisons import comparing
from audit.dumps import dumping
from audit.failures import Status
from audit.planning.plan import Recording
from audit.processes import answers
from audit.processes.answer_file import DamagedAnswer
from audit.processes.answers import CellAnswer
from audit.processes.dumper_process import CellOutcome
from audit.stimuli.layout import Layout
from audit.storage.records import Examination, ProbeRecord
from audit.storage.store import Store
from tests.fuzzed_matrices import is_told_in_a_sentence
from tests.planned_cells import planned
from tests.written_answers import STIMULUS, head, recording

Parts = list[tuple[str, bytes]]
"""Names and contents of an archive, in order; a name may be there twice."""

HUGE = 2**26
"""Bytes of an array that is small when compressed."""


def npy(array: NDArray[Any]) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


def with_header(
    text: bytes, *, version: bytes = b"\x01\x00", length: int | None = None, rest: bytes = bytes(64)
) -> bytes:
    size = len(text) if length is None else length
    packed = struct.pack("<H", size % 2**16) if version == b"\x01\x00" else struct.pack("<I", size)
    return b"\x93NUMPY" + version + packed + text + rest


def _header(descr: str, shape: str, order: str = "False") -> bytes:
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}}}\n".encode()


SHAPES = [
    "()",
    "(0,)",
    "(-1,)",
    "(2, 3, -1)",
    "(10**15,)",
    "(2, 3, 1000000000000000)",
    "(2, 3)",
    "(True,)",
    "(1.5,)",
    "[2]",
    "('a',)",
    "(" + "1," * 70 + ")",
    "(0, 9223372036854775807)",
    "(4294967296, 4294967296)",
    "None",
]
DESCRS = [
    "'<f8'",
    "'|O'",
    "'O'",
    "'<M8[ns]'",
    "'<U5'",
    "'V8'",
    "'<c16'",
    "'<f16'",
    "[('a', '<f8')]",
    "'>f8'",
    "''",
    "'<f0'",
    "'<f99999999'",
    "__import__('os')",
    "('<f8', (2,))",
    "'<U999999999'",
    "None",
    "'?'",
    "'<f2'",
    "'<u8'",
    "'e'",
]
HEADERS = st.builds(
    with_header,
    st.one_of(
        st.builds(_header, st.sampled_from(DESCRS), st.sampled_from(SHAPES), st.sampled_from(["False", "True", "2"])),
        st.sampled_from([b"", b"{", b"{}" + b" " * 70_000, b"(" * 5000, b"\xff\xfe", b"{'descr': '<f8'}", b"9" * 5000]),
        st.binary(max_size=40),
    ),
    version=st.sampled_from([b"\x01\x00", b"\x02\x00", b"\x03\x00", b"\x09\x09"]),
    length=st.one_of(st.none(), st.integers(0, 2**32 - 1)),
    rest=st.binary(max_size=64),
)
DTYPES = ["<f8", ">f8", "f2", "f4", "g", "i1", "u8", "?", "c16", "U3", "S3", "O", "M8[s]", "V3", "i8,f4"]
ARRAYS = st.builds(
    lambda dtype, shape, fill: npy(np.full(shape, fill, dtype=dtype) if fill else np.zeros(shape, dtype)),
    st.sampled_from(DTYPES[:8]),
    st.sampled_from(
        [(), (0,), (2, 3), (2, 3, 2), (4, 1), (4, 1, 2), (8, 1), (8, 1, 2), (2, 2), (4, 2), (2, 3, 0), (2, 4)]
    ),
    st.sampled_from([0, 1]),
) | st.sampled_from(DTYPES[8:]).map(lambda dtype: npy(np.zeros((2, 3), dtype)))
SPECIAL = st.sampled_from([np.nan, np.inf, -np.inf, -0.0, 5e-324, 1.7e308, -1.7e308])
NAMES = st.one_of(
    st.sampled_from(
        [
            "../../x.npy",
            "/etc/passwd.npy",
            "meta.npy",
            "meta",
            "a\x01.npy",
            "é.npy",
            ".npy",
            "",
            "x" * 60_000,
            "a/b.npy",
            "horizon.state.npy",
            "structure.npy",
            "forced.reward",
            "..\\x.npy",
            "nudged.imposed.npy",
            "'; DROP TABLE x;.npy",
        ]
    ),
    st.text(max_size=5),
)
JSON = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.text(max_size=4),
        st.sampled_from(
            [2**62, 2**63, 2**64, 10**400, -1, 1e308, float("nan"), "\x00", "\ud800", "x" * 50_000, "\x1b[2J", "9.8"]
        ),
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)

GENERATOR = np.random.default_rng(1)
TASKS: dict[str, tuple[dict[str, NDArray[Any]], dict[str, Any]]] = {
    "dump": (recording(), {}),
    "probe": ({}, {}),
    "bank": (
        {
            "states": GENERATOR.normal(size=(3, 2)),
            "source": np.zeros(3, np.uint8),
            "kept": np.arange(3),
            "acting": np.ones((3, 2), np.bool_),
        },
        {"features": ["contact", "limit"]},
    ),
    "anatomy": (
        {"constant.mass": np.ones(2), "constant.gravity": np.ones(3)},
        {"names": {"mass": ["a", "b"], "gravity": None}, "texts": {"solver": "Newton"}},
    ),
    "stages": (
        {
            "00.forces.qfrc": np.ones((2, 3)),
            "00.contact.count": np.array([1, 2]),
            "00.contact.pairs": np.ones((2, 2, 4)),
        },
        {
            "order": ["00.forces.qfrc", "00.contact.count", "00.contact.pairs"],
            "counts": {"00.contact.pairs": "00.contact.count"},
            "dtypes": {},
            "lines": {},
            "names": {"qfrc": ["a", "b", "c"]},
            "geoms": ["floor"],
            "left_out": {"x": 1},
            "substeps": 2,
            "recorded": 1,
        },
    ),
    "registry": ({}, {"ids": ["A-v0", "B-v1"]}),
}


@st.composite
def contents(draw: st.DrawFn) -> tuple[str, bytes]:
    """A task and the bytes that answer it."""
    task = draw(st.sampled_from(["dump", "dump", "dump", *TASKS]))
    arrays, meta = TASKS[task]
    description: Any = head(arrays=sorted(arrays), **meta)
    parts = [(f"{name}.npy", npy(array)) for name, array in arrays.items()]
    for _ in range(draw(st.integers(0, 2))):
        _mutate_arrays(draw, parts)
    told = sorted({name.removesuffix(".npy") for name, _ in parts})
    if draw(st.booleans()):
        description["arrays"] = told  # so that the mistake is met further on
    text = _mutated_json(draw, description)
    parts.insert(draw(st.sampled_from([0, len(parts)])), ("meta.npy", npy(np.frombuffer(text, np.uint8))))
    return task, _mutated_bytes(draw, _archive(draw, parts))


def _mutate_arrays(draw: st.DrawFn, parts: Parts) -> None:
    if not parts:
        parts.append((draw(NAMES), draw(st.one_of(ARRAYS, HEADERS))))
        return
    place = draw(st.integers(0, len(parts) - 1))
    name, content = parts[place]
    kind = draw(
        st.sampled_from(["array", "array", "special", "special", "header", "lose", "rename", "double", "cut", "huge"])
    )
    if kind == "array":
        parts[place] = (name, draw(ARRAYS))
    elif kind == "special":
        parts[place] = (name, _with_special(content, draw(SPECIAL)))
    elif kind == "header":
        parts[place] = (name, draw(HEADERS))
    elif kind == "lose":
        del parts[place]
    elif kind == "rename":
        parts[place] = (draw(NAMES), content)
    elif kind == "double":
        parts.append((name, draw(st.one_of(st.just(content), ARRAYS))))
    elif kind == "cut":
        parts[place] = (name, content[: draw(st.integers(0, len(content)))])
    elif kind == "huge" and draw(st.integers(0, 30)) == 0:
        parts[place] = (name, with_header(_header("'|b1'", f"({HUGE},)"), rest=bytes(HUGE)))


def _with_special(content: bytes, value: float) -> bytes:
    """Somewhere not a number, or as large as one can be."""
    try:
        array = np.load(io.BytesIO(content), allow_pickle=False).copy()
    except Exception:  # whatever the reader of npy raises on what was done to it before
        return content
    if array.dtype.kind == "f" and array.size:
        with np.errstate(all="ignore"):
            array.flat[array.size // 2] = value
    return npy(array)


def _mutated_json(draw: st.DrawFn, description: dict[str, Any]) -> bytes:
    for _ in range(draw(st.integers(0, 2))):
        inner = description
        name = draw(st.sampled_from(sorted(description)))
        if isinstance(inner[name], dict) and inner[name] and draw(st.booleans()):
            inner = inner[name] = dict(inner[name])
            name = draw(st.sampled_from(sorted(inner)))
        inner[name] = draw(JSON)
    text = json.dumps(description).encode()
    kind = draw(st.sampled_from(["whole"] * 8 + ["bom", "utf-16", "deep", "double", "cut", "invalid", "nothing"]))
    return {
        "whole": text,
        "bom": b"\xef\xbb\xbf" + text,
        "utf-16": text.decode().encode("utf-16"),
        "deep": text[:-1] + b', "deep": ' + b"[" * 5000 + b"]" * 5000 + b"}",
        "double": text[:-1] + b', "status": "failed", "seconds": 1e999}',
        "cut": text[: len(text) // 2],
        "invalid": text.replace(b"E", b"\xff\xfe"),
        "nothing": b"",
    }[kind]


def _archive(draw: st.DrawFn, parts: Parts) -> bytes:
    large = any(len(content) > 2**20 for _, content in parts)
    ways = [zipfile.ZIP_STORED] * 4 + [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]
    way = zipfile.ZIP_DEFLATED if large else draw(st.sampled_from(ways))
    file = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(file, "w", way) as archive:
        warnings.simplefilter("ignore")  # a name that is there twice
        for name, content in parts:
            archive.writestr(zipfile.ZipInfo(name or "x"), content, compress_type=way)
    return file.getvalue()


def _mutated_bytes(draw: st.DrawFn, whole: bytes) -> bytes:
    kind = draw(st.sampled_from(["whole"] * 6 + ["cut", "flip", "flip", "central", "before", "after"]))
    if kind == "cut":
        return whole[: draw(st.integers(0, len(whole)))]
    if kind == "before":
        return draw(st.binary(max_size=20)) + whole
    if kind == "after":
        return whole + draw(st.binary(max_size=20))
    changed = bytearray(whole)
    if kind in ("flip", "central"):  # sizes, flags and places stand in the directory at the end
        start = max(0, whole.find(b"PK\x01\x02")) if kind == "central" else 0
        for _ in range(draw(st.integers(1, 4))):
            changed[draw(st.integers(start, len(whole) - 1))] = draw(st.integers(0, 255))
    return bytes(changed)


def answer_is_read_or_damaged(path: Path, store: Store, task: str, content: bytes) -> bool:
    """Whether it is believed; then it can be stored and compared, or seen to be what it is."""
    path.write_bytes(content)
    try:
        answer = answers.read(path, task, "E", STIMULUS if task == "dump" else None, rows=2)
    except DamagedAnswer as error:
        is_told_in_a_sentence(error)
        return False
    for text in (answer.reason, answer.detail):
        text.encode("utf-8")
    if task == "dump":
        is_stored_and_compared(store, answer)
    elif task == "probe" and answer.status == "ok":
        store.put_probe("key", ProbeRecord.of(answer))
        found = store.probe("key")
        assert found is not None
        assert Layout.from_json(found.layout) == Layout.from_json(answer.meta["layout"])
    elif answer.status == "ok":
        found_out = Examination(status=Status.OK, reason="", meta=answer.meta, arrays=answer.arrays)
        store.explanations.put_examination("key", found_out)
        assert store.explanations.examination("key") is not None
    return True


def is_stored_and_compared(store: Store, answer: CellAnswer) -> None:
    records = [
        dumping.keep_all(store, [came(str(number), each)])[0]
        for number, each in enumerate((CellAnswer(status=Status.OK, reason="", arrays=recording()), answer))
    ]
    assert store.dumps(["1"])["1"] == records[1]
    first, second = (record.behaviour for record in records)
    if first is not None and second is not None and first != second:
        pair = comparing.ordered(first, second)
        comparing.compare(store, [pair], OUTPUTS, "fuzz")
        assert pair in store.comparisons.compared("fuzz")


def came(key: str, answer: CellAnswer) -> dumping.Arrival:
    outcome = CellOutcome(release="a", environment="E", label="E", result=answer, seconds=0.0, machine="here")
    return dumping.Arrival(
        key=key, wanted=Recording(cell=planned("a"), stimulus=STIMULUS), outcome=outcome, answer=answer
    )
