"""Releases as they are asked for: the matrix's rows, generated ones written out for every version in the index."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from audit import index
from audit.errors import MatrixError
from audit.matrix import Against, Edit, ExplicitRow, GeneratedRow, Matrix
from audit.matrix_file import MatrixFile


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseRequest:
    """What a user would install, on which Python, on which day, and what is edited in it afterwards."""

    id: str
    requires: tuple[str, ...]
    pins: tuple[str, ...]
    python: str
    exclude_newer: datetime.date | None
    series: str
    edits: Mapping[str, Edit] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """What is asked for, in words: an edited release is another than the same requirements without."""
        edited = ", ".join(f"{name} = {value}" for name, value in sorted(self.edits.items()))
        return ", ".join(self.requires) + (f", with {edited}" if edited else "")


def expand(file: MatrixFile) -> tuple[ReleaseRequest, ...]:
    """All releases of the matrix in its order, generated rows in version order."""
    matrix = file.matrix
    requests: list[ReleaseRequest] = []
    rows: list[int] = []
    for position, row in enumerate(matrix.releases):
        if isinstance(row, ExplicitRow):
            requests.append(_request(matrix, row, row.id, row.requires))
            rows.append(position)
            continue
        found = index.versions(row, row.python or matrix.python, row.exclude_newer or matrix.exclude_newer)
        if not found:
            where = file.at(("releases", position, "versions"))
            raise MatrixError(str(file.path), [f"{where}: the index has no {row.package} in {row.versions}"])
        for version in found:
            name = row.id_template.replace("{version}", version)
            requests.append(_request(matrix, row, name, (f"{row.package}=={version}", *row.with_)))
            rows.append(position)
    _check(file, [request.id for request in requests], rows)
    return tuple(requests)


def names(requirement: str, package: str) -> bool:
    """Whether a requirement is one of that package."""
    return canonicalize_name(Requirement(requirement).name) == canonicalize_name(package)


def selected(requests: Iterable[ReleaseRequest], patterns: Sequence[str]) -> tuple[ReleaseRequest, ...]:
    """The releases whose id one of the patterns matches, in the matrix's order."""
    return tuple(request for request in requests if any(fnmatchcase(request.id, pattern) for pattern in patterns))


def _request(matrix: Matrix, row: ExplicitRow | GeneratedRow, name: str, requires: tuple[str, ...]) -> ReleaseRequest:
    return ReleaseRequest(
        id=name,
        requires=requires,
        pins=(*matrix.pins, *row.pins),
        python=row.python or matrix.python,
        exclude_newer=row.exclude_newer or matrix.exclude_newer,
        series=row.series,
        edits=row.edits,
    )


def _check(file: MatrixFile, ids: list[str], rows: list[int]) -> None:
    """Check what could be checked only now that the generated rows have ids."""
    problems = []
    for place, identifier in enumerate(ids):
        first = ids.index(identifier)
        if first < place:
            where = file.at(("releases", rows[place]))
            problems.append(f"{where}: the id {identifier!r} stands already at releases[{rows[first]}]")
    for position, row in enumerate(file.matrix.environments):
        for place, pattern in enumerate(row.releases):
            if not any(fnmatchcase(identifier, pattern) for identifier in ids):
                where = file.at(("environments", position, "releases", place))
                problems.append(f"{where}: {pattern!r} matches no release")
    if file.matrix.baseline is not None and file.matrix.baseline not in ids:
        problems.append(f"{file.at(('baseline',))}: {file.matrix.baseline!r} is not the id of a release")
    pairs = file.matrix.pairs
    if isinstance(pairs, Against) and pairs.against not in ids:
        problems.append(f"{file.at(('pairs', 'against'))}: {pairs.against!r} is not the id of a release")
    if problems:
        raise MatrixError(str(file.path), problems)
