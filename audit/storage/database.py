"""The connection to DuckDB: how rows get in and out, and what its errors mean. The only file that imports duckdb."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import duckdb

from audit.errors import DamagedStore, StoreError, UsageError
from audit.storage import migrating
from audit.storage.records import Table

# No extension is fetched behind the user's back, as one would be on opening another kind of database.
_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
}

Answered = TypeVar("Answered")

Parameters = Sequence[Any] | Mapping[str, Any]
"""Of a query: for each ``?`` in their order, or for each ``$name``."""


ROWS_AT_ONCE = 2048
"""Rows that are handed over in one statement. More are no quicker, and all of them are in memory three times over."""


_REFUSALS = frozenset(map(os.strerror, errno.errorcode))
"""What the system says, at the end of an error of DuckDB's, of a file that it does not hand out, damaged or not."""

_DAMAGE = re.compile("Could not read enough bytes|Corrupt database file")
"""What DuckDB says where it comes upon something in the file that it has not written so, perhaps long after opening."""

_INTERRUPTED = "Query interrupted"
"""Of the RuntimeError that DuckDB raises in place of what a signal's handler raised while it worked."""


class Database:
    """An open database, of the schema of this version."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.path = path
        if read_only and not path.is_file():
            raise UsageError(f"there is no database at {path} yet: run an audit first, or give another with --db")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with _interruptions_passed_on():
                self._connection = duckdb.connect(str(path), read_only=read_only, config=_CONFIG)
                self._connection.execute("SET enable_progress_bar = false")  # it would stand in the midst of an answer
        except (duckdb.Error, OSError) as error:
            raise _unusable(path, error, read_only=read_only) from None
        try:
            with _interruptions_passed_on():
                migrating.migrate(self._connection, path, read_only=read_only)
        except duckdb.Error as error:
            with suppress(duckdb.Error):
                self._connection.close()
            raise _unusable(path, error) from None
        except BaseException:
            self._connection.close()
            raise

    def close(self) -> None:
        """Write what is left to be written, and let others open it."""
        try:
            with self._working():
                self._connection.close()
        except duckdb.Error as error:
            raise _unusable(self.path, error) from None

    def query(self, sql: str, parameters: Parameters = ()) -> Table:
        """Run one query."""
        try:
            with self._working():
                return self._interruptible(lambda: self._answer(sql, _given(parameters)))
        except duckdb.Error as error:
            raise UsageError(f"the query failed: {_first_lines(error)}") from None

    def _answer(self, sql: str, given: list[Any] | dict[str, Any]) -> Table:
        answer = self._connection.execute(sql, given)
        columns = tuple(each[0] for each in answer.description or ()) if answer is not None else ()
        return Table(columns=columns, rows=tuple(answer.fetchall()) if columns else ())

    def _interruptible(self, work: Callable[[], Answered]) -> Answered:
        """Let another thread do it: the one that signals come to would not look for them until DuckDB is done."""
        with ThreadPoolExecutor(1) as other:
            answer = other.submit(work)
            try:
                return answer.result()
            except KeyboardInterrupt:
                self._connection.interrupt()
                raise

    def write_parquet(self, sql: str, path: Path, parameters: Parameters = ()) -> None:
        """Run one query and write its answer to a Parquet file."""
        try:
            with self._working():
                self._interruptible(
                    lambda: self._connection.sql(sql, params=_given(parameters)).write_parquet(str(path))
                )
        except (duckdb.Error, AttributeError) as error:
            raise UsageError(f"the query could not be written to {path}: {_first_lines(error)}") from None

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All of what is done within, or nothing."""
        try:
            with self._working():
                self._connection.begin()
                try:
                    yield
                except BaseException:
                    self._connection.rollback()
                    raise
                self._connection.commit()
        except duckdb.Error as error:
            raise _unwritten(self.path, error) from error

    def execute(self, sql: str, parameters: Sequence[Any]) -> None:
        """Run SQL that has no answer."""
        with self._working():
            self._connection.execute(sql, list(parameters))

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """The answer to SQL of this program's own: an error in it is a bug."""
        with self._working():
            return self._connection.execute(sql, list(parameters)).fetchall()

    @contextmanager
    def _working(self) -> Iterator[None]:
        """Work on what is open. Damage that is come upon is the file's, and no mistake in what was asked."""
        try:
            with _interruptions_passed_on():
                yield
        except duckdb.Error as error:
            if _DAMAGE.search(str(error)):
                raise _damaged(self.path, error) from None
            raise

    def insert_records(self, table: str, run_id: str, records: Sequence[Any]) -> None:
        """Insert rows of a run, with the names of their fields as columns."""
        if records:
            columns = list(records[0].__dataclass_fields__)
            rows = [(run_id, *(getattr(record, name) for name in columns)) for record in records]
            self.insert(table, ["run_id", *columns], rows)

    def replace(self, table: str, row: Sequence[Any]) -> None:
        """Insert a whole row in place of the one with its key."""
        places = ", ".join("?" for _ in row)
        self.execute(f"INSERT OR REPLACE INTO internal.{table} VALUES ({places})", row)

    def replace_records(self, table: str, records: Sequence[Any]) -> None:
        """All of them or nothing."""
        with self.transaction():
            for record in records:
                self.replace(table, [getattr(record, name) for name in record.__dataclass_fields__])

    def insert(
        self, table: str, columns: Sequence[str], rows: Sequence[tuple[Any, ...]], *, replace: bool = False
    ) -> None:
        """Insert rows column by column, as DuckDB likes it; with ``replace`` in place of those with their keys."""
        unnested = ", ".join("unnest(?)" for _ in columns)
        verb = "INSERT OR REPLACE" if replace else "INSERT"
        for start in range(0, len(rows), ROWS_AT_ONCE):
            by_column = [list(values) for values in zip(*rows[start : start + ROWS_AT_ONCE], strict=True)]
            self.execute(f"{verb} INTO internal.{table} ({', '.join(columns)}) SELECT {unnested}", by_column)


