"""Read a YAML file into a model: every problem at once, each with its dotted path and its line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from audit.asked import yaml_lines
from audit.asked.yaml_lines import Location, Problem
from audit.errors import MatrixError, UsageError

LARGEST_BYTES = 4 * 2**20
"""Of a file: ten thousand releases with a row each take under one. Reading YAML takes a minute for that much."""

Model = TypeVar("Model", bound=BaseModel)

# Tags that pydantic puts into an error's location for a choice between models; the file has no such level.
# "[key]" says that it is the name of an edit, or of an argument, that is wrong.
_CHOICES = {"explicit", "generated", "bounded", "near", "Against", "literal['all','adjacent']", "[key]"}

# pydantic's words for Python's types, said for those of YAML.
_WORDS = {
    "tuple_type": "should be a list",
    "list_type": "should be a list",
    "dict_type": "should be a mapping",
    "model_type": "should be a mapping",
    "model_attributes_type": "should be a mapping",
    "string_type": "should be text",
    "too_short": "should not be empty",  # all that has to have a length has to have one of 1
    "string_too_short": "should not be empty",
    "int_parsing": "should be a whole number",
    "date_type": "should be a date such as 2026-11-01",
    "date_from_datetime_parsing": "should be a date such as 2026-11-01",
}


def _kebab(name: str) -> str:
    return name.rstrip("_").replace("_", "-")


class FileModel(BaseModel):
    """A part of a file: no unknown keys, and ``exclude_newer`` is written ``exclude-newer``."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=_kebab, populate_by_name=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Read(Generic[Model]):
    """A valid model, its text, and where each part of it stands."""

    model: Model
    text: str
    lines: dict[Location, int]


def read(
    path: Path, model: type[Model], also: Callable[[dict[Any, Any]], Sequence[Problem]] = lambda _: ()
) -> Read[Model]:
    """Read and validate; ``also`` finds in the raw data what no single field can tell.

    Raises:
        UsageError: where there is no file to read.
        MatrixError: with everything that is wrong.
    """
    return parsed(path, _text(path), model, also)


def parsed(
    path: Path, text: str, model: type[Model], also: Callable[[dict[Any, Any]], Sequence[Problem]] = lambda _: ()
) -> Read[Model]:
    """Validate the text that a file has, or had; raises :class:`audit.errors.MatrixError` as above."""
    document = yaml_lines.read(path, text)
    lines, problems = document.lines, list(document.problems)
    found = None
    try:
        found = model.model_validate(document.data)
    except ValidationError as error:
        problems += [_problem(each, lines) for each in error.errors() if not _is_echo(each)]
    if isinstance(document.data, dict):
        problems += also(document.data)
    if problems or found is None:
        # A part that could not even be read is reported once, not again for what it is not.
        unread = {location for location, _ in document.problems}
        told = [each for each in problems if each in document.problems or each[0] not in unread]
        ordered = sorted(told, key=lambda each: yaml_lines.line(lines, each[0]))
        raise MatrixError(str(path), [f"{yaml_lines.at(lines, location)}: {message}" for location, message in ordered])
    return Read(model=found, text=text, lines=lines)


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_BYTES + 1)
        if len(content) > LARGEST_BYTES:
            raise UsageError(f"{path} cannot be read: it is larger than {LARGEST_BYTES} bytes")
        return content.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from None


def _problem(error: Any, lines: dict[Location, int]) -> Problem:
    message: str = error["msg"].removeprefix("Value error, ")
    if error["type"] == "extra_forbidden":
        message = "there is no such key here"
    elif error["type"] == "missing":
        message = "is missing"
    elif error["type"] in _WORDS:
        message = _WORDS[error["type"]]
    return _location(error["loc"], lines), message[:1].lower() + message[1:]


def _location(parts: Location, lines: dict[Location, int]) -> Location:
    """The place in the file: pydantic also names the model it chose, where there is a choice."""
    location: Location = ()
    for part in parts:
        if part not in _CHOICES or (*location, part) in lines:
            location = (*location, part)
    return location


def _is_echo(error: Any) -> bool:
    """A list whose every row is wrong is also called too short; the rows' own problems say it better."""
    return bool(error["type"] == "too_short" and error["input"])
