"""The bank as a release makes it: visited, in range and sought states of a small world without a simulator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from audit.asked.stimulus_spec import BankSpec
from audit.planning import banks
from audit.stimuli.bank import SOURCES
from audit.stimuli.layout import Layout
from audit.stimuli.stimulus import unpacked
from dumper import bank
from dumper.worlds import World
from tests.planned_cells import batch

Floats = NDArray[np.float64]


class Track(World):  # type: ignore[misc]  # the dumper is not typed
    """A bead on a track from -1 to 1 that rollouts leave near the middle; at either end it touches a wall."""

    kind = "track"
    walls = ("contact bead-left", "contact bead-right")

    def __init__(self, end: float = 0.3) -> None:
        self.end = end
        self.now = np.zeros(2)
        self.imposed: list[Floats] = []
        self.seeds: list[int] = []

    def layout(self) -> Any:
        action = {"type": "Discrete", "n": 3, "start": -1}
        return {
            "kind": self.kind, "evidence": self.evidence, "state_size": 2, "positions": 1, "quaternions": [],
            "reference": [0.0, 0.0], "low": [-1.0, None], "high": [1.0, None], "action": action,
        }  # fmt: skip

    def reset(self, seed: int) -> Floats:
        self.seeds.append(seed)
        self.now = np.array([0.01 * seed / 64, 0.0])
        return self.now.copy()

    def impose(self, state: Floats) -> None:
        self.imposed.append(np.array(state))
        self.now = np.array(state, dtype=np.float64)

    def read(self) -> Floats:
        return self.now.copy()

    def stepper(self, action: int) -> Any:
        def step(action: int) -> Any:
            speed = 0.9 * self.now[1] + 0.01 * action
            self.now = np.array([np.clip(self.now[0] + 0.1 * speed, -1, 1), speed])
            return self.now.copy(), 0.0, abs(self.now[0]) > self.end, False, {}

        return step

    def features(self) -> list[str]:
        return list(self.walls)

    def acting(self) -> NDArray[np.bool_]:
        return np.array([self.now[0] <= -0.99, self.now[0] >= 0.99])

    def gap(self, index: int) -> float:
        return float(self.now[0] + 0.99 if index == 0 else 0.99 - self.now[0])


def request(**values: Any) -> dict[str, NDArray[Any]]:
    layout = Layout.from_json(Track().layout())
    asked = banks.request(BankSpec.model_validate({"states": 64, **values}), batch(8, 5), layout, Path())
    return unpacked(asked.payload)


def make(world: World | None = None, **values: Any) -> Any:
    answer = bank.make(world or Track(), request(**values))
    assert answer.status == "ok"
    return answer


def of(answer: Any, source: str) -> Floats:
    found: Floats = answer.arrays["states"][answer.arrays["source"] == SOURCES.index(source)]
    return found


def test_a_bank_has_the_states_that_were_wanted_of_each_source() -> None:
    answer = make()
    counts = {name: len(of(answer, name)) for name in SOURCES}
    assert counts["given"] == 8
    assert counts["in range"] == 16
    assert 1 <= counts["sought"] <= 16
    assert counts["visited"] == 64 - 16 - counts["sought"], "visited states take the place of what was not found"
    assert of(answer, "given").tobytes() == batch(8, 5).starts.tobytes()
    assert answer.arrays["acting"].shape == (72, 3)


def test_visited_states_lie_near_the_middle_and_those_in_range_between_the_limits() -> None:
    answer = make()
    visited, in_range = of(answer, "visited"), of(answer, "in range")
    assert np.abs(visited[:, 0]).max() < 0.6
    assert np.abs(in_range[:, 0]).max() <= 1
    assert np.abs(in_range[:, 0]).max() > 0.7
    span = np.ptp(visited[:, 1])
    assert np.ptp(in_range[:, 1]) < 2.5 * span, "an entry without limits stays near what was visited"


def test_what_no_visited_state_touches_is_sought_and_found() -> None:
    answer = make()
    assert answer.meta["features"] == [*Track.walls, bank.TERMINATES]
    acting = answer.arrays["acting"]
    source = answer.arrays["source"]
    assert not acting[source == 1, :2].any()
    assert acting[source == 3, :2].any(axis=0).all(), "both walls"


def test_ends_of_the_episode_count_as_a_feature() -> None:
    assert make().arrays["acting"][:, -1].any()
    assert not make(Track(end=2.0)).arrays["acting"][:, -1].any()


def test_what_acts_is_told_state_by_state() -> None:
    given = request()
    answer = bank.make(Track(), given)
    world = Track()
    for state, action, acting in zip(
        answer.arrays["states"], given["forced_actions"].tolist(), answer.arrays["acting"], strict=False
    ):
        world.impose(state)
        before = world.acting()
        ended = world.stepper(0)(action)[2]
        assert acting.tolist() == [*(before | world.acting()).tolist(), ended]


def test_the_same_request_makes_the_same_bank_and_another_seed_another() -> None:
    one, again, other = make(), make(), make(seed=1)
    for name in ("states", "source", "acting"):
        assert one.arrays[name].tobytes() == again.arrays[name].tobytes()
    assert of(one, "in range").tobytes() != of(other, "in range").tobytes()


def test_own_states_are_only_looked_at() -> None:
    given = {**request(), "states": np.array([[0.995, 0.0], [0.0, 0.0]]), "wanted": np.zeros(3, np.int64)}
    world = Track()
    answer = bank.make(world, given)
    assert answer.arrays["states"].tobytes() == given["states"].tobytes()
    assert answer.arrays["source"].tolist() == [0, 0]
    assert answer.arrays["acting"][:, 1].tolist() == [True, False]
    assert world.seeds == []


def test_rollouts_go_over_several_seeds_and_every_other_past_its_end() -> None:
    world = Track(end=0.01)
    visited = of(make(world, states=512), "visited")
    assert len(set(world.seeds)) > 4
    assert (np.abs(visited[:, 0]) > 0.02).any(), "a step does not lead that far beyond the end"


def test_a_world_that_refuses_to_go_on_past_its_end_is_visited_up_to_there() -> None:
    class Strict(Track):
        def stepper(self, action: int) -> Any:
            inner = super().stepper(action)

            def step(action: int) -> Any:
                assert abs(self.now[0]) <= self.end, "reset me"
                return inner(action)

            return step if abs(self.now[0]) <= self.end else inner

        def impose(self, state: Floats) -> None:
            super().impose(state)
            self.end = 2.0

        def reset(self, seed: int) -> Floats:
            self.end = 0.05
            return super().reset(seed)

    assert np.abs(of(make(Strict()), "visited")[:, 0]).max() < 0.2


def test_states_from_which_a_step_explodes_are_not_in_the_bank() -> None:
    class Cliff(Track):
        def stepper(self, action: int) -> Any:
            inner = super().stepper(action)

            def step(action: int) -> Any:
                steep = abs(self.now[0]) > 0.8
                outcome = inner(action)
                if steep:
                    self.now = self.now * 1e6
                return outcome

            return step

    in_range = of(make(Cliff()), "in range")
    assert len(in_range)
    assert np.abs(in_range[:, 0]).max() <= 0.8


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_visited_states_that_are_not_numbers_are_left_out(wrong: float) -> None:
    class Broken(Track):
        def read(self) -> Floats:
            state = super().read()
            return np.full(2, wrong) if 0.01 < state[0] < 0.02 else state

    answer = make(Broken())
    assert np.isfinite(answer.arrays["states"]).all()


def test_fewer_numbers_make_a_smaller_bank() -> None:
    answer = bank.make(Track(), {**request(), "numbers": np.random.default_rng(0).random(20)})
    assert len(of(answer, "visited")) > 0


def test_states_in_range_that_the_environment_refuses_are_not_in_the_bank() -> None:
    class Fenced(Track):
        def stepper(self, action: int) -> Any:
            inner = super().stepper(action)

            def step(action: int) -> Any:
                if abs(self.now[0]) > 0.8:
                    raise ValueError("off the track")
                return inner(action)

            return step

        def features(self) -> list[str]:
            return []

        def acting(self) -> NDArray[np.bool_]:
            return np.zeros(0, np.bool_)

    in_range = of(make(Fenced()), "in range")
    assert len(in_range)
    assert np.abs(in_range[:, 0]).max() <= 0.8
