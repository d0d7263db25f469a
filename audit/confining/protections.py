"""Which protections this system offers against what a package may try, found out by trying them."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from audit.confining import confinement


@dataclass(frozen=True, slots=True, kw_only=True)
class Protection:
    """One thing that is denied to a release's code, or cannot be on this system."""

    name: str
    on: bool
    told: str
    """How, or why not and what follows from it."""


@cache
def all_here() -> tuple[Protection, ...]:
    """All of them, on this machine."""
    return judged(confinement.mechanisms())


def judged(told: Mapping[str, str]) -> tuple[Protection, ...]:
    """All of them, by what a launcher told of the mechanisms."""
    return (
        _environment(),
        _limits(told),
        _processes(told),
        _network(told),
        _writing(told),
        _reading(told),
        _others(told),
        _left_behind(told),
        _privileges(told),
        _builds(told),
    )


def missing() -> tuple[Protection, ...]:
    """Those that cannot be had here."""
    return tuple(each for each in all_here() if not each.on)


def parts_builds() -> bool:
    """Whether uv can be kept from starting programs here, so that what has the network does not build."""
    without = "" if sys.platform == "linux" else _why({}, "landlock")  # where it is not told, nobody knows
    return not confinement.mechanisms().get("landlock", without)


def _works(told: Mapping[str, str], *names: str) -> bool:
    return all(told.get(name) == "" for name in names)


def _why(told: Mapping[str, str], name: str) -> str:
    return told.get(name) or f"{sys.platform} does not have it"


def _environment() -> Protection:
    handed_on = ", ".join(confinement.HANDED_ON)
    return Protection(name="environment", on=True, told=f"only {handed_on} are handed on; a temporary home")


def _limits(told: Mapping[str, str]) -> Protection:
    refused = [name.removeprefix("limit ") for name in told if name.startswith("limit ")]
    if sys.platform != "linux":
        refused.append("memory")
    gib = confinement.memory() / 2**30
    on = f"{gib:.0f} GiB of memory, {confinement.OPEN_FILES} open files, files of 2 GiB, CPU time"
    return Protection(name="limits", on=not refused, told=f"not limited: {', '.join(refused)}" if refused else on)


def _processes(told: Mapping[str, str]) -> Protection:
    on = _works(told, "new processes")
    how = "by its namespace" if _works(told, "pids") else "counted"
    off = f"their number is not limited ({_why(told, 'new processes')})"
    return Protection(name="processes", on=on, told=f"at most {confinement.PROCESSES}, {how}" if on else off)


def _network(told: Mapping[str, str]) -> Protection:
    if _works(told, "new network", "filter"):
        return Protection(name="network", on=True, told="none: a namespace of its own, without a way out")
    if _works(told, "filter"):
        return Protection(name="network", on=True, told="none: sockets of the network are refused by a filter")
    if _works(told, "new network"):
        off = f"a release can reach the machine that hosts this one, though not the network ({_why(told, 'filter')})"
        return Protection(name="network", on=False, told=off)
    return Protection(name="network", on=False, told=f"a release can connect out ({_why(told, 'new network')})")


def _writing(told: Mapping[str, str]) -> Protection:
    """Landlock knows nothing of permissions and times: only a read-only view keeps those of other files."""
    if _works(told, "mounts"):
        how = "Landlock and a read-only view" if _works(told, "landlock") else "a read-only view"
        return Protection(name="writing", on=True, told=f"only in its own folder: {how}")
    why = told.get("mounts") or _why(told, "new mounts")
    off = f"a release can write wherever you can ({_why(told, 'landlock')})"
    if _works(told, "landlock"):
        off = f"a release can change permissions and times of your files, though not write to them ({why})"
    return Protection(name="writing", on=False, told=off)


def _reading(told: Mapping[str, str]) -> Protection:
    on = _works(told, "landlock") or _works(told, "mounts")
    off = f"a release can read your home folder ({_why(told, 'landlock')})"
    return Protection(
        name="reading", on=on, told="not your home folder, nor /tmp and /run, nor your terminal" if on else off
    )


def _others(told: Mapping[str, str]) -> Protection:
    if _works(told, "new processes", "proc"):
        return Protection(name="other processes", on=True, told="not visible: a namespace of its own")
    if _works(told, "new processes"):
        off = f"a release can see your other processes, though not signal them ({_why(told, 'proc')})"
        return Protection(name="other processes", on=False, told=off)
    off = f"a release can signal your other processes ({_why(told, 'new processes')})"
    return Protection(name="other processes", on=False, told=off)


def _left_behind(told: Mapping[str, str]) -> Protection:
    if _works(told, "new processes"):
        return Protection(name="left behind", on=True, told="everything ends with its namespace")
    if _works(told, "orphans"):
        return Protection(name="left behind", on=True, told="orphans are handed to the launcher, which ends them")
    off = "a process that leaves its group and session stays: no namespace, and orphans are handed to nobody"
    return Protection(name="left behind", on=False, told=off)


def _privileges(told: Mapping[str, str]) -> Protection:
    on = _works(told, "capabilities", "filter")
    root = "; it still owns root's files: do not audit as root" if os.getuid() == 0 else ""
    off = f"what the kernel offers to any program is offered ({_why(told, 'filter')})"
    return Protection(name="privileges", on=on, told=f"no capabilities, a filter of system calls{root}" if on else off)


def _builds(told: Mapping[str, str]) -> Protection:
    if not _works(told, "landlock"):
        off = "a build of a source distribution has uv's network and sees its credentials"
        return Protection(name="builds", on=False, told=f"{off} ({_why(told, 'landlock')})")
    if not _network(told).on:
        off = "a build of a source distribution has no credentials, but it can connect out"
        return Protection(name="builds", on=False, told=off)
    return Protection(name="builds", on=True, told="without network and credentials, only where allowed")
