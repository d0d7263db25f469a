"""What a person sees: progress, the summary, tables. The only file of this room that imports rich."""

from __future__ import annotations

import io
import os
import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

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

from analysis.verdicts import SIGNS, Verdict
from audit.dumps.counts import DumpCounts
from audit.errors import AuditError
from audit.failures import printable, readable
from audit.reports.summary import Group, PairLine, Summary

if TYPE_CHECKING:
    from audit.reproducing import Reproduced  # it brings SymPy and SciPy, which take a second to import

_VERDICTS = {
    Verdict.IDENTICAL: ("green", "the same bits"),
    Verdict.ROUNDING: ("cyan", "apart by no more than one last place of the input can do, at every forced step"),
    Verdict.AMPLIFIED: ("yellow", "rounding at every forced step, which the dynamics then amplified"),
    Verdict.CHANGED: (
        "bold red",
        "beyond the yardstick after a state that both were handed, or another reset or space",
    ),
    Verdict.NONDETERMINISTIC: ("magenta", "a release does not reproduce itself"),
    Verdict.INCOMPARABLE: ("magenta", "the two did not start from the same state"),
    Verdict.UNAVAILABLE: ("dim", "one of the two does not have it, or cannot run it"),
}
"""Verdict: style, meaning."""

_AGREEMENT = {
    (True, True): "=",
    (True, False): "=",
    (False, True): "✗",
    (False, False): "≠",
}
"""Sign of a figure by whether it agrees, and whether it must."""

_WIDEST = 10_000  # of a table that goes to a file or a pipe
_COLUMN_WIDTH = 3  # of a boundary in the summary's table: two digits and a space

_LISTED = 12
"""Lines of a kind that the summary prints before it refers to the store."""


