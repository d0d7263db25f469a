"""Landlock: which paths a process may read, write and execute, whoever it is; and whom it may signal."""

from __future__ import annotations

import ctypes
import os
import stat

from confine import system

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_CREATE, _ADD_RULE, _RESTRICT = 444, 445, 446  # the same on every architecture
_VERSION, _PATH_BENEATH = 1, 1

EXECUTE, _WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_MAKE_AND_REMOVE = sum(1 << bit for bit in range(4, 13))
REFER, _TRUNCATE, _IOCTL_DEVICE = 1 << 13, 1 << 14, 1 << 15
_OF_FILES = EXECUTE | _WRITE_FILE | READ_FILE | _TRUNCATE | _IOCTL_DEVICE
_SCOPE_ABSTRACT_SOCKETS, _SCOPE_SIGNALS = 1, 2

READ = EXECUTE | READ_FILE | READ_DIR

SIGNALS_SINCE = 6
"""The version from which on signals can be kept within."""
TRUNCATE_SINCE = 3
"""The version from which on emptying a file counts as writing to it."""


def version() -> int:
    """The version that the kernel offers; 0 where it offers none."""
    try:
        return system.syscall(_CREATE, None, 0, _VERSION)
    except OSError:
        return 0


def restrict(rules: Iterable[tuple[str, int]], handled: int, *, alone: bool = True) -> None:
    """Deny what is ``handled`` everywhere but beneath the paths of the rules; call after ``gain_nothing``.

    ``alone`` keeps signals within too.
    """
    offered = version()
    if not offered:
        raise OSError("the kernel has no Landlock, or it is not enabled")
    handled &= _known(offered)
    scoped = _SCOPE_SIGNALS | _SCOPE_ABSTRACT_SOCKETS if alone and offered >= SIGNALS_SINCE else 0
    ruleset = _created(handled, scoped, offered)
    try:
        for path, rights in rules:
            _allow(ruleset, path, rights & handled)
        system.syscall(_RESTRICT, ruleset, 0)
    finally:
        os.close(ruleset)


def write_rights() -> int:
    """Everything that changes what lies on a disk."""
    return _WRITE_FILE | _MAKE_AND_REMOVE | REFER | _TRUNCATE


def device_rights() -> int:
    """What a device such as ``/dev/null`` is for."""
    return READ_FILE | _WRITE_FILE | _TRUNCATE | _IOCTL_DEVICE


def _known(offered: int) -> int:
    rights = READ | _WRITE_FILE | _MAKE_AND_REMOVE
    for since, right in ((2, REFER), (TRUNCATE_SINCE, _TRUNCATE), (5, _IOCTL_DEVICE)):
        rights |= right if offered >= since else 0
    return rights


def _created(handled: int, scoped: int, offered: int) -> int:
    attributes = (ctypes.c_uint64 * 3)(handled, 0, scoped)
    size = 24 if offered >= SIGNALS_SINCE else 16 if offered >= 4 else 8
    return system.syscall(_CREATE, bytes(attributes), size, 0)


def _allow(ruleset: int, path: str, rights: int) -> None:
    """Allow it beneath the path; what is not there needs no rule."""
    try:
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(handle).st_mode):
            rights &= _OF_FILES
        rule = rights.to_bytes(8, "little") + handle.to_bytes(4, "little")
        if rights:
            system.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, rule, 0)
    finally:
        os.close(handle)
