"""What the orchestrator believes of an answer, and what it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from audit.comparisons.comparing import STEP_OUTPUTS
from audit.processes import answer_file, answers
from audit.processes.answer_file import DamagedAnswer
from audit.stimuli.stimulus import Stimulus
from dumper import answers as dumper_answers
from dumper import record as dumper_record
from tests.fuzzed_answers import came
from tests.written_answers import BATCHES, LAYOUT, META, head, read, read_probe, recording, write, write_raw

WITHOUT_ARRAYS = ("unavailable", "incomparable", "nondeterministic")

# Whole


def test_an_answer_comes_back_as_it_was_written(tmp_path: Path) -> None:
    answer = read(write(tmp_path / "answer.npz"))
    assert (answer.status, answer.reason, answer.detail) == ("ok", "", "")
    assert {**answer.meta, "seconds": answer.seconds, "steps": answer.steps} == META
    assert set(answer.arrays) == set(recording())
    for name, array in recording().items():
        assert answer.arrays[name].dtype == array.dtype
        assert answer.arrays[name].shape == array.shape
        assert answer.arrays[name].tobytes() == array.tobytes()
    assert [path.name for path in tmp_path.iterdir()] == ["answer.npz"], "the temporary name is gone"


def test_both_sides_agree_on_format_and_outputs(tmp_path: Path) -> None:
    assert read(write_raw(tmp_path / "a.npz", head(format=dumper_answers.FORMAT))).status == "ok"
    assert dumper_record.OUTPUTS == STEP_OUTPUTS
    assert set(dumper_record.BATCHES) == set(BATCHES)


@pytest.mark.parametrize(("said", "status"), [*((each, each) for each in WITHOUT_ARRAYS), ("failed", "raised")])
def test_an_answer_without_arrays(tmp_path: Path, said: str, status: str) -> None:
    path = write(tmp_path / "a.npz", status=said, reason="why", arrays={}, meta={}, detail="Traceback: ü")
    answer = read(path)
    assert (answer.status, answer.reason, answer.detail) == (status, "why", "Traceback: ü")
    assert (answer.arrays, answer.meta) == ({}, {})


def test_a_probe_answers_with_a_layout(tmp_path: Path) -> None:
    answer = read_probe(write(tmp_path / "a.npz", arrays={}, meta={"layout": LAYOUT}))
    assert answer.meta["layout"] == LAYOUT


def test_what_is_not_a_number_may_be_recorded(tmp_path: Path) -> None:
    arrays = {**recording(), "horizon.reward": np.array([[np.nan, np.inf, -np.inf]] * 2)}
    assert np.isnan(read(write(tmp_path / "a.npz", arrays=arrays)).arrays["horizon.reward"][0, 0])


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


@pytest.mark.parametrize("status", [*WITHOUT_ARRAYS, "failed"])
def test_arrays_where_nothing_was_recorded(tmp_path: Path, status: str) -> None:
    with pytest.raises(DamagedAnswer):
        read(write(tmp_path / "a.npz", status=status))


@pytest.mark.parametrize("name", sorted(recording()))
@pytest.mark.parametrize("shape", [(), (5,), (3, 3), (3, 5, 7), (0, 0)])
def test_a_wrong_shape(tmp_path: Path, name: str, shape: tuple[int, ...]) -> None:
    if name in ("structure", "spaces") and len(shape) == 1:
        return
    with pytest.raises(DamagedAnswer, match=r"has the shape|holds"):
        read(write(tmp_path / "a.npz", arrays={**recording(), name: np.zeros(shape)}))


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("horizon.state", (2, 3)),
        ("horizon.state", (2, 3, 5)),
        ("forced.state", (4, 1)),
        ("nudged.observation", (8, 1, 3)),
        ("forced.reward", (4, 1, 1)),
        ("nudged.reward", (4, 1)),
        ("reset.state", (3, 2)),
        ("reset.state", (2, 2, 1)),
        ("reset.observation", (1, 4)),
        ("horizon.imposed", (2,)),
        ("horizon.imposed", (2, 5)),
        ("forced.imposed", (4, 3)),
    ],
)
def test_entries_that_do_not_fit_each_other(tmp_path: Path, name: str, shape: tuple[int, ...]) -> None:
    """The imposed states and the recorded ones have as many entries as the state; a reward is one number."""
    with pytest.raises(DamagedAnswer, match="shape"):
        read(write(tmp_path / "a.npz", arrays={**recording(), name: np.zeros(shape)}))


def test_what_the_stimulus_did_not_ask_for_is_not_answered(tmp_path: Path) -> None:
    path = write(tmp_path / "a.npz")
    for batches, resets in (({"horizon": (2, 3)}, 2), (BATCHES, 0), ({**BATCHES, "forced": (3, 1)}, 2)):
        with pytest.raises(DamagedAnswer):
            read(path, stimulus=Stimulus(digest="d", payload=b"", batches=batches, resets=resets))


def test_a_table_is_answered_without_a_batch(tmp_path: Path) -> None:
    arrays = {name: array for name, array in recording().items() if not name.startswith(("horizon", "nudged"))}
    path = write(tmp_path / "a.npz", arrays=arrays)
    table = Stimulus(digest="d", payload=b"", batches={"forced": (4, 1)}, resets=2)
    assert set(read(path, stimulus=table).arrays) == set(arrays)


@pytest.mark.parametrize("dtype", ["S4", "U4", "c16", "M8[s]", "V8", [("x", "f8")]], ids=str)
def test_an_array_of_something_else_than_numbers(tmp_path: Path, dtype: Any) -> None:
    with pytest.raises(DamagedAnswer, match=r"forced\.reward"):
        read(write(tmp_path / "a.npz", arrays={**recording(), "forced.reward": np.zeros((4, 1), dtype=dtype)}))


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
        read_probe(write(tmp_path / "a.npz", arrays={}, meta={"layout": layout}))


# Bounds


def test_a_description_is_counted_with_the_arrays(tmp_path: Path) -> None:
    path = write(tmp_path / "a.npz", meta={**META, "note": "x" * 1000})
    answer = read(path)
    arrays = sum(array.nbytes for array in recording().values())
    with np.load(path) as file:
        assert came("key", answer).size == arrays + len(file["meta"]) > arrays + 1000


def test_more_numbers_than_can_be_compared_are_refused(tmp_path: Path) -> None:
    """An array of bytes is eight times as large where it is compared."""
    many = np.zeros((2, 3, answer_file.MOST_ENTRIES // 6 + 1), np.int8)
    with pytest.raises(DamagedAnswer, match="more than 67108864 numbers"):
        read(write(tmp_path / "a.npz", arrays={**recording(), "horizon.observation": many}))


def test_a_description_that_is_too_long_is_refused(tmp_path: Path) -> None:
    note = "x" * answers.LARGEST_DESCRIPTION
    with pytest.raises(DamagedAnswer, match="describes itself in"):
        read(write(tmp_path / "a.npz", meta={**META, "note": note}))


@pytest.mark.parametrize("name", ["structure", "spaces"])
def test_a_text_that_is_too_long_is_refused(tmp_path: Path, name: str) -> None:
    text = np.zeros(answers.LARGEST_TEXT + 1, np.uint8)
    with pytest.raises(DamagedAnswer, match="observation or spaces in more than"):
        read(write(tmp_path / "a.npz", arrays={**recording(), name: text}))


def test_a_probe_without_a_layout(tmp_path: Path) -> None:
    with pytest.raises(DamagedAnswer):
        read_probe(write(tmp_path / "a.npz", arrays={}, meta={}))
    with pytest.raises(DamagedAnswer):
        read_probe(write(tmp_path / "a.npz", meta={"layout": LAYOUT}))
