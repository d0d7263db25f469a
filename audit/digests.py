"""What makes two things the same: digests of texts, bytes and arrays."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray


def digest(*parts: str | bytes) -> str:
    """The sha256 of the parts, each preceded by its length so that no two lists of parts collide."""
    total = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8") if isinstance(part, str) else part
        total.update(f"{len(data)}:".encode())
        total.update(data)
    return total.hexdigest()


def array_digest(*arrays: NDArray[Any]) -> str:
    """The digest of arrays: dtypes, shapes and bytes."""
    return digest(*(part for array in arrays for part in _identity(array)))


def _identity(array: NDArray[Any]) -> tuple[str, str, bytes]:
    return array.dtype.str, str(array.shape), np.ascontiguousarray(array).tobytes()
