"""Read YAML and remember the line of every part, so that whatever is wrong with it can be pointed at."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from audit.errors import MatrixError

MOST_PARTS = 200_000
"""Of a file, aliases written out: ten thousand releases with a row each have 60,000. A few lines of aliases to aliases
can stand for billions."""

Location = tuple[str | int, ...]
Problem = tuple[Location, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """Plain data, the line of each part, and the parts that could not be read (``None`` stands in the data there)."""

    data: Any
    lines: dict[Location, int]
    problems: tuple[Problem, ...]


def read(path: Path, text: str) -> Document:
    """Read; raise only when it is not YAML at all."""
    reader = _Reader()
    try:
        yaml = YAML(typ="safe", pure=True)
        yaml.composer.warn_double_anchors = False  # YAML allows an anchor to be given anew
        node = yaml.compose(text)
        data = reader.value(node, ()) if node is not None else None
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f"line {mark.line + 1}: " if mark else ""
        raise MatrixError(str(path), [f"{line}not YAML: {error.problem or error.context}"]) from None
    except (YAMLError, ValueError) as error:
        raise MatrixError(str(path), [f"not YAML: {' '.join(str(error).split())}"]) from None
    except KeyError:  # the reader's own, of a `%YAML` that it does not know
        raise MatrixError(str(path), ["it is of a version of YAML that is not known"]) from None
    except _TooMany:
        raise MatrixError(str(path), [f"line 1: it has more than {MOST_PARTS} parts, aliases written out"]) from None
    except RecursionError:
        raise MatrixError(str(path), ["line 1: it is nested too deep"]) from None
    return Document(data=data, lines=reader.lines, problems=tuple(reader.problems))


def line(lines: dict[Location, int], location: Location) -> int:
    """The line of a part, or of the nearest part around it."""
    while location not in lines:
        location = location[:-1]
    return lines[location]


def at(lines: dict[Location, int], location: Location) -> str:
    """A part in words: ``releases[3].requires[0], line 14``."""
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).removeprefix(".")
    return f"{path or 'the file'}, line {line(lines, location)}"


class _TooMany(Exception):
    """It has more parts than anybody writes."""


class _Reader:
    """Turns nodes into data, noting lines and problems on the way."""

    def __init__(self) -> None:
        self.lines: dict[Location, int] = {(): 1}
        self.problems: list[Problem] = []
        self._construct = YAML(typ="safe", pure=True).constructor.construct_object
        self._open: set[int] = set()
        self._parts = 0

    def value(self, node: Node, location: Location) -> Any:
        self._parts += 1
        if self._parts > MOST_PARTS:
            raise _TooMany
        if id(node) in self._open:
            self.problems.append((location, "it contains itself"))
            return None
        self._open.add(id(node))
        try:
            if isinstance(node, MappingNode):
                return self._mapping(node, location)
            return self._sequence(node, location) if isinstance(node, SequenceNode) else self._scalar(node, location)
        finally:
            self._open.discard(id(node))

    def _scalar(self, node: Node, location: Location) -> Any:
        try:
            value = self._construct(node)
            if isinstance(value, str):
                value.encode("utf-8")  # an escape can spell half a character, which nothing could print
            return value
        except (YAMLError, ValueError, KeyError, TypeError) as error:
            self.problems.append((location, f"{node.value!r} cannot be read: {' '.join(str(error).split())}"))
            return None

    def _sequence(self, node: SequenceNode, location: Location) -> list[Any]:
        data = []
        for index, child in enumerate(node.value):
            self.lines[(*location, index)] = child.start_mark.line + 1
            data.append(self.value(child, (*location, index)))
        return data

    def _mapping(self, node: MappingNode, location: Location) -> dict[str, Any]:
        data: dict[str, Any] = {}
        for key, child in node.value:
            name = key.value.encode("utf-8", "replace").decode() if isinstance(key, ScalarNode) else "?"
            place = (*location, name)
            self.lines.setdefault(place, key.start_mark.line + 1)
            if not isinstance(key, ScalarNode) or not isinstance(self._scalar(key, place), str):
                self.problems.append((place, "a key must be text"))
            elif name in data:
                line = key.start_mark.line + 1
                self.problems.append((place, f"stands a second time, at line {line}"))
            else:
                data[name] = self.value(child, place)
        return data
