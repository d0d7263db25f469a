"""A simulator in forty versions with gaps, its dependencies and a stand-in for gymnasium, as an index that uv reads.

Each environment shows one of the planted changes, so that it can be looked for over all versions; ``Chain-v0`` shows
all that are in ``tinychain`` itself. ``CHANGES`` and ``GAPS`` say what is planted where.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path

from audit.installing import uv
from tests import wheels
from tests.conftest import Finished, Program, rows

GYMNASIUM = """\
import importlib

import numpy as np

_REGISTERED = {}


class NameNotFound(Exception):
    pass


class Box:
    def __init__(self, low, high, shape, dtype):
        self.shape, self.dtype = shape, np.dtype(dtype)
        self.low, self.high = np.full(shape, low, dtype), np.full(shape, high, dtype)


class Env:
    @property
    def unwrapped(self):
        return self

    def close(self):
        pass


def register(identifier, entry_point):
    _REGISTERED[identifier] = entry_point


def make(identifier, disable_env_checker=None, **arguments):
    module, _, name = identifier.rpartition(":")
    if module:
        importlib.import_module(module)
    if name not in _REGISTERED:
        raise NameNotFound("Environment `%s` doesn't exist." % name)
    return _REGISTERED[name](**arguments)
"""
"""Enough of it for the dumper; the real one takes longer to import than to step."""

SOURCE = """\
import gymnasium
import numpy as np
import tinymath

BEFORE = {"damping": 0.3, "tolerance": 1e-13, "order": [0, 1], "push": 0.0}
HERE = dict(BEFORE)


class Chain(gymnasium.Env):
    dt = 0.02
    moves = tuple(BEFORE)

    def __init__(self):
        for name in BEFORE:
            setattr(self, name, (HERE if name in self.moves else BEFORE)[name])
        self.action_space = gymnasium.Box(-1.0, 1.0, (1,), np.float64)
        self.observation_space = gymnasium.Box(-np.inf, np.inf, (2,), np.float64)
        self.state = None

    def reset(self, *, seed=None):
        self.state = np.array([1.0, 0.5])
        return self.state[self.order], {}

    def step(self, action):
        position, velocity = self.state
        velocity = self.solve(velocity, float(action[0]) + self.push - self.pull(position))
        position = position + self.dt * velocity
        self.state = np.array([position, velocity])
        return self.state[self.order], -float(position * position), False, False, {}

    def pull(self, position):
        return 4.0 * position

    def solve(self, velocity, force):
        following, before = velocity, np.inf
        while abs(following - before) > self.tolerance:
            before = following
            following = velocity + self.dt * (force - self.damping * before * abs(before))
        return following


class Damped(Chain):
    moves = ("damping",)


class Solved(Chain):
    moves = ("tolerance",)


class Seen(Chain):
    moves = ("order",)


class Pushed(Chain):
    moves = ("push",)


class Narrow(Chain):
    moves = ()

    def pull(self, position):
        return float(tinymath.multiply(4.0, position))


class Both(Chain):
    moves = ()

    def pull(self, position):
        return 4.0 * position


class Glued(Chain):
    moves = ()

    def __init__(self):
        super().__init__()
        try:
            import tinyglue
        except ImportError:
            return
        self.push = tinyglue.PUSH


class Chosen(Chain):
    moves = ()

    def __init__(self, shows=""):  # without it no version changes anything
        self.shows = shows
        if shows == "tinychain":
            self.moves = ("order",)
        super().__init__()

    def pull(self, position):
        return 4.0 * position * (getattr(tinymath, "GAIN", 1.0) if self.shows == "tinymath" else 1.0)


for each in (Chain, Damped, Solved, Seen, Pushed, Narrow, Both, Glued, Chosen):
    gymnasium.register("tinychain/%s-v0" % each.__name__, each)
"""

_POSITION = "position = position + self.dt * velocity"
_BOTH = "class Both(Chain):\n    moves = ()\n\n    def pull(self, position):\n        return 4.0 * position"

LATEST = 40
CHANGES = {
    "damping": ("0.13", 'damping": 0.3 * (1 + 1e-6)'),
    "tolerance": ("0.22", 'tolerance": 1e-6'),
    "order": ("0.31", 'order": [1, 0]'),
    "push": ("0.28", 'push": 1e-6'),
}
"""By what is moved: from which version on, and to what."""
REVERTED = "0.30"
"""The version that takes the push back, two after it came."""
SUMMED = "0.17"
"""The version from which on the position is summed in another order, which is a null."""
GAINED = "0.30"
"""The version from which on ``Both-v0`` uses a constant of tinymath, where tinymath has it."""
GLUED = "0.34"
"""The version from which on tinyglue is required, which ``Glued-v0`` uses wherever it is installed."""
STRICT = "0.36"
"""The version from which on a tinymath of single precision is required."""

YANKED = "0.23"
PRE_RELEASE = "0.26rc1"
"""There is no 0.26."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Why a version cannot be looked at, and what the program must say of it."""

    what: str
    said: str


