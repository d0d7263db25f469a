"""Read a matrix from its file: every problem at once, each with its dotted path and its line."""

from __future__ import annotations

import json
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, SequenceNode

from audit.errors import MatrixError, UsageError
from audit.matrix import Matrix

Location = tuple[str | int, ...]

SHIPPED = Path(__file__).resolve().parent.parent / "matrices"

# Tags that pydantic puts into an error's location for a choice between models; the file has no such level.
_CHOICES = {"explicit", "generated", "bounded", "near", "Against", "literal['all','adjacent']"}


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixFile:
    """A valid matrix, its text, and where each part of it stands."""

    path: Path
    text: str
    matrix: Matrix
    lines: dict[Location, int]

    def at(self, location: Location) -> str:
        """``releases[3].requires[0], line 14``, for messages about a part of this file."""
        return _at(self.lines, location)


def find(name: str) -> Path:
    """A path as it is, or a name in ``matrices/``."""
    for candidate in (Path(name), Path("matrices") / name, SHIPPED / name, SHIPPED / f"{name}.yaml"):
        if candidate.is_file():
            return candidate
    shipped = ", ".join(sorted(path.name for path in SHIPPED.glob("*.yaml")))
    raise UsageError(f"there is no matrix {name!r}: give the path of a file, or one of {shipped}")


def read(path: Path) -> MatrixFile:
    """Read and validate; raise :class:`MatrixError` with everything that is wrong."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from None
    try:
        node = YAML(typ="safe", pure=True).compose(text)
        data = YAML(typ="safe", pure=True).load(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f"line {mark.line + 1}: " if mark else ""
        raise MatrixError(str(path), [f"{line}not YAML: {error.problem or error.context}"]) from None
    except (YAMLError, ValueError) as error:
        raise MatrixError(str(path), [f"not YAML: {' '.join(str(error).split())}"]) from None
    if not isinstance(data, dict):
        raise MatrixError(str(path), ["line 1: a matrix is a mapping with name, python, releases, environments"])
    lines = _lines(node)
    problems: list[tuple[Location, str]] = []
    matrix = None
    try:
        matrix = Matrix.model_validate(data)
    except ValidationError as error:
        problems = [_problem(each) for each in error.errors() if not _is_echo(each)]
    problems += _cross_check(data)
    if problems or matrix is None:
        ordered = sorted(problems, key=lambda each: _line(lines, each[0]))
        raise MatrixError(str(path), [f"{_at(lines, location)}: {message}" for location, message in ordered])
    return MatrixFile(path=path, text=text, matrix=matrix, lines=lines)


def schema() -> str:
    """The JSON schema of a matrix, as it lies in ``matrices/schema.json``."""
    return json.dumps(Matrix.model_json_schema(by_alias=True), indent=2, ensure_ascii=False) + "\n"


def _problem(error: Any) -> tuple[Location, str]:
    location = tuple(part for part in error["loc"] if part not in _CHOICES)
    message: str = error["msg"].removeprefix("Value error, ")
    if error["type"] == "extra_forbidden":
        message = "there is no such key here"
    elif error["type"] == "missing":
        message = "is missing"
    return location, message[:1].lower() + message[1:]


def _is_echo(error: Any) -> bool:
    """A list whose every row is wrong is also called too short; the rows' own problems say it better."""
    return bool(error["type"] == "too_short" and error["input"])


def _cross_check(data: dict[Any, Any]) -> list[tuple[Location, str]]:
    """What no single field can tell: ids that appear twice, selectors and baselines that name nothing.

    Works on the raw data, past anything that is malformed: that is reported already.
    """
    problems: list[tuple[Location, str]] = []
    rows, environments = _dicts(data.get("releases")), _dicts(data.get("environments"))
    explicit = [(index, row["id"]) for index, row in rows if "package" not in row and isinstance(row.get("id"), str)]
    problems += _repeated("releases", "id", explicit)
    titles = [(index, row.get("name") or row.get("id")) for index, row in environments]
    problems += _repeated("environments", "id", [(i, t) for i, t in titles if isinstance(t, str)])
    if any("package" in row for _, row in rows):
        return problems  # ids of generated rows are known only when the index has been asked
    ids = [identifier for _, identifier in explicit]
    for index, row in environments:
        for position, pattern in enumerate(row.get("releases") or ()):
            if isinstance(pattern, str) and not any(fnmatchcase(identifier, pattern) for identifier in ids):
                problems.append((("environments", index, "releases", position), f"{pattern!r} matches no release"))
    pairs = data.get("pairs")
    if isinstance(pairs, dict) and isinstance(pairs.get("against"), str) and pairs["against"] not in ids:
        problems.append((("pairs", "against"), f"{pairs['against']!r} is not the id of a release"))
    return problems


def _dicts(value: Any) -> list[tuple[int, dict[Any, Any]]]:
    return [(i, row) for i, row in enumerate(value) if isinstance(row, dict)] if isinstance(value, list) else []


def _repeated(section: str, key: str, named: list[tuple[int, str]]) -> list[tuple[Location, str]]:
    seen: dict[str, int] = {}
    problems: list[tuple[Location, str]] = []
    for index, identifier in named:
        if identifier in seen:
            problems.append(((section, index, key), f"{identifier!r} stands already at {section}[{seen[identifier]}]"))
        seen.setdefault(identifier, index)
    return problems


def _lines(node: Node | None) -> dict[Location, int]:
    found: dict[Location, int] = {(): 1}

    def walk(node: Node, location: Location) -> None:
        if isinstance(node, MappingNode):
            for key, value in node.value:
                found[(*location, key.value)] = key.start_mark.line + 1
                walk(value, (*location, key.value))
        elif isinstance(node, SequenceNode):
            for index, value in enumerate(node.value):
                found[(*location, index)] = value.start_mark.line + 1
                walk(value, (*location, index))

    if node is not None:
        walk(node, ())
    return found


def _line(lines: dict[Location, int], location: Location) -> int:
    while location not in lines:
        location = location[:-1]
    return lines[location]


def _at(lines: dict[Location, int], location: Location) -> str:
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).removeprefix(".")
    return f"{path or 'matrix'}, line {_line(lines, location)}"
