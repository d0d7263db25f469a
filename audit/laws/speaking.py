"""Which reference sets speak of an environment.

Found without what reads them: SymPy and SciPy take a second to import, and most environments have no laws.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from audit.asked import yaml_lines
from audit.asked.environment_rows import EnvironmentRow
from audit.asked.matrix_file import SHIPPED

FOLDER = SHIPPED / "laws"


def shipped() -> list[Path]:
    """The files of all sets that come with the program."""
    return sorted(FOLDER.glob("*.yaml"))


def shipped_for(environments: Iterable[EnvironmentRow]) -> list[Path]:
    """Those that speak of any of the environments."""
    rows = list({row.title: row for row in environments}.values())
    return [path for path, patterns in _patterns() if any(speaks_of(patterns, row) for row in rows)]


def speaks_of(patterns: Sequence[str], environment: EnvironmentRow) -> bool:
    """Whether an environment is meant, by its id or by the name that a matrix gives it."""
    names = environment.source, environment.title
    return any(fnmatchcase(name, pattern) for name in names for pattern in patterns)


def _patterns() -> Iterable[tuple[Path, Sequence[str]]]:
    """Of all that ship. They are valid, as a test holds."""
    return [(path, yaml_lines.read(path, path.read_text(encoding="utf-8")).data["environments"]) for path in shipped()]
