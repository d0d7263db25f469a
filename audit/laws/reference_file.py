"""Reference sets as files: the laws of an environment, and how a release is run so that they can be read.

Those that ship lie in ``matrices/laws``; a user's own have the same form.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, model_validator

from analysis.algebra import expressions
from analysis.algebra.errors import BadLaw
from analysis.algebra.reference import Kind, ReferenceSet
from audit.asked import yaml_lines, yaml_models
from audit.asked.environment_rows import EnvironmentRow
from audit.asked.fields import Edit, EditName, Identifier, Steps, Trajectories
from audit.asked.stimulus_spec import NearStart, Start, StimulusSpec
from audit.asked.yaml_models import FileModel
from audit.digests import digest
from audit.errors import UsageError
from audit.laws import speaking

SHIPPED_SETTING = "shipped"
"""Run as the release has it."""

_ANY_WIDTH = 2**31
"""Of a column that may have any entry; without samples it takes no room."""


def _number(value: object) -> object:
    """A specified value as the fraction that it spells: 9.8 is 49/5."""
    text = str(value)
    try:
        if "/" not in text and not _is_plain(text):
            raise ValueError  # 1e999999999 is as short as it takes long to write out
        found = Fraction(text)
        float(found)
        return found
    except (ValueError, ZeroDivisionError, OverflowError):
        raise ValueError(f"{repr(value)[:60]} is not a number, or too large or too small for one") from None


def _is_plain(text: str) -> bool:
    """Whether it is zero, or between the smallest and the largest that are computed with."""
    size = abs(float(text))
    return sys.float_info.min <= size <= sys.float_info.max or not set(text.lower().partition("e")[0]) & set(
        "123456789"
    )


def _expression(text: str) -> str:
    """Tried on columns without samples: what cannot be evaluated is told before a release is run for it."""
    nodes = list(ast.walk(expressions.parsed(text)))
    several = {ast.unparse(node.value) for node in nodes if isinstance(node, ast.Subscript)}
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    expressions.column(text, {name: np.empty((0, _ANY_WIDTH) if name in several else 0) for name in names})
    return text


class LawRow(FileModel):
    """One polynomial: it vanishes in every state, or is conserved along a trajectory that nothing drives."""

    vanishes: str | None = None
    conserved: str | None = None

    @model_validator(mode="after")
    def _one(self) -> LawRow:
        if (self.vanishes is None) == (self.conserved is None):
            raise ValueError("give either vanishes or conserved")
        return self

    @property
    def read(self) -> tuple[Kind, str]:
        """Its kind and its text."""
        if self.vanishes is not None:
            return Kind.VANISHES, self.vanishes
        return Kind.CONSERVED, self.conserved or ""


class ResolvedRow(FileModel):
    """Edits under which the integrator's own error no longer hides a constant."""

    edits: dict[EditName, Edit] = Field(min_length=1)
    steps: Steps


class ReferenceRow(FileModel):
    """A reference set as it stands in its file."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    name: Identifier
    environments: tuple[str, ...] = Field(min_length=1, description="Ids or names of environments, or patterns.")
    variables: dict[str, Annotated[str, AfterValidator(_expression)]] = Field(
        min_length=1, description="Each an expression of columns: cos(state[0])."
    )
    parameters: dict[str, Annotated[Fraction, BeforeValidator(_number)]] = Field(
        default_factory=dict, description="Constants of the specification that stand in the laws, with their values."
    )
    relations: tuple[str, ...] = Field(default=(), description="What holds among the variables by definition.")
    laws: dict[str, LawRow] = Field(min_length=1)
    lag: int = Field(default=1, ge=1, description="Samples between states whose difference is taken.")
    start: Start = Field(default=NearStart(position=0.05, velocity=0.05))
    coast: int | None = Field(default=None, description="The action that does nothing, where actions are discrete.")
    trajectories: Trajectories = 8
    steps: Steps = 500
    resolved: ResolvedRow | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One way to run a release for a reference set."""

    name: str
    edits: dict[str, Edit]
    steps: int


@dataclass(frozen=True)
class ReferenceFile:
    """A valid reference set and how to run for it."""

    path: Path
    row: ReferenceRow
    laws: ReferenceSet
    digest: str

    @property
    def settings(self) -> tuple[Setting, ...]:
        """As shipped, then, where there is one, the way in which constants can be read."""
        shipped = Setting(name=SHIPPED_SETTING, edits={}, steps=self.row.steps)
        if self.row.resolved is None:
            return (shipped,)
        told = ", ".join(f"{name} = {value}" for name, value in self.row.resolved.edits.items())
        return shipped, Setting(name=told, edits=dict(self.row.resolved.edits), steps=self.row.resolved.steps)

    def speaks_of(self, environment: EnvironmentRow) -> bool:
        """Whether its laws are those of an environment."""
        return speaking.speaks_of(self.row.environments, environment)

    def stimulus(self, setting: Setting) -> StimulusSpec:
        """What a release is given: nothing drives it, so that what is conserved can be."""
        return StimulusSpec(
            seed=0, trajectories=self.row.trajectories, steps=setting.steps, actions="zero", start=self.row.start
        )


def of_a_matrix(paths: Sequence[Path]) -> tuple[ReferenceFile, ...]:
    """Those that a matrix brings beside the shipped ones. What they find is told by name, so no two have one."""
    taken = {path.stem: path for path in speaking.shipped()}
    found = []
    for path in paths:
        each = read(path)
        if each.laws.name in taken:
            raise UsageError(f"{path}: {each.laws.name} is the name of another reference set: give it its own")
        taken[each.laws.name] = path
        found.append(each)
    return tuple(found)


def find(name: str) -> ReferenceFile:
    """A path as it is, or the name of one that ships."""
    for candidate in (Path(name), speaking.FOLDER / f"{name}.yaml"):
        if candidate.is_file():
            return read(candidate)
    known = ", ".join(sorted(path.stem for path in speaking.shipped()))
    raise UsageError(f"there is no reference set {name!r}: give the path of a file, or one of {known}")


def read(path: Path) -> ReferenceFile:
    """Read and validate.

    Raises:
        MatrixError: with everything that is wrong with its form.
        UsageError: with the first thing that is no law.
    """
    found = yaml_models.read(path, ReferenceRow)
    row = found.model
    try:
        laws = ReferenceSet.of(
            row.name,
            variables=row.variables,
            laws={name: law.read for name, law in row.laws.items()},
            parameters=row.parameters,
            relations=row.relations,
            lag=row.lag,
        )
    except BadLaw as error:
        law, _, said = str(error).partition(": ")
        place = ("laws", law)
        told = f"{yaml_lines.at(found.lines, place)}: {said}" if place in found.lines else str(error)
        raise UsageError(f"{path}: {told}") from None
    return ReferenceFile(path, row, laws, digest("laws", found.text))
