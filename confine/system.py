"""Calls to the system that the standard library of Python 3.11 does not have, or not without a slow import."""

from __future__ import annotations

import ctypes
import os
import sys

NEW_MOUNTS, NEW_IPC, NEW_USER, NEW_PIDS, NEW_NETWORK = 0x20000, 0x08000000, 0x10000000, 0x20000000, 0x40000000

_PR_SET_PDEATHSIG, _PR_CAPBSET_DROP, _PR_SET_CHILD_SUBREAPER = 1, 24, 36
_PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 38, 47, 4
_CAPABILITY_VERSION = 0x20080522
_MOST_CAPABILITIES = 64

_SIG_SETMASK = 2 if sys.platform == "linux" else 3
_LARGEST_SIGNAL_SET = 128
"""Bytes; Linux's. An empty one is zeros everywhere."""

_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1
_AF_INET, _SOCK_DGRAM = 2, 2

_library = ctypes.CDLL(None, use_errno=True)
_library.syscall.restype = ctypes.c_long
_library.signal.argtypes, _library.signal.restype = [ctypes.c_int, ctypes.c_void_p], ctypes.c_void_p
_library.mount.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_char_p]


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def syscall(number: int, *arguments: int | bytes | None) -> int:
    """A call that the C library has no name for."""
    passed = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    return _checked(int(_library.syscall(ctypes.c_long(number), *passed)))


def prctl(option: int, *arguments: int) -> int:
    """Ask something for this process."""
    padded = [ctypes.c_ulong(each) for each in (*arguments, 0, 0, 0, 0)[:4]]
    return _checked(int(_library.prctl(option, *padded)))


def unshare(flags: int) -> None:
    """Leave namespaces for new ones."""
    _checked(int(_library.unshare(flags)))


def mount(source: str | None, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    """Mount something."""
    texts = [None if each is None else os.fsencode(each) for each in (source, target, kind, data)]
    _checked(int(_library.mount(texts[0], texts[1], texts[2], flags, texts[3])))


def handle_as_usual(number: int) -> None:
    """Let a signal do what it does by default."""
    _library.signal(number, None)


def let_all_signals_in() -> None:
    """Block none: Ray blocks the one of Ctrl-C in its workers, and who is started there would never be ended by it."""
    empty = ctypes.create_string_buffer(_LARGEST_SIGNAL_SET)
    _library.sigprocmask(_SIG_SETMASK, empty, None)


def die_with_the_parent() -> None:
    """Be killed when the parent ends."""
    prctl(_PR_SET_PDEATHSIG, 9)


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own has ended."""
    prctl(_PR_SET_CHILD_SUBREAPER, 1)


def be_the_first_victim() -> None:
    """Be ended before all others where memory runs out, with all that is started from here.

    What a namespace keeps in its shared memory is given back when its first process ends, and not before: that one is
    a victim too. Memory in files without a name counts for nobody, so that the largest process would be ended instead.
    """
    with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
        file.write("1000")


def gain_nothing() -> None:
    """No program that is executed from here on has more rights than this one."""
    prctl(_PR_SET_NO_NEW_PRIVS, 1)


def drop_capabilities() -> None:
    """Keep nothing of what makes root more than the owner of its files."""
    for capability in range(_MOST_CAPABILITIES):
        try:
            prctl(_PR_CAPBSET_DROP, capability)
        except OSError:
            break  # beyond the last that this kernel knows, or none is held
    try:
        prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
    except OSError:
        pass  # a kernel before 4.3 has none
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    _checked(int(_library.capset(header, (ctypes.c_uint32 * 6)())))


def raise_loopback() -> None:
    """Let a new network namespace reach itself: some packages talk to their own processes that way."""
    handle = _checked(int(_library.socket(_AF_INET, _SOCK_DGRAM, 0)))
    try:
        request = ctypes.create_string_buffer(b"lo".ljust(16, b"\0") + _IFF_UP.to_bytes(2, "little"), 40)
        _checked(int(_library.ioctl(handle, ctypes.c_ulong(_SIOCSIFFLAGS), request)))
    finally:
        os.close(handle)


def kernel() -> tuple[int, int]:
    """The kernel's version."""
    numbers = os.uname().release.split("-")[0].split(".")
    return int(numbers[0]), int(numbers[1])
