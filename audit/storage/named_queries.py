"""Queries that people really want, by name: a file of SQL each.

The first line of a file says what it answers. Lines ``-- NAME = DEFAULT: meaning`` after it are its parameters, which
stand in the SQL as ``$NAME``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from audit.errors import UsageError

QUERIES = Path(__file__).parent / "queries"

_PARAMETER = re.compile(r"-- (\w+) = (.*?): (.*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedQuery:
    """One query: what it answers, what it can be given, and its text."""

    name: str
    description: str
    defaults: Mapping[str, str]
    """Of its parameters, by name."""
    sql: str

    @property
    def given(self) -> str:
        """Its parameters with their defaults, as they are set on the command line."""
        return " ".join(f"{name}={default}" for name, default in self.defaults.items())

    def values(self, settings: Sequence[str]) -> dict[str, str]:
        """All of its parameters, those of ``NAME=VALUE`` instead of the defaults."""
        values = dict(self.defaults)
        for setting in settings:
            name, equals, value = setting.partition("=")
            if not equals or name not in values:
                known = f"it has {self.given}" if values else "it has no parameters"
                raise UsageError(f"the query {self.name} cannot be given {setting!r}: {known}")
            values[name] = value
        return values


def every() -> tuple[NamedQuery, ...]:
    """All there are, by name."""
    return tuple(_read(path) for path in sorted(QUERIES.glob("*.sql")))


def find(name: str) -> NamedQuery:
    """The query of that name."""
    found = {query.name: query for query in every()}
    if name not in found:
        raise UsageError(f"there is no query {name!r}; there are {', '.join(found)}")
    return found[name]


def _read(path: Path) -> NamedQuery:
    text = path.read_text(encoding="utf-8")
    first, *lines = text.splitlines()
    parameters = [found for line in lines if (found := _PARAMETER.fullmatch(line))]
    return NamedQuery(
        name=path.stem,
        description=first.removeprefix("-- "),
        defaults={found[1]: found[2] for found in parameters},
        sql=text,
    )
