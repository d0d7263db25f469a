"""Rows under headings."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from audit.failures import readable

_WIDEST = 10_000
"""Characters of a line that goes to a file or a pipe."""


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Table:
    """For a terminal, which knows how wide it is."""
    found = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        found.add_column(column, overflow="fold")
    for row in rows:
        found.add_row(*(Text(_shown(value)) for value in row))
    return found


def text(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """For anything else, as wide as the rows are."""
    file = io.StringIO()
    Console(file=file, highlight=False, width=_WIDEST).print(table(columns, rows), crop=False)
    return file.getvalue()


def _shown(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else readable(str(value))
