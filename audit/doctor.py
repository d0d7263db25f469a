"""Check what an audit needs: Python, uv, the index, room on the disk, the CPU's name."""

from __future__ import annotations

import platform
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from audit import folders, machine
from audit.errors import AuditError
from audit.installing import interpreters, uv

LEAST_FREE_BYTES = 5 * 2**30
"""Virtualenvs of the largest shipped matrix take about 4 GB."""

LEAST_PYTHON = (3, 11)


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was looked at."""

    name: str
    ok: bool
    found: str


def checks(results: Path) -> Iterator[Check]:
    """Look at everything, one after the other."""
    looks: tuple[tuple[str, Callable[[], tuple[bool, str]]], ...] = (
        ("Python", _python),
        ("uv", lambda: (True, f"{uv.version()} at {uv.executable()}")),
        ("package index", _index),
        ("interpreters", _interpreters),
        ("room for virtualenvs", lambda: _room(folders.cache())),
        ("room for results", lambda: _room(results)),
        ("CPU", _cpu),
    )
    for name, look in looks:
        try:
            ok, found = look()
        except (AuditError, OSError) as error:
            ok, found = False, str(error)
        yield Check(name=name, ok=ok, found=found)


def _python() -> tuple[bool, str]:
    wanted = ".".join(map(str, LEAST_PYTHON))
    return sys.version_info >= LEAST_PYTHON, f"{platform.python_version()} (at least {wanted} is needed)"


def _index() -> tuple[bool, str]:
    answer = uv.call(
        "pip",
        "compile",
        "-",
        "--no-deps",
        "--no-header",
        "--only-binary",
        ":all:",
        "--refresh-package",
        "packaging",
        given="packaging\n",
    )
    return answer.ok, f"answers: {answer.output.split()[0]}" if answer.ok else answer.reason


def _interpreters() -> tuple[bool, str]:
    found = []
    for minor in range(9, 15):
        try:
            found.append(interpreters.find_installed(f"3.{minor}").version)
        except interpreters.NoInterpreter:
            continue
    return bool(found), ", ".join(found) + "; others are downloaded by uv where it may"


def _room(folder: Path) -> tuple[bool, str]:
    existing = next(each for each in (folder, *folder.parents) if each.exists())
    free = shutil.disk_usage(existing).free
    return free >= LEAST_FREE_BYTES, f"{free / 2**30:.0f} GiB free at {folder}"


def _cpu() -> tuple[bool, str]:
    here = machine.here()
    return True, f"{here.model}, {len(here.flags)} features, {here.libc}, class {here.digest}"
