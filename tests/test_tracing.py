"""What a step written in Python computes: every assignment, in order, and nothing of it changed by being watched."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dumper import registered, stages, tracing
from dumper.record import Incomparable
from dumper.worlds import Unavailable
from tests.adapted_worlds import SMALL, adapted, pendulum
from tests.small_environments import Modern

STATES = np.array([[0.5, 1.0], [2.0, -3.0], [0.0, 0.0]])
ACTIONS = np.array([0, 1, 1])


def halved(value: Any) -> Any:
    return value / 2


class Swing(Modern):
    """Assigns in every way."""

    fast = 100.0

    def advance(self, action: int) -> Any:
        position, speed = self.state
        self.elapsed += 1
        speed = speed + (action - position)
        speed = np.clip(
            speed,
            -self.fast,
            self.fast,
        )
        trail = np.zeros(3)
        for k in range(3):
            trail[k] = position * k
        if (twice := 2 * position) > 3:
            beyond = twice
            del beyond
        small = np.float32(position)
        self.last = [float(small), 1]
        words = "left"
        large = np.zeros(65)
        self.state = np.array([halved(position), speed])
        assert len(words) + large.sum() == 4
        return self.state.astype(np.float32), 1.0, False


def watched(env: Any, states: Any = STATES, actions: Any = ACTIONS, **more: Any) -> Any:
    return stages.record(registered.wrap(env), {"states": states, "actions": actions, **more})


def events(answer: Any) -> list[str]:
    """Function and variable of what was seen, without the outputs."""
    names = [name for name in answer.meta["order"] if ".outputs." not in name]
    assert all(name.startswith("00.") for name in names)
    return [name[3:] for name in names]


def test_every_assignment_is_seen_in_order() -> None:
    answer = watched(Swing())
    assert events(answer) == [
        "Modern.step.action#0",
        "Swing.advance.action#0",
        "Swing.advance.position#0",
        "Swing.advance.speed#0",
        "Swing.advance.self.elapsed#0",
        "Swing.advance.speed#1",
        "Swing.advance.speed#2",
        "Swing.advance.trail#0",
        "Swing.advance.k#0",
        "Swing.advance.trail#1",
        "Swing.advance.k#1",
        "Swing.advance.trail#2",
        "Swing.advance.k#2",
        "Swing.advance.trail#3",
        "Swing.advance.twice#0",
        "Swing.advance.small#0",
        "Swing.advance.self.last#0",
        "halved.value#0",
        "halved.return#0",
        "Swing.advance.self.state#0",
        "Modern.step.observation#0",
        "Modern.step.reward#0",
        "Modern.step.done#0",
    ]


def test_values_are_those_of_each_state() -> None:
    arrays = watched(Swing()).arrays
    assert arrays["00.Swing.advance.speed#0"].tolist() == [1.0, -3.0, 0.0]
    assert arrays["00.Swing.advance.speed#1"].tolist() == [0.5, -4.0, 1.0]
    assert arrays["00.Swing.advance.speed#2"].tolist() == [0.5, -4.0, 1.0], "assigned, though nothing was clipped"
    assert arrays["00.Swing.advance.trail#2"].tolist() == [[0, 0.5, 0], [0, 2.0, 0], [0, 0, 0]]
    assert arrays["00.Swing.advance.self.state#0"].tobytes() == arrays["01.outputs.state"].tobytes()
    assert arrays["01.outputs.reward"].tolist() == [1.0] * 3


def test_types_are_told_as_the_step_had_them() -> None:
    meta = watched(Swing()).meta
    kinds = {name.split(".", 1)[1]: kind for name, kind in meta["dtypes"].items()}
    assert kinds["Swing.advance.action#0"] == "int"
    assert kinds["Swing.advance.speed#1"] == "float64"
    assert kinds["Swing.advance.small#0"] == "float32"
    assert kinds["Swing.advance.self.last#0"] == "list of mixed"
    assert kinds["Modern.step.reward#0"] == "float"
    assert kinds["Modern.step.done#0"] == "bool"


def test_another_type_in_another_state_is_mixed() -> None:
    class Mixed(Modern):
        def advance(self, action: int) -> Any:
            gain = 1 if action else 1.5
            self.state = self.state * gain
            return self.state, 0.0, False

    answer = watched(Mixed())
    (name,) = [name for name in answer.arrays if name.endswith("gain#0")]
    assert answer.meta["dtypes"][name] == "mixed"
    assert answer.arrays[name].tolist() == [1.5, 1.0, 1.0]


def test_the_line_of_an_assignment_is_told() -> None:
    meta = watched(Swing()).meta
    name, _, line = meta["lines"]["00.Swing.advance.speed#2"].partition(":")
    assert name == "test_tracing.py"
    assert Path(__file__).read_text().splitlines()[int(line) - 1].strip() == "speed = np.clip("


def test_what_is_not_in_every_state_with_one_shape_is_counted() -> None:
    class Branching(Modern):
        def advance(self, action: int) -> Any:
            if action:
                pushed = 1.0
                self.state = self.state * pushed
            ragged = np.zeros(1 + action)
            huge = 10**30
            turning = 1j
            turnings = [turning]
            self.state = self.state + ragged.sum() + huge * 0
            assert turnings
            return self.state, 0.0, False

    answer = watched(Branching())
    assert answer.meta["left_out"] == {
        "not computed in every state": 2,
        "not numbers, or more than 64 of them": 3 + len(["what advance returns", "what step returns"]),
        "of another shape in another state": 1,
    }
    assert not [name for name in answer.arrays if "pushed" in name or "ragged" in name]


def test_no_more_than_so_many_values_are_kept() -> None:
    class Long(Modern):
        def advance(self, action: int) -> Any:
            for k in range(1000):
                self.total = k
            self.state = self.state + 1
            return self.state, 0.0, False

    answer = watched(Long())
    assert len(events(answer)) == tracing.MOST
    assert answer.meta["left_out"]["beyond the first 500 of a step"] > 1000


def test_the_step_is_the_same_as_without() -> None:
    world, arrays = registered.wrap(Swing()), watched(Swing()).arrays
    step = world.stepper(0)
    for row, (state, action) in enumerate(zip(STATES, ACTIONS.tolist(), strict=True)):
        world.impose(state)
        observation = step(action)[0]
        assert arrays["01.outputs.state"][row].tobytes() == world.read().tobytes()
        assert arrays["01.outputs.observation"][row].tobytes() == observation.tobytes()


def test_a_step_that_notices_is_incomparable() -> None:
    class Suspicious(Modern):
        def advance(self, action: int) -> Any:
            self.state = self.state + (sys.gettrace() is not None)
            return super().advance(action)

    before = sys.gettrace()
    sys.settrace(None)  # of whoever measures these tests
    try:
        with pytest.raises(Incomparable, match="watched, its step is another one"):
            watched(Suspicious())
    finally:
        sys.settrace(before)


def test_nothing_is_left_behind_where_a_step_raises() -> None:
    class Raising(Modern):
        def advance(self, action: int) -> Any:
            if self.state[0] > 1:
                raise ZeroDivisionError
            return super().advance(action)

    before = sys.gettrace()
    with pytest.raises(ZeroDivisionError):
        watched(Raising())
    assert sys.gettrace() is before


def test_functions_are_as_before_when_the_step_has_been_watched() -> None:
    before = Swing.advance.__code__, halved.__code__, set(globals())
    watched(Swing())
    assert (Swing.advance.__code__, halved.__code__, set(globals())) == before


def test_a_step_is_followed_into_functions_of_every_kind() -> None:
    class Winding(Modern):
        gain = 1.0

        @property
        def doubled(self) -> float:
            twice = 2 * self.gain
            return twice + 0

        @staticmethod
        def shifted(value: Any) -> Any:
            moved = value + 1
            return moved + 0

        def advance(self, action: int) -> Any:
            factor = self.doubled

            def inner(value: Any) -> Any:
                times = value * factor
                return times + 0

            self.state = inner(self.shifted(self.state))
            return super().advance(action)

    seen = [name.removeprefix("test_a_step_is_followed_into_functions_of_every_kind.<locals>.") for name in events(
        watched(Winding()))]  # fmt: skip
    assert {"Winding.doubled.twice#0", "Winding.shifted.moved#0", "Winding.advance.<locals>.inner.times#0"} <= {*seen}
    assert seen.index("Winding.doubled.twice#0") < seen.index("Winding.advance.factor#0")


def test_an_assignment_that_did_not_come_about_is_no_event() -> None:
    class Trying(Modern):
        def advance(self, action: int) -> Any:
            found, nothing = 1.0, dict[int, float]()
            try:
                found = nothing[action]
            except KeyError:
                missed = 2.0
            self.state = self.state * found * missed
            return self.state, 0.0, False

    seen = [name.rpartition(".")[2] for name in events(watched(Trying()))]
    assert [name for name in seen if name.startswith(("found", "missed"))] == ["found#0", "missed#0"]


def test_a_loop_of_one_statement() -> None:
    class Looping(Modern):
        def advance(self, action: int) -> Any:
            left = 3
            while True:
                left -= 1
                if not left:
                    break
            self.state = self.state + left
            return self.state, 0.0, False

    assert [name for name in events(watched(Looping())) if "left" in name][-1].endswith("left#3")


def test_wrappers_and_other_packages_are_not_looked_into() -> None:
    class Wrapper:
        def __init__(self, env: Any) -> None:
            self.env, self.unwrapped = env, env
            self.action_space, self.observation_space, self.reset = env.action_space, env.observation_space, env.reset

        def step(self, action: Any) -> Any:
            before = 1.0
            taken = self.env.step(action)
            after = halved(before)
            assert after
            return taken

    seen = events(watched(Wrapper(Modern())))
    assert seen
    assert not [name for name in seen if "Wrapper" in name or "halved" in name or "numpy" in name]


def test_a_step_that_is_inherited_is_seen_where_it_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    class Elsewhere(Swing):
        pass

    monkeypatch.setattr(Elsewhere, "__module__", "another.package")
    assert "Swing.advance.speed#1" in events(watched(Elsewhere()))


def test_a_step_without_source_cannot_be_seen() -> None:
    text = "def step(self, action):\n    self.state = self.state + 1\n    return self.state, 0.0, False, False, {}\n"
    made: dict[str, Any] = {"__name__": "tests.made"}
    exec(text, made)

    class Compiled(Modern):
        step = made["step"]

    with pytest.raises(Unavailable, match="not written in Python that could be read"):
        watched(Compiled())


def test_an_environment_that_is_replayed_cannot_be_watched() -> None:
    class Hidden(Modern):
        def reset(self, seed: int | None = None) -> Any:
            observation = super().reset(seed)
            self.state = None
            return observation

    with pytest.raises(Unavailable, match="within a step cannot be seen"):
        watched(Hidden())
    with pytest.raises(Unavailable, match="in Python cannot be seen"):
        watched(Hidden(), traced=np.array(True))


def test_an_adapter_and_the_package_of_its_handle_are_watched(tmp_path: Path) -> None:
    request = {"states": np.array([[0.3, -1.0], [1.9, 3.0]]), "actions": np.array([[0.5], [0.1]])}
    answer = stages.record(pendulum(), request)
    assert "00.Pendulum.advance.pull#0" in answer.arrays
    assert answer.arrays["00.Pendulum.advance.self.speed#0"].shape == (2,)
    small = stages.record(adapted(tmp_path, SMALL), {"states": np.array([[1.0], [2.0]]), "actions": np.array([0, 2])})
    assert small.arrays["00.step.action#0"].tolist() == [0, 2]
    assert small.arrays["01.outputs.state"].tolist() == [[1.0], [4.0]]
