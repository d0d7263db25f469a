"""Files that somebody named on the command line to be written: all verbs treat them, and mistakes in them, alike."""

from __future__ import annotations

import os
from pathlib import Path

import click

from audit import folders
from audit.errors import UsageError

STANDARD_OUTPUT = Path("-")


def check(path: Path) -> None:
    """Find a mistake in the name of a file before the work whose result it is to hold. Folders may be missing.

    Raises:
        UsageError: where the file could not be written.
    """
    nearest = next(parent for parent in path.absolute().parents if parent.exists())
    if not nearest.is_dir():
        raise UsageError(f"{path} cannot be written: {nearest} is not a folder")
    if not os.access(path if path.exists() else nearest, os.W_OK):
        raise UsageError(f"{path} cannot be written: permission denied")


def make_folder(path: Path) -> None:
    """Make the folder that a file is to be in.

    Raises:
        UsageError: where that cannot be.
    """
    check(path)
    path.parent.mkdir(parents=True, exist_ok=True)


def put(path: Path, text: str) -> None:
    """Write a file, or to standard output where it is called ``-``.

    An ordinary file is written whole; a device, a pipe or a link stays what it is.
    """
    if path == STANDARD_OUTPUT:
        click.echo(text, nl=False)
        return
    make_folder(path)
    if path.is_symlink() or (path.exists() and not path.is_file()):
        path.write_text(text, encoding="utf-8")
    else:
        folders.write_whole(path, text.encode())
