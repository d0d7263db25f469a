"""A copy of a database that others can open while an audit has it.

DuckDB lets one process at a time have a file that is written to, readers included. What it does to the file allows a
copy from outside: what the last checkpoint refers to is left alone until the next one is complete, and that one shows
in the headers; commits since are in the log beside it, which only grows until then. So the log is copied first, then
the file, and both count if the headers are what they were. Opening the copy brings the two together.

Blocks that describe the tables are written again in place, to add to what the last checkpoint refers to. A copy of one
that was half written has a wrong checksum, and opening reads all of these blocks: then another copy is taken.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from pathlib import Path

from audit.errors import DamagedStore, StoreError, UsageError
from audit.storage.store import Store

HEADERS_BYTES = 3 * 4096
"""The file's own header, and two of the database, of which a checkpoint writes one."""
MAGIC = b"DUCK"
MAGIC_OFFSET = 8

TRIES = 20
"""Copies in which a checkpoint fell. Under a writer that did nothing but commit and checkpoint, one in six first copies
did, of which one in seventy had a half-written block; one needed nine."""
PAUSE_SECONDS = 0.05


def take(database: Path, target: Path, *, arrays: bool) -> None:
    """Copy a database as it was after some commit, with what is beside it if wanted. An older snapshot is replaced."""
    _check(database, target)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".snapshot-", dir=target.parent) as folder:
        copy = Path(folder) / "copy.duckdb"
        _whole_copy(database, copy)
        if arrays:  # those that the copy refers to were there before it
            _link_arrays(database.parent / "arrays", target.parent / "arrays")
        copy.replace(target)


def _check(database: Path, target: Path) -> None:
    if not database.is_file():
        raise UsageError(f"there is no database at {database} yet: run an audit first, or give another with --db")
    if not target.exists():
        return
    if not target.is_file() or target.samefile(database) or not _is_database(target):
        raise UsageError(f"{target} is no snapshot and is left alone: give another file")
    if _log(target).exists():
        raise UsageError(f"{target} is open for writing, or was left so: close it, or give another file")


def _is_database(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(MAGIC_OFFSET)
        return file.read(len(MAGIC)) == MAGIC


def _log(path: Path) -> Path:
    return path.with_name(f"{path.name}.wal")


def _whole_copy(database: Path, copy: Path) -> None:
    damage: DamagedStore | None = None
    for _ in range(TRIES):
        if _copied(database, copy):
            try:
                with Store(copy):  # brings in the log, and an older schema up to date
                    return
            except DamagedStore as error:
                damage = error
        time.sleep(PAUSE_SECONDS)
    if damage is not None:
        raise StoreError(f"no copy of {database} can be opened: {damage}")
    raise StoreError(f"{database} is written to faster than it can be copied: try again")


def _copied(database: Path, copy: Path) -> bool:
    """Copy the log, then the file; return whether no checkpoint fell in between."""
    _log(copy).unlink(missing_ok=True)
    with database.open("rb") as file:
        before = file.read(HEADERS_BYTES)
        with contextlib.suppress(FileNotFoundError):  # where there is none, everything is in the file
            shutil.copyfile(_log(database), _log(copy))
        file.seek(0)
        with copy.open("wb") as out:
            shutil.copyfileobj(file, out, 2**20)
        file.seek(0)
        return file.read(HEADERS_BYTES) == before


def _link_arrays(source: Path, target: Path) -> None:
    """Arrays are named by what is in them and never change, so the same file may stand in both places."""
    if not source.is_dir() or (target.exists() and target.samefile(source)):
        return
    for path in source.rglob("*"):
        there = target / path.relative_to(source)
        if path.is_file() and not path.name.startswith(".") and not there.exists():
            there.parent.mkdir(parents=True, exist_ok=True)
            try:
                os.link(path, there)
            except OSError:  # another file system
                shutil.copyfile(path, there)
