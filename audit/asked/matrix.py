"""The matrix: which releases, which environments, which stimulus, which pairs. A YAML file, validated whole.

The models here are the file's shape; ``matrices/schema.json`` is generated from them.
"""

from __future__ import annotations

import datetime
import math
import re
from fnmatch import fnmatchcase
from pathlib import PurePath
from typing import Annotated, Any, Literal, get_args
from xml.etree import ElementTree

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name
from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    Tag,
    field_validator,
    model_validator,
)

from audit.asked.yaml_models import FileModel

Output = Literal["state", "observation", "reward", "terminated", "truncated", "reset", "spaces"]
OUTPUTS: tuple[Output, ...] = get_args(Output)

_PYTHON = re.compile(r"3\.\d+(\.\d+)?")
_LAST_DAY = datetime.date(9998, 12, 31)  # the day after it is still a date
_PACKAGE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_IDENTIFIER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]*")
_ATTRIBUTE = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")


def _requirement(text: str) -> str:
    try:
        Requirement(text)
    except InvalidRequirement as error:
        raise ValueError(f"{text!r} is not a requirement: {str(error).splitlines()[0]}") from None
    return text


def _package(text: str) -> str:
    if not _PACKAGE.fullmatch(text):
        raise ValueError(f"{text!r} is not the name of a package; versions go into `versions`, the rest into `with`")
    return text


def _specifier(text: str) -> str:
    try:
        SpecifierSet(text)
    except InvalidSpecifier:
        raise ValueError(f"{text!r} is not a version range; write it like '>=3.2,<4'") from None
    return text


def _python_text(value: Any) -> Any:
    if isinstance(value, float):
        raise ValueError(f"put the version in quotes: YAML reads {value} as a number, and 3.10 as 3.1")
    return value


def _python(text: str) -> str:
    if not _PYTHON.fullmatch(text):
        raise ValueError(f"{text!r} is not a Python version; write it like '3.11' or '3.11.7'")
    return text


def _identifier(text: str) -> str:
    if not _IDENTIFIER.fullmatch(text):
        raise ValueError(f"{text!r} must begin with a letter or digit and hold only letters, digits and . _ @ + -")
    return text


def _identifier_template(text: str) -> str:
    if "{version}" not in text:
        raise ValueError(f"{text!r} must contain {{version}}, so that each version gets its own id")
    _identifier(text.replace("{version}", "0"))
    return text


def _day(value: datetime.date) -> datetime.date:
    if value > _LAST_DAY:
        raise ValueError(f"{value} is too far in the future")
    return value


def _edit_name(name: str) -> str:
    """The name of an attribute, or ``PATH@ATTRIBUTE`` for one in a model's file."""
    path, at, attribute = name.rpartition("@")
    if at and not (path and _is_path(path) and _ATTRIBUTE.fullmatch(attribute)):
        raise ValueError(f"{name!r} is not a path and an attribute, like body[@name='fingertip']@pos")
    return name


def _is_path(text: str) -> bool:
    try:
        ElementTree.Element("mujoco").find(f".//{text}")
    except (SyntaxError, LookupError, TypeError, ValueError):  # the parser of paths has no error of its own
        return False
    return True


def _edit(value: Any) -> Any:
    """Refuse in one sentence: a choice between types would have one for each."""
    entries = value if isinstance(value, (list, tuple)) and value else [value]
    if not isinstance(value, (bool, str)) and not all(_is_number(each) for each in entries):
        raise ValueError("should be true or false, a number, text, or a list of numbers")
    if any(isinstance(each, float) and not math.isfinite(each) for each in entries):
        raise ValueError("should be finite")
    return value


def _source(value: Any) -> Any:
    """Refuse in one sentence, as with edits."""
    if not isinstance(value, (bool, list, tuple)):
        raise ValueError("should be true or false, or a list of names of packages")
    for name in value if not isinstance(value, bool) else ():
        _package(str(name))
    return value


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


