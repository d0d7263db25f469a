"""What a field of a matrix may hold, as types that refuse everything else in one sentence."""

from __future__ import annotations

import datetime
import math
import re
from typing import Annotated, Any
from xml.etree import ElementTree

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from pydantic import AfterValidator, BeforeValidator, Field, StrictBool, StrictFloat, StrictInt, StrictStr

_PYTHON = re.compile(r"3\.\d+(\.\d+)?")
_LAST_DAY = datetime.date(9998, 12, 31)  # the day after it is still a date
_PACKAGE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_IDENTIFIER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]*")
_ATTRIBUTE = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")


def _requirement(text: str) -> str:
    try:
        Requirement(text)
    except InvalidRequirement as error:
        raise ValueError(f"{text!r} is not a requirement: {str(error).splitlines()[0]}") from None
    return text


def _package(text: str) -> str:
    if not _PACKAGE.fullmatch(text):
        raise ValueError(f"{text!r} is not the name of a package; versions go into `versions`, the rest into `with`")
    return text


def _specifier(text: str) -> str:
    try:
        SpecifierSet(text)
    except InvalidSpecifier:
        raise ValueError(f"{text!r} is not a version range; write it like '>=3.2,<4'") from None
    return text


def _python_text(value: Any) -> Any:
    if isinstance(value, float):
        raise ValueError(f"put the version in quotes: YAML reads {value} as a number, and 3.10 as 3.1")
    return value


def _python(text: str) -> str:
    if not _PYTHON.fullmatch(text):
        raise ValueError(f"{text!r} is not a Python version; write it like '3.11' or '3.11.7'")
    return text


def _identifier(text: str) -> str:
    if not _IDENTIFIER.fullmatch(text):
        raise ValueError(f"{text!r} must begin with a letter or digit and hold only letters, digits and . _ @ + -")
    return text


def _identifier_template(text: str) -> str:
    if "{version}" not in text:
        raise ValueError(f"{text!r} must contain {{version}}, so that each version gets its own id")
    _identifier(text.replace("{version}", "0"))
    return text


def _day(value: datetime.date) -> datetime.date:
    if value > _LAST_DAY:
        raise ValueError(f"{value} is too far in the future")
    return value


def _edit_name(name: str) -> str:
    """The name of an attribute, or ``PATH@ATTRIBUTE`` for one in a model's file."""
    path, at, attribute = name.rpartition("@")
    if at and not (path and _is_path(path) and _ATTRIBUTE.fullmatch(attribute)):
        raise ValueError(f"{name!r} is not a path and an attribute, like body[@name='fingertip']@pos")
    return name


def _is_path(text: str) -> bool:
    try:
        ElementTree.Element("mujoco").find(f".//{text}")
    except (SyntaxError, LookupError, TypeError, ValueError):  # the parser of paths has no error of its own
        return False
    return True


def _edit(value: Any) -> Any:
    """Refuse in one sentence: a choice between types would have one for each."""
    entries = value if isinstance(value, (list, tuple)) and value else [value]
    if not isinstance(value, (bool, str)) and not all(_is_number(each) for each in entries):
        raise ValueError("should be true or false, a number, text, or a list of numbers")
    if any(isinstance(each, float) and not math.isfinite(each) for each in entries):
        raise ValueError("should be finite")
    return value


def _source(value: Any) -> Any:
    """Refuse in one sentence, as with edits."""
    if not isinstance(value, (bool, list, tuple)):
        raise ValueError("should be true or false, or a list of names of packages")
    for name in value if not isinstance(value, bool) else ():
        _package(str(name))
    return value


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


Day = Annotated[datetime.date, AfterValidator(_day)]
Step = Annotated[int, Field(ge=0)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
RequirementText = Annotated[str, AfterValidator(_requirement)]
PythonVersion = Annotated[str, BeforeValidator(_python_text), AfterValidator(_python)]
Identifier = Annotated[str, AfterValidator(_identifier)]
IdentifierTemplate = Annotated[str, AfterValidator(_identifier_template)]
PackageName = Annotated[str, AfterValidator(_package)]
VersionRange = Annotated[str, AfterValidator(_specifier)]
Number = StrictInt | StrictFloat
Edit = Annotated[
    StrictBool | Number | StrictStr | Annotated[tuple[Number, ...], Field(min_length=1)], BeforeValidator(_edit)
]
Source = Annotated[StrictBool | tuple[str, ...], BeforeValidator(_source)]
EditName = Annotated[str, AfterValidator(_edit_name)]
Trajectories = Annotated[int, Field(ge=1, le=100_000)]
Steps = Annotated[int, Field(ge=1, le=1_000_000)]

EDITS = "Constants that are set otherwise before anything is stepped, by name, or PATH@ATTRIBUTE in a model's file."
"""Of edits, wherever there are any."""
