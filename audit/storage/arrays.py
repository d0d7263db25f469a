"""Arrays outside the database: one npy file each, named by the digest of what is in it."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audit import folders
from audit.digests import array_digest
from audit.errors import StoreError
from audit.stimuli.stimulus import unpacked

REMEMBERED_BYTES = 192 * 2**20
"""Of arrays that were read last: both sides of the largest comparison in a shipped matrix."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayFiles:
    """The folder beside a database that holds its arrays."""

    folder: Path
    _recent: dict[str, NDArray[Any]] = field(default_factory=dict, repr=False, compare=False)
    _kept: set[str] = field(default_factory=set, repr=False, compare=False)
    """Digests that were put: releases that do the same bring the same arrays, and the disk is asked about each once."""

    def put(self, array: NDArray[Any]) -> str:
        """Keep an array; equal arrays are kept once. Return its digest."""
        digest = array_digest(array)
        if digest not in self._kept:
            path = self._path(digest)
            if not path.exists():
                file = io.BytesIO()
                np.save(file, array, allow_pickle=False)
                folders.write_whole(path, file.getvalue())
            self._kept.add(digest)
        return digest

    def get(self, digest: str) -> NDArray[Any]:
        """The array with that digest, read-only. One that is damaged is removed, so that it is made anew.

        The last few are remembered: a release is compared with several others, one after the other.
        """
        array = self._recent.pop(digest, None)
        if array is None:
            array = self._read(digest)
            array.flags.writeable = False
        self._recent[digest] = array
        while sum(each.nbytes for each in self._recent.values()) > REMEMBERED_BYTES:
            del self._recent[next(iter(self._recent))]
        return array

    def _read(self, digest: str) -> NDArray[Any]:
        path = self._path(digest)
        array = _whole(path)
        if array is None:
            others = self._remove_damaged(path)
            also = f" and {others} other files there are" if others else " is"
            raise StoreError(f"{path}{also} missing or damaged: run the same command again, it makes them anew")
        return array

    def _remove_damaged(self, found: Path) -> int:
        """Where one is damaged others are: remove all, so that one more run is enough. Count those beside it."""
        damaged = [path for path in self.folder.glob("??/*.npy") if path == found or _whole(path) is None]
        for path in damaged:
            path.unlink(missing_ok=True)
            self._kept.discard(path.stem)
        self._kept.discard(found.stem)
        return len(set(damaged) - {found})

    def has(self, digest: str) -> bool:
        """Whether the file is there. One that is gone is written again when it is next put."""
        there = self._path(digest).exists()
        if not there:
            self._kept.discard(digest)
        return there

    def put_bytes(self, digest: str, payload: bytes, suffix: str) -> Path:
        """Keep a file that is already in its form, under the digest that its maker gave it.

        One that has been cut short is written anew.
        """
        path = self.folder / digest[:2] / f"{digest}{suffix}"
        if not path.is_file() or path.stat().st_size != len(payload):
            folders.write_whole(path, payload)
        return path

    def unpacked(self, path: Path) -> dict[str, NDArray[Any]] | None:
        """The arrays of a file that was put as bytes; nothing where it is gone.

        One that is damaged is removed and counts as gone, so that it is made anew.
        """
        if not path.is_file():
            return None
        payload = path.read_bytes()
        try:
            return unpacked(payload)
        except Exception:  # whatever the readers of zip and npy raise on bytes that are not what was written
            path.unlink(missing_ok=True)
            return None

    def _path(self, digest: str) -> Path:
        return self.folder / digest[:2] / f"{digest}.npy"


def _whole(path: Path) -> NDArray[Any] | None:
    """The array of a file that is named by its digest; nothing where it is gone or damaged."""
    try:
        with path.open("rb") as file:
            array: NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
        return array if array_digest(array) == path.stem else None
    except Exception:  # whatever the reader raises on bytes that are not what was written
        return None
