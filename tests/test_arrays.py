"""Arrays in files of their own, named by what is in them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from audit.errors import StoreError
from audit.storage.arrays import ArrayFiles


def test_arrays_are_kept_once_checked_on_reading_and_missed_when_gone(tmp_path: Path) -> None:
    arrays = ArrayFiles(folder=tmp_path)
    array = np.array([[1.5, np.nan, -0.0]])
    digest = arrays.put(array)
    assert arrays.put(array.copy()) == digest
    assert arrays.put(array.astype(np.float32)) != digest
    assert arrays.put(array.reshape(3, 1)) != digest
    assert arrays.put(np.array([[1.5, np.nan, 0.0]])) != digest
    assert arrays.get(digest).tobytes() == array.tobytes()
    path = next(tmp_path.rglob(f"{digest}*"))
    content = path.read_bytes()
    for damaged in (content[:-8] + bytes(8), content[:40], b"", content[:-1], b"PK\x03\x04" + content):
        path.write_bytes(damaged)
        fresh = ArrayFiles(folder=tmp_path)  # one that has not read it before
        with pytest.raises(StoreError, match="damaged"):
            fresh.get(digest)
        assert not path.exists(), "so that it is made anew"
    assert not arrays.has(digest)
    with pytest.raises(StoreError, match="missing or damaged"):
        ArrayFiles(folder=tmp_path).get(digest)


def test_what_is_remembered_of_arrays_cannot_be_changed_and_stays_small(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("audit.storage.arrays.REMEMBERED_BYTES", 100)
    arrays = ArrayFiles(folder=tmp_path)
    digests = [arrays.put(np.full(size, float(size))) for size in (1, 2, 3, 100)]
    for digest in digests * 2:
        with pytest.raises(ValueError, match="read-only"):
            arrays.get(digest)[0] = 7.0
    assert [arrays.get(digest)[0] for digest in digests] == [1.0, 2.0, 3.0, 100.0]
    assert sum(each.nbytes for each in arrays._recent.values()) <= 100
