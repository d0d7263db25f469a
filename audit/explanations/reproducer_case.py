"""The case that a reproducer shows: a forced step or a reset that comes out differently, and what differs in it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from audit.asked.attachments import Attachment
from audit.asked.environment_rows import EnvironmentRow
from audit.asked.fields import Edit
from audit.errors import AuditError

SCRIPT = "reproduce.py"
"""The file of the script, which the commands run."""

_NAMED_AT_MOST = 3
"""Distributions that are named where none of those that moved was asked for; more of them are not a name."""

Moved = tuple[str, str | None, str | None]
"""A distribution with its versions; ``None`` where a release does not have it."""


class CannotReproduce(AuditError):
    """The change cannot be shown by one step or one reset of a script that stands alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A state that is imposed, and the action that is taken in it."""

    state: tuple[float, ...]
    action: tuple[float, ...] | int
    """An integer where actions are discrete."""
    action_dtype: str
    """Of the stimulus, which is that of the action space; an integer has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reset:
    """A seed from which an episode is started."""

    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of it; an observation of several parts is one vector, as in a dump."""

    state: tuple[float, ...]
    observation: tuple[float, ...]
    reward: float | None
    """Nothing after a reset."""

    @property
    def outputs(self) -> dict[str, tuple[float, ...]]:
        """By name, as vectors of Python's own numbers, whichever they were."""
        vectors: dict[str, tuple[float, ...]] = {"state": self.state, "observation": self.observation}
        if self.reward is not None:
            vectors["reward"] = (self.reward,)
        return {name: tuple(map(float, values)) for name, values in vectors.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of the two releases, and what it did."""

    name: str
    requires: tuple[str, ...]
    packages: tuple[tuple[str, str], ...]
    """The lock: every distribution with its version."""
    python: str
    outcome: Outcome
    edits: Mapping[str, Edit] = field(default_factory=dict)
    """What is set otherwise in it, as the dumper gets it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A forced step that two releases take differently, or a seed from which they start elsewhere."""

    environment: EnvironmentRow
    kind: str
    """How the state is imposed, as the layout says: ``mujoco``, ``state``, ``adapter``; others can only be reset."""
    older: Side
    newer: Side
    given: Step | Reset
    beyond: int
    """States, or seeds, in which the two disagree beyond rounding."""
    tried: int
    ratio: float
    """The largest separation in multiples of what rounding does."""
    attached: str | Attachment | None = None
    """A scene as XML text that needs no other file, or with all of its files; an adapter's file."""
    told: tuple[str, ...] = ()
    """What explains the change: stages, constants, releases."""

    @property
    def sides(self) -> tuple[Side, Side]:
        """The older one first."""
        return self.older, self.newer


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """How far two outcomes are apart in one entry, or that one is longer than the other."""

    output: str
    entry: int | None
    older: float
    newer: float
    size: float

    @property
    def place(self) -> str:
        """As the script names it."""
        return f"the length of {self.output}" if self.entry is None else f"{self.output}[{self.entry}]"


# What differs between the two


def moved(case: Case) -> list[Moved]:
    """The distributions that are not the same in both, those that were asked for first."""
    older, newer = (dict(side.packages) for side in case.sides)
    asked = _asked(case)
    names = sorted(older.keys() | newer.keys(), key=lambda name: (name not in asked, name))
    return [(name, older.get(name), newer.get(name)) for name in names if older.get(name) != newer.get(name)]


def _asked(case: Case) -> set[str]:
    return {canonicalize_name(Requirement(text).name) for side in case.sides for text in side.requires}


def labels(case: Case) -> tuple[str, str]:
    """What the two are called: by what moved and was asked for, such as ``mujoco 2.3.7``, else by their names."""
    if edited_apart(case):
        return case.older.name, case.newer.name
    different = moved(case)
    if not different:
        return f"python {minor(case.older)}", f"python {minor(case.newer)}"
    asked = _asked(case)
    named = [each for each in different if each[0] in asked] or (different if len(different) <= _NAMED_AT_MOST else [])
    older = ", ".join(f"{name} {version}" for name, version, _ in named if version)
    newer = ", ".join(f"{name} {version}" for name, _, version in named if version)
    return (older, newer) if older and newer else (case.older.name, case.newer.name)


def commands(case: Case) -> tuple[str, str]:
    """How the script is run with each of the two."""
    return _command(case, case.older), _command(case, case.newer)


def _command(case: Case, side: Side) -> str:
    have = dict(side.packages)
    words = [] if same_python(case) else [f"--python {minor(side)}"]
    words += [f"--with '{name}=={have[name]}'" for name, *_ in moved(case) if name in have]
    return " ".join(["uv run", *words, SCRIPT, *([side.name] if edited_apart(case) else [])])


def edited_apart(case: Case) -> bool:
    """Whether something is set otherwise in one of the two alone: then the command names which of them it is."""
    return dict(case.older.edits) != dict(case.newer.edits)


def same_python(case: Case) -> bool:
    """Whether both run on the same Python, but for its patch release."""
    return minor(case.older) == minor(case.newer)


def minor(side: Side) -> str:
    """Of the side's Python, such as ``3.11``."""
    return ".".join(side.python.split(".")[:2])


def apart(case: Case) -> list[Gap]:
    """Where the two outcomes differ, the largest difference first; of equal ones the first in order."""
    newer = case.newer.outcome.outputs
    found = [
        each
        for output, values in case.older.outcome.outputs.items()
        for each in _entries(output, values, newer[output])
    ]
    return sorted(found, key=lambda each: -each.size)


def _entries(output: str, older: Sequence[float], newer: Sequence[float]) -> Iterator[Gap]:
    if len(older) != len(newer):
        yield Gap(output=output, entry=None, older=len(older), newer=len(newer), size=math.inf)
        return
    for entry, (one, other) in enumerate(zip(older, newer, strict=True)):
        if one != other and not (math.isnan(one) and math.isnan(other)):
            size = abs(one - other)
            yield Gap(output=output, entry=entry, older=one, newer=other, size=math.inf if math.isnan(size) else size)
