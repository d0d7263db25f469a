"""A terminal, or a log where there is none."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from audit.errors import NobodyReads
from audit.failures import printable, readable
from audit.terminal import tables

Part = str | tuple[str, str]
"""Of a line: text, or text and its style."""


class _Output(Console):
    """Where results go. Nobody may read them to their end, as in ``release-audit run … | head``."""

    def on_broken_pipe(self) -> None:
        """Stop with a sentence; rich would end the program with 1, which here means that something changed."""
        self.quiet = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), self.file.fileno())
        raise NobodyReads


class Screen:
    """A terminal, or a log when there is none: progress bars there, one line an item here."""

    def __init__(self, *, on_standard_error: bool = False) -> None:
        """All that people read goes to standard error where a machine reads standard output."""
        self._out = _Output(highlight=False, stderr=on_standard_error)
        self._err = Console(stderr=True, highlight=False)

    @contextmanager
    def stage(self, name: str, total: int) -> Iterator[Callable[[str], None]]:
        """Show a stage of ``total`` items."""
        began = time.monotonic()
        if not self._out.is_terminal:
            count = 0

            def log(item: str) -> None:
                nonlocal count
                count += 1
                elapsed = time.monotonic() - began
                self._out.print(
                    f"{name} {count}/{total}  {readable(item)}  {elapsed:.1f} s", soft_wrap=True, markup=False
                )

            yield log
            return
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description:<17}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[item]}", style="dim"),
        )
        with Progress(*columns, console=self._out) as progress:
            task = progress.add_task(name, total=total, item="")
            yield lambda item: progress.update(task, advance=1, item=escape(readable(item, 60)))
            progress.update(task, item="")

    def note(self, *parts: Part) -> None:
        """Print a line."""
        styled = (each if isinstance(each, tuple) else (each, "") for each in parts)
        self._out.print(Text.assemble(*((printable(text), style) for text, style in styled)), soft_wrap=True)

    def grid(self, columns: Mapping[str, int], rows: Iterable[Sequence[Part]]) -> None:
        """Print cells that nothing breaks, in columns of that width; the first of them is a heading."""
        found = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
        for number, (name, width) in enumerate(columns.items()):
            found.add_column(name, no_wrap=True, width=width, justify="right" if number else "left")
        for row in rows:
            found.add_row(*(Text(each) if isinstance(each, str) else Text(*each) for each in row))
        self._out.print(found)

    @property
    def width(self) -> int:
        """Characters of a line."""
        return self._out.width

    def warning(self, text: str) -> None:
        """Print a line that should not be overlooked to standard error."""
        self._err.print(Text(printable(text), "bold red"), soft_wrap=True)

    def error(self, text: str) -> None:
        """Print a line to standard error."""
        self._err.print(Text(printable(text)), soft_wrap=True)

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Print rows under headings; on no terminal, as wide as they are."""
        if self._out.is_terminal:
            self._out.print(tables.fitting(columns, rows, self.width))
        else:
            self._out.file.write(tables.text(columns, rows))
            self._out.file.flush()  # what cannot be written is found now, and not after the exit code has been told
