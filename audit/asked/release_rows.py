"""The rows of a matrix that stand for releases: one written out, or one for every version in a range."""

from __future__ import annotations

from typing import Annotated, Any

from packaging.utils import canonicalize_name
from pydantic import Discriminator, Field, Tag

from audit.asked.fields import (
    EDITS,
    Day,
    Edit,
    EditName,
    Identifier,
    IdentifierTemplate,
    PackageName,
    PythonVersion,
    RequirementText,
    Source,
    VersionRange,
)
from audit.asked.yaml_models import FileModel

_SOURCE = (
    "Whether source distributions may be built, which runs their code; default: no. true: where there is no wheel. "
    "Names of packages: these are always built, even where there is a wheel, and versions that have only a wheel are "
    "not found."
)


class _BuiltRow(FileModel):
    """What may be built on the way to a release."""

    source: Source = Field(default=False, description=_SOURCE)

    @property
    def sources(self) -> tuple[str, ...]:
        """The packages that are built, wheel or not, in order; ``:all:`` for any that has no wheel."""
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
    edits: dict[EditName, Edit] = Field(default_factory=dict, description=EDITS)


class GeneratedRow(_BuiltRow):
    """One release for every version of a package that the index has in a range."""

    package: PackageName = Field(description="Name of the package that moves.")
    versions: VersionRange = Field(description="Version range, such as '>=3.2,<4'.")
    with_: tuple[RequirementText, ...] = Field(default=(), description="What stays the same in each of them.")
    id: IdentifierTemplate | None = Field(default=None, description="Id of each release; default: PACKAGE-{version}.")
    prereleases: bool = Field(default=False, description="Whether pre-releases count.")
    pins: tuple[RequirementText, ...] = Field(default=(), description="Constraints on what else gets installed.")
    python: PythonVersion | None = Field(default=None, description="Python of these releases.")
    exclude_newer: Day | None = Field(default=None, description="Resolve as on the evening of this day.")
    series: str = Field(default="", description="Releases are neighbours within a series.")
    edits: dict[EditName, Edit] = Field(default_factory=dict, description=EDITS)

    @property
    def id_template(self) -> str:
        """The id with a place for the version."""
        return self.id or f"{self.package}-{{version}}"


def _row_kind(value: Any) -> str:
    return "generated" if isinstance(value, dict) and "package" in value else "explicit"


Row = Annotated[
    Annotated[ExplicitRow, Tag("explicit")] | Annotated[GeneratedRow, Tag("generated")], Discriminator(_row_kind)
]
