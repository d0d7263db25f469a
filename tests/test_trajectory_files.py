"""Trajectories from anywhere: read into columns, or refused in one sentence that names the file."""

from __future__ import annotations

import re
import sys
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import duckdb
import h5py
import numpy as np
import pytest
from numpy.typing import NDArray

from audit.errors import UsageError
from audit.laws import trajectory_files
from audit.laws.trajectory_files import Columns

RNG = np.random.default_rng(0)
OBSERVATION = RNG.normal(size=(3, 5, 2))
"""Three trajectories of five samples of two entries."""
ACTION = RNG.normal(size=(3, 5, 1))


def npz(folder: Path, **arrays: Any) -> Path:
    path = folder / "data.npz"
    np.savez(path, **arrays)
    return path


def assert_columns(found: Columns, expected: Mapping[str, NDArray[Any]]) -> None:
    assert list(found) == list(expected)
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values, err_msg=name)
        assert found[name].dtype == np.float64


def refused(path: Path, told: str) -> None:
    with pytest.raises(UsageError, match=re.escape(told)) as caught:
        trajectory_files.read(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


# npz


@pytest.mark.parametrize("name", ["observation", "observations", "obs"])
def test_one_trajectory_in_an_npz(tmp_path: Path, name: str) -> None:
    (only,) = trajectory_files.read(npz(tmp_path, **{name: OBSERVATION[0]}))
    assert_columns(only, {"observation": OBSERVATION[0]})


def test_several_trajectories_in_an_npz(tmp_path: Path) -> None:
    found = trajectory_files.read(npz(tmp_path, observations=OBSERVATION, actions=ACTION, height=OBSERVATION[..., :1]))
    assert len(found) == 3
    for number, each in enumerate(found):
        parts = {"observation": OBSERVATION, "action": ACTION, "height": OBSERVATION[..., :1]}
        assert_columns(each, {name: array[number] for name, array in parts.items()})


def test_numbers_of_any_type_are_read_as_double(tmp_path: Path) -> None:
    whole = np.arange(6, dtype=np.int32).reshape(3, 2)
    (only,) = trajectory_files.read(npz(tmp_path, state=whole, touching=whole > 2, single=whole.astype(np.float32)))
    assert_columns(only, {"state": whole, "touching": whole > 2, "single": whole})


def test_a_discrete_action_has_no_entries(tmp_path: Path) -> None:
    discrete = np.arange(15).reshape(3, 5)
    found = trajectory_files.read(npz(tmp_path, observations=OBSERVATION, actions=discrete))
    assert_columns(found[1], {"observation": OBSERVATION[1], "action": discrete[1][:, None]})
    (only,) = trajectory_files.read(npz(tmp_path, observations=OBSERVATION[0], actions=discrete[0]))
    assert_columns(only, {"observation": OBSERVATION[0], "action": discrete[0][:, None]})


@pytest.mark.parametrize("first", ["observation", "action"])
def test_the_last_observation_has_no_action_of_its_own(tmp_path: Path, first: str) -> None:
    arrays = {"observation": OBSERVATION, "action": ACTION[:, :4]}
    ordered = {first: arrays[first], **arrays}
    found = trajectory_files.read(npz(tmp_path, **ordered))
    expected = {"observation": OBSERVATION[2], "action": ACTION[2, [0, 1, 2, 3, 3]]}
    assert_columns(found[2], {name: expected[name] for name in ordered})


def test_what_is_no_column_is_left_aside(tmp_path: Path) -> None:
    """A total for each trajectory, a setting: nobody logs only columns."""
    more = {"returns": np.zeros(3), "dt": np.array([0.05]), "seeds": np.zeros((7, 2))}
    found = trajectory_files.read(npz(tmp_path, observations=OBSERVATION, **more))
    assert all(list(each) == ["observation"] for each in found)


def test_a_time_that_all_trajectories_share(tmp_path: Path) -> None:
    found = trajectory_files.read(npz(tmp_path, observations=OBSERVATION, clock=np.arange(5.0)))
    assert_columns(found[2], {"observation": OBSERVATION[2], "clock": np.arange(5.0)[:, None]})


def test_an_npz_with_objects_is_refused(tmp_path: Path) -> None:
    refused(npz(tmp_path, observation=np.array([{"x": 1.0}, None])), "Object arrays cannot be loaded")


@pytest.mark.parametrize("value", [np.array(["a", "b"]), np.array(1.0), np.zeros(2, complex)])
def test_an_array_of_something_else_is_no_column_and_refused_only_where_it_is_asked_for(
    tmp_path: Path, value: NDArray[Any]
) -> None:
    (found,) = trajectory_files.read(npz(tmp_path, observation=OBSERVATION[0], odd=value))
    assert_columns(found, {"observation": OBSERVATION[0]})
    refused(npz(tmp_path, observation=value), "observation in ")


def test_an_empty_npz_is_refused(tmp_path: Path) -> None:
    refused(npz(tmp_path), "data.npz is empty")


def test_arrays_of_different_numbers_of_trajectories_are_refused(tmp_path: Path) -> None:
    refused(
        npz(tmp_path, observation=OBSERVATION, state=OBSERVATION[:2]), "arrays of different numbers of trajectories"
    )


@pytest.mark.parametrize("shorter", [{"state": OBSERVATION[0, :4]}, {"action": ACTION[0, :3]}])
def test_states_and_actions_of_different_lengths_are_refused(tmp_path: Path, shorter: dict[str, NDArray[Any]]) -> None:
    refused(npz(tmp_path, observation=OBSERVATION[0], **shorter), "different numbers of samples: observation 5, ")


@pytest.mark.parametrize("shape", [(0, 2), (0, 5, 2), (3, 0, 2)])
def test_arrays_without_samples_are_trajectories_without_samples(tmp_path: Path, shape: tuple[int, ...]) -> None:
    found = trajectory_files.read(npz(tmp_path, observation=np.zeros(shape)))
    assert all(each["observation"].shape == (0, 2) for each in found)


def torn(path: Path) -> None:
    np.savez_compressed(path, observation=OBSERVATION)
    whole = path.read_bytes()
    path.write_bytes(whole[:60] + bytes(40) + whole[100:])


def single(path: Path) -> None:
    with path.open("wb") as file:
        np.save(file, OBSERVATION)


def with_a_letter(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("README.txt", "no array")


NOT_NPZ: dict[str, Callable[[Path], object]] = {
    "no bytes": lambda path: path.write_bytes(b""),
    "text": lambda path: path.write_text("c1,s1\n1,0\n"),
    "half of one": lambda path: path.write_bytes(b"PK\x03\x04 and no more"),
    "a single array": single,
    "torn": torn,
    "a letter": with_a_letter,
}


@pytest.mark.parametrize("what", NOT_NPZ)
def test_what_is_no_npz_is_refused(tmp_path: Path, what: str) -> None:
    path = tmp_path / "data.npz"
    NOT_NPZ[what](path)
    refused(path, "data.npz is not a")


# Parquet


def parquet(folder: Path, sql: str, name: str = "data.parquet") -> Path:
    path = folder / name
    with duckdb.connect() as connection:
        connection.sql(sql).write_parquet(str(path))
    return path


def values(*rows: str, columns: str) -> str:
    return f"SELECT * FROM (VALUES {', '.join(rows)}) AS rows ({columns})"


def test_a_column_an_entry(tmp_path: Path) -> None:
    sql = values("(1, 10, 0.5, 7)", "(2, 20, 0.6, 8)", columns="observation_0, observation_1, action_0, height")
    (only,) = trajectory_files.read(parquet(tmp_path, sql))
    assert_columns(
        only,
        {
            "observation": np.array([[1, 10], [2, 20]]),
            "action": np.array([[0.5], [0.6]]),
            "height": np.array([[7], [8]]),
        },
    )


def test_entries_are_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    names = [f"obs_{place}" for place in range(11)]
    sql = values(f"({', '.join(map(str, range(11)))})", columns=", ".join(names))
    shuffled = f"SELECT {', '.join(sorted(names))} FROM ({sql})"
    (only,) = trajectory_files.read(parquet(tmp_path, shuffled))
    assert_columns(only, {"observation": np.arange(11.0)[None]})


def test_columns_of_lists(tmp_path: Path) -> None:
    sql = values("([1.0, 2.0], [0.5])", "([3.0, 4.0], [0.6])", columns="observations, actions")
    (only,) = trajectory_files.read(parquet(tmp_path, sql))
    assert_columns(only, {"observation": np.array([[1, 2], [3, 4]]), "action": np.array([[0.5], [0.6]])})


@pytest.mark.parametrize("owner", ["trajectory", "episode", "episode_id"])
@pytest.mark.parametrize("step", ["step", "t", "time"])
def test_shuffled_rows_are_put_in_order(tmp_path: Path, owner: str, step: str) -> None:
    sql = values("('b', 2, 3)", "('a', 1, 20)", "('b', 0, 1)", "('a', 0, 10)", "('b', 1, 2)", columns="o, s, state_0")
    found = trajectory_files.read(parquet(tmp_path, f"SELECT o AS {owner}, s AS {step}, state_0 FROM ({sql})"))
    assert [each["state"].ravel().tolist() for each in found] == [[1, 2, 3], [10, 20]]
    assert [list(each) for each in found] == [["state"], ["state"]]


def test_a_time_may_be_that_of_a_clock(tmp_path: Path) -> None:
    sql = values(
        "(TIMESTAMP '2026-01-01 10:00:01', 2)", "(TIMESTAMP '2026-01-01 10:00:00', 1)", columns="time, state_0"
    )
    (only,) = trajectory_files.read(parquet(tmp_path, sql))
    assert only["state"].ravel().tolist() == [1, 2]


def test_without_a_step_rows_are_as_they_stand(tmp_path: Path) -> None:
    sql = values("(1, 5)", "(0, 6)", "(1, 3)", columns="episode, state_0")
    found = trajectory_files.read(parquet(tmp_path, sql))
    assert [each["state"].ravel().tolist() for each in found] == [[5, 3], [6]]


def test_an_entry_that_is_missing_is_not_replaced_by_the_next(tmp_path: Path) -> None:
    sql = values("(1, 2, 3)", columns="observation_0, observation_2, link_1")
    (only,) = trajectory_files.read(parquet(tmp_path, sql))
    assert list(only) == ["observation_0", "observation_2", "link_1"]


def test_a_missing_value_is_not_a_number(tmp_path: Path) -> None:
    (only,) = trajectory_files.read(parquet(tmp_path, values("(1.5)", "(NULL)", columns="state_0")))
    np.testing.assert_array_equal(only["state"], [[1.5], [np.nan]])


@pytest.mark.parametrize(
    ("rows", "columns", "told"),
    [
        (("(1, 'healthy')",), "state_0, label", "label in "),
        (("([1.0, 2.0])", "([1.0])"), "state", "state in "),
        (("(1, 2)", "(NULL, 3)"), "episode, state_0", "rows that belong to no trajectory"),
        (("(1, 2)", "(NULL, 3)"), "step, state_0", "rows that belong to no trajectory, or to no step of one"),
    ],
)
def test_a_column_that_is_not_of_numbers_is_refused(
    tmp_path: Path, rows: tuple[str, ...], columns: str, told: str
) -> None:
    refused(parquet(tmp_path, values(*rows, columns=columns)), told)


def test_a_parquet_file_without_rows_has_no_trajectories(tmp_path: Path) -> None:
    assert trajectory_files.read(parquet(tmp_path, "SELECT 1.0 AS state_0 WHERE false")) == []


def test_a_file_whose_name_is_a_pattern(tmp_path: Path) -> None:
    (only,) = trajectory_files.read(parquet(tmp_path, "SELECT 1.0 AS state_0", "run[1]*.parquet"))
    assert_columns(only, {"state": np.array([[1.0]])})


def test_what_is_no_parquet_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "data.parquet"
    path.write_text("not Parquet\n" * 10)
    refused(path, "data.parquet cannot be read: ")


# Minari


def minari(folder: Path, episodes: Mapping[str, Mapping[str, Any]], place: str = "data/main_data.hdf5") -> Path:
    """A data set as Minari lays it out."""
    path = folder / "set" / place
    path.parent.mkdir(parents=True)
    with h5py.File(path, "w") as file:
        for name, arrays in episodes.items():
            group = file.create_group(name)
            for key, value in arrays.items():
                group[key] = value
    return folder / "set"


EPISODES: dict[str, dict[str, Any]] = {
    "episode_10": {"observations": OBSERVATION[2]},
    "episode_2": {"observations": OBSERVATION[1], "actions": ACTION[1, :4], "rewards": np.zeros(4)},
    "episode_0": {"observations": OBSERVATION[0], "actions": np.array([1, 0, 2, 1])},
}


@pytest.mark.parametrize("place", ["data/main_data.hdf5", "main_data.hdf5"])
@pytest.mark.parametrize("as_file", [True, False])
def test_a_minari_data_set_by_its_folder_or_its_file(tmp_path: Path, place: str, as_file: bool) -> None:
    folder = minari(tmp_path, EPISODES, place)
    first, second, third = trajectory_files.read(folder / place if as_file else folder)
    assert_columns(first, {"observation": OBSERVATION[0], "action": np.array([1, 0, 2, 1, 1])[:, None]})
    assert_columns(second, {"observation": OBSERVATION[1], "action": ACTION[1, [0, 1, 2, 3, 3]]})
    assert_columns(third, {"observation": OBSERVATION[2]})


def test_actions_by_name_are_actions_too(tmp_path: Path) -> None:
    """Otherwise what they drive would be taken for passive, and its energy for broken."""
    actions = {"actions/arm": ACTION[0, :4], "actions/leg": ACTION[1, :4]}
    (only,) = trajectory_files.read(minari(tmp_path, {"episode_0": {"observations": OBSERVATION[0], **actions}}))
    both = np.hstack([ACTION[0], ACTION[1]])[[0, 1, 2, 3, 3]]
    assert_columns(only, {"observation": OBSERVATION[0], "action": both})


@pytest.mark.parametrize(
    ("episodes", "told"),
    [
        ({}, "has no episodes"),
        ({"episode_0": {"observations/arm": OBSERVATION[0]}}, "has no observations that are one array"),
        ({"episode_0": {"actions": ACTION[0]}}, "has no observations that are one array"),
        ({"episode_0": {"observations": np.array([b"a", b"b"])}}, "observations of episode_0 in "),
        ({"episode_0": {"observations": OBSERVATION[0], "actions": ACTION[0, :2]}}, "different numbers of samples"),
    ],
)
def test_a_data_set_that_cannot_be_read_is_refused(
    tmp_path: Path, episodes: dict[str, dict[str, Any]], told: str
) -> None:
    refused(minari(tmp_path, episodes), told)


def test_a_folder_that_is_no_data_set_is_refused(tmp_path: Path) -> None:
    refused(tmp_path, "has no main_data.hdf5: it is no Minari data set")


@pytest.mark.parametrize("suffix", [".hdf5", ".h5"])
def test_a_file_that_is_no_hdf5_is_refused(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"data{suffix}"
    path.write_text("not HDF5")
    refused(path, f"data{suffix} cannot be read: ")


def test_an_episode_that_is_an_array_is_refused(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "main_data.hdf5", "w") as file:
        file["episode_0"] = np.zeros(3)
    refused(tmp_path, "episode_0 of ")


def test_without_h5py_a_data_set_is_refused_and_told_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = minari(tmp_path, EPISODES)
    monkeypatch.setitem(sys.modules, "h5py", None)
    refused(folder, "needs h5py to be read: install release-audit[minari]")


# None of them


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    for name in ("data.npz", "data.parquet", "data.hdf5", "data"):
        refused(tmp_path / name, "there is no file ")


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("c1,s1\n")
    refused(path, "data.csv is no .npz, no .parquet and no Minari data set")
