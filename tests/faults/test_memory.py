"""A machine whose memory runs out: whoever took it is ended, and neither the audit nor another release."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.conftest import CHAOS, SPRING, release, rows, wait_until, write_matrix
from tests.faults import misbehaving
from tests.faults.conftest import SMALL, STEADY, Scene
from tests.faults.misbehaving import EATERS

MEMORY_BYTES = 1536 * 2**20
"""Of the small machine: an audit with a local Ray holds half of it."""

_CGROUPS = Path("/sys/fs/cgroup")
_LIMITS = ("memory.limit_in_bytes", "memory.max")  # of the first and of the second version
_SWAP = "memory.swap.max"


@contextmanager
def small_memory() -> Iterator[Path]:
    """A group of processes with so much memory between them, as a machine or a container has it."""
    place = _own_group() / f"release-audit-{os.getpid()}"
    try:
        place.mkdir()
    except OSError as error:
        pytest.skip(f"no group of processes can be made here: {error}")
    try:
        limits = [place / name for name in _LIMITS if (place / name).exists()]
        if not limits:
            pytest.skip("groups of processes have no limit of memory here")
        limits[0].write_text(str(MEMORY_BYTES), encoding="ascii")
        if (place / _SWAP).exists():
            (place / _SWAP).write_text("0", encoding="ascii")
        yield place
    finally:
        wait_until(lambda: not (place / "cgroup.procs").read_text(encoding="ascii"), "all of the group end")
        place.rmdir()


def _own_group() -> Path:
    """Where groups below this process's own are made in the first version, and anybody's in the second."""
    for line in Path("/proc/self/cgroup").read_text(encoding="ascii").splitlines():
        _, kinds, path = line.split(":", 2)
        if "memory" in kinds.split(","):
            return _CGROUPS / "memory" / path.lstrip("/")
    return _CGROUPS


@pytest.fixture
def small_machine(scene: Scene) -> Iterator[Scene]:
    """The scene in a small memory."""
    with small_memory() as place:
        enter = ("sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', str(place))
        yield replace(scene, program=replace(scene.program, prefix=enter))


@pytest.mark.parametrize("how", EATERS)
def test_a_package_takes_all_memory(small_machine: Scene, how: str) -> None:
    """It is ended, twice, and that is its own failure; all others are audited as ever."""
    eater = misbehaving.eater(how)
    small_machine = replace(small_machine, failing=f"tinysim-{eater}/Spring")
    releases = [*map(release, STEADY), release(eater)]
    write_matrix(small_machine.matrix, releases, [SPRING, CHAOS], **SMALL)
    finished = small_machine.run()
    assert finished.code == 0, finished.stdout + finished.stderr
    assert finished.stderr == ""
    ((subject, status, reason, number),) = rows(
        small_machine.database, "SELECT subject, status, reason, signal FROM failures"
    )
    assert (subject, status, number) == (f"tinysim-{eater}/Spring", "crashed", 9)
    assert reason == "the process was ended by SIGKILL, as the system does it where memory runs out"
    assert small_machine.result() == small_machine.undisturbed
    small_machine.made_good(finished)
