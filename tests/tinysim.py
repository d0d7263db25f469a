"""A tiny simulator, built as real wheels in many versions with planted differences, and a tiny dependency of it.

Every version of ``tinysim`` is version 1.0 with a few lines replaced; ``PLANTED`` is the list of what and why. Four
environments: ``Spring-v0`` forgets rounding, ``Chaos-v0`` amplifies it, ``Ball-v0`` has a floor, a ceiling and drag
that act only where it touches or is fast, ``Hidden-v0`` does not publish its state.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests import wheels

SOURCE = """\
import gymnasium
import numpy as np
import tinydep


class Spring(gymnasium.Env):
    dt = 0.02

    def __init__(self):
        self.stiffness = 4.0 * tinydep.SCALE
        self.damping = 0.3
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float64)
        self.state = None

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state = np.array([1.0, 0.0])
        return self.observe(), {}

    def step(self, action):
        position, velocity = self.state
        force = float(action[0]) - self.stiffness * position - self.damping * velocity
        velocity = velocity + self.dt * force
        position = position + self.dt * velocity
        self.state = np.array([position, velocity])
        reward = -float(position * position + velocity * velocity)
        terminated = bool(abs(position) > 5.0)
        return self.observe(), reward, terminated, False, {}

    def observe(self):
        return self.state.copy()


class Chaos(gymnasium.Env):
    def __init__(self):
        self.action_space = gymnasium.spaces.Discrete(2)
        self.observation_space = gymnasium.spaces.Box(0.0, 1.0, (2,), np.float64)
        self.state = None

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state = np.array([0.4, 0.6])
        return self.state.copy(), {}

    def step(self, action):
        self.state = 3.9 * self.state * (1.0 - self.state)
        return self.state.copy(), float(self.state[0]), False, False, {}


class Ball(gymnasium.Env):
    dt = 0.02

    def __init__(self):
        self.gravity = 9.8
        self.floor = 4000.0
        self.ceiling = 3000.0
        self.drag = 0.2
        self.action_space = gymnasium.spaces.Box(-8.0, 8.0, (1,), np.float64)
        self.observation_space = gymnasium.spaces.Box(np.array([-0.2, -6.0]), np.array([2.2, 6.0]), dtype=np.float64)
        self.state = None

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state = np.array([1.0 + 0.1 * self.np_random.uniform(-1.0, 1.0), 0.0])
        return self.state.copy(), {}

    def step(self, action):
        height, velocity = self.state
        force = float(action[0]) - self.gravity
        if height < 0.0:
            force = force - self.floor * height
        if height > 2.0:
            force = force - self.ceiling * (height - 2.0)
        if abs(velocity) > 3.0:
            force = force - self.drag * velocity * (abs(velocity) - 3.0)
        velocity = velocity + self.dt * force
        height = height + self.dt * velocity
        self.state = np.array([height, velocity])
        reward = height * (0.5 if velocity < -4.0 else 1.0)
        terminated = bool(height > 2.1)
        return self.state.copy(), reward, terminated, False, {}


class Hidden(gymnasium.Env):
    def __init__(self):
        self.action_space = gymnasium.spaces.Discrete(2)
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float64)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._place, self._speed = self.np_random.uniform(-1.0, 1.0, 2)
        return np.array([self._place, self._speed]), {}

    def step(self, action):
        pull = 0.01 if action else -0.01
        self._speed = self._speed + pull - 0.05 * self._place
        self._place = self._place + 0.1 * self._speed
        return np.array([self._place, self._speed]), -abs(self._place), False, False, {}


gymnasium.register("tinysim/Spring-v0", entry_point=Spring)
gymnasium.register("tinysim/Ball-v0", entry_point=Ball)
gymnasium.register("tinysim/Hidden-v0", entry_point=Hidden)
gymnasium.register("tinysim/Chaos-v0", entry_point=Chaos)
"""

_FORCE = "force = float(action[0]) - self.stiffness * position - self.damping * velocity"
_SPRING_STEP = "        position, velocity = self.state\n"
_OBSERVE = "return self.state.copy()\n\n\n"
_IMPORTS = "import tinydep\n"
_REGISTER_CHAOS = 'gymnasium.register("tinysim/Chaos-v0", entry_point=Chaos)\n'

_NOISE = """
import os, sys, warnings

GARBAGE = b"\\x1b[2J\\x1b]0;title\\x07\\xff\\xfe\\x00 garbage\\r\\n"


def shout():
    os.write(1, GARBAGE)
    os.write(2, GARBAGE)
    print("\\x1b[31mred", flush=True)
    warnings.warn("a warning of the package")


for _ in range(40):
    os.write(1, GARBAGE * 4000)
    os.write(2, GARBAGE * 4000)
    sys.stderr.write("{}[]'" * 4000)
