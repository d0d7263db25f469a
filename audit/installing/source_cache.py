"""The cache of sources, apart from that of wheels: what a build writes there must not reach a release that needs none.

All builds share it, and nobody can tell what one of them wrote there from what others did. Where one was ended, or
ended with who had started it, the whole cache goes as soon as nobody uses it, and is fetched again.
"""

from __future__ import annotations

import contextlib
import fcntl
import secrets
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
    with place().with_suffix(".lock").open("ab") as users:
        _clear(users)
        fcntl.flock(users, fcntl.LOCK_SH)
        try:
            yield
        finally:
            _clear(users)


def begun() -> Path:
    """A mark for a build that begins. Who sees its end removes it; what has left one leaves no cache."""
    mark = _marks() / secrets.token_hex(8)
    mark.touch()
    return mark


def _marks() -> Path:
    """Beside it, so that no build can reach them."""
    folder = place().with_suffix(".unfinished")
    folder.mkdir(exist_ok=True)
    return folder


def _clear(users: IO[bytes]) -> None:
    """Remove it where builds left their marks and nobody else uses it, so that none of them goes on."""
    if not any(_marks().iterdir()):
        return
    with contextlib.suppress(BlockingIOError):  # somebody else uses it
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
        folder = place()
        folders.remove(folder)
        if not folder.exists():
            folders.remove(_marks())
