"""The bank as the orchestrator sees it: what is asked, what comes of the answer, what is said of its coverage."""

from __future__ import annotations

import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from audit.asked.stimulus_spec import BankSpec
from audit.errors import UsageError
from audit.failures import Status
from audit.planning import banks
from audit.planning.banks import BankRequest
from audit.processes.answers import CellAnswer
from audit.stimuli import starts
from audit.stimuli.bank import COVERAGE, SHARES, SOURCES, Coverage
from audit.stimuli.layout import Layout
from audit.stimuli.starts import Undrawable
from audit.stimuli.stimulus import Batch, unpacked
from dumper import bank as dumper_bank
from tests.planned_cells import LAYOUT, batch

FEATURES = {
    "contact ball-floor": 3,
    "contact ball-wall": 0,
    "limit hinge low": 1,
    "saturated motor": 2,
    "terminates": 4,
}
BOX: Any = {"type": "Box", "shape": [1], "dtype": "float32", "low": ["-1.0"], "high": ["1.0"]}
ROLLING = replace(LAYOUT, state_size=6, positions=5, quaternions=(1,), reference=(0.0,) * 6)


def coverage(features: dict[str, int] | None, fastest: float = 0.0, **sources: int) -> Coverage:
    return Coverage(sources=sources or {"given": 8, "visited": 504}, features=features, fastest=fastest)


# In words


def test_both_sides_name_the_same_sources() -> None:
    assert dumper_bank.SOURCES == SOURCES
    assert sum(SHARES.values()) == 1


def test_a_coverage_says_what_acted_of_what_could() -> None:
    assert coverage(FEATURES, 2.5).text == (
        "512 states; 1 of 2 colliding pairs touched; 1 of 1 limits reached; 1 of 1 actuators saturated; "
        "4 end the episode; speeds up to 2.5; never touched: ball-wall"
    )


def test_what_cannot_act_is_not_counted() -> None:
    assert coverage({"terminates": 0}).text == "512 states; 0 end the episode"


def test_a_coverage_that_was_not_measured_says_so() -> None:
    assert coverage(None, given=8).text == "8 states, coverage not measured"
    assert coverage(None).untouched("contact") == []


def test_a_long_list_of_what_was_never_touched_is_cut_and_counted() -> None:
    text = coverage({f"contact {name}": 0 for name in "abcdefgh"}).text
    assert text.endswith("never touched: a, b, c, d, e, f and 2 more")
    assert coverage({f"contact {name}": 0 for name in "abcdef"}).text.endswith("never touched: a, b, c, d, e, f")


def test_limits_that_were_never_reached_are_named_too() -> None:
    found = coverage({"contact a-b": 1, "limit hinge high": 0})
    assert found.untouched("limit") == ["hinge high"]
    assert found.text.endswith("never touched: hinge high")


def test_a_coverage_comes_back_from_json() -> None:
    for each in (coverage(FEATURES, 1.5), coverage(None)):
        assert COVERAGE.validate_json(COVERAGE.dump_json(each)) == each


# Asked


def asked(tmp_path: Path, layout: Layout = LAYOUT, **values: Any) -> BankRequest:
    return banks.request(BankSpec.model_validate(values), batch(8, 5), layout, tmp_path)


def test_a_request_holds_all_that_the_release_may_not_draw(tmp_path: Path) -> None:
    request = asked(tmp_path)
    given = unpacked(request.payload)
    assert given["states"].tobytes() == batch(8, 5).starts.tobytes()
    assert given["wanted"].tolist() == [256, 128, 128]
    assert given["forced_actions"].tobytes() == request.actions.tobytes()
    assert len(request.actions) == 8 + 512
    assert given["actions"].shape == (len(given["seeds"]), 200)
    assert ((given["numbers"] >= 0) & (given["numbers"] < 1)).all()
    assert given["budget"] == 20_000


def test_the_same_is_asked_twice_and_another_seed_asks_otherwise(tmp_path: Path) -> None:
    box = replace(LAYOUT, action=BOX)
    one, again, other = (unpacked(asked(tmp_path, box, seed=seed).payload) for seed in (0, 0, 1))
    assert {name: array.tobytes() for name, array in one.items()} == {
        name: array.tobytes() for name, array in again.items()
    }
    for name in ("numbers", "actions", "forced_actions"):
        assert one[name].tobytes() != other[name].tobytes()


def test_more_states_keep_the_numbers_that_fewer_were_made_from(tmp_path: Path) -> None:
    few, many = (unpacked(asked(tmp_path, states=count).payload) for count in (100, 200))
    assert few["numbers"].tobytes() == many["numbers"].tobytes()
    assert few["actions"].tobytes() == many["actions"].tobytes()


# Answered


def answer(states: Any, source: Any, acting: Any, features: list[str]) -> CellAnswer:
    arrays = {"states": np.array(states), "source": np.array(source, np.uint8), "acting": np.array(acting, np.bool_)}
    arrays["kept"] = np.arange(len(states))
    return CellAnswer(status=Status.OK, reason="", meta={"features": features}, arrays=arrays)


