"""Bring a database to the schema of this version: numbered files of SQL, each applied once, in one transaction."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any, Protocol

from audit.errors import StoreError

MIGRATIONS = Path(__file__).parent / "migrations"


class Connection(Protocol):
    """As much of a connection as is needed here."""

    def execute(self, query: str, parameters: object = None) -> Any:
        """Run SQL."""
        ...


def migrate(connection: Connection, path: Path, *, read_only: bool) -> None:
    """Apply what is missing; refuse a database that another version wrote, or that is to be read but is behind."""
    newest = max(migrations())
    version = _version(connection)
    if version > newest or (version == 0 and _has_tables(connection)):
        raise StoreError(
            f"{path} was written by another version of release-audit (schema {version}, this one knows "
            f"{newest}): use that version, or give another file with --db"
        )
    if version == newest:
        return
    if read_only:
        raise StoreError(f"{path} has schema {version}, this version reads {newest}: run an audit on it first")
    for number, file in sorted(migrations().items()):
        if number > version:
            connection.execute("BEGIN")
            try:
                connection.execute(file.read_text(encoding="utf-8"))
                connection.execute("CREATE TABLE IF NOT EXISTS internal.migrations (number INTEGER)")
                connection.execute("INSERT INTO internal.migrations VALUES (?)", [number])
                connection.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(Exception):  # a commit that failed has ended the transaction by itself
                    connection.execute("ROLLBACK")
                raise


def migrations() -> dict[int, Path]:
    """The files by their number."""
    return {int(path.name.split("_")[0]): path for path in MIGRATIONS.glob("*.sql")}


def _version(connection: Connection) -> int:
    known = "SELECT 1 FROM duckdb_tables() WHERE schema_name = 'internal' AND table_name = 'migrations'"
    if not connection.execute(known).fetchall():
        return 0
    return int(connection.execute("SELECT max(number) FROM internal.migrations").fetchall()[0][0])


def _has_tables(connection: Connection) -> bool:
    return bool(connection.execute("SELECT 1 FROM duckdb_tables() WHERE NOT internal LIMIT 1").fetchall())
