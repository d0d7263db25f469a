"""The matrix: which releases, which environments, which stimulus, which pairs. A YAML file, validated whole.

The models here, and those of its rows, are the file's shape; ``matrices/schema.json`` is generated from them.
"""

from __future__ import annotations

from typing import Literal, get_args

from pydantic import Field, field_validator

from audit.asked.environment_rows import EnvironmentRow
from audit.asked.fields import Day, Identifier, PackageName, PythonVersion, RequirementText, Step
from audit.asked.release_rows import Row
from audit.asked.stimulus_spec import Bank, BankSpec, StimulusSpec
from audit.asked.yaml_models import FileModel

Output = Literal["state", "observation", "reward", "terminated", "truncated", "reset", "spaces"]
OUTPUTS: tuple[Output, ...] = get_args(Output)


class Against(FileModel):
    """Compare every release with one."""

    against: str


class NightlySpec(FileModel):
    """What nightly audits look for, beyond new versions of the packages of generated rows."""

    watch: tuple[PackageName, ...] = Field(
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
