"""What the dumper records of a world: every batch, every output, resets, and that it reproduces itself."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dumper import record, registered
from tests.small_environments import Ancient, Counter, Modern, Toy

STATES = np.array([[0.1, 1 / 3], [10.0, -5.0], [2.0, 0.0]])


def recorded(env: Counter, states: NDArray[Any], actions: NDArray[Any], **more: NDArray[Any]) -> Any:
    """Trajectories, and what else is given by its name with a dash for the dot."""
    world = registered.wrap(env)
    given = {"horizon.states": states, "horizon.actions": actions}
    given |= {name.replace("_", "."): array for name, array in more.items()}
    return record.record(world, given, world.description())


@pytest.mark.parametrize("api", [Ancient, Counter, Modern])
def test_every_step_of_every_trajectory_is_recorded(api: type[Counter]) -> None:
    states = np.array([[0.1, 1 / 3], [10.0, -5.0]])
    answer = recorded(api(limit=2), states, np.array([[0, 1, 0], [1, 1, 1]]))
    arrays = answer.arrays
    assert answer.status == "ok"
    assert answer.meta["steps"] == 6
    assert arrays["horizon.imposed"].tobytes() == states.tobytes()
    expected = np.array([[[1.1, 1 / 3], [2.1, 4 / 3], [3.1, 4 / 3]], [[11, -4], [12, -3], [13, -2]]])
    np.testing.assert_allclose(arrays["horizon.state"], expected, rtol=1e-15)
    assert arrays["horizon.state"].dtype == np.float64
    assert arrays["horizon.observation"].dtype == np.float32
    assert arrays["horizon.observation"].tobytes() == arrays["horizon.state"].astype(np.float32).tobytes()
    assert arrays["horizon.reward"].tobytes() == arrays["horizon.state"][..., 0].tobytes()
    assert arrays["horizon.truncated"].tolist() == [[False, True, True]] * 2
    assert not arrays["horizon.terminated"].any()


def test_a_state_that_is_published_but_not_stepped_is_incomparable() -> None:
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
        recorded(Hidden(), np.array([[0.1, 0.2], [3.0, 4.0]]), np.zeros((2, 3), np.int64))


def test_a_release_that_changes_the_action_it_is_given_gets_the_same_stimulus() -> None:
    class Halving(Modern):
        def step(self, action: Any) -> Any:
            pushed = float(action[0])
            action *= 0.5
            return super().step(pushed)  # type: ignore[arg-type]

    answer = recorded(Halving(), np.zeros((1, 2)), np.ones((1, 3, 1), np.float32))
    assert answer.arrays["horizon.state"][0, :, 1].tolist() == [1.0, 2.0, 3.0]


def test_an_environment_that_refuses_to_go_on_after_its_end_keeps_what_it_did() -> None:
    class Strict(Modern):
        def step(self, action: Any) -> Any:
            assert self.elapsed < self.end, "reset me"
            return super().step(action)

    arrays = recorded(Strict(end=2), np.zeros((1, 2)), np.ones((1, 4), np.int64)).arrays
    assert arrays["horizon.state"][0, :2].tolist() == [[1.0, 1.0], [2.0, 2.0]]
    assert np.isnan(arrays["horizon.state"][0, 2:]).all()
    assert arrays["horizon.terminated"].tolist() == [[False, True, True, True]]
    with pytest.raises(AssertionError):
        recorded(Strict(end=0), np.zeros((1, 2)), np.ones((1, 4), np.int64))


def test_the_structure_of_an_observation_is_recorded() -> None:
    class Named(Modern):
        names = ("angle", "speed")

        def step(self, action: Any) -> Any:
            observation, *rest = super().step(action)
            return dict(zip(self.names, observation, strict=True)), *rest

    class Renamed(Named):
        names = ("x", "y")

    one, other = (recorded(api(), np.zeros((1, 2)), np.ones((1, 2), np.int64)).arrays for api in (Named, Renamed))
    assert one["horizon.observation"].tobytes() == other["horizon.observation"].tobytes()
    assert one["structure"].tobytes() != other["structure"].tobytes()


def test_discrete_actions_arrive_as_plain_integers() -> None:
    seen: list[Any] = []

    class Curious(Modern):
        def step(self, action: Any) -> Any:
            seen.append(action)
            return super().step(action)

    recorded(Curious(), np.zeros((1, 2)), np.array([[0, 1]]))
    assert {type(action) for action in seen} == {int}


def test_continuous_actions_arrive_in_their_own_shape_and_dtype() -> None:
    seen: list[Any] = []

    class Curious(Modern):
        def step(self, action: Any) -> Any:
            seen.append(action)
            return super().step(0)

    recorded(Curious(), np.zeros((1, 2)), np.full((1, 3, 2), 0.5, np.float32))
    assert {(action.shape, action.dtype.name) for action in seen} == {((2,), "float32")}


def test_a_state_of_another_size_is_incomparable() -> None:
    with pytest.raises(record.Incomparable, match="its state has 2 entries, the stimulus 3"):
        recorded(Modern(), np.zeros((1, 3)), np.array([[0]]))


def test_an_observation_that_changes_its_dtype_on_the_way_is_an_error() -> None:
    class Fickle(Modern):
        def step(self, action: int) -> Any:
            observation, *rest = super().step(action)
            return (observation.astype(np.float64) if self.elapsed > 1 else observation, *rest)

    with pytest.raises(TypeError, match=r"float64.* at step 1 and was float32"):
        recorded(Fickle(), np.zeros((1, 2)), np.array([[0, 0]]))


def test_an_observation_in_parts_becomes_one_vector_in_the_order_of_its_keys() -> None:
    class Parts(Modern):
        def step(self, action: int) -> Any:
            observation, *rest = super().step(action)
            return ({"b": observation, "a": (7, [1.5])}, *rest)

    answer = recorded(Parts(), np.zeros((1, 2)), np.array([[0]]))
    assert answer.arrays["horizon.observation"].tolist() == [[[7.0, 1.5, 1.0, 0.0]]]


def test_one_recording_after_another_is_the_same() -> None:
    states, actions = np.array([[0.1, 0.2]]), np.array([[1, 0, 1]])
    env = Modern(limit=2)
    once, again = (recorded(env, states, actions) for _ in range(2))
    assert all(once.arrays[name].tobytes() == again.arrays[name].tobytes() for name in once.arrays)


# Batches


def test_every_batch_is_recorded_under_its_name() -> None:
    answer = recorded(
        Modern(),
        STATES[:2],
        np.zeros((2, 3), np.int64),
        forced_states=STATES,
        forced_actions=np.array([[0], [1], [1]]),
        nudged_states=np.concatenate([STATES] * 2) + 1e-9,
        nudged_actions=np.zeros((6, 1), np.int64),
        reset_seeds=np.arange(4),
    )
    arrays = answer.arrays
    outputs = {f"{batch}.{output}" for batch in record.BATCHES for output in record.OUTPUTS}
    beside = {"horizon.imposed", "forced.imposed", "reset.state", "reset.observation", "structure", "spaces"}
    assert set(arrays) == outputs | beside
    assert answer.meta["steps"] == 6 + 3 + 6
    assert arrays["forced.imposed"].tobytes() == STATES.tobytes()
    np.testing.assert_allclose(arrays["forced.state"][:, 0], STATES + np.array([[1, 0], [1, 1], [1, 1]]))
    np.testing.assert_allclose(arrays["nudged.state"][:3, 0], STATES + np.array([1, 0]), atol=2e-9)
    assert arrays["reset.state"].tolist() == [[0.25, 0.5]] * 4
    assert arrays["reset.observation"].dtype == np.float32


def test_every_seed_is_reset_from() -> None:
    class Seeded(Modern):
        def reset(self, seed: int | None = None) -> Any:
            super().reset(seed)
            self.state = np.array([0.0 if seed is None else float(seed), 0.5])
            return self.state.astype(np.float32)

    arrays = recorded(Seeded(), STATES[:1], np.zeros((1, 1), np.int64), reset_seeds=np.array([3, 1, 4])).arrays
    assert arrays["reset.state"][:, 0].tolist() == [3, 1, 4]
    assert arrays["reset.observation"][:, 0].tolist() == [3, 1, 4]


def test_spaces_are_recorded() -> None:
    arrays = recorded(Modern(), STATES, np.zeros((3, 1), np.int64)).arrays
    told = json.loads(arrays["spaces"].tobytes())
    assert set(told) == {"action", "observation"}
    assert told["action"] == {"type": "Discrete", "n": 2, "start": 0}


def test_a_replayed_environment_is_started_from_seeds() -> None:
    class Hidden(Modern):
        def reset(self, seed: int | None = None) -> Any:
            super().reset(seed)
            self.real, self.state = np.array([float(seed or 0), 0.5]), None
            return self.real.astype(np.float32)

        def advance(self, action: int) -> Any:
            self.elapsed += 1
            self.real = self.real + np.array([1.0, action])
            return self.real.astype(np.float32), float(self.real[0]), False

    world = registered.wrap(Hidden())
    given = {"horizon.seeds": np.array([5, 7]), "horizon.actions": np.zeros((2, 3), np.int64)}
    arrays = record.record(world, given, world.description()).arrays
    assert arrays["horizon.reward"].tolist() == [[6, 7, 8], [8, 9, 10]]
    assert arrays["horizon.state"].shape == (2, 3, 0)
    assert arrays["horizon.imposed"].shape == (2, 0)


def test_a_table_is_recorded_as_forced_steps() -> None:
    world = registered.wrap(Toy())
    answer = record.record(world, {"reset.seeds": np.arange(2)}, world.description())
    assert answer.meta["steps"] == 4
    assert answer.arrays["forced.state"].shape == (4, 1, 2)
    assert {name.partition(".")[0] for name in answer.arrays} == {"forced", "reset", "structure", "spaces"}


# Reproduced


def forced(env: Counter, states: NDArray[Any] = STATES) -> Any:
    world = registered.wrap(env)
    given = {"forced.states": states, "forced.actions": np.ones((len(states), 1), np.int64)}
    return record.record(world, given, world.description())


class Leaky(Modern):
    """Remembers something of the step before, whatever is imposed."""

    left = 0.0

    def advance(self, action: int) -> Any:
        answer = super().advance(action)
        self.state = self.state + self.left
        self.left = 1e-15 * float(self.state[0])
        return answer


class Restless(Modern):
    """Counts all steps it ever took."""

    taken = 0

    def step(self, action: Any) -> Any:
        self.taken += 1
        observation, reward, *rest = super().step(action)
        return observation, reward + (self.taken > 5), *rest


@pytest.mark.parametrize(("env", "output"), [(Leaky, "state"), (Restless, "reward")])
def test_a_release_that_does_not_reproduce_itself_is_found_out(env: type[Counter], output: str) -> None:
    with pytest.raises(record.NotReproduced, match=f"led to another {output}"):
        forced(env())
    assert forced(Modern()).status == "ok"


@pytest.mark.parametrize("count", [1, 2, 15, 16, 17, 40])
def test_a_sample_of_any_size_is_repeated_last_first(count: int) -> None:
    imposed: list[float] = []

    class Watched(Modern):
        def step(self, action: Any) -> Any:
            imposed.append(float(self.state[0]))
            return super().step(action)

    forced(Watched(), np.arange(2.0 * count).reshape(count, 2))
    again = imposed[3 + count :]
    assert len(again) == min(count, record.REPEATED)
    assert again == sorted(again, reverse=True)
    assert again[0] == 2.0 * (count - 1)
    assert again[-1] == 0.0
