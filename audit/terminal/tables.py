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


_UNBROKEN = 12
"""Characters of a column that are never broken: rich folds words as well, and a number in three lines is none."""

_GAP = 2
"""Spaces between columns."""


def fitting(columns: Sequence[str], rows: Sequence[Sequence[Any]], width: int) -> Table:
    """For a terminal: row by row with headings above, or one below the other where columns would become too narrow."""
    widest = [max(map(len, (name, *map(_shown, values)))) for name, *values in zip(columns, *rows, strict=True)]
    if sum(min(each, _UNBROKEN) for each in widest) + _GAP * (len(widest) - 1) <= width:
        return table(columns, rows)
    found = Table(box=None, pad_edge=False, show_header=False)
    found.add_column(style="bold", no_wrap=True)
    found.add_column(overflow="fold")
    for number, row in enumerate(rows):
        if number:
            found.add_row("", "")
        for name, value in zip(columns, row, strict=True):
            found.add_row(name, Text(_shown(value)))
    return found


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Table:
    """Row by row with headings above."""
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
