"""Ask the configured index which versions of a package there are, through uv, so that the user's settings hold."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from audit import folders
from audit.digests import digest
from audit.errors import AuditError
from audit.failures import readable
from audit.installing import interpreters, source_builds, uv
from audit.installing.uv import Answer

PINNED = re.compile(r"^(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)==(?P<version>[^\s;\\]+)", re.M)
"""A line of a requirements file that holds a distribution at one version."""


_LONGEST_REASON = 1000
"""Characters of why a version was withdrawn; a longer reason is not told."""

_YANKED = re.compile(
    r"(?<![a-z0-9-])(?P<name>[a-z0-9-]+)==(?P<version>[a-z0-9.!+]+) was yanked"
    rf"(?: \(reason: (?P<reason>.{{0,{_LONGEST_REASON}}}?)\)(?=,| and| we))?"
)
"""What uv says of a version that it leaves out. The reason is its uploader's, who may write anything and any length."""

_YANKED_PIN = re.compile(r'warning: `\S+` is yanked(?: \(reason: "(?P<reason>.*)"\))?')
"""What uv says of a version that it was asked for by number, and takes all the same."""

_FILTERED = re.compile(
    r"^hint: `\S+` was filtered by `exclude-newer`[^\n]*? satisfying the requirement is v(?P<version>\S+?)"
    r"(?P<told>, published at \S+)?\. ",
    re.M,
)
"""What uv says when a version is there that is too young."""

_GONE = re.compile(r"^  cause: Because \S+ was not found in the package registry", re.M)
"""What uv says of a package that the index does not have. What an uploader wrote stands further in, line by line."""


class Ranged(Protocol):
    """A range of versions of a package, such as a generated row of a matrix."""

    @property
    def package(self) -> str:
        """Its name."""
        ...

    @property
    def versions(self) -> str:
        """The range."""
        ...

    @property
    def prereleases(self) -> bool:
        """Whether pre-releases count."""
        ...

    @property
    def sources(self) -> tuple[str, ...]:
        """The packages that may be built."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """What the index has in a range beside the versions that are known."""

    versions: tuple[str, ...]
    """Oldest first."""
    yanked: Mapping[str, str]
    """Versions that are there but withdrawn, with the reason that was given."""
    young: str
    """The newest version that is still too young, or nothing."""


def versions(row: Ranged, python: str, day: datetime.date | None) -> tuple[str, ...]:
    """The versions in the row's range that the index offers to ``python``, oldest first.

    uv has no verb for this, so its resolver is asked for the newest version below the last answer until there is none:
    every setting that decides what can be installed (index, day, pre-releases, yanked files) decides here too.
    """
    memory = remembered_at("versions", day, row.package, row.versions, str(row.prereleases), python, *row.sources)
    if memory is not None and memory.is_file():
        return tuple(json.loads(memory.read_text(encoding="utf-8")))
    found: list[str] = []
    below = ""
    while (version := _offered(answer := _asked(row, python, day, below))) is not None:
        found.insert(0, version)
        below = f"<={Version(version).public},!={version}"  # `<1.0` would shut out 1.0rc1 too
    if not found:
        _too_young(row, answer)
    if memory is not None and found:
        folders.write_whole(memory, json.dumps(found).encode())
    return tuple(found)


def unknown(row: Ranged, python: str, day: datetime.date | None, known: Sequence[str]) -> Sighting:
    """What is in the row's range beside ``known``: one call of uv where that is nothing.

    Everything known is shut out by name, so that a late patch of an old series is found as well as the next version.
    """
    found: list[str] = []
    while (version := _offered(answer := _asked(row, python, day, _without(*known, *found)))) is not None:
        found.append(version)
    told = " ".join(answer.errors.split())
    if _GONE.search(answer.errors):
        raise AuditError(f"the index does not have {row.package} any more")
    young = _too_young(row, answer)
    return Sighting(
        versions=tuple(sorted(found, key=Version)),
        yanked=dict(_yanked(told, row.package)),
        young=young,
    )


def withdrawn(package: str, version: str, python: str) -> str | None:
    """The reason for which a version has been yanked, perhaps empty; nothing where it has not been."""
    answer = uv.call("pip", "compile", "-", "--no-deps", "--no-header", "--no-annotate", "--python-version", python,
                     given=f"{package}=={version}\n", quiet=False)  # fmt: skip
    uv.require_index(answer)
    found = _YANKED_PIN.search(answer.errors)
    return readable(found["reason"] or "") if found else None


def until(day: datetime.date | None) -> list[str]:
    """Uv's option for the day. Its uploads count, in UTC: a bare date would mean another moment in each time zone."""
    return [] if day is None else ["--exclude-newer", f"{day + datetime.timedelta(days=1)}T00:00:00Z"]


def remembered_at(kind: str, day: datetime.date | None, *question: str) -> Path | None:
    """Where the configured index's answer to a question is kept; nowhere while it can still change."""
    if day is None or day >= datetime.datetime.now(datetime.UTC).date():
        return None
    return folders.cache() / kind / f"{digest(uv.settings_digest(), str(day), *question)}.txt"


def _yanked(told: str, package: str) -> Iterator[tuple[str, str]]:
    """The versions of a package that uv says are withdrawn, with the reasons, each of which may itself name some."""
    for each in _YANKED.finditer(told):
        if each["name"] == canonicalize_name(package) and _is_version(each["version"]):
            yield each["version"], readable(each["reason"] or "")


def _is_version(text: str) -> bool:
    try:
        Version(text)
    except InvalidVersion:
        return False
    return True


def _too_young(row: Ranged, answer: Answer) -> str:
    """The version that a day shuts out, or nothing.

    Raises:
        AuditError: if the index does not tell when that version was uploaded, so that any day shuts it out.
    """
    young = _FILTERED.search(answer.errors)
    if young is not None and not young["told"]:
        raise AuditError(
            f"the index does not tell when {row.package} {young['version']} was uploaded, so its age is not known: "
            "for such an index a matrix has no `exclude-newer`, and a nightly one `min-age: 0` under `nightly`"
        )
    return young["version"] if young is not None else ""


def _without(*known: str) -> str:
    return ",".join(f"!={version}" for version in known)


def _asked(row: Ranged, python: str, day: datetime.date | None, but: str) -> Answer:
    """What uv answers when it is asked for the newest version in the range, ``but`` for some."""
    interpreter = interpreters.find(python).path if row.sources else None
    where = ["--python", str(interpreter)] if interpreter is not None else ["--python-version", python]
    answer = source_builds.resolve(
        "pip", "compile", "-", "--no-deps", "--no-header", "--no-annotate", *where,
        "--prerelease", "allow" if row.prereleases else "disallow", *until(day),
        source=row.sources, python=interpreter,
        given=f"{row.package}{','.join(filter(None, (row.versions, but)))}\n",
    )  # fmt: skip
    uv.require_index(answer)
    if not answer.ok and not answer.unsatisfiable:
        raise AuditError(f"uv could not list the versions of {row.package}: {answer.reason}")
    return answer


def _offered(answer: Answer) -> str | None:
    match = PINNED.search(answer.output)
    return match["version"] if answer.ok and match else None