shout()
"""

_ROUNDED_STATE = """
    @property
    def state(self):
        return None if self._state is None else self._state.astype(np.float32).astype(np.float64)

    @state.setter
    def state(self, value):
        self._state = value

    def reset(self"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plant:
    """A version of tinysim: what is planted in it, as lines of version 1.0 and what stands there instead."""

    version: str
    what: str
    replaced: dict[str, str]
    requires: tuple[str, ...] = ("gymnasium", "tinydep")


PLANTED = (
    Plant(version="1.0", what="the baseline", replaced={}),
    Plant(version="1.1", what="nothing: a release with the same code", replaced={}),
    Plant(
        version="1.2",
        what="Spring: the same force, summed in another order",
        replaced={_FORCE: "force = float(action[0]) - (self.damping * velocity + self.stiffness * position)"},
    ),
    Plant(
        version="1.3", what="Spring: damping moved by 1e-6", replaced={"damping = 0.3": "damping = 0.3 * (1 + 1e-6)"}
    ),
    Plant(version="1.4", what="Spring: reward moved by 1e-6", replaced={"reward = -": "reward = -(1 + 1e-6) * "}),
    Plant(version="1.5", what="Spring: terminates earlier", replaced={"> 5.0": "> 0.5"}),
    Plant(
        version="1.6",
        what="Spring: observation in single precision",
        replaced={_OBSERVE: "return self.state.astype(np.float32)\n\n\n"},
    ),
    Plant(
        version="1.7",
        what="Chaos: the same map, multiplied in another order",
        replaced={"3.9 * self.state * (1.0 - self.state)": "3.9 * (self.state * (1.0 - self.state))"},
    ),
    Plant(
        version="1.8",
        what="Spring: hangs in step",
        replaced={_IMPORTS: "import time, tinydep\n", _SPRING_STEP: "        time.sleep(3600)\n"},
    ),
    Plant(
        version="1.9",
        what="Spring: dies by SIGSEGV in step",
        replaced={
            _IMPORTS: "import os, signal, tinydep\n",
            _SPRING_STEP: "        os.kill(os.getpid(), signal.SIGSEGV)\n",
        },
    ),
    Plant(
        version="1.10",
        what="megabytes of garbage on stdout and stderr, warnings",
        replaced={_IMPORTS: _IMPORTS + _NOISE, _SPRING_STEP: _SPRING_STEP + "        shout()\n"},
    ),
    Plant(
        version="1.11",
        what="forks at import, the child sleeps for an hour",
        replaced={
            _IMPORTS: _IMPORTS + "import os, time\n\nif os.fork() == 0:\n    time.sleep(3600)\n    os._exit(0)\n"
        },
    ),
    Plant(version="1.12", what="does not register Chaos", replaced={_REGISTER_CHAOS: ""}),
    Plant(
        version="1.13",
        what="Spring: not-a-number in the observation",
        replaced={_OBSERVE: "return np.array([self.state[0], np.nan])\n\n\n"},
    ),
    Plant(
        version="1.14",
        what="forks at import, and the child goes on as if it were the parent",
        replaced={_IMPORTS: _IMPORTS + "import os\n\nos.fork()\n"},
    ),
    Plant(
        version="1.15",
        what="Spring: the state reads back in single precision",
        replaced={"    dt = 0.02\n\n": "    dt = 0.02\n    _state = None\n\n", "\n    def reset(self": _ROUNDED_STATE},
    ),
    Plant(
        version="1.16",
        what="Spring: raises in step",
        replaced={_SPRING_STEP: '        raise RuntimeError("the spring snapped")\n'},
    ),
    Plant(
        version="1.17",
        what="Spring: slow, a quarter of a second for every reset",
        replaced={
            _IMPORTS: "import time, tinydep\n",
            "        self.state = np.array([1.0, 0.0])\n": "        time.sleep(0.25)\n"
            "        self.state = np.array([1.0, 0.0])\n",
        },
    ),
    Plant(
        version="1.19",
        what="Spring: slow, a tenth of a second for every reset",
        replaced={
            _IMPORTS: "import time, tinydep\n",
            "        self.state = np.array([1.0, 0.0])\n": "        time.sleep(0.1)\n"
            "        self.state = np.array([1.0, 0.0])\n",
        },
    ),
    Plant(
        version="1.18",
        what="Spring: observation with a third entry",
        replaced={_OBSERVE: "return np.append(self.state, 0.0)\n\n\n"},
    ),
    Plant(
        version="1.20",
        what="Ball: the floor is harder by 1e-6, which acts only in contact",
        replaced={"floor = 4000.0": "floor = 4000.0 * (1 + 1e-6)"},
    ),
    Plant(
        version="1.21",
        what="Ball: the ceiling is harder by 1e-6, which acts only at that limit",
        replaced={"ceiling = 3000.0": "ceiling = 3000.0 * (1 + 1e-6)"},
    ),
    Plant(
        version="1.22",
        what="Ball: more drag by 1e-6, which acts only above a speed",
        replaced={"drag = 0.2": "drag = 0.2 * (1 + 1e-6)"},
    ),
    Plant(
        version="1.23",
        what="Ball: another reward when it falls fast",
        replaced={"0.5 if velocity < -4.0": "0.5000001 if velocity < -4.0"},
    ),
    Plant(version="1.24", what="Ball: ends lower", replaced={"height > 2.1)": "height > 2.05)"}),
    Plant(
        version="1.25",
        what="Ball: starts from a wider range",
        replaced={"1.0 + 0.1 * self.np_random": "1.0 + 0.11 * self.np_random"},
    ),
    Plant(
        version="1.26",
        what="Ball: another order of summation",
        replaced={
            "force = float(action[0]) - self.gravity": "force = -self.gravity + float(action[0])",
            "force - self.drag * velocity * (abs(velocity) - 3.0)": "force - self.drag * (velocity * abs(velocity)"
            " - 3.0 * velocity)",
        },
    ),
    Plant(
        version="1.30",
        what="Spring: draws from the system's entropy in step",
        replaced={_FORCE: _FORCE + " + 1e-9 * np.random.default_rng().uniform()"},
    ),
    Plant(
        version="1.31",
        what="Spring: depends on when its process was started",
        replaced={
            _IMPORTS: "import time, tinydep\n\nSTARTED = time.time_ns() % 100003\n",
            "damping = 0.3": "damping = 0.3 + 1e-12 * STARTED",
        },
    ),
    Plant(
        version="1.32",
        what="Spring: keeps something of the state before",
        replaced={
            _FORCE: _FORCE + " + 1e-6 * getattr(self, 'before', 0.0)\n        self.before = position",
        },
    ),
    Plant(
        version="1.33",
        what="Spring: everything rounded to one place, so that a small change cannot be seen",
        replaced={
            "self.state = np.array([position, velocity])": "position, velocity = np.round([position, velocity], 1)\n"
            "        self.state = np.array([position, velocity])"
        },
    ),
    Plant(
        version="1.34",
        what="Hidden: another pull by 1e-9",
        replaced={"pull = 0.01 if": "pull = 0.01 * (1 + 1e-9) if"},
    ),
    Plant(
        version="1.35",
        what="Hidden: summed in another order",
        replaced={"self._speed + pull - 0.05 * self._place": "self._speed - 0.05 * self._place + pull"},
    ),
    Plant(
        version="1.40",
        what="Spring: slow to be made, a second",
        replaced={
            _IMPORTS: "import time, tinydep\n",
            "        self.damping = 0.3\n": "        time.sleep(1)\n        self.damping = 0.3\n",
        },
    ),
    Plant(
        version="1.98",
        what="requires what nobody has",
        replaced={},
        requires=("gymnasium", "tinydep==99"),
    ),
)
UNINSTALLABLE = "1.99"
"""A version that resolves, but whose wheel claims a format of the future and cannot be installed."""

DEPENDENCIES = {"1.0": "SCALE = 1.0\n", "2.0": "SCALE = 1.0 + 1e-9\n"}
"""Versions of tinydep: the second moves the spring's stiffness."""


def build(folder: Path) -> None:
    """Write all wheels into the folder."""
    for plant in PLANTED:
        write_plant(folder, plant)
    for version, source in DEPENDENCIES.items():
        wheels.write(folder, "tinydep", version, {"tinydep/__init__.py": source}, ())
    wheels.write(folder, "tinysim", UNINSTALLABLE, {"tinysim/__init__.py": SOURCE}, ("gymnasium",), form="99.0")


def write_version(folder: Path, version: str, like: str, requires: tuple[str, ...] = ()) -> None:
    """Write a wheel of tinysim with what is planted in another version."""
    plant = next(each for each in PLANTED if each.version == like)
    files = {"tinysim/__init__.py": _source(plant)}
    wheels.write(folder, "tinysim", version, files, requires or plant.requires)


def write_plant(folder: Path, plant: Plant) -> None:
    """Write the wheel of one version."""
    wheels.write(folder, "tinysim", plant.version, {"tinysim/__init__.py": _source(plant)}, plant.requires)


def _source(plant: Plant) -> str:
    source = SOURCE
    for old, new in plant.replaced.items():
        assert old in source, f"tinysim {plant.version}: {old!r} is not in version 1.0"
        source = source.replace(old, new, 1)
    compile(source, plant.version, "exec")
    return source