Day = Annotated[datetime.date, AfterValidator(_day)]
Step = Annotated[int, Field(ge=0)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
RequirementText = Annotated[str, AfterValidator(_requirement)]
PythonVersion = Annotated[str, BeforeValidator(_python_text), AfterValidator(_python)]
Identifier = Annotated[str, AfterValidator(_identifier)]
Number = StrictInt | StrictFloat
Edit = Annotated[
    StrictBool | Number | StrictStr | Annotated[tuple[Number, ...], Field(min_length=1)], BeforeValidator(_edit)
]
Source = Annotated[StrictBool | tuple[str, ...], BeforeValidator(_source)]
EditName = Annotated[str, AfterValidator(_edit_name)]
Trajectories = Annotated[int, Field(ge=1, le=100_000)]
Steps = Annotated[int, Field(ge=1, le=1_000_000)]

_SOURCE = "Whether source distributions may be built, which runs their code: true, or names of packages; default: no."
_EDITS = "Constants that are set otherwise before anything is stepped, by name, or PATH@ATTRIBUTE in a model's file."


class _BuiltRow(FileModel):
    """What may be built on the way to a release."""

    source: Source = Field(default=False, description=_SOURCE)

    @property
    def sources(self) -> tuple[str, ...]:
        """The packages that may be built, in order; ``:all:`` for any."""
        if isinstance(self.source, bool):
            return (":all:",) if self.source else ()
        return tuple(sorted({canonicalize_name(name) for name in self.source}))


class ExplicitRow(_BuiltRow):
    """One release, written out."""

    id: Identifier = Field(description="Name of the release in results and selectors.")
    requires: tuple[RequirementText, ...] = Field(min_length=1, description="What a user would install.")
    pins: tuple[RequirementText, ...] = Field(default=(), description="Constraints on what else gets installed.")
    python: PythonVersion | None = Field(default=None, description="Python of this release; default: the matrix's.")
    exclude_newer: Day | None = Field(
        default=None, description="Resolve as on the evening of this day (UTC); default: the matrix's day."
    )
    series: str = Field(default="", description="Releases are neighbours within a series.")
    edits: dict[EditName, Edit] = Field(default_factory=dict, description=_EDITS)


class GeneratedRow(_BuiltRow):
    """One release for every version of a package that the index has in a range."""

    package: Annotated[str, AfterValidator(_package)] = Field(description="Name of the package that moves.")
    versions: Annotated[str, AfterValidator(_specifier)] = Field(description="Version range, such as '>=3.2,<4'.")
    with_: tuple[RequirementText, ...] = Field(default=(), description="What stays the same in each of them.")
    id: Annotated[str, AfterValidator(_identifier_template)] | None = Field(
        default=None, description="Id of each release; default: PACKAGE-{version}."
    )
    prereleases: bool = Field(default=False, description="Whether pre-releases count.")
    pins: tuple[RequirementText, ...] = Field(default=(), description="Constraints on what else gets installed.")
    python: PythonVersion | None = Field(default=None, description="Python of these releases.")
    exclude_newer: Day | None = Field(default=None, description="Resolve as on the evening of this day.")
    series: str = Field(default="", description="Releases are neighbours within a series.")
    edits: dict[EditName, Edit] = Field(default_factory=dict, description=_EDITS)

    @property
    def id_template(self) -> str:
        """The id with a place for the version."""
        return self.id or f"{self.package}-{{version}}"


def _row_kind(value: Any) -> str:
    return "generated" if isinstance(value, dict) and "package" in value else "explicit"


Row = Annotated[
    Annotated[ExplicitRow, Tag("explicit")] | Annotated[GeneratedRow, Tag("generated")], Discriminator(_row_kind)
]


class BoundedStart(FileModel):
    """Initial states drawn uniformly between bounds. Entries of the state beyond the bounds given are zero."""

    low: tuple[Finite, ...] = Field(min_length=1)
    high: tuple[Finite, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _ordered(self) -> BoundedStart:
        if len(self.low) != len(self.high):
            raise ValueError(f"low has {len(self.low)} entries, high {len(self.high)}")
        if any(low > high for low, high in zip(self.low, self.high, strict=True)):
            raise ValueError("an entry of low is above its entry of high")
        if any(math.isinf(high - low) for low, high in zip(self.low, self.high, strict=True)):
            raise ValueError("low and high are further apart than the largest number")
        return self


class NearStart(FileModel):
    """Initial states drawn around the environment's own: positions and velocities within plus or minus these."""

    position: Finite = Field(ge=0)
    velocity: Finite = Field(ge=0)


def _start_kind(value: Any) -> str:
    return "near" if isinstance(value, dict) and {"position", "velocity"} & set(value) else "bounded"


Start = Annotated[
    Annotated[BoundedStart, Tag("bounded")] | Annotated[NearStart, Tag("near")], Discriminator(_start_kind)
]


class StimulusSpec(FileModel):
    """What every release is given: states and actions, drawn once from a seed."""

    seed: int = Field(default=0, ge=0)
    trajectories: Trajectories = 8
    steps: Steps = 500
    actions: Literal["zero", "uniform"] = Field(
        default="zero", description="zero: no action (or `coast`). uniform: drawn over the action space."
    )
    start: Start = Field(default=NearStart(position=0.05, velocity=0.05))


class BankSpec(FileModel):
    """The states from which single steps are forced, made on the baseline release."""

    states: int = Field(
        default=512,
        ge=0,
        le=100_000,
        description="Visited, in range and sought; 0: only those that trajectories start from.",
    )
    seed: int = Field(default=0, ge=0)
    nudges: int = Field(default=4, ge=2, le=64, description="Copies of each state, moved by one last place.")
    budget: int = Field(default=20_000, ge=0, description="States that the search may look at, per environment.")
    file: str | None = Field(default=None, description="Your own states: an npz with `states` and perhaps `actions`.")


def _bank(value: Any) -> Any:
    return {"file": value} if isinstance(value, str) else value


Bank = Annotated[BankSpec, BeforeValidator(_bank)]

_DM_CONTROL = re.compile(r"[a-z0-9_]+/[a-z0-9_]+")

Kind = Literal["registered", "mjcf", "dm_control", "adapter"]


class EnvironmentRow(FileModel):
    """What is stepped: one of `id`, `mjcf`, `dm_control` and `adapter`."""

    model_config = ConfigDict(
        json_schema_extra={"oneOf": [{"required": [kind]} for kind in ("id", "mjcf", "dm_control", "adapter")]}
    )

    id: str | None = Field(
        default=None,
        min_length=1,
        description="Registered with gym or gymnasium; `module:Id-v0` imports the module.",
    )
    mjcf: str | None = Field(default=None, min_length=1, description="A MuJoCo model file, straight on the bindings.")
    dm_control: str | None = Field(default=None, description="A task of the suite: `domain/task`.", alias="dm_control")
    adapter: str | None = Field(default=None, min_length=1, description="A Python file of your own, which steps it.")
    renamed: dict[str, str] = Field(
        default_factory=dict, description="Its id in releases that call it otherwise, by their id or a pattern."
    )
    name: Identifier | None = Field(default=None, description="Name in results, where one id appears more than once.")
    arguments: dict[str, Any] = Field(default_factory=dict, description="Keyword arguments of the constructor.")
    releases: tuple[str, ...] = Field(default=("*",), min_length=1, description="Ids of releases, or patterns.")
    start: Start | None = Field(default=None, description="Initial states; default: the stimulus's.")
    coast: int | None = Field(default=None, description="The action that does least, where actions are discrete.")
    bank: Bank | None = Field(default=None, description="Forced states; default: the matrix's.")
    trajectories: Trajectories | None = Field(default=None, description="Default: the stimulus's.")
    steps: Steps | None = Field(default=None, description="Of each trajectory; default: the stimulus's.")
    edits: dict[EditName, Edit] = Field(default_factory=dict, description=f"{_EDITS} A release's own come before.")

    @model_validator(mode="after")
    def _one_kind(self) -> EnvironmentRow:
        if sum(each is not None for each in (self.id, self.mjcf, self.dm_control, self.adapter)) != 1:
            raise ValueError("give exactly one of id, mjcf, dm_control and adapter")
        if self.dm_control is not None and not _DM_CONTROL.fullmatch(self.dm_control):
            raise ValueError(f"{self.dm_control!r} is not a task; write it like 'walker/walk'")
        return self

    @property
    def kind(self) -> Kind:
        """Which of the four it is."""
        if self.mjcf is not None:
            return "mjcf"
        if self.dm_control is not None:
            return "dm_control"
        return "adapter" if self.adapter is not None else "registered"

    @property
    def source(self) -> str:
        """The id, path or task."""
        return self.id or self.mjcf or self.dm_control or self.adapter or ""

    def source_in(self, release: str) -> str:
        """The id, path or task under which a release has it."""
        return next((name for pattern, name in self.renamed.items() if fnmatchcase(release, pattern)), self.source)

    def stimulus(self, given: StimulusSpec) -> StimulusSpec:
        """The matrix's stimulus with what this environment has otherwise."""
        own = {"trajectories": self.trajectories, "steps": self.steps}
        return given.model_copy(update={name: value for name, value in own.items() if value is not None})

    @property
    def title(self) -> str:
        """The name under which results appear."""
        if self.name is not None:
            return self.name
        return self.source if self.kind in ("registered", "dm_control") else PurePath(self.source).stem


class Against(FileModel):
    """Compare every release with one."""

    against: str


class NightlySpec(FileModel):
    """What nightly audits look for, beyond new versions of the packages of generated rows."""

    watch: tuple[Annotated[str, AfterValidator(_package)], ...] = Field(
        default=(), description="Packages of releases that are written out, as PACKAGE==VERSION, to watch too."
    )
    min_age: int = Field(default=1, ge=0, le=3650, description="Days that an upload must have lasted; 0: none.")
    prereleases: bool = Field(default=False, description="Whether new pre-releases count.")
    also: tuple[Literal["dependencies"], ...] = Field(
        default=(), description="dependencies: resolve the newest releases anew; what moved in them is new as well."
    )


class Matrix(FileModel):
    """One question: these releases, on these environments, under this stimulus, in these pairs."""

    name: Identifier
    description: str = ""
    python: PythonVersion
    exclude_newer: Day | None = Field(
        default=None, description="Resolve as on the evening of this day (UTC): the same locks next year."
    )
    pins: tuple[RequirementText, ...] = Field(default=(), description="Constraints on every release.")
    pairs: Literal["all", "adjacent"] | Against = "all"
    outputs: tuple[Output, ...] = Field(
        default=OUTPUTS,
        min_length=1,
        description="Outputs that the verdict reads; the others are recorded all the same.",
    )
    stimulus: StimulusSpec = Field(default_factory=StimulusSpec)
    growth_window: tuple[Step, Step] | None = Field(
        default=None,
        description="Steps between which growth is fitted; default: from off the last place to saturation.",
    )
    bank: Bank = Field(default_factory=BankSpec, description="Forced states; or the path of an npz with your own.")
    baseline: str | None = Field(
        default=None,
        description="Release on which banks are made; default: the oldest that has the environment.",
    )
    laws: tuple[str, ...] = Field(default=(), description="Files with laws of your own environments.")
    nightly: NightlySpec = Field(default_factory=NightlySpec)
    releases: tuple[Row, ...] = Field(min_length=1)
    environments: tuple[EnvironmentRow, ...] = Field(min_length=1)

    @field_validator("growth_window")
    @classmethod
    def _forward(cls, window: tuple[int, int] | None) -> tuple[int, int] | None:
        if window is not None and window[0] >= window[1]:
            raise ValueError("the window ends before it begins")
        return window