GAPS = {
    "0.7": Gap(what="a source distribution whose build fails", said="Failed to build `tinychain==0.7`"),
    "0.11": Gap(what="one that has to be built to be resolved, and fails", said="Failed to build `tinychain==0.11`"),
    "0.15": Gap(what="a wheel that cannot be installed", said="Unsupported wheel major version"),
    "0.20": Gap(what="a wheel that cannot be imported", said="this version does not start"),
    "0.21": Gap(what="a wheel that cannot be imported", said="this version lacks something"),
    "0.33": Gap(what="requires what nobody has", said="tinymath==99"),
}

_DOUBLE = "import numpy as np\n\n\ndef multiply(one, other):\n    return np.multiply(one, other, dtype=np.float64)\n"
_SINGLE = _DOUBLE.replace("float64", "float32") + "\n\nGAIN = 1.0 + 1e-6\n"
NARROWED = "1.3"
MATHS = {"1.0": _DOUBLE, "1.1": _DOUBLE, "1.2": _DOUBLE, "1.3": _SINGLE, "1.4": _SINGLE, "1.5": _SINGLE}
"""Versions of tinymath: single precision, and a gain, from ``NARROWED`` on."""

GLUES: dict[str, tuple[str, tuple[str, ...]]] = {"0.9": ("0.0", ("tinymath<1.3",)), "1.0": ("1e-6", ())}
"""Versions of tinyglue: how hard it pushes, and what it requires."""

CHANGE_LOG = "https://tinychain.example/changes"
LOGGED = "0.10"
"""The version from which on the metadata has that address."""

_BACKEND = 'raise RuntimeError("this version does not build")\n'
_PROJECT = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'


SOURCES = ("0.7", "0.11")
"""Versions that exist as source distributions alone, which are there only for who allows builds."""


def listed(*, prereleases: bool = False) -> list[str]:
    """The versions that a user can ask for who allows no builds, oldest first."""
    names = [name for number in range(1, LATEST + 1) if (name := f"0.{number}") not in SOURCES]
    names = [PRE_RELEASE if name == "0.26" else name for name in names if name != YANKED]
    return [name for name in names if prereleases or name != PRE_RELEASE]


def between(first: str, last: str) -> list[str]:
    """The versions from one to another, in that direction."""
    names = listed()
    low, high = sorted((names.index(first), names.index(last)))
    chosen = names[low : high + 1]
    return chosen if chosen[0] == first else chosen[::-1]


def build(folder: Path) -> Path:
    """Write everything as a simple index; return its folder."""
    place = folder / "simple"
    chain, maths, glue, gymnasium = (place / name for name in ("tinychain", "tinymath", "tinyglue", "gymnasium"))
    for each in (chain, maths, glue, gymnasium):
        each.mkdir(parents=True)
    for version in [*listed(prereleases=True), *SOURCES, YANKED]:
        _write_chain(chain, version)
    for version, source in MATHS.items():
        wheels.write(maths, "tinymath", version, {"tinymath/__init__.py": source}, ("numpy<2.4",))
    for version, (push, requires) in GLUES.items():
        wheels.write(glue, "tinyglue", version, {"tinyglue/__init__.py": f"PUSH = {push}\n"}, requires)
    wheels.write(gymnasium, "gymnasium", "1.0", {"gymnasium/__init__.py": GYMNASIUM}, ("numpy<2.4",))
    for each in (chain, maths, glue, gymnasium):
        _write_page(each)
    return place