def test_a_bank_counts_its_sources_and_what_acts(tmp_path: Path) -> None:
    given = answer(
        [[0.1, -3.0], [0.2, 1.0], [0.3, 0.0]], [0, 1, 3], [[1, 0], [1, 0], [0, 0]], ["contact", "terminates"]
    )
    made = banks.of_answer(given, asked(tmp_path), LAYOUT)
    assert made.coverage == Coverage(
        sources={"given": 1, "visited": 1, "sought": 1}, features={"contact": 2, "terminates": 0}, fastest=3.0
    )
    assert made.coverage.states == 3
    assert made.source.tolist() == [0, 1, 3]
    assert made.batch.shape == (3, 1)
    assert made.batch.actions[:, 0].tolist() == asked(tmp_path).actions[:3].tolist()


def test_quaternions_of_a_bank_have_a_norm_of_one(tmp_path: Path) -> None:
    given = answer([[0.0, 0.3, 0.4, 0.1, 0.2, 5.0]], [1], [[0]], ["terminates"])
    made = banks.of_answer(given, BankRequest(payload=b"", actions=np.zeros(1)), ROLLING)
    w, x, y, z = made.states[0, 1:5]
    assert np.sqrt(w**2 + x**2 + y**2 + z**2) == 1
    assert given.arrays["states"][0, 1] == 0.3, "the answer stays as it was"


def test_without_a_bank_the_starts_of_trajectories_are_forced_with_their_first_actions() -> None:
    horizon = Batch(starts=np.array([[1.0, -7.0], [2.0, 3.0]]), actions=np.array([[5, 6], [7, 8]]))
    made = banks.of_starts(horizon, LAYOUT)
    assert made.batch.starts.tobytes() == horizon.starts.tobytes()
    assert made.batch.actions.tolist() == [[5], [7]]
    assert made.coverage == Coverage(sources={"given": 2}, features=None, fastest=7.0)
    assert made.source.tolist() == [0, 0]


# The user's own


def own(folder: Path, layout: Layout = LAYOUT, **arrays: Any) -> dict[str, Any]:
    np.savez(folder / "own.npz", **arrays)
    return unpacked(asked(folder, layout, file="own.npz").payload)


def test_own_states_are_taken_as_they_are_and_nothing_is_added(tmp_path: Path) -> None:
    states = np.array([[0.1, 1 / 3], [2.0, 3.0]])
    given = own(tmp_path, states=states)
    assert given["states"].tobytes() == states.tobytes()
    assert given["wanted"].tolist() == [0, 0, 0]
    drawn = starts.forced_actions(2, 0, LAYOUT)
    assert given["forced_actions"].tolist() == drawn.tolist()


def test_own_actions_are_taken_in_the_dtype_of_the_space(tmp_path: Path) -> None:
    given = own(tmp_path, states=np.ones((2, 2)), actions=np.array([1, 0], np.uint8))
    assert (given["forced_actions"].tolist(), given["forced_actions"].dtype) == ([1, 0], np.int64)
    box = replace(LAYOUT, action=BOX)
    given = own(tmp_path, box, states=np.ones((2, 2)), actions=np.array([[0.5], [0.25]]))
    assert (given["forced_actions"].tolist(), given["forced_actions"].dtype) == ([[0.5], [0.25]], np.float32)


@pytest.mark.parametrize(
    "arrays",
    [
        {},
        {"state": np.ones((2, 2))},
        {"states": np.ones(2)},
        {"states": np.ones((0, 2))},
        {"states": np.full((2, 2), np.nan)},
        {"states": np.full((2, 2), np.inf)},
        {"states": np.array([["a", "b"]])},
        {"states": np.ones((1, 2), np.complex128)},
        {"states": np.ones((1, 2)), "actions": np.array(["a"])},
    ],
    ids=str,
)
def test_own_states_that_are_none(tmp_path: Path, arrays: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"own\.npz"):
        own(tmp_path, **arrays)


def test_own_states_of_another_environment(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"own\.npz has states of 3 entries, the environment of 2"):
        own(tmp_path, states=np.ones((2, 3)))
    with pytest.raises(UsageError, match=r"actions of shape \(3,\), and \(2,\) fits"):
        own(tmp_path, states=np.ones((2, 2)), actions=np.zeros(3))
    with pytest.raises(Undrawable, match="quaternion"):
        own(tmp_path, ROLLING, states=np.zeros((1, 6)))


def test_own_quaternions_are_normalised(tmp_path: Path) -> None:
    given = own(tmp_path, ROLLING, states=np.array([[0.0, 3.0, 0.0, 4.0, 0.0, 1.0]]))
    np.testing.assert_allclose(given["states"][0, 1:5], [0.6, 0, 0.8, 0])


def test_a_file_that_is_not_there_or_no_npz(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        asked(tmp_path, file="own.npz")
    for content in (b"", b"words", b"\x80\x04.", b"\x93NUMPY"):
        (tmp_path / "own.npz").write_bytes(content)
        with pytest.raises(UsageError, match="is not an npz file"):
            asked(tmp_path, file="own.npz")


@pytest.mark.parametrize("damage", ["cut", "flip"])
def test_a_damaged_npz(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "own.npz"
    np.savez_compressed(path, states=np.ones((50, 2)))
    content = bytearray(path.read_bytes())
    if damage == "cut":
        del content[len(content) // 2 :]
    else:
        with zipfile.ZipFile(path) as archive:
            first = archive.infolist()[0]
        content[first.header_offset + 60] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(UsageError, match=r"own\.npz"):
        asked(tmp_path, file="own.npz")