@contextmanager
def _interruptions_passed_on() -> Iterator[None]:
    """Raise what a signal means: DuckDB replaces it with an error of its own."""
    try:
        yield
    except RuntimeError as error:
        if str(error) != _INTERRUPTED:
            raise
        raise KeyboardInterrupt from None


def read_parquet(path: Path) -> dict[str, list[Any]]:
    """The columns of a Parquet file, by name."""
    try:
        with duckdb.connect(config=_CONFIG) as connection:
            answer = connection.read_parquet(str(path))
            rows = answer.fetchall()
            return {name: [row[place] for row in rows] for place, name in enumerate(answer.columns)}
    except duckdb.Error as error:
        raise UsageError(f"{path} cannot be read: {_first_lines(error)}") from None


def _given(parameters: Parameters) -> list[Any] | dict[str, Any]:
    return dict(parameters) if isinstance(parameters, Mapping) else list(parameters)


def _unusable(path: Path, error: Exception, *, read_only: bool = False) -> StoreError:
    """What an error comes to while a database is opened or closed, which is when all that describes it is read."""
    return _refused(path, error, read_only=read_only) or _damaged(path, error)


def _damaged(path: Path, error: Exception) -> DamagedStore:
    return DamagedStore(f"{path} cannot be used as a database: {_first_lines(error)}")


def _unwritten(path: Path, error: Exception) -> StoreError:
    return _refused(path, error) or StoreError(f"{path} could not be written: {_first_lines(error)}")


def _refused(path: Path, error: Exception, *, read_only: bool = False) -> StoreError | None:
    """What the system, or another process, kept from being done; nothing where it may be the file itself."""
    text = _first_lines(error)
    holder = re.search(r"PID (\d+)", str(error))
    if "lock" in text.lower() and holder:
        copy = f"take a copy of it as it is now with `release-audit snapshot --db {path}`"
        other = copy if read_only else "give another file with --db"
        return StoreError(f"{path} is in use by process {holder[1]}: wait until that audit has ended, or {other}")
    if "No space left" in text or "not enough space" in text.lower():
        return StoreError(f"the disk is full: {path} could not be written. Make room and run the same command again")
    if isinstance(error, (OSError, duckdb.OutOfMemoryException)) or text.rpartition(": ")[2] in _REFUSALS:
        return StoreError(f"{path} cannot be opened, read or written: {text}")
    return None


def _first_lines(error: Exception) -> str:
    return " ".join(str(error).split("\n\n")[0].split())[:600]
