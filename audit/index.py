"""Ask the configured index which versions of a package there are, through uv, so that the user's settings hold."""

from __future__ import annotations

import datetime
import json
import re
from pathlib import Path

from packaging.version import Version

from audit import folders, uv
from audit.digests import digest
from audit.errors import AuditError
from audit.matrix import GeneratedRow

PINNED = re.compile(r"^(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)==(?P<version>[^\s;\\]+)", re.M)
"""A line of a requirements file that holds a distribution at one version."""


def versions(row: GeneratedRow, python: str, day: datetime.date | None) -> tuple[str, ...]:
    """The versions in the row's range that the index offers to ``python``, oldest first.

    uv has no verb for this, so its resolver is asked for the newest version below the last answer until there is none:
    every setting that decides what can be installed (index, day, pre-releases, yanked files) decides here too.
    """
    memory = remembered_at("versions", day, row.package, row.versions, str(row.prereleases), python)
    if memory is not None and memory.is_file():
        return tuple(json.loads(memory.read_text(encoding="utf-8")))
    found: list[str] = []
    below = ""
    while (version := _newest(row, python, day, below)) is not None:
        found.insert(0, version)
        below = f"<={Version(version).public},!={version}"  # `<1.0` would shut out 1.0rc1 too
    if memory is not None and found:
        folders.write_whole(memory, json.dumps(found).encode())
    return tuple(found)


def until(day: datetime.date | None) -> list[str]:
    """Uv's option for the day. Its uploads count, in UTC: a bare date would mean another moment in each time zone."""
    return [] if day is None else ["--exclude-newer", f"{day + datetime.timedelta(days=1)}T00:00:00Z"]


def remembered_at(kind: str, day: datetime.date | None, *question: str) -> Path | None:
    """Where the configured index's answer to a question is kept; nowhere while it can still change."""
    if day is None or day >= datetime.datetime.now(datetime.UTC).date():
        return None
    return folders.cache() / kind / f"{digest(uv.settings_digest(), str(day), *question)}.txt"


def _newest(row: GeneratedRow, python: str, day: datetime.date | None, below: str) -> str | None:
    answer = uv.call(
        "pip", "compile", "-", "--no-deps", "--no-header", "--no-annotate", "--python-version", python,
        "--prerelease", "allow" if row.prereleases else "disallow", *until(day),
        given=f"{row.package}{','.join(filter(None, (row.versions, below)))}\n",
    )  # fmt: skip
    uv.require_index(answer)
    if not answer.ok and not answer.unsatisfiable:
        raise AuditError(f"uv could not list the versions of {row.package}: {answer.reason}")
    match = PINNED.search(answer.output)
    return match["version"] if answer.ok and match else None
