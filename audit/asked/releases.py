"""Releases as they are asked for."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from audit.asked.fields import Edit
from audit.asked.matrix import Matrix
from audit.asked.release_rows import ExplicitRow, GeneratedRow

EDITS = "edits:"
"""What stands for the edits of a release among distributions, none of which can be called so."""

EDITED = ", with "
"""Between the requirements of a release and its edits, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseRequest:
    """What a user would install, on which Python, on which day, and what is edited in it afterwards."""

    id: str
    requires: tuple[str, ...]
    pins: tuple[str, ...]
    python: str
    exclude_newer: datetime.date | None
    series: str
    source: tuple[str, ...] = ()
    """Packages that may be built from source, which runs their code; ``:all:`` for any."""
    edits: Mapping[str, Edit] = field(default_factory=dict)
    like: str = ""
    """Another release that it is a later resolution of: whatever selects or renames that one holds for it too."""

    @property
    def known_as(self) -> str:
        """The id that the matrix's patterns are held against."""
        return self.like or self.id

    @property
    def text(self) -> str:
        """What is asked for, in words: an edited release is another than the same requirements without."""
        edited = edits_told(self.edits)
        return ", ".join(self.requires) + (f"{EDITED}{edited}" if edited else "")


def edits_told(edits: Mapping[str, Edit]) -> str:
    """Edits in words."""
    return ", ".join(f"{name} = {value}" for name, value in sorted(edits.items()))


def names(requirement: str, package: str) -> bool:
    """Whether a requirement is one of that package."""
    return canonicalize_name(Requirement(requirement).name) == canonicalize_name(package)


def selected(requests: Iterable[ReleaseRequest], patterns: Sequence[str]) -> tuple[ReleaseRequest, ...]:
    """The releases whose id one of the patterns matches, in the matrix's order."""
    return tuple(each for each in requests if any(fnmatchcase(each.known_as, pattern) for pattern in patterns))


def request(matrix: Matrix, row: ExplicitRow | GeneratedRow, name: str, requires: tuple[str, ...]) -> ReleaseRequest:
    """What a row of the matrix asks for, under a name of its own."""
    return ReleaseRequest(
        id=name,
        requires=requires,
        pins=(*matrix.pins, *row.pins),
        python=row.python or matrix.python,
        exclude_newer=row.exclude_newer or matrix.exclude_newer,
        series=row.series,
        source=row.sources,
        edits=row.edits,
    )
