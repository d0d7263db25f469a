"""The cache of sources, apart from that of wheels: what a build writes there must not reach a release that needs none.

All builds share it, and nobody can tell what one of them wrote there from what others did. Where one was ended, for
writing too much or for taking too long, the whole cache goes as soon as nobody uses it, and is fetched again.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from audit import folders


def place() -> Path:
    """Its folder."""
    folder = folders.cache() / "uv-source"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def in_use() -> Iterator[None]:
    """Use it, perhaps beside others, who do not lose it meanwhile."""
    with _lock().open("ab") as users:
        _clear(users)
        fcntl.flock(users, fcntl.LOCK_SH)
        try:
            yield
        finally:
            _clear(users)


def give_up() -> None:
    """Have it removed by the last of its users, or by who comes next where that one is killed."""
    with _lock().open("ab") as users:
        users.truncate(1)  # which takes no room: the disk may be full


def _lock() -> Path:
    """Beside it. Its length says whether the cache is to be removed."""
    return place().with_suffix(".lock")


def _clear(users: IO[bytes]) -> None:
    if not os.fstat(users.fileno()).st_size:
        return
    with contextlib.suppress(BlockingIOError):  # somebody else uses it
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
        folder = place()
        folders.remove(folder)
        if not folder.exists():
            users.truncate(0)
