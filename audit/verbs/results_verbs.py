"""Verbs that read results: SQL on them, by name or written out, and a copy of them while an audit runs."""

from __future__ import annotations

import csv
import io
import json
import math
import shlex
from pathlib import Path
from typing import Any

import click

from audit import named_files
from audit.errors import EXIT_COMPLETE, UsageError
from audit.named_files import STANDARD_OUTPUT
from audit.storage import named_queries, snapshots
from audit.storage.records import Table
from audit.storage.store import Store
from audit.terminal import tables
from audit.terminal.screen import Screen
from audit.verbs import options

LIST = "list"


@click.command(short_help="Ask the results a question in SQL.")
@click.argument("sql", required=False)
@click.option("--named", is_flag=False, flag_value=LIST, metavar="NAME",
              help="Run this query, which comes with the program; `list`, or no name, lists them.")  # fmt: skip
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE",
              help="Set a parameter of the named query, such as environment=Hopper-*. May be given again.")  # fmt: skip
@options.database
@click.option("--format", "form", type=click.Choice(["table", "csv", "json", "parquet"]), default="table",
              show_default=True, help="Write the answer in this format.")  # fmt: skip
@options.output("Write the answer to this file instead of standard output. Parquet needs a file.")
def query(
    sql: str | None, named: str | None, settings: tuple[str, ...], database: Path, form: str, output: Path | None
) -> int:
    """Run SQL on the results, read-only: your own, or a query that comes with the program.

    docs/sql.md describes the views and the named queries.
    """
    if bool(sql and sql.strip()) == (named is not None):
        raise UsageError('give either SQL or --named NAME, such as "SELECT * FROM changes" or --named safe-upgrades')
    if settings and (named is None or named == LIST):
        raise UsageError("--set gives a named query its parameters: add --named NAME")
    if form == "parquet" and output in (None, STANDARD_OUTPUT):
        raise UsageError("parquet needs a file to write: add --output FILE")
    if named == LIST:
        _show(_listed(), form, output)
        return EXIT_COMPLETE
    text, values = sql or "", {}
    if named is not None:
        chosen = named_queries.find(named)
        text, values = chosen.sql, chosen.values(settings)
    try:
        with Store(database, read_only=True) as store:
            if form == "parquet":
                assert output is not None
                named_files.make_folder(output)
                store.write_parquet(text, output, values)
                return EXIT_COMPLETE
            table = store.query(text, values)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("the query has no answer") from None
    _show(table, form, output)
    return EXIT_COMPLETE


@click.command(short_help="Copy the database while an audit uses it.")
@options.database
@options.output("Write the copy to this file. Default: DATABASE-snapshot, beside the database.")
@click.option("--arrays", is_flag=True, help="Copy the arrays too, into the folder of the copy.")
def snapshot(database: Path, output: Path | None, arrays: bool) -> int:
    """Copy the database as it is now, also while an audit runs: DuckDB lets nobody else open it then.

    An older snapshot in the same place is replaced.
    """
    target = output or database.with_name(f"{database.stem}-snapshot{database.suffix}")
    snapshots.take(database, target, arrays=arrays)
    reads = shlex.join(["release-audit", "query", "--db", str(target), "--named", "verdicts"])
    Screen().note(f"{target} is {database} as of now; to read it, say: {reads}")
    return EXIT_COMPLETE


def _listed() -> Table:
    rows = [(each.name, each.given, each.description) for each in named_queries.every()]
    return Table(columns=("name", "parameters", "answers"), rows=tuple(rows))


def _show(table: Table, form: str, output: Path | None) -> None:
    if form == "table" and output is None:
        Screen().table(table.columns, table.rows)  # which knows how wide a terminal is
    else:
        named_files.put(output or STANDARD_OUTPUT, _RENDERERS[form](table))


def _as_table(table: Table) -> str:
    return tables.text(table.columns, table.rows)


def _as_csv(table: Table) -> str:
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows(table.rows)
    return file.getvalue()


def _as_json(table: Table) -> str:
    rows = [{name: _json_value(value) for name, value in zip(table.columns, row, strict=True)} for row in table.rows]
    return json.dumps(rows, indent=1, default=str, allow_nan=False) + "\n"


def _json_value(value: Any) -> Any:
    """JSON has no infinity and no not-a-number: they become the texts ``inf``, ``-inf`` and ``nan``."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


_RENDERERS = {"table": _as_table, "csv": _as_csv, "json": _as_json}
