"""Folders for work that is under way, and those that are left of work that was killed."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from audit import folders
from audit.errors import AuditError

OWNER = """
import sys
sys.path.insert(0, sys.argv[1])
from audit import folders
with folders.working_folder() as folder:
    (folder / "answer").write_text("x")
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def work(own_cache: Path) -> Path:
    return own_cache / "work"


@contextmanager
def owner() -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """Another process that works in a folder of the same cache."""
    command = [sys.executable, "-c", OWNER, str(folders.ROOT)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process, Path(process.stdout.readline().strip())
        finally:
            process.kill()


def test_nothing_is_left_of_it(work: Path) -> None:
    with folders.working_folder() as folder:
        assert folder.parent == work
        assert folder.stat().st_mode & 0o777 == 0o700
    assert list(work.iterdir()) == []


def test_what_others_work_in_stays_whatever_their_numbers_are(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in another container, whose processes cannot be seen from here."""

    def nobody(*_: object) -> None:
        raise ProcessLookupError

    monkeypatch.setattr(os, "kill", nobody)
    with owner() as (_, theirs):
        with folders.working_folder() as first, folders.working_folder() as second:
            assert first != second
            assert first.is_dir()
        assert (theirs / "answer").is_file()


def test_what_a_killed_one_left_is_removed(work: Path) -> None:
    with owner() as (process, theirs):
        process.kill()
        process.wait()
        assert theirs.is_dir()
        with folders.working_folder() as folder:
            assert sorted(work.iterdir()) == sorted([folder, folder.with_suffix(".lock")])


def test_what_is_held_is_refused_with_the_process_that_has_it(tmp_path: Path) -> None:
    path = tmp_path / "x{z}.lock"

    def busy(process: str) -> str:
        return f"{path} is held by {process}"

    with (
        folders.held(path, busy),
        pytest.raises(AuditError, match=rf"x{{z}}\.lock is held by {os.getpid()}$"),
        folders.held(path, busy),
    ):
        pass


def test_a_lock_that_is_removed_before_it_is_held_is_made_anew(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody found it in between, and took it for one that was left."""
    lock = fcntl.flock
    taken: list[Path] = []

    def late(file: IO[bytes], how: int) -> None:
        if not taken:
            taken.extend(work.glob("*.lock"))
            taken[0].unlink()
        lock(file, how)

    monkeypatch.setattr(fcntl, "flock", late)
    with folders.working_folder() as folder:
        assert folder.with_suffix(".lock").is_file()
        assert folder.with_suffix(".lock") not in taken
