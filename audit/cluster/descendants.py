"""End whatever this process has started and what that has started, down to parts of Ray that nobody else would end.

A raylet ends with its driver. Its agents, where they are just starting, first wait half a minute for a raylet.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterable
from pathlib import Path

_STATE, _PARENT, _THREADS = 0, 1, 17
"""Where a process's line says so, behind its name."""

_ROUNDS = 20
"""Looks at most: who is killed may have started another a moment before."""


def end_all() -> None:
    """Kill everything below this process; where there is no ``/proc`` nothing is known of it and nothing done."""
    for _ in range(_ROUNDS):
        found = below(os.getpid())
        end(found)
        if not found:
            return


def end(processes: Iterable[int]) -> None:
    """Kill those that are still there."""
    for process in processes:
        with contextlib.suppress(OSError):
            os.kill(process, signal.SIGKILL)


def below(process: int) -> set[int]:
    """The processes below one that have not ended."""
    children: dict[int, list[int]] = {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            told = file.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            if told[_STATE] != "Z" or int(told[_THREADS]) > 1:  # the first thread may end before the others
                children.setdefault(int(told[_PARENT]), []).append(int(file.parent.name))
    found: set[int] = set()
    waiting = [process]
    while waiting:
        new = set(children.get(waiting.pop(), ())) - found
        found |= new
        waiting += new
    return found
