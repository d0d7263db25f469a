"""A question without a matrix: releases and environments given on the command line, as the matrix they stand for."""

from __future__ import annotations

import datetime
import json
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from pydantic import ValidationError

from audit.asked.matrix import Matrix
from audit.asked.matrix_file import MatrixFile
from audit.asked.releases import EDITED
from audit.errors import UsageError
from audit.installing.locks import Lock
from audit.storage.store import Store

STIMULUS = {"seed": 0, "trajectories": 8, "steps": 200, "actions": "uniform"}
"""Driven, so that actuators act; what is rare is sought by the bank."""


_BETWEEN = re.compile(r", (?=[A-Za-z0-9])(?![^\[]*\])")
"""Between requirements, and not between what one of them says: ``a[b, c]>=1, <2, d`` are two."""

_OPERATORS = {">=": "from-", "<=": "to-", ">": "above-", "<": "below-", "~=": "like-", "!=": "not-"}


def this_python() -> str:
    """The Python that runs this: what a user means who names none."""
    return ".".join(platform.python_version_tuple()[:2])


def release_row(requires: Sequence[str], beside: Sequence[str], day: datetime.date | None = None) -> dict[str, Any]:
    """A release as a row of a matrix, named after what it pins: ``mujoco-3.1.6``."""
    return {"id": name_of(requires), "requires": [*requires, *beside], "exclude-newer": day}


_LIKE_AN_ID = re.compile(r"([\w.-]+)-(\d+\.\d[\w.]*)")
"""As rows of a matrix are called by themselves; no requirement is written so."""

DIFF = "diff-"
"""What the name of a matrix begins with that nobody wrote: two releases, compared once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A release as a row of a matrix, and the text of its lock where an audit in the store has it."""

    row: dict[str, Any]
    lock: str | None = None


def named(store: Store, text: str, environment: str, beside: Sequence[str], day: datetime.date | None) -> Named:
    """The id of a release in the store, or requirements.

    Raises:
        UsageError: where it looks like an id and the store has no such release.
    """
    found = stored(store, text, environment)
    if found is None and (like := _LIKE_AN_ID.fullmatch(text)):
        raise UsageError(
            f"no audit in {store.path} has a release {text}; requirements are written like '{like[1]}=={like[2]}'"
        )
    return found or Named(row=release_row(text.split(), beside, day))


def stored(store: Store, release: str, environment: str = "") -> Named | None:
    """A release of an audit in the store, with everything at the versions of its lock.

    Where several matrices have the id, one that had the environment is meant.

    Raises:
        UsageError: where it is not clear which is meant, or where the release was edited, which a row cannot repeat.
    """
    found = store.query(
        "SELECT requires, python, lock_text, string_agg(DISTINCT matrix, ', ' ORDER BY matrix),"
        " bool_or(matrix IN (SELECT matrix FROM dumps WHERE environment = ?)) AS asked FROM releases"
        " WHERE release = ? AND lock_text IS NOT NULL GROUP BY ALL",
        [environment, release],
    ).rows
    found = tuple(row for row in found if row[-1]) or found
    if not found:
        return None
    if len(found) > 1 and environment and not found[0][-1]:
        raise UsageError(f"no audit in {store.path} has dumped {environment}: the view dumps says what there is")
    if len(found) > 1:
        matrices = " and ".join(sorted(row[3] for row in found))
        raise UsageError(f"{release} is another release in {matrices}: give its requirements instead")
    requires, python, lock, *_ = found[0]
    plain, edited, _ = requires.partition(EDITED)
    if edited:
        raise UsageError(f"{release} was edited: give the requirements of one that was not")
    pins = [f"{name}=={version}" for name, version in Lock.from_text(lock).packages]
    row = {"id": release, "requires": _BETWEEN.split(plain), "pins": pins, "python": python}
    return Named(row=row, lock=lock)


def name_of(requires: Sequence[str]) -> str:
    """An id for requirements.

    >>> name_of(["gymnasium[mujoco]==1.3.0", "mujoco==3.1.6"])
    'gymnasium-1.3.0+mujoco-3.1.6'
    >>> name_of(["mujoco>=3,<4"])
    'mujoco-below-4-from-3'
    """
    if not requires:
        raise UsageError("a release needs a requirement; write it like 'mujoco==3.1.6'")
    return "+".join(_part(each) for each in requires)


def _part(text: str) -> str:
    try:
        parsed = Requirement(text)
    except InvalidRequirement:
        raise UsageError(f"{text!r} is not a requirement; write it like 'mujoco==3.1.6'") from None
    parts = sorted(parsed.specifier, key=str)
    told = "-".join(f"{_OPERATORS.get(each.operator, '')}{each.version}" for each in parts)
    version = re.sub(r"[^A-Za-z0-9._]+", "-", told)
    return f"{parsed.name}-{version}" if version else parsed.name


def environment_row(identifier: str | None, mjcf: Path | None, newer: str = "") -> dict[str, Any]:
    """An environment as a row of a matrix; ``Reacher-v4=Reacher-v5`` is called otherwise in the newer release."""
    if (identifier is None) == (mjcf is None):
        raise UsageError("give an environment by its id, or a scene with --mjcf")
    if mjcf is not None:
        return {"mjcf": str(mjcf.absolute())}
    older, _, renamed = str(identifier).partition("=")
    if not older:
        raise UsageError(f"'{identifier}' is not the id of an environment; write it like 'Hopper-v5'")
    return {"id": older, "renamed": {newer: renamed}} if renamed else {"id": older}


def told_apart(rows: Sequence[dict[str, Any]], environments: Sequence[str]) -> list[dict[str, Any]]:
    """The two releases with ids of their own, also where only what they call an environment differs.

    Raises:
        UsageError: where they are the same release.
    """
    older, newer = rows
    if older["id"] != newer["id"]:
        return [older, newer]
    renamed = [name.partition("=")[2] for name in environments if "=" in name]
    if not renamed:
        raise same_release(older["id"], newer["id"])
    return [older, {**newer, "id": f"{newer['id']}@{renamed[0]}"}]


def same_release(older: str, newer: str) -> UsageError:
    """Between a release and itself there is nothing."""
    return UsageError(f"{older} and {newer} are the same release: there is nothing between a release and itself")


def matrix(
    name: str,
    releases: Sequence[Mapping[str, Any]],
    environments: Sequence[Mapping[str, Any]],
    python: str | None,
    *,
    source: bool = False,
) -> MatrixFile:
    """The matrix as if it had been written; with ``source``, whatever has no wheel is built.

    Raises:
        UsageError: with what is wrong in it.
    """
    ids = [row["id"] for row in releases]
    for each in ids:
        if ids.count(each) > 1:
            raise UsageError(f"both are {each}: there is nothing between a release and itself")
    data = {
        "name": name,
        "python": python or next((row["python"] for row in releases if row.get("python")), None) or this_python(),
        "pairs": "all",
        "stimulus": STIMULUS,
        "releases": [
            {key: value for key, value in row.items() if value is not None} | ({"source": True} if source else {})
            for row in releases
        ],
        "environments": [dict(row) for row in environments],
    }
    try:
        made = Matrix.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]  # the others may only follow from it
        raise UsageError(str(first["msg"]).removeprefix("Value error, ")) from None
    text = json.dumps(data, indent=1, default=str) + "\n"  # JSON is YAML
    return MatrixFile(path=Path.cwd() / name, text=text, matrix=made, lines={(): 1})
