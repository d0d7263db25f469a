"""Read a matrix from its file."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name

from audit import folders
from audit.asked import yaml_lines, yaml_models
from audit.asked.matrix import Matrix
from audit.asked.yaml_lines import Location, Problem
from audit.asked.yaml_models import Read
from audit.errors import UsageError

_HERE = folders.ROOT / "audit"
SHIPPED = next((place for place in (_HERE.parent / "matrices", _HERE / "matrices") if place.is_dir()), _HERE)
"""In a checkout beside this package, in an installed wheel within it."""

WAIVERS = "waivers.yaml"
"""Beside a matrix: changes in it that are accepted."""

PINNED = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)(?P<extras>\[[^\]]*\])? *== *(?P<version>[^\s;,*]+)$")
"""A requirement that holds a package at one version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixFile:
    """A valid matrix, its text, and where each part of it stands."""

    path: Path
    text: str
    matrix: Matrix
    lines: dict[Location, int]

    def at(self, location: Location) -> str:
        """``releases[3].requires[0], line 14``, for messages about a part of this file."""
        return yaml_lines.at(self.lines, location)


def find(name: str) -> Path:
    """A path as it is, or a name in ``matrices/``."""
    for candidate in (Path(name), Path("matrices") / name, SHIPPED / name, SHIPPED / f"{name}.yaml"):
        if candidate.is_file():
            return candidate
    known = ", ".join(path.name for path in shipped())
    raise UsageError(f"there is no matrix {name!r}: give the path of a file, or one of {known}")


def shipped() -> list[Path]:
    """The matrices that come with the program."""
    return sorted(path for path in SHIPPED.glob("*.yaml") if path.name != WAIVERS)


def read(path: Path) -> MatrixFile:
    """Read and validate; raise :class:`audit.errors.MatrixError` with everything that is wrong."""
    return _file(path, yaml_models.read(path, Matrix, _cross_check))


def of_text(path: Path, text: str) -> MatrixFile:
    """The matrix that stood at a path when it was audited, from the text that was kept of it."""
    return _file(path, yaml_models.parsed(path, text, Matrix, _cross_check))


def _file(path: Path, found: Read[Matrix]) -> MatrixFile:
    return MatrixFile(path=path, text=found.text, matrix=found.model, lines=found.lines)


def schema() -> str:
    """The JSON schema of a matrix, as it lies in ``matrices/schema.json``."""
    return json.dumps(Matrix.model_json_schema(by_alias=True), indent=2, ensure_ascii=False) + "\n"


def _cross_check(data: dict[Any, Any]) -> list[Problem]:
    """What no single field can tell: ids that appear twice, selectors and baselines that name nothing.

    Works on the raw data, past anything that is malformed: that is reported already.
    """
    problems: list[Problem] = []
    rows, environments = _dicts(data.get("releases")), _dicts(data.get("environments"))
    explicit = [(index, row["id"]) for index, row in rows if "package" not in row and isinstance(row.get("id"), str)]
    problems += _repeated("releases", "id", explicit)
    titles = [(index, row.get("name") or row.get("id") or row.get("dm_control")) for index, row in environments]
    problems += _repeated("environments", "id", [(i, t) for i, t in titles if isinstance(t, str)])
    problems += _watched(data.get("nightly"), rows)
    if any("package" in row for _, row in rows):
        return problems  # ids of generated rows are known only when the index has been asked
    ids = [identifier for _, identifier in explicit]
    for index, row in environments:
        patterns = row.get("releases")
        for position, pattern in enumerate(patterns if isinstance(patterns, list) else ()):
            if isinstance(pattern, str) and not any(fnmatchcase(identifier, pattern) for identifier in ids):
                problems.append((("environments", index, "releases", position), f"{pattern!r} matches no release"))
    baseline = data.get("baseline")
    if isinstance(baseline, str) and baseline not in ids:
        problems.append((("baseline",), f"{baseline!r} is not the id of a release"))
    pairs = data.get("pairs")
    if isinstance(pairs, dict) and isinstance(pairs.get("against"), str) and pairs["against"] not in ids:
        problems.append((("pairs", "against"), f"{pairs['against']!r} is not the id of a release"))
    return problems


def _watched(nightly: Any, rows: list[tuple[int, dict[Any, Any]]]) -> list[Problem]:
    """Packages to watch that no release written out names with a version, or that are watched anyhow."""
    names = nightly.get("watch") if isinstance(nightly, dict) else None
    generated = {canonicalize_name(row["package"]) for _, row in rows if isinstance(row.get("package"), str)}
    pinned = {
        canonicalize_name(match["name"])
        for _, row in rows
        for text in (row["requires"] if isinstance(row.get("requires"), list) else ())
        if isinstance(text, str) and (match := PINNED.match(text))
    }
    problems: list[Problem] = []
    for position, name in enumerate(names if isinstance(names, list) else ()):
        if isinstance(name, str) and canonicalize_name(name) in generated:
            problems.append((("nightly", "watch", position), f"{name} is watched already: a generated row names it"))
        elif isinstance(name, str) and canonicalize_name(name) not in pinned:
            problems.append((("nightly", "watch", position), f"no release requires {name}==VERSION"))
    return problems


def _dicts(value: Any) -> list[tuple[int, dict[Any, Any]]]:
    return [(i, row) for i, row in enumerate(value) if isinstance(row, dict)] if isinstance(value, list) else []


def _repeated(section: str, key: str, named: list[tuple[int, str]]) -> list[Problem]:
    seen: dict[str, int] = {}
    problems: list[Problem] = []
    for index, identifier in named:
        if identifier in seen:
            problems.append(((section, index, key), f"{identifier!r} stands already at {section}[{seen[identifier]}]"))
        seen.setdefault(identifier, index)
    return problems
