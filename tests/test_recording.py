"""What the dumper does with an environment: its ways with old and new APIs, its recordings, its descriptions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dumper import describe, record
from dumper import environment as environments
from tests.small_environments import Ancient, Counter, Modern, Wrapped

LIMIT = 3


# Its ways with an environment


def flags(env: Counter, steps: int) -> list[tuple[bool, bool]]:
    """Terminated and truncated after each step."""
    made = environments.Environment(env)
    step = made.stepper(0)
    made.impose(np.zeros(2))
    return [(bool(answer[2]), bool(answer[3])) for answer in (step(0) for _ in range(steps))]


@pytest.mark.parametrize("api", [Counter, Modern])
@pytest.mark.parametrize(
    ("end", "expected"),
    [
        (np.inf, [(False, False), (False, False), (False, True)]),
        (LIMIT, [(False, False), (False, False), (True, True)]),
        (LIMIT - 1, [(False, False), (True, False), (True, True)]),
    ],
    ids=["limit alone", "both at once", "end before limit"],
)
def test_the_flags_of_four_values_are_those_of_five(api: type[Counter], end: float, expected: list[Any]) -> None:
    assert flags(api(end=end, limit=LIMIT), LIMIT) == expected


@pytest.mark.parametrize("api", [Counter, Modern])
def test_without_a_limit_nothing_is_truncated(api: type[Counter]) -> None:
    assert flags(api(end=1), 2) == [(True, False), (True, False)]


def test_a_reset_that_takes_a_seed_gets_it() -> None:
    env = Counter()
    environments.Environment(env).impose(np.zeros(2))
    assert env.resets == [0, 0]
    assert env.seeds == []


@pytest.mark.parametrize("api", [Ancient, Wrapped])
def test_a_reset_that_takes_no_seed_is_seeded_before(api: type[Counter]) -> None:
    env = api()
    environments.Environment(env).impose(np.zeros(2))
    assert env.seeds == [0, 0]
    assert env.unwrapped.resets == [None, None]


def test_the_imposed_state_is_a_copy_in_full_precision() -> None:
    env = Counter()
    made = environments.Environment(env)
    given = np.array([0.1, 1 / 3])
    made.impose(given)
    given[0] = 7
    assert env.state.tolist() == [0.1, 1 / 3]
    out = made.read()
    assert out.tolist() == [0.1, 1 / 3]


@pytest.mark.parametrize("state", [None, 3, np.array([1, 2]), np.zeros((2, 2)), 0.5])
def test_a_state_that_cannot_be_imposed_is_unavailable(state: Any) -> None:
    class Odd(Counter):
        def reset(self, seed: int | None = None) -> Any:
            self.state = state

    with pytest.raises(environments.Unavailable, match="cannot be imposed"):
        environments.Environment(Odd())


class Gym:
    """A package with a ``make``."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.asked: list[dict[str, Any]] = []

    def make(self, identifier: str, disable_env_checker: bool = False, **keywords: Any) -> Counter:
        self.asked.append({"identifier": identifier, "disable_env_checker": disable_env_checker, **keywords})
        if self.error is not None:
            raise self.error
        return Modern()


class NameNotFound(Exception):
    pass


def test_an_environment_is_made_without_the_checker() -> None:
    gym = Gym()
    environments.make(gym, "E", {"size": 3})
    assert gym.asked == [{"identifier": "E", "disable_env_checker": True, "size": 3}]


@pytest.mark.parametrize("error", [NameNotFound("no\nsuch   thing"), ImportError("no box2d")], ids=repr)
def test_what_a_release_does_not_offer_is_unavailable_with_its_words(error: Exception) -> None:
    with pytest.raises(environments.Unavailable) as caught:
        environments.make(Gym(error), "E", {})
    assert str(caught.value) == f"{type(error).__name__}: {' '.join(str(error).split())}"


def test_another_error_is_not_taken_for_unavailable() -> None:
    with pytest.raises(ZeroDivisionError):
        environments.make(Gym(ZeroDivisionError()), "E", {})


# Its recordings


def recorded(folder: Path, env: Counter, states: NDArray[Any], actions: NDArray[Any]) -> Any:
    path = folder / "stimulus.npz"
    np.savez(path, states=states, actions=actions)
    made = environments.Environment(env)
    return record.record(made, str(path), describe.description(made))