class _Output(Console):
    """Where results go. Nobody may read them to their end, as in ``release-audit run … | head``."""

    def on_broken_pipe(self) -> None:
        """Stop with a sentence; rich would end the program with 1, which here means that something changed."""
        self.quiet = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), self.file.fileno())
        raise AuditError("nobody reads any more what is printed; what was dumped is stored, the same command continues")


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

    def note(self, text: str) -> None:
        """Print a line."""
        self._out.print(Text(printable(text)), soft_wrap=True)

    def warning(self, text: str) -> None:
        """Print a line that should not be overlooked to standard error."""
        self._err.print(Text(printable(text), "bold red"), soft_wrap=True)

    def error(self, text: str) -> None:
        """Print a line to standard error."""
        self._err.print(Text(printable(text)), soft_wrap=True)

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Print rows under headings; on no terminal, as wide as they are."""
        if self._out.is_terminal:
            self._out.print(_table(columns, rows))
        else:
            self._out.file.write(table_text(columns, rows))

    def summary(self, summary: Summary, counts: DumpCounts, *, seconds: float, program: str, database: str) -> None:
        """Print what a run came to; ``program`` and ``database`` are how to ask on, on a command line."""
        self._out.print()
        for group in summary.groups:
            self._verdicts(summary, group)
        signs = [verdict for verdict in _VERDICTS if summary.counts.get(verdict)]
        for verdict in signs:
            style, meaning = _VERDICTS[verdict]
            self._out.print(Text.assemble((f"  {SIGNS[verdict]} {verdict}", style), f": {meaning}"), soft_wrap=True)
        self._changes(summary, f"{program} explain{database}")
        self._unexplained(summary)
        self._missing(summary)
        self._exercised(summary)
        counted = ", ".join(f"{summary.counts[verdict]} {verdict}" for verdict in signs) or "none"
        total = sum(summary.counts.values())
        self._out.print(f"\n[bold]{total} pair{'s' if total != 1 else ''}[/]: {counted}", soft_wrap=True)
        if summary.silent_differences:
            self._out.print(
                f"{summary.silent_differences} of the identical pairs differ in outputs that this matrix's verdict "
                "does not read: see the view separations",
                soft_wrap=True,
            )
        self._out.print(f"{counts.told}, {seconds:.1f} s", soft_wrap=True)
        self._next(summary, program, database)

    def reproduced(self, found: Sequence[Reproduced], seconds: float) -> None:
        """Print the paper's figures beside those measured here, and count them."""
        for each in found:
            self._out.print(Text(f"\n{each.experiment}: {each.title}", "bold"), soft_wrap=True)
            rows = [
                (_AGREEMENT[figure.agrees, figure.exact], figure.name, figure.paper, figure.measured, figure.note)
                for figure in each.figures
            ]
            self.table(("", "figure", "paper", "measured", "note"), rows)
        figures = [figure for each in found for figure in each.figures]
        exact = [figure for figure in figures if figure.exact]
        told = (
            f"\n{len(figures)} figures: {sum(figure.agrees for figure in figures)} agree; of the {len(exact)} exact "
            f"ones {sum(figure.agrees for figure in exact)} do. {seconds:.0f} s. They are in the view reproductions"
        )
        self._out.print(Text(told), soft_wrap=True)

    def _verdicts(self, summary: Summary, group: Group) -> None:
        """Print environments against boundaries, as many of these beside each other as the screen has room for.

        Boundaries at which all of the environments are identical are counted, not shown.
        """
        name_width = max(len("environment"), *map(len, group.environments))
        room = max(1, (self._out.width - name_width) // _COLUMN_WIDTH)
        shown = summary.eventful(group)
        for start in range(0, len(shown), room):
            block = shown[start : start + room]
            table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
            table.add_column("environment", no_wrap=True, width=name_width)
            for number, _ in enumerate(block, start + 1):
                table.add_column(str(number), justify="right", width=_COLUMN_WIDTH - 1)
            for environment in group.environments:
                verdicts = [Verdict(summary.verdict(environment, boundary)) for boundary in block]
                signs = (Text(SIGNS[verdict], _VERDICTS[verdict][0]) for verdict in verdicts)
                table.add_row(Text(environment), *signs)
            self._out.print(table)
            for number, (older, newer) in enumerate(block, start + 1):
                self._out.print(Text(f"  {number:>3}  {older} → {newer}", "dim"), soft_wrap=True)
        quiet = len(group.boundaries) - len(shown)
        if quiet:
            pairs = f"{quiet} {'other ' if shown else ''}pair{'s' if quiet > 1 else ''}"
            told = f"identical at {pairs} of neighbouring releases: {', '.join(group.environments)}"
            self._out.print(Text(told), soft_wrap=True)
        self._out.print()

    def _changes(self, summary: Summary, explain: str) -> None:
        changed = summary.urgent_first
        if changed:
            self._out.print("\n[bold red]Changed[/] between neighbouring releases:")
        for line in changed[:_LISTED]:
            self._out.print(
                Text(f"  {line.environment}: {line.older} → {line.newer}: {readable(line.reason)}"), soft_wrap=True
            )
            finds_out = f": `{explain} {_named(summary, line)}` finds out" if line.open else ""
            for told in filter(None, (line.laws, line.explained + finds_out)):
                self.note(f"    {told}")
        if len(changed) > _LISTED:
            self._out.print(f"  and {len(changed) - _LISTED} more: see the page, or `query --named changes`")

    def _unexplained(self, summary: Summary) -> None:
        if summary.unexplained:
            self._out.print("\n[bold yellow]Amplified, and no twin explains it[/]: look at these:")
        for line in summary.unexplained[:_LISTED]:
            told = f"  {line.environment}: {line.older} → {line.newer}: {_short(line.reason)}"
            self._out.print(Text(told), soft_wrap=True)
        if len(summary.unexplained) > _LISTED:
            self._out.print(f"  and {len(summary.unexplained) - _LISTED} more: query the view certificates")

    def _exercised(self, summary: Summary) -> None:
        """Print what identical and rounding claim, and no more than that."""
        if summary.exercised:
            self._out.print("\n[bold]Exercised[/] (a verdict claims no more):")
        for each in summary.exercised:
            self._out.print(Text(f"  {each.environment}: {readable(each.coverage, 400)}"), soft_wrap=True)
        for each in summary.exercised:
            if each.planted == "missed":
                told = f"  BLIND: {each.environment}: a fault planted in {each.constant} was not seen"
                self._out.print(Text(told, "bold red"), soft_wrap=True)
            if each.planted == "unknown":
                told = f"  {each.environment}: no fault was planted, so that nothing shows one would be seen: "
                self._out.print(Text(told + _short(each.reason)), soft_wrap=True)
            if each.reproduced == "no":
                told = f"  {each.environment}: the baseline does not reproduce itself: {_short(each.reason)}"
                self._out.print(Text(told, "bold red"), soft_wrap=True)

    def _missing(self, summary: Summary) -> None:
        if summary.missing:
            self._out.print("\n[bold]Not audited:[/]")
        for each in summary.missing[:_LISTED]:
            broke = ", and an older release can" if each.broke else ""
            self._out.print(Text(f"  {each.subject}: {each.status}{broke}: {_short(each.reason)}"), soft_wrap=True)
        if len(summary.missing) > _LISTED:
            self._out.print(f"  and {len(summary.missing) - _LISTED} more: query the views dumps and failures")

    def _next(self, summary: Summary, program: str, database: str) -> None:
        """Print what to call next: the page, why the newest change came about, and SQL to begin with."""
        lines = [f"{program} report{database}"]
        if summary.changed:
            lines.append(f"{program} explain{database} {_named(summary, summary.urgent_first[0])}")
        sql = (
            f"SELECT environment, older, newer, verdict, reason FROM pairs WHERE matrix = '{summary.matrix}'"
            " AND verdict <> 'identical' ORDER BY first_step_separation DESC LIMIT 20"
        )
        lines += [f'{program} query{database} "{sql}"', f"{program} query{database} --named list"]
        self._out.print("\nNext:")
        for line in lines:
            self._out.print(Text(f"  {line}"), soft_wrap=True)


def _named(summary: Summary, line: PairLine) -> str:
    """A pair as a command takes it; another matrix in the database may have the same names."""
    return shlex.join(["--matrix", summary.matrix, line.environment, line.older, line.newer])


def table_text(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Rows under headings, as wide as they are."""
    text = io.StringIO()
    Console(file=text, highlight=False, width=_WIDEST).print(_table(columns, rows), crop=False)
    return text.getvalue()


def _table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text(_shown(value)) for value in row))
    return table


def _shown(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else readable(str(value))


def _short(text: str, limit: int = 240) -> str:
    text = " ".join(readable(text).split())
    return text if len(text) <= limit else text[: limit - 1] + "…"
