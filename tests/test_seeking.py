"""The search for states in which something acts that the bank never touched, on worlds of a few numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dumper import seeking

Array = NDArray[Any]

REACH = 0.1


class Room:
    """A ball and an arm in a plane, a turning body, one limited hinge, one pair that never meets.

    Positions: the ball's two, the hinge's, a quaternion. Velocities: six.
    """

    names: tuple[str, ...] = (
        "contact ball–arm",
        "limit hinge low",
        "limit hinge high",
        "upside down",
        "impossible",
        "saturated motor",
    )

    def __init__(self) -> None:
        self.state = np.zeros(13)
        self.imposed = 0

    def layout(self) -> dict[str, Any]:
        unlimited: list[float | None] = [None] * 13
        low, high = list(unlimited), list(unlimited)
        low[:3], high[:3] = [-10.0, -10.0, -1.0], [10.0, 10.0, 2.0]
        return {"positions": 7, "quaternions": [3], "low": low, "high": high, "state_size": 13}

    def features(self) -> list[str]:
        return list(self.names)

    def impose(self, state: Array) -> None:
        assert np.isfinite(state).all()
        assert np.linalg.norm(state[3:7]) == pytest.approx(1.0, abs=1e-12)
        self.imposed += 1
        self.state = state.copy()

    def acting(self) -> Array:
        return np.array([self.gap(index) < 0 for index in range(len(self.names))])

    def gap(self, index: int) -> float:
        ball, hinge, turn = self.state[:2], self.state[2], self.state[3:7]
        tip = np.array([5.0 + np.cos(hinge), np.sin(hinge)])
        gaps = (
            float(np.linalg.norm(ball - tip)) - REACH,
            hinge + 1.0,
            2.0 - hinge,
            0.9 - float(np.abs(turn[1])),
            1.0 + abs(hinge),
            np.inf,
        )
        return float(gaps[index])


def visited(count: int = 20) -> Array:
    """States around the middle of the room: the ball is far from the arm, no limit is reached, nothing is turned."""
    draw = np.random.default_rng(1)
    states = draw.uniform(-0.5, 0.5, (count, 13))
    states[:, 3:7] = (1.0, 0.0, 0.0, 0.0)
    return states


def numbers(count: int = 100_000) -> Array:
    return np.random.default_rng(2).random(count)


def test_what_never_acted_is_found_several_times() -> None:
    room = Room()
    sought, covered, found = seeking.seek(room, visited(), numbers(), 2000, 100)
    assert not covered.any()
    assert covered.shape == (20, 6)
    assert found.shape == (len(sought), 6)
    assert (found.sum(axis=0)[:4] >= seeking.EACH).all()
    assert len(np.unique(sought, axis=0)) == len(sought)


def test_what_is_returned_acts_when_it_is_imposed() -> None:
    room = Room()
    sought, _, found = seeking.seek(room, visited(), numbers(), 2000, 100)
    for state, acting in zip(sought, found, strict=True):
        room.impose(state)
        assert np.array_equal(room.acting(), acting)
        assert acting.any()


def test_what_is_found_barely_overruns_anything() -> None:
    room = Room()
    sought, _, found = seeking.seek(room, visited(), numbers(), 2000, 100)
    for state, acting in zip(sought, found, strict=True):
        room.impose(state)
        assert sum((-room.gap(index) for index in np.flatnonzero(acting).tolist()), 0.0) <= seeking.DEPTH


def test_sought_states_move_as_the_states_did_that_they_started_from() -> None:
    states = visited()
    sought, _, _ = seeking.seek(Room(), states, numbers(), 2000, 100)
    velocities = {state[7:].tobytes() for state in states}
    assert all(state[7:].tobytes() in velocities for state in sought)
    assert len({state[7:].tobytes() for state in sought}) > 1


def test_limits_are_found_by_setting_them_at_the_price_of_a_few_evaluations() -> None:
    _, _, found = seeking.seek(Room(), visited(), numbers(), 6 * seeking.EACH, 100)
    assert found[:, 1].any()
    assert found[:, 2].any()


def test_neither_the_impossible_nor_what_actions_decide_is_claimed() -> None:
    _, _, found = seeking.seek(Room(), visited(), numbers(), 2000, 100)
    assert not found[:, 4:].any()


def test_what_the_bank_covers_is_not_sought() -> None:
    states = visited()
    states[3, 2] = 2.01
    sought, covered, found = seeking.seek(Room(), states, numbers(), 2000, 100)
    assert covered[3].tolist() == [False, False, True, False, False, False]
    assert covered.sum() == 1
    assert found[:, [0, 1, 3]].any(axis=1).all()
    assert len(sought)


@pytest.mark.parametrize("wanted", [0, 1, 4, 9])
def test_no_more_than_wanted_and_one_of_each_before_a_second(wanted: int) -> None:
    sought, _, found = seeking.seek(Room(), visited(), numbers(), 2000, wanted)
    assert len(sought) == wanted
    assert sought.shape == (wanted, 13)
    assert found.any(axis=0).sum() >= min(wanted, 4)


@pytest.mark.parametrize("budget", [0, 1, 17, 300])
def test_the_budget_is_kept(budget: int) -> None:
    room = Room()
    sought, _, _ = seeking.seek(room, visited(), numbers(), budget, 100)
    gaps = len(room.names)  # once for each feature: can it be told at all how far it is
    assert room.imposed <= 20 + budget + gaps + len(sought)


@pytest.mark.parametrize("count", [0, 1, 50])
def test_seeking_ends_when_the_numbers_are_used_up(count: int) -> None:
    sought, covered, found = seeking.seek(Room(), visited(), numbers(count), 10_000, 100)
    assert covered.shape == (20, 6)
    assert len(sought) == len(found)


def test_the_same_numbers_give_the_same_bytes() -> None:
    first, _, _ = seeking.seek(Room(), visited(), numbers(), 1000, 50)
    second, _, _ = seeking.seek(Room(), visited(), numbers(), 1000, 50)
    assert first.tobytes() == second.tobytes()


def test_numbers_are_handed_out_in_order_and_once() -> None:
    drawn = seeking.Numbers(np.array([0.1, 0.2, 0.99, 0.4]))
    assert drawn.take(2).tolist() == [0.1, 0.2]
    assert drawn.below(3) == 2
    assert drawn.take(1).tolist() == [0.4]
    with pytest.raises(seeking.Spent):
        drawn.take(1)


def test_numbers_that_others_have_used_are_not_used_again() -> None:
    drawn = seeking.Numbers(numbers(3000))
    seeking.seek(Room(), visited(), drawn, 100, 10)
    assert drawn.take(1)[0] not in numbers(3000)[:50]


def test_no_states_and_no_features_give_nothing() -> None:
    sought, covered, found = seeking.seek(Room(), visited()[:0], numbers(), 100, 10)
    assert (sought.shape, covered.shape, found.shape) == ((0, 13), (0, 6), (0, 6))


class Featureless(Room):
    names = ()

    def layout(self) -> dict[str, Any]:
        raise AssertionError("nobody has to ask")


def test_where_nothing_can_be_told_nothing_is_tried() -> None:
    sought, covered, found = seeking.seek(Featureless(), visited(), numbers(), 100, 10)
    assert (sought.shape, covered.shape, found.shape) == ((0, 13), (20, 0), (0, 0))


class Quick(Room):
    """A world with a shorter way to a state than imposing it."""

    def place(self, state: Array) -> None:
        self.state = state.copy()

    def impose(self, state: Array) -> None:
        raise AssertionError("there is a shorter way")


def test_the_shorter_way_to_a_state_is_taken_where_there_is_one() -> None:
    _, _, found = seeking.seek(Quick(), visited(), numbers(), 2000, 50)
    assert found[:, 0].any()


class Unlimited(Room):
    """Nothing is known of its limits."""

    def layout(self) -> dict[str, Any]:
        return {**super().layout(), "low": None, "high": None}


def test_a_world_that_knows_no_limits_is_searched_by_its_gaps() -> None:
    _, _, found = seeking.seek(Unlimited(), visited(), numbers(), 2000, 50)
    assert found[:, :4].any(axis=0).all()
