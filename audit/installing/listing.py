"""The rows of a matrix as requests: generated rows are written out for every version that the index has."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from fnmatch import fnmatchcase

from audit.asked.matrix import Against
from audit.asked.matrix_file import MatrixFile
from audit.asked.release_rows import ExplicitRow
from audit.asked.releases import ReleaseRequest, request
from audit.errors import MatrixError
from audit.installing import index


def expand(file: MatrixFile) -> tuple[ReleaseRequest, ...]:
    """All releases of the matrix in its order, generated rows in version order."""
    matrix = file.matrix
    requests: list[ReleaseRequest] = []
    rows: list[int] = []
    for position, row in enumerate(matrix.releases):
        if isinstance(row, ExplicitRow):
            requests.append(request(matrix, row, row.id, row.requires))
            rows.append(position)
            continue
        found = index.versions(row, row.python or matrix.python, row.exclude_newer or matrix.exclude_newer)
        if not found:
            where = file.at(("releases", position, "versions"))
            raise MatrixError(str(file.path), [f"{where}: the index has no {row.package} in {row.versions}"])
        for version in found:
            name = row.id_template.replace("{version}", version)
            requests.append(request(matrix, row, name, (f"{row.package}=={version}", *row.with_)))
            rows.append(position)
    check(file, [each.id for each in requests], rows)
    return tuple(requests)


def check(file: MatrixFile, ids: Sequence[str], rows: Sequence[int], left: Collection[str] = ()) -> None:
    """Check what could be checked only now that the generated rows have ids; those that have left may still be named.

    Raises:
        MatrixError: with everything that is wrong.
    """
    problems = []
    places: dict[str, int] = {}
    for place, identifier in enumerate(ids):
        first = places.setdefault(identifier, place)
        if first < place:
            where = file.at(("releases", rows[place]))
            problems.append(f"{where}: the id {identifier!r} stands already at releases[{rows[first]}]")
    for position, row in enumerate(file.matrix.environments):
        for place, pattern in enumerate(row.releases):
            if not any(fnmatchcase(identifier, pattern) for identifier in (*ids, *left)):
                where = file.at(("environments", position, "releases", place))
                problems.append(f"{where}: {pattern!r} matches no release")
    if file.matrix.baseline is not None and file.matrix.baseline not in (*ids, *left):
        problems.append(f"{file.at(('baseline',))}: {file.matrix.baseline!r} is not the id of a release")
    pairs = file.matrix.pairs
    if isinstance(pairs, Against) and pairs.against not in (*ids, *left):
        problems.append(f"{file.at(('pairs', 'against'))}: {pairs.against!r} is not the id of a release")
    if problems:
        raise MatrixError(str(file.path), problems)
