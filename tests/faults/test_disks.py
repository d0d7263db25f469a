"""Disks that fill up, and one that lost what was written last."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.conftest import (
    CHAOS,
    SPRING,
    Finished,
    release,
    rows,
    write_matrix,
)
from tests.faults.conftest import SMALL, STEADY, Scene
from tests.small_disks import small_disk


def _make_room(place: Path) -> None:
    subprocess.run(["mount", "-o", "remount,size=32m", str(place)], check=True)


def _says_that_the_disk_is_full(finished: Finished) -> bool:
    """In a sentence that names something."""
    told = finished.sentence
    return ("the disk is full" in told or "No space left" in told) and "None" not in told


@pytest.mark.parametrize(("size", "stored"), [("64k", False), ("160k", False), ("320k", True)])
def test_the_disk_of_the_results_is_full(scene: Scene, size: str, stored: bool) -> None:
    """Before anything is stored, or in the middle; then there is room, and it goes on from there."""
    with small_disk(scene.database.parent, size):
        finished = scene.run()
        assert finished.code == 3, finished.stdout
        assert _says_that_the_disk_is_full(finished), finished.stderr
        assert bool(scene.stored()) == stored
        _make_room(scene.database.parent)
        scene.made_good(finished)


def test_the_disk_of_the_results_fills_up_and_is_emptied(scene: Scene) -> None:
    """What was stored before it was full is there, and used."""
    with small_disk(scene.database.parent, "16m"):
        (scene.database.parent / "ballast").write_bytes(b"0" * (16 * 2**20 - 300 * 2**10))
        finished = scene.run()
        (scene.database.parent / "ballast").unlink()
        assert finished.code == 3, "the disk was not full: make it smaller"
        assert _says_that_the_disk_is_full(finished), finished.stderr
        assert scene.stored()
        scene.made_good(finished)


def test_the_disk_of_the_virtualenvs_is_full(scene: Scene) -> None:
    cache = scene.folder / "cache"
    with small_disk(cache, "2m"):
        finished = scene.run(RELEASE_AUDIT_CACHE=str(cache), UV_LINK_MODE="copy")
        assert finished.code == 3
        assert finished.stderr == ""
        failed = rows(scene.database, "SELECT status, reason FROM failures")
        assert [status for status, _ in failed] == ["disk-full"] * len(STEADY), failed
        assert all("No space left on device" in reason for _, reason in failed)
        assert scene.stored() == {}
    scene.made_good(finished)


def test_the_disk_is_full_when_a_dumper_answers(scene: Scene, own_venvs: str) -> None:
    """What it was given fits and its answer does not: the package has done nothing wrong."""
    write_matrix(scene.matrix, [release(STEADY[0])], [SPRING, CHAOS], **SMALL)
    assert scene.run().code == 0, "its banks are made where there is room"
    write_matrix(scene.matrix, list(map(release, STEADY)), [SPRING, CHAOS], **SMALL)
    work = Path(own_venvs) / "work"
    with small_disk(work, "28k"):
        finished = scene.run("--jobs", "1", RELEASE_AUDIT_CACHE=own_venvs)
        assert finished.code == 3, finished.stdout + finished.stderr
        failed = rows(scene.database, "SELECT status, reason FROM failures")
        assert {status for status, _ in failed} == {"disk-full"}, failed
        assert any("before it answered" in reason for _, reason in failed), failed
        _make_room(work)
        scene.made_good(finished, RELEASE_AUDIT_CACHE=own_venvs)


def test_what_was_installed_is_empty_after_a_loss_of_power(scene: Scene, own_venvs: str) -> None:
    """Where the package is only a file without content, it has no environment: nothing of that is remembered of it."""
    emptied = list(Path(own_venvs).glob("venvs/*/lib/*/site-packages/tinysim/__init__.py"))
    assert len(emptied) >= len(STEADY)
    for file in emptied:
        os.truncate(file, 0)
    scene.made_good(RELEASE_AUDIT_CACHE=own_venvs)
