"""How much a release has written, and whether that or the machine is why a disk has no room left."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from audit import folders

LARGEST_BYTES = 4 * 2**30
"""Of all files that a release writes: two of the largest. A choice."""
MOST_FILES = 200_000

LEAST_ROOM_BYTES = 2**28
"""A disk that has less beside what a release wrote is full: an answer may be that large."""
LEAST_ROOM_FILES = 1000
"""The same in files: a release that compiles its modules writes some hundreds."""

WEIGH_SECONDS = 1.0
"""Between looks at how much was written. A disk takes a few GB in that time."""

_MOST_LOOKS = 5 * MOST_FILES
"""At what processes hold open. Threads mostly share that, and each of them is looked at."""

_BLOCK_BYTES = 512  # of st_blocks, whatever the blocks of the file system are


@dataclass(frozen=True, slots=True, kw_only=True)
class Weight:
    """What a release has written, or what a disk has left."""

    size: int = 0
    files: int = 0

    def __add__(self, other: Weight) -> Weight:
        return Weight(size=self.size + other.size, files=self.files + other.files)

    def since(self, before: Weight) -> Weight:
        """What was written since it was so much; what was there before and is removed counts as nothing."""
        return Weight(size=max(0, self.size - before.size), files=max(0, self.files - before.files))

    @property
    def is_too_much(self) -> bool:
        """For one release."""
        return self.size > LARGEST_BYTES or self.files > MOST_FILES

    @property
    def is_no_room(self) -> bool:
        """For an answer to be written."""
        return self.size < LEAST_ROOM_BYTES or self.files < LEAST_ROOM_FILES

    @classmethod
    def left_at(cls, place: Path) -> Self:
        """The room of the disk that a folder lies on. What a quota takes of it may not show."""
        found = os.statvfs(place)
        files = found.f_favail if found.f_files else LEAST_ROOM_FILES  # some make them as they are needed
        return cls(size=found.f_bavail * found.f_frsize, files=files)


ANYTHING = Weight(size=sys.maxsize, files=sys.maxsize)
_MOST = Weight(size=LARGEST_BYTES, files=MOST_FILES)


def of_folders(*places: Path, most: Weight = _MOST) -> Weight:
    """Of all that lies in folders, without following a link. It stops counting soon after ``most``.

    Raises:
        Unseen: where something cannot be looked into, so that it may be anything.
    """
    total = Weight()
    for _, found in folders.below(*places):
        size = 0 if stat.S_ISDIR(found.st_mode) else found.st_blocks * _BLOCK_BYTES
        total += Weight(size=size, files=1)
        if total.size > most.size or total.files > most.files:
            break
    return total


def of_nameless(processes: Iterable[int], disk: int) -> Weight:
    """Of files that processes hold open and that have no name any more, on a disk by its device number.

    One that only a mapping or a message holds is not seen.

    Raises:
        Unseen: where a process lets nobody see what it holds.
    """
    found: dict[int, int] = {}
    for number, handle in enumerate(_handles(processes)):
        if number > _MOST_LOOKS:
            return Weight(files=number)
        with contextlib.suppress(OSError):  # it was closed, or its process has ended
            file = handle.stat()
            if stat.S_ISREG(file.st_mode) and file.st_nlink == 0 and file.st_dev == disk:
                found[file.st_ino] = file.st_blocks * _BLOCK_BYTES
    return Weight(size=sum(found.values()), files=len(found))


def _handles(processes: Iterable[int]) -> Iterator[os.DirEntry[str]]:
    """What each thread holds: they need not share it, and the first may have ended before the others."""
    for place in (task for process in processes for task in _tasks(process)):
        try:
            with os.scandir(place / "fd") as entries:
                yield from entries
        except (FileNotFoundError, ProcessLookupError):  # it has ended
            continue
        except PermissionError as error:
            if _has_memory(place):  # one that is just ending has none, and is shown to root alone
                raise folders.Unseen(error.errno, error.strerror, str(place)) from None


def _tasks(process: int) -> list[Path]:
    try:
        return list(Path(f"/proc/{process}/task").iterdir())
    except (FileNotFoundError, ProcessLookupError):
        return []


def _has_memory(task: Path) -> bool:
    try:
        return "VmSize:" in (task / "status").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return False
