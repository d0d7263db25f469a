"""Registered environments: the ways of old and new APIs, the kinds, the descriptions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dumper import registered
from dumper.worlds import Unavailable
from tests.small_environments import Ancient, Counter, Modern, Toy, Wrapped

LIMIT = 3


# Its ways with an environment


def flags(env: Counter, steps: int) -> list[tuple[bool, bool]]:
    """Terminated and truncated after each step."""
    made = registered.wrap(env)
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
    registered.wrap(env).impose(np.zeros(2))
    assert env.resets == [0, 0]
    assert env.seeds == []


@pytest.mark.parametrize("api", [Ancient, Wrapped])
def test_a_reset_that_takes_no_seed_is_seeded_before(api: type[Counter]) -> None:
    env = api()
    registered.wrap(env).impose(np.zeros(2))
    assert env.seeds == [0, 0]
    assert env.unwrapped.resets == [None, None]


def test_the_imposed_state_is_a_copy_in_full_precision() -> None:
    env = Counter()
    made = registered.wrap(env)
    given = np.array([0.1, 1 / 3])
    made.impose(given)
    given[0] = 7
    assert env.state.tolist() == [0.1, 1 / 3]
    out = made.read()
    assert out.tolist() == [0.1, 1 / 3]


@pytest.mark.parametrize("state", [None, 3, np.array([1, 2]), np.zeros((2, 2)), 0.5, "words"])
def test_an_environment_whose_state_cannot_be_imposed_is_replayed(state: Any) -> None:
    class Odd(Counter):
        def reset(self, seed: int | None = None) -> Any:
            observation = super().reset(seed)
            self.state = state
            return observation

    world = registered.wrap(Odd())
    assert (world.kind, world.evidence) == ("replay", "replayed")
    assert (world.layout()["state_size"], world.layout()["reference"]) == (0, [])
    assert world.read().shape == (0,)
    with pytest.raises(NotImplementedError):
        world.impose(np.zeros(2))


def test_nothing_of_what_was_before_is_left_when_a_state_is_imposed() -> None:
    env = Modern(end=2)
    world = registered.wrap(env)
    step = world.stepper(0)
    step(0)
    step(0)
    world.impose(np.zeros(2))
    assert not step(0)[2], "the steps since the reset are counted anew"


def test_a_state_in_a_tuple_is_read_and_copied() -> None:
    env = Modern()
    world = registered.wrap(env)
    env.state = (0.1, 1 / 3)
    rows = np.zeros((2, 2))
    world.copier(rows)(1)
    assert rows.tolist() == [[0.0, 0.0], [0.1, 1 / 3]]
    assert world.read().tolist() == [0.1, 1 / 3]


def test_the_first_observation_is_returned_with_or_without_what_stands_beside_it() -> None:
    class Informed(Modern):
        def reset(self, seed: int | None = None) -> Any:
            return super().reset(seed), {"more": 1}

    class Paired(Modern):
        def reset(self, seed: int | None = None) -> Any:
            return super().reset(seed), 3

    assert registered.wrap(Modern()).reset(1).tolist() == [0.25, 0.5]
    assert registered.wrap(Informed()).reset(1).tolist() == [0.25, 0.5]
    assert registered.wrap(Paired()).reset(1)[1] == 3, "an observation of two parts"


# Constants


def test_a_constant_is_moved_and_those_that_every_step_uses_come_first() -> None:
    env = Modern()
    env.gravity, env.height, env.count, env.nothing = 9.8, 2.0, 3, 0.0  # type: ignore[attr-defined]
    world = registered.wrap(env)
    names = world.constants()
    assert names[:2] == ["gravity", "tau"]
    assert {"height", "TOP"} <= set(names)
    assert not {"count", "nothing", "state", "end"} & set(names), "integers, zero and infinity cannot be moved"
    world.move("gravity", 1.5)
    assert env.gravity == pytest.approx(14.7)  # type: ignore[attr-defined]


# Tables


def test_a_table_is_told_whole_in_the_order_of_its_states_and_actions() -> None:
    world = registered.wrap(Toy())
    assert (world.kind, world.evidence, world.layout()["rows"]) == ("table", "table", 4)
    told = world.transitions()
    assert told["imposed"].tolist() == [[0, 0], [0, 1], [0, 1], [1, 0]]
    assert told["state"].tolist() == [[[1, 0]], [[0.25, 0]], [[0.75, 1]], [[1, 1]]]
    assert told["observation"].tolist() == [[0], [0], [1], [1]]
    assert told["reward"].tolist() == [[-1], [-1], [10], [0]]
    assert told["terminated"].tolist() == [[False], [False], [True], [False]]
    assert not told["truncated"].any()


def test_a_table_of_lists_is_the_same_table() -> None:
    env = Toy()
    listed = Toy()
    listed.P = [[env.P[0][0], env.P[0][1]], [env.P[1][0]]]
    one, other = (registered.wrap(each).transitions() for each in (env, listed))
    assert all(one[name].tobytes() == other[name].tobytes() for name in one)


# Made


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
    registered.make(gym, "E", {"size": 3})
    assert gym.asked == [{"identifier": "E", "disable_env_checker": True, "size": 3}]


@pytest.mark.parametrize("error", [NameNotFound("no\nsuch   thing"), ImportError("no box2d")], ids=repr)
def test_what_a_release_does_not_offer_is_unavailable_with_its_words(error: Exception) -> None:
    with pytest.raises(Unavailable) as caught:
        registered.make(Gym(error), "E", {})
    assert str(caught.value) == f"{type(error).__name__}: {' '.join(str(error).split())}"


def test_another_error_is_not_taken_for_unavailable() -> None:
    with pytest.raises(ZeroDivisionError):
        registered.make(Gym(ZeroDivisionError()), "E", {})


# Its descriptions


def test_the_layout_tells_what_is_needed_to_draw() -> None:
    assert registered.wrap(Counter()).layout() == {
        "kind": "state",
        "evidence": "forced",
        "state_size": 2,
        "positions": 2,
        "quaternions": [],
        "reference": [0.25, 0.5],
        "low": [-1.0, None],
        "high": [0.10000000149011612, None],
        "action": {"type": "Discrete", "n": 2, "start": 0},
    }


def test_the_description_is_json_and_has_spaces_time_step_constants_and_source() -> None:
    told = registered.wrap(Counter(end=4)).description()
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
    assert json.dumps(registered.wrap(env).description())


def test_a_model_file_is_told_by_its_digest_and_one_that_is_gone_does_no_harm(tmp_path: Path) -> None:
    env = Counter()
    env.fullpath = str(tmp_path / "model.xml")  # type: ignore[attr-defined]
    (tmp_path / "model.xml").write_text("<mujoco/>")
    first = registered.wrap(env).description()["model_sha256"]
    (tmp_path / "model.xml").write_text("<mujoco />")
    assert registered.wrap(env).description()["model_sha256"] != first
    (tmp_path / "model.xml").unlink()
    assert registered.wrap(env).description()["model_sha256"] is None
