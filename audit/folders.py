"""Where things are kept between audits, and how a file gets there whole."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
import shutil
import stat
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from audit.errors import AuditError
from audit.failures import of_the_machine

ROOT = Path(__file__).resolve().parent.parent
"""Where the packages lie: a checkout, or where they are installed."""

_own: set[Path] = set()
"""Locks of working folders that this process holds. Some network file systems would give it those once more."""


def cache() -> Path:
    """Locks and virtualenvs: shared by all checkouts of a user, safe to delete."""
    chosen = os.environ.get("RELEASE_AUDIT_CACHE")
    base = (
        Path(chosen) if chosen else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "release-audit"
    )
    return base.absolute()


def write_whole(path: Path, content: bytes) -> None:
    """Write under a temporary name in the same folder, then rename: readers see all of it or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.parent / f".{path.name}.{secrets.token_hex(8)}"
    try:
        with temporary.open("xb") as file:  # readable by whom the user's files are: some are sent to others
            file.write(content)
            file.flush()
            os.fsync(file.fileno())  # else a machine that loses its power may keep the name and not what is in it
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


class NotPlain(OSError):
    """What should be a file is something else, or larger than it may be."""


def read_plain(path: Path, largest: int) -> bytes:
    """Read a file that code under audit may have written, and only a file: a link leads elsewhere, a pipe never ends.

    Raises:
        NotPlain: where it is anything else but a link, or larger than ``largest`` bytes.
        BlockingIOError: where somebody holds a lease on it, and would have to be waited for.
        OSError: where it is a link, or cannot be read.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode) or found.st_size > largest:  # before Python opens it, and refuses a folder
            raise NotPlain(errno.EINVAL, f"it is larger than {largest} bytes, or not a file", str(path))
        with os.fdopen(handle, "rb", closefd=False) as file:
            return file.read(found.st_size)  # what is appended meanwhile is none of it
    finally:
        os.close(handle)


class Unseen(OSError):
    """A folder that nobody can look into: it is locked, or lies too deep for its path to be said."""


def below(*places: Path) -> Iterator[tuple[str, os.stat_result]]:
    """All that lies in folders, at any depth, with what the system says of each; no link is followed.

    Raises:
        Unseen: for the first folder, by its name, that cannot be looked into.
    """
    waiting = [str(place) for place in places]
    while waiting:
        place = waiting.pop()
        try:
            with os.scandir(place) as entries:
                for entry in entries:
                    with contextlib.suppress(FileNotFoundError):  # it was removed meanwhile
                        found = entry.stat(follow_symlinks=False)
                        if stat.S_ISDIR(found.st_mode):
                            waiting.append(entry.path)
                        yield entry.path, found
        except (FileNotFoundError, NotADirectoryError):  # so was this
            continue
        except OSError as error:
            if of_the_machine(error):
                raise
            raise Unseen(error.errno, error.strerror, place) from None


@contextmanager
def working_folder() -> Iterator[Path]:
    """A new folder for one process's work, removed on leaving. Those that a killed one left are removed on the way.

    Each has a lock beside it, which its owner holds: numbers of processes say nothing about those of another container
    or another machine that have the same cache.
    """
    parent = cache() / "work"
    parent.mkdir(parents=True, exist_ok=True)
    _remove_left(parent)
    with _claimed(parent) as place:
        folder = place.with_suffix("")
        folder.mkdir(mode=0o700)
        try:
            yield folder
        finally:
            remove(folder)
            if not folder.exists():  # else who comes next removes it, and finds it by its lock
                place.unlink(missing_ok=True)


@contextmanager
def _claimed(parent: Path) -> Iterator[Path]:
    """A new lock, held."""
    while True:
        place = parent / f"{secrets.token_hex(8)}.lock"
        _own.add(place)
        try:
            with place.open("xb") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                if place.exists():  # else somebody found it before it was held, and took it for one that was left
                    yield place
                    return
        finally:
            _own.discard(place)


def _remove_left(parent: Path) -> None:
    """Remove folders whose owners are gone."""
    for place in set(parent.glob("*.lock")) - _own:
        with contextlib.suppress(OSError), place.open("r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            remove(place.with_suffix(""))
            place.unlink()


def remove(folder: Path) -> None:
    """Remove a folder that code under audit wrote to, however deep it is and whatever its permissions are."""
    with contextlib.suppress(RecursionError):
        shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        for command in (("chmod", "-R", "u+rwx"), ("rm", "-rf")):
            with contextlib.suppress(OSError):  # no process can be started
                subprocess.run([*command, "--", str(folder)], capture_output=True, check=False)


def emptied(folder: Path) -> None:
    """Remove it in the same way, and have it there again."""
    remove(folder)
    with contextlib.suppress(OSError):
        folder.mkdir(exist_ok=True)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on ``path``; wait for whoever has it. The system releases it when a process dies."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def held(path: Path, otherwise: Callable[[str], str]) -> Iterator[None]:
    """Hold an exclusive lock on ``path`` with this process's number in it, or refuse; nobody waits.

    Raises:
        AuditError: what ``otherwise`` says of the number of the process that has it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+", encoding="ascii") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise AuditError(otherwise(file.read().strip() or "?")) from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield
