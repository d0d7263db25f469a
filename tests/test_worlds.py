"""The user's own environment: what an adapter must give, what is made of it, and what is said when it is wrong.

Scenes and dm_control tasks need the bindings they run on; the end-to-end tests run them on real releases.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from dumper.adapter import BadAdapter
from tests.adapted_worlds import SMALL, adapted, pendulum

# The example


def test_the_example_tells_its_layout() -> None:
    layout = pendulum().layout()
    assert (layout["state_size"], layout["positions"], layout["reference"]) == (2, 1, [0.5, 0.0])
    assert layout["low"] == [-np.pi, None]
    assert layout["action"] == {"type": "Box", "shape": [1], "dtype": "float64", "low": ["-5.0"], "high": ["5.0"]}
    assert (layout["kind"], layout["evidence"]) == ("adapter", "forced")


def test_what_is_imposed_is_read_and_stepped_from() -> None:
    world = pendulum()
    step = world.stepper(np.zeros(1))
    outcomes = []
    for state in ([0.3, -1.0], [1.9, 3.0], [0.3, -1.0]):
        world.impose(np.array(state))
        assert world.read().tolist() == state
        observation, reward, terminated, truncated, information = step(np.array([0.5]))
        assert observation.dtype == np.float32
        assert (terminated, truncated, information) == (False, False, {})
        outcomes.append((observation.tobytes(), reward, world.read().tobytes()))
    assert outcomes[0] == outcomes[2] != outcomes[1]


def test_rows_are_filled_by_the_copier() -> None:
    world, rows = pendulum(), np.empty((3, 2))
    step, copy = world.stepper(np.zeros(1)), world.copier(rows)
    world.impose(np.array([0.1, 0.2]))
    for k in range(3):
        step(np.zeros(1))
        copy(k)
    assert len({row.tobytes() for row in rows}) == 3
    assert rows[-1].tolist() == world.read().tolist()


def test_an_episode_starts_from_its_seed() -> None:
    world = pendulum()
    assert world.reset(7).tolist() == world.reset(7).tolist() != world.reset(8).tolist()


def test_what_acts_is_named_and_told() -> None:
    world = pendulum()
    assert world.features() == ["at the stop", "too fast"]
    told = []
    for state in ([0.0, 0.0], [2.0, 0.0], [0.0, 13.0]):
        world.impose(np.array(state))
        told.append(world.acting().tolist())
    assert told == [[False, False], [True, False], [False, True]]


def test_an_episode_terminates() -> None:
    world = pendulum()
    world.impose(np.array([0.0, 13.0]))
    assert world.stepper(np.zeros(1))(np.zeros(1))[2] is True


@pytest.mark.parametrize("name", ["gravity", "time_step", "damping", "length"])
def test_a_moved_constant_moves_the_step(name: str) -> None:
    outcomes = []
    for factor in (1.0, 1.0 + 1e-6):
        world = pendulum()
        assert name in world.constants()
        world.move(name, factor)
        world.impose(np.array([1.0, 1.0]))
        world.stepper(np.zeros(1))(np.zeros(1))
        outcomes.append(world.read().tobytes())
    assert outcomes[0] != outcomes[1]


def test_arguments_reach_the_adapter() -> None:
    assert pendulum(length=2.5).description()["constants"]["length"] == "2.5"


def test_the_description_can_be_written_down() -> None:
    description = pendulum().description()
    assert json.loads(json.dumps(description)) == description
    assert description["spaces"]["observation"]["dtype"] == "float32"


# Defaults


def test_only_six_functions_are_required(tmp_path: Path) -> None:
    world = adapted(tmp_path)
    layout = world.layout()
    assert (layout["positions"], layout["quaternions"], layout["reference"]) == (1, [], [1.0])
    assert (layout["low"], layout["high"]) == ([None], [None])
    assert layout["action"] == {"type": "Discrete", "n": 3, "start": 0}
    assert (world.features(), world.acting().tolist(), world.constants()) == ([], [], [])
    world.impose(np.array([5.0]))
    assert world.reset(0).tolist() == [1.0]


def test_an_adapter_may_reuse_the_array_it_gives(tmp_path: Path) -> None:
    reusing = SMALL.split("def step")[0] + (
        "import numpy\n"
        "seen = numpy.zeros(1)\n"
        "def step(handle, action):\n"
        "    seen[0] += action\n"
        "    return seen, 0.0, False, False\n"
    )
    step = adapted(tmp_path, reusing).stepper(1)
    first, second = step(1)[0], step(1)[0]
    assert (first.tolist(), second.tolist()) == ([1.0], [2.0])


# What is wrong


WRONG = {
    "no read": ("def read(handle)", "def unread(handle)", "does not define read"),
    "no size": ('{"state_size": 1}', "{}", "without a state_size"),
    "a size of nothing": ('{"state_size": 1}', '{"state_size": 0}', "without a state_size"),
    "another size": ('{"state_size": 1}', '{"state_size": 2}', r"the shape \(1,\) and state_size is 2"),
    "an unknown word": ('{"state_size": 1}', '{"state_size": 1, "lows": [0]}', "layout has lows"),
    "short limits": ('{"state_size": 1}', '{"state_size": 1, "low": []}', "layout's low"),
    "many positions": ('{"state_size": 1}', '{"state_size": 1, "positions": 2}', "2 of 1 entries are positions"),
    "a quaternion beyond": ('{"state_size": 1}', '{"state_size": 1, "quaternions": [0]}', "quaternions at"),
    "words as a state": ('return [handle["x"]]\n', 'return ["left"]\n', "not a vector of numbers"),
    "no actions": ('{"n": 3}', "None", "actions gave None"),
    "half an action": ('{"n": 3}', '{"low": [0.0]}', "actions gave"),
    "uneven actions": ('{"n": 3}', '{"low": [0.0], "high": [1.0, 1.0]}', "of one length"),
    "endless actions": ('{"n": 3}', '{"low": [0.0], "high": [float("inf")]}', "finite"),
    "actions upside down": ('{"n": 3}', '{"low": [1.0], "high": [0.0]}', "low is above its high"),
    "constants that cannot be moved": ("def make", "def constants(h): return {}\ndef make", "belong together"),
    "features without names": ("def make", "def acting(h): return [True]\ndef make", "acting gave"),
}


@pytest.mark.parametrize(("old", "new", "said"), WRONG.values(), ids=WRONG.keys())
def test_what_is_missing_or_nonsense_is_said_when_it_is_made(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in SMALL
    with pytest.raises(BadAdapter, match=said):
        adapted(tmp_path, SMALL.replace(old, new, 1))


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        ("[0.0], 0.0, False", "and not \\(observation, reward, terminated, truncated\\)"),
        ("None", "step gave None"),
        ("[0.0], None, False, False", "step gave"),
        ('["left"], 0.0, False, False', "not an array of numbers"),
        ("{}, 0.0, False, False", "not an array of numbers"),
    ],
)
def test_a_step_that_makes_no_sense_is_said(tmp_path: Path, returned: str, said: str) -> None:
    world = adapted(tmp_path, SMALL.replace('[handle["x"]], 0.0, False, False', returned))
    with pytest.raises(BadAdapter, match=said):
        world.stepper(1)(1)


def test_features_that_change_their_names_are_said(tmp_path: Path) -> None:
    world = adapted(tmp_path, SMALL + "def acting(handle): return {str(handle['x']): True}\n")
    world.impose(np.array([2.0]))
    with pytest.raises(BadAdapter, match="before and now"):
        world.acting()


def test_only_known_constants_are_moved() -> None:
    with pytest.raises(BadAdapter, match="no constant"):
        pendulum().move("mass", 2.0)


def test_what_its_imports_raise_goes_through(tmp_path: Path) -> None:
    with pytest.raises(ImportError):
        adapted(tmp_path, "import a_simulator_that_is_not_installed\n" + SMALL)


def test_its_mistakes_in_arguments_go_through(tmp_path: Path) -> None:
    with pytest.raises(TypeError):
        adapted(tmp_path, SMALL, colour="blue")
