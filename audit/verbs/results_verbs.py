"""Verbs that read results: SQL on them, by name or written out, and a copy of them while an audit runs."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path
from typing import Any

import click

from audit.console import Screen
from audit.errors import EXIT_COMPLETE, UsageError
from audit.storage import named_queries, snapshots
from audit.storage.records import Table
from audit.storage.store import Store
from audit.verbs.running import DATABASE

LIST = "list"

_database = click.option(
    "--db", "database", type=click.Path(path_type=Path, dir_okay=False), default=DATABASE, show_default=True,
    help="The database; its arrays lie beside it.",
)  # fmt: skip


@click.command()
@click.argument("sql", required=False)
@click.option("--named", is_flag=False, flag_value=LIST, metavar="NAME",
              help="A query that is there already; without a name, or with `list`, shows which there are.")  # fmt: skip
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE",
              help="A parameter of the named query, such as environment=Hopper-*; may be given again.")  # fmt: skip
@_database
@click.option("--format", "form", type=click.Choice(["table", "csv", "json", "parquet"]), default="table",
              show_default=True)  # fmt: skip
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False), help="File to write; needed for parquet.")
def query(
    sql: str | None, named: str | None, settings: tuple[str, ...], database: Path, form: str, output: Path | None
) -> int:
    """Run SQL on the results, read-only: written out, or by name. docs/sql.md tells of the views and the names."""
    if (sql is None) == (named is None):
        raise UsageError('give either SQL or --named NAME, such as "SELECT * FROM changes" or --named safe-upgrades')
    if settings and (named is None or named == LIST):
        raise UsageError("--set gives a named query its parameters: add --named NAME")
    if form == "parquet" and output is None:
        raise UsageError("parquet needs a file to write: add --output FILE")
    if named == LIST:
        _show(_listed(), form, output)
        return EXIT_COMPLETE
    text, values = sql or "", {}
    if named is not None:
        chosen = named_queries.find(named)
        text, values = chosen.sql, chosen.values(settings)
    with Store(database, read_only=True) as store:
        if form == "parquet":
            assert output is not None
            store.write_parquet(text, output, values)
            return EXIT_COMPLETE
        table = store.query(text, values)
    _show(table, form, output)
    return EXIT_COMPLETE


@click.command()
@click.argument("file", required=False, type=click.Path(path_type=Path, dir_okay=False))
@_database
@click.option("--arrays", is_flag=True, help="Also what lies beside it, into the folder of FILE.")
def snapshot(file: Path | None, database: Path, arrays: bool) -> int:
    """Copy the database to FILE as it is now, also while an audit runs: DuckDB lets nobody else open it then.

    FILE is beside the database unless given, and replaces a snapshot that is there.
    """
    target = file or database.with_name(f"{database.stem}-snapshot{database.suffix}")
    snapshots.take(database, target, arrays=arrays)
    Screen().note(f"{target} is {database} as of now; to read it: release-audit query --db {target}")
    return EXIT_COMPLETE


def _listed() -> Table:
    rows = [(each.name, each.given, each.description) for each in named_queries.every()]
    return Table(columns=("name", "parameters", "answers"), rows=tuple(rows))


def _show(table: Table, form: str, output: Path | None) -> None:
    if form == "table" and output is None:
        Screen().table(table.columns, table.rows)
        return
    text = _as_json(table) if form == "json" else _as_csv(table)
    if output is None:
        click.echo(text, nl=False)
    else:
        output.write_text(text, encoding="utf-8")


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