OFFLINE, ONLINE = {"UV_OFFLINE": "1"}, {"UV_OFFLINE": "0"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """A user's: the program, the index among the sources of uv, a database."""

    program: Program
    database: Path

    def search(self, verb: str, name: str, *arguments: str) -> Finished:
        """Search on an environment."""
        return self.program(*self.command(verb, name, *arguments))

    def command(self, verb: str, name: str, *arguments: str) -> list[str]:
        """The command line of a search."""
        return [verb, identifier(name), *arguments, "--db", str(self.database)]

    def dumped(self) -> set[tuple[str, object]]:
        """Every dump that is stored, with when it was made."""
        return {(key, made) for key, made in rows(self.database, "SELECT cell_key, dumped FROM internal.dumps")}


def desk(folder: Path, cache: Path) -> Desk:
    """In a folder, with the index before the one that is configured and this Python on the path.

    What is not in the index, which is numpy, is fetched once: a search resolves often, and would ask for it each time.
    """
    own = {key: value for key, value in os.environ.items() if key not in ("RAY_ADDRESS", "COLUMNS", "FORCE_COLOR")}
    path = f"{Path(sys.executable).parent}{os.pathsep}{own['PATH']}"
    settings = own | {"PATH": path, "UV_INDEX": build(folder).as_uri(), "RELEASE_AUDIT_CACHE": str(cache)}
    fetch = ["pip", "install", "--quiet", "--python", sys.executable, "--target", str(folder / "fetched"), "gymnasium"]
    subprocess.run([str(uv.executable()), *fetch], env=settings, check=True)
    program = Program(folder=folder, environment=settings | OFFLINE)
    return Desk(program=program, database=folder / "audit.duckdb")


def identifier(name: str) -> str:
    """The id of an environment."""
    return f"tinychain:tinychain/{name}-v0"


def source(version: str) -> str:
    """The module of a version."""
    number = _number(version)
    text = SOURCE
    if version in ("0.20", "0.21"):
        kind = "RuntimeError" if version == "0.20" else "ImportError"
        return f'raise {kind}("{GAPS[version].said}")\n'
    moved = {what: value for what, (since, value) in CHANGES.items() if number >= _number(since)}
    if number >= _number(REVERTED):
        moved.pop("push")
    values = ", ".join(f'"{value}' for value in moved.values())
    replaced = {"HERE = dict(BEFORE)": f"HERE = {{**BEFORE, {values}}}"}
    if number >= _number(SUMMED):
        replaced[_POSITION] = "position = self.dt * (velocity + position / self.dt)"
    if number >= _number(GAINED):
        replaced[_BOTH] = f'{_BOTH} * getattr(tinymath, "GAIN", 1.0)'
    for old, new in replaced.items():
        assert old in text
        text = text.replace(old, new, 1)
    return text


def _write_chain(folder: Path, version: str) -> None:
    number = _number(version)
    maths = "tinymath==99" if version == "0.33" else "tinymath>=1.3" if number >= _number(STRICT) else "tinymath"
    requires = ["gymnasium", maths]
    if number >= _number(LOGGED):
        requires[0] += f"\nProject-URL: Change Log, {CHANGE_LOG}"  # the next line of the wheel's headers
    if number >= _number(GLUED):
        requires.append("tinyglue")
    if version in SOURCES:
        # From format 2.2 on, what an unbuilt distribution says of itself is believed, and it is built only when used.
        _write_sdist(folder, version, "2.2" if version == "0.7" else "2.1", requires)
        return
    form = "99.0" if version == "0.15" else "1.0"
    files = {"tinychain/__init__.py": source(version)}
    wheels.write(folder, "tinychain", version, files, tuple(requires), form=form)


def _write_sdist(folder: Path, version: str, form: str, requires: list[str]) -> None:
    head = f"Metadata-Version: {form}\nName: tinychain\nVersion: {version}\n"
    content = {
        "PKG-INFO": head + "".join(f"Requires-Dist: {each}\n" for each in requires),
        "pyproject.toml": _PROJECT,
        "backend.py": _BACKEND,
    }
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, text in content.items():
            entry = tarfile.TarInfo(f"tinychain-{version}/{name}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    (folder / f"tinychain-{version}.tar.gz").write_bytes(gzip.compress(packed.getvalue(), mtime=0))


def _write_page(folder: Path) -> None:
    """The page of a package, as the simple repository API has it."""
    lines = []
    for file in sorted(folder.iterdir()):
        yanked = ' data-yanked="it was a mistake"' if f"-{YANKED}-" in file.name else ""
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        lines.append(f'<a href="{file.name}#sha256={digest}"{yanked}>{file.name}</a><br>\n')
    (folder / "index.html").write_text(f"<!DOCTYPE html><html><body>\n{''.join(lines)}</body></html>\n")


def _number(version: str) -> int:
    return int(version.removeprefix("0.").partition("rc")[0])