@pytest.mark.parametrize("api", [Ancient, Counter, Modern])
def test_every_step_of_every_trajectory_is_recorded(tmp_path: Path, api: type[Counter]) -> None:
    states = np.array([[0.1, 1 / 3], [10.0, -5.0]])
    answer = recorded(tmp_path, api(limit=2), states, np.array([[0, 1, 0], [1, 1, 1]]))
    arrays = answer.arrays
    assert answer.status == "ok"
    assert answer.meta["steps"] == 6
    assert arrays["imposed"].tobytes() == states.tobytes()
    expected = np.array([[[1.1, 1 / 3], [2.1, 4 / 3], [3.1, 4 / 3]], [[11, -4], [12, -3], [13, -2]]])
    np.testing.assert_allclose(arrays["state"], expected, rtol=1e-15)
    assert arrays["state"].dtype == np.float64
    assert arrays["observation"].dtype == np.float32
    assert arrays["observation"].tobytes() == arrays["state"].astype(np.float32).tobytes()
    assert arrays["reward"].tobytes() == arrays["state"][..., 0].tobytes()
    assert arrays["truncated"].tolist() == [[False, True, True]] * 2
    assert not arrays["terminated"].any()


def test_a_state_that_is_published_but_not_stepped_is_incomparable(tmp_path: Path) -> None:
    class Hidden(Modern):
        def reset(self, seed: int | None = None) -> Any:
            self.real = np.array([0.25, 0.5])
            return super().reset(seed)

        def advance(self, action: int) -> Any:
            self.state = self.real
            answer = super().advance(action)
            self.real = self.state
            return answer

    with pytest.raises(record.Incomparable, match="no effect"):
        recorded(tmp_path, Hidden(), np.array([[0.1, 0.2], [3.0, 4.0]]), np.zeros((2, 3), np.int64))


def test_a_release_that_changes_the_action_it_is_given_gets_the_same_stimulus(tmp_path: Path) -> None:
    class Halving(Modern):
        def step(self, action: Any) -> Any:
            pushed = float(action[0])
            action *= 0.5
            return super().step(pushed)  # type: ignore[arg-type]

    answer = recorded(tmp_path, Halving(), np.zeros((1, 2)), np.ones((1, 3, 1), np.float32))
    assert answer.arrays["state"][0, :, 1].tolist() == [1.0, 2.0, 3.0]


def test_an_environment_that_refuses_to_go_on_after_its_end_keeps_what_it_did(tmp_path: Path) -> None:
    class Strict(Modern):
        def step(self, action: Any) -> Any:
            assert self.elapsed < self.end, "reset me"
            return super().step(action)

    arrays = recorded(tmp_path, Strict(end=2), np.zeros((1, 2)), np.ones((1, 4), np.int64)).arrays
    assert arrays["state"][0, :2].tolist() == [[1.0, 1.0], [2.0, 2.0]]
    assert np.isnan(arrays["state"][0, 2:]).all()
    assert arrays["terminated"].tolist() == [[False, True, True, True]]
    with pytest.raises(AssertionError):
        recorded(tmp_path, Strict(end=0), np.zeros((1, 2)), np.ones((1, 4), np.int64))


def test_the_structure_of_an_observation_is_recorded(tmp_path: Path) -> None:
    class Named(Modern):
        names = ("angle", "speed")

        def step(self, action: Any) -> Any:
            observation, *rest = super().step(action)
            return dict(zip(self.names, observation, strict=True)), *rest

    class Renamed(Named):
        names = ("x", "y")

    one, other = (
        recorded(tmp_path, api(), np.zeros((1, 2)), np.ones((1, 2), np.int64)).arrays for api in (Named, Renamed)
    )
    assert one["observation"].tobytes() == other["observation"].tobytes()
    assert one["structure"].tobytes() != other["structure"].tobytes()


def test_discrete_actions_arrive_as_plain_integers(tmp_path: Path) -> None:
    seen: list[Any] = []

    class Curious(Modern):
        def step(self, action: Any) -> Any:
            seen.append(action)
            return super().step(action)

    recorded(tmp_path, Curious(), np.zeros((1, 2)), np.array([[0, 1]]))
    assert {type(action) for action in seen} == {int}


def test_continuous_actions_arrive_in_their_own_shape_and_dtype(tmp_path: Path) -> None:
    seen: list[Any] = []

    class Curious(Modern):
        def step(self, action: Any) -> Any:
            seen.append(action)
            return super().step(0)

    recorded(tmp_path, Curious(), np.zeros((1, 2)), np.full((1, 3, 2), 0.5, np.float32))
    assert {(action.shape, action.dtype.name) for action in seen} == {((2,), "float32")}


def test_a_state_of_another_size_is_incomparable(tmp_path: Path) -> None:
    with pytest.raises(record.Incomparable, match="its state has 2 entries, the stimulus 3"):
        recorded(tmp_path, Modern(), np.zeros((1, 3)), np.array([[0]]))


def test_an_observation_that_changes_its_dtype_on_the_way_is_an_error(tmp_path: Path) -> None:
    class Fickle(Modern):
        def step(self, action: int) -> Any:
            observation, *rest = super().step(action)
            return (observation.astype(np.float64) if self.elapsed > 1 else observation, *rest)

    with pytest.raises(TypeError, match=r"float64.* at step 1 and was float32"):
        recorded(tmp_path, Fickle(), np.zeros((1, 2)), np.array([[0, 0]]))


def test_an_observation_in_parts_becomes_one_vector_in_the_order_of_its_keys(tmp_path: Path) -> None:
    class Parts(Modern):
        def step(self, action: int) -> Any:
            observation, *rest = super().step(action)
            return ({"b": observation, "a": (7, [1.5])}, *rest)

    answer = recorded(tmp_path, Parts(), np.zeros((1, 2)), np.array([[0]]))
    assert answer.arrays["observation"].tolist() == [[[7.0, 1.5, 1.0, 0.0]]]


def test_one_recording_after_another_is_the_same(tmp_path: Path) -> None:
    states, actions = np.array([[0.1, 0.2]]), np.array([[1, 0, 1]])
    env = Modern(limit=2)
    once, again = (recorded(tmp_path, env, states, actions) for _ in range(2))
    assert all(once.arrays[name].tobytes() == again.arrays[name].tobytes() for name in once.arrays)


# Its descriptions


def test_the_layout_tells_what_is_needed_to_draw() -> None:
    assert describe.layout(environments.Environment(Counter())) == {
        "kind": "state",
        "state_size": 2,
        "positions": 2,
        "quaternions": [],
        "reference": [0.25, 0.5],
        "action": {"type": "Discrete", "n": 2, "start": 0},
    }


def test_the_description_is_json_and_has_spaces_time_step_constants_and_source() -> None:
    told = describe.description(environments.Environment(Counter(end=4)))
    told = json.loads(json.dumps(told))
    assert told["time_step"] == 0.02
    assert told["spaces"]["observation"] == {
        "type": "Box",
        "shape": [2],
        "dtype": "float32",
        "low": ["-1.0", "-inf"],
        "high": ["0.10000000149011612", "inf"],
    }
    assert told["constants"]["end"] == "4"
    assert told["constants"]["TOP"] == "5.0"
    assert "state" not in told["constants"]
    assert len(told["source_sha256"]) == 64
    assert told["model_sha256"] is None
    assert told["numpy"] == np.__version__


@pytest.mark.parametrize("value", [np.complex128(1j), [1j], {"a": 1}, object(), [], np.array(["x"]), [None], 10**400])
def test_an_attribute_that_is_no_constant_does_no_harm(value: Any) -> None:
    env = Counter()
    env.odd = value  # type: ignore[attr-defined]
    assert json.dumps(describe.description(environments.Environment(env)))


def test_a_model_file_is_told_by_its_digest_and_one_that_is_gone_does_no_harm(tmp_path: Path) -> None:
    env = Counter()
    env.fullpath = str(tmp_path / "model.xml")  # type: ignore[attr-defined]
    (tmp_path / "model.xml").write_text("<mujoco/>")
    first = describe.description(environments.Environment(env))["model_sha256"]
    (tmp_path / "model.xml").write_text("<mujoco />")
    assert describe.description(environments.Environment(env))["model_sha256"] != first
    (tmp_path / "model.xml").unlink()
    assert describe.description(environments.Environment(env))["model_sha256"] is None
