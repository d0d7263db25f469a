"""The rows of a matrix that stand for environments: what is stepped, in which releases, from which states."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from pathlib import PurePath
from typing import Any, Literal

from pydantic import ConfigDict, Field, model_validator

from audit.asked.fields import EDITS, Edit, EditName, Identifier, Steps, Trajectories
from audit.asked.stimulus_spec import Bank, Start, StimulusSpec
from audit.asked.yaml_models import FileModel

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
    edits: dict[EditName, Edit] = Field(default_factory=dict, description=f"{EDITS} A release's own come before.")

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
