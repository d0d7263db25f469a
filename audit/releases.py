"""Releases: the matrix's rows expanded against the index, then resolved to hashed locks."""

from __future__ import annotations

import datetime
import json
import re
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from audit import folders, interpreters, uv
from audit.errors import MatrixError, UsageError
from audit.failures import Failure
from audit.interpreters import Interpreter
from audit.matrix import Against, ExplicitRow, GeneratedRow, Matrix
from audit.matrix_file import MatrixFile

_PINNED = re.compile(r"^(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)==(?P<version>[^\s;\\]+)", re.M)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseRequest:
    """What a user would install, on which Python, on which day."""

    id: str
    requires: tuple[str, ...]
    pins: tuple[str, ...]
    python: str
    exclude_newer: datetime.date | None
    series: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Lock:
    """Every distribution at one version with its hashes. The digest of it, with the Python, is the release."""

    text: str
    packages: tuple[tuple[str, str], ...]
    digest: str

    def version_of(self, name: str) -> str | None:
        """The locked version of a distribution."""
        return dict(self.packages).get(canonicalize_name(name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A request that has been resolved."""

    request: ReleaseRequest
    interpreter: Interpreter
    lock: Lock

    @property
    def id(self) -> str:
        """The id in the matrix."""
        return self.request.id

    @property
    def key(self) -> str:
        """Digest of the lock and the Python: two releases with the same key are the same release."""
        return folders.digest(self.lock.digest, self.interpreter.implementation, self.interpreter.version)

    @property
    def required(self) -> dict[str, str]:
        """The distributions that the request names, with their locked versions."""
        names = [canonicalize_name(Requirement(text).name) for text in self.request.requires]
        return {name: version for name in names if (version := self.lock.version_of(name)) is not None}


def expand(file: MatrixFile) -> tuple[ReleaseRequest, ...]:
    """All releases of the matrix in its order, generated rows written out in version order."""
    matrix = file.matrix
    requests: list[ReleaseRequest] = []
    for index, row in enumerate(matrix.releases):
        if isinstance(row, ExplicitRow):
            requests.append(_request(matrix, row, row.id, row.requires))
            continue
        found = versions(row, row.python or matrix.python, row.exclude_newer or matrix.exclude_newer)
        if not found:
            where = file.at(("releases", index, "versions"))
            raise MatrixError(str(file.path), [f"{where}: the index has no {row.package} in {row.versions}"])
        for version in found:
            name = row.id_template.replace("{version}", version)
            requests.append(_request(matrix, row, name, (f"{row.package}=={version}", *row.with_)))
    _check_selectors(file, [request.id for request in requests])
    return tuple(requests)


def versions(row: GeneratedRow, python: str, exclude_newer: datetime.date | None) -> tuple[str, ...]:
    """The versions in the row's range that the index offers to ``python``, oldest first.

    uv has no verb for this, so its resolver is asked for the newest version below the last answer until there is none:
    every setting that decides what can be installed (index, day, pre-releases, yanked files) decides here too.
    """
    memory = _memory("versions", row.package, row.versions, str(row.prereleases), python, exclude_newer)
    if memory is not None and memory.is_file():
        return tuple(json.loads(memory.read_text(encoding="utf-8")))
    found: list[str] = []
    below = ""
    while True:
        answer = uv.call(
            "pip", "compile", "-", "--no-deps", "--no-header", "--no-annotate", "--python-version", python,
            "--prerelease", "allow" if row.prereleases else "disallow", *_until(exclude_newer),
            given=f"{row.package}{','.join(filter(None, (row.versions, below)))}\n",
        )  # fmt: skip
        uv.require_index(answer)
        match = _PINNED.search(answer.output)
        if not answer.ok or match is None:
            break
        found.insert(0, match["version"])
        below = f"<{_exclusive(match['version'])}"
    if memory is not None and found:
        folders.write_whole(memory, json.dumps(found).encode())
    return tuple(found)


def resolve(request: ReleaseRequest) -> Release | Failure:
    """Resolve to a hashed lock. A lock with a day is remembered: that day's index does not change."""
    known = remembered(request)
    if known is not None:
        return known
    began = time.monotonic()
    try:
        interpreter = interpreters.find(request.python)
    except interpreters.NoInterpreter as error:
        return Failure(subject=request.id, stage="resolve", status="unresolved", reason=str(error))
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as pins:
        pins.write("\n".join(request.pins) + "\n")
        pins.flush()
        answer = uv.call(
            "pip", "compile", "-", "--generate-hashes", "--no-header", "--no-annotate", "--python",
            str(interpreter.path), "--constraints", pins.name, *_until(request.exclude_newer),
            given="\n".join(request.requires) + "\n",
        )  # fmt: skip
    if not answer.ok:
        return uv_failure(request.id, "resolve", "unresolved", answer, time.monotonic() - began)
    memory = _lock_memory(request, interpreter)
    if memory is not None:
        folders.write_whole(memory, answer.output.encode())
    return Release(request=request, interpreter=interpreter, lock=_lock(answer.output))


def remembered(request: ReleaseRequest) -> Release | None:
    """The release if its lock is known without asking the index."""
    try:
        interpreter = interpreters.find(request.python)
    except interpreters.NoInterpreter:
        return None
    memory = _lock_memory(request, interpreter)
    if memory is None or not memory.is_file():
        return None
    return Release(request=request, interpreter=interpreter, lock=_lock(memory.read_text(encoding="utf-8")))


def uv_failure(subject: str, stage: str, status: str, answer: uv.Answer, seconds: float) -> Failure:
    """A failed call of uv as a value. What is not the packages' fault has a status of its own."""
    if answer.unreachable or answer.full_disk:
        status = "unreachable" if answer.unreachable else "disk-full"
    return Failure(
        subject=subject,
        stage=stage,
        status=status,
        reason=answer.reason,
        exit_code=answer.exit_code,
        stderr_tail=answer.errors[-4000:],
        seconds=seconds,
    )


def selected(requests: Iterable[ReleaseRequest], patterns: Iterable[str]) -> tuple[ReleaseRequest, ...]:
    """The releases whose id one of the patterns matches, in the matrix's order."""
    patterns = tuple(patterns)
    return tuple(request for request in requests if any(fnmatchcase(request.id, pattern) for pattern in patterns))


def _request(matrix: Matrix, row: ExplicitRow | GeneratedRow, name: str, requires: tuple[str, ...]) -> ReleaseRequest:
    return ReleaseRequest(
        id=name,
        requires=requires,
        pins=(*matrix.pins, *row.pins),
        python=row.python or matrix.python,
        exclude_newer=row.exclude_newer or matrix.exclude_newer,
        series=row.series,
    )


def _check_selectors(file: MatrixFile, ids: list[str]) -> None:
    """What could be checked only now that the generated rows have ids."""
    problems = []
    repeated = sorted({identifier for identifier in ids if ids.count(identifier) > 1})
    problems += [f"releases: {identifier!r} appears more than once" for identifier in repeated]
    for index, row in enumerate(file.matrix.environments):
        for position, pattern in enumerate(row.releases):
            if not any(fnmatchcase(identifier, pattern) for identifier in ids):
                where = file.at(("environments", index, "releases", position))
                problems.append(f"{where}: {pattern!r} matches no release")
    pairs = file.matrix.pairs
    if isinstance(pairs, Against) and pairs.against not in ids:
        problems.append(f"{file.at(('pairs', 'against'))}: {pairs.against!r} is not the id of a release")
    if problems:
        raise MatrixError(str(file.path), problems)


def _lock(text: str) -> Lock:
    packages = tuple(sorted((canonicalize_name(match["name"]), match["version"]) for match in _PINNED.finditer(text)))
    if not packages:
        raise UsageError("a release resolved to no distribution at all; its `requires` must name one")
    return Lock(text=text, packages=packages, digest=folders.digest(text))


def _until(day: datetime.date | None) -> list[str]:
    """Uploads of that day count, in UTC: a bare date would mean another moment in each time zone."""
    return [] if day is None else ["--exclude-newer", f"{day + datetime.timedelta(days=1)}T00:00:00Z"]


def _exclusive(version: str) -> str:
    """The version to ask below. ``<1.0.post1`` would, by the rules of versions, shut out 1.0 as well."""
    parsed = Version(version)
    return parsed.public if not parsed.is_postrelease else parsed.base_version + f".post{parsed.post}.dev0"


def _lock_memory(request: ReleaseRequest, interpreter: Interpreter) -> Path | None:
    parts = (*sorted(request.requires), "|", *sorted(request.pins), interpreter.version, request.exclude_newer)
    return _memory("locks", *parts)


def _memory(kind: str, *parts: object) -> Path | None:
    """Where an answer of the index is kept; nowhere when it depends on today (the last part, a day, is missing)."""
    if parts[-1] is None:
        return None
    return folders.cache() / kind / f"{folders.digest(*(str(part) for part in parts))}.txt"
