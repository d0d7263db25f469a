"""Stand in front of the program, so that its exit codes are its own, whatever a library does to its process.

Ray's core ends a driver whose raylet or head is gone, at once and with exit code 1, which here means that something
changed. Therefore the program runs in a child and tells what it ends with through a pipe. A child that ended without
having told was ended by something else, and that is the machine's fault: where memory runs out, the system kills it.
What it had started comes to the guard then, and is ended. Signals reach the child as interruptions, in a group of its
own, so that a terminal does not send them twice. Only Linux ends a child together with its parent, so that elsewhere
the program runs without a guard.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from typing import NoReturn

_INTERRUPTIONS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36

# As in `audit.errors`, which is not imported here: the guard is there before anything can fail.
_INCOMPLETE, _INTERRUPTED = 3, 130
_CONTINUES = "what was dumped is stored, the same command continues from there"

_PATIENCE_SECONDS = 15.0
"""For an interrupted program to end by itself. A query on several threads may not look for signals before its end."""

_telling = -1
"""The end of the pipe that the program tells its exit code through."""


def main() -> NoReturn:
    """Be the guard, and let a child be the program."""
    _stand_in_for_closed_streams()
    if sys.platform == "linux":
        _stand_guard()
    from audit.cli import main as program

    program()


def _stand_in_for_closed_streams() -> None:
    """Open nothing in place of a standard stream that was closed, as in ``release-audit … >&-``.

    The next file to be opened would get its number, and be read or written as that stream, here and in every process
    that is started.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # the lowest number that is free: this one
            setattr(sys, name, os.fdopen(number, "w" if number else "r", encoding="utf-8", closefd=False))


def tell(code: int) -> None:
    """Tell the guard what the program is about to end with, if there is one."""
    if _telling >= 0:
        os.write(_telling, bytes([code]))


def _stand_guard() -> None:
    """Return in the child alone."""
    global _telling
    told, _telling = os.pipe()
    guard = os.getpid()
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    # Taken one by one, and never handled: a handler would not run where one comes just before the guard waits.
    awaited = {signal.SIGCHLD, signal.SIGTSTP, *_heeded()}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, awaited)
    child = os.fork()
    if child == 0:
        os.close(told)
        os.setpgid(0, 0)
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # until the program has been imported and handles it
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)  # in its own group, a terminal's `tostop` would stop it for ever
        _end_with(guard)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return
    os.close(_telling)
    status, interrupted = _await(child, awaited)
    _end_as(status, _read(told), interrupted=interrupted)


def _heeded() -> set[signal.Signals]:
    """The signals that mean an interruption, without those that `nohup` or a shell's background has ignored."""
    return {number for number in _INTERRUPTIONS if signal.getsignal(number) != signal.SIG_IGN}


def _await(child: int, awaited: set[signal.Signals]) -> tuple[int, bool]:
    """Wait for the child's end and hand signals on; say how it ended, and whether it was interrupted."""
    interrupted = False
    deadline = float("inf")
    while True:
        number = _next(awaited, deadline - time.monotonic())
        if number is None:
            os.kill(child, signal.SIGKILL)
            deadline = float("inf")
        elif number == signal.SIGCHLD:
            status = _bury(child)
            if status is not None:
                return status, interrupted
        elif number == signal.SIGTSTP:
            os.killpg(child, signal.SIGSTOP)
            os.kill(os.getpid(), signal.SIGSTOP)
            os.killpg(child, signal.SIGCONT)
        else:
            interrupted = True
            deadline = min(deadline, time.monotonic() + _PATIENCE_SECONDS)
            os.kill(child, signal.SIGINT)  # Ray prints a stack for others


def _next(awaited: set[signal.Signals], seconds: float) -> int | None:
    """The next signal, or nothing where none comes in time."""
    if seconds == float("inf"):
        return signal.sigwait(awaited)
    came = signal.sigtimedwait(awaited, max(0.0, seconds))
    return came.si_signo if came is not None else None


def _bury(child: int) -> int | None:
    """Bury the child, and the orphans that came; how the child ended, if it did."""
    while True:
        ended, status = os.waitpid(-1, os.WNOHANG)
        if ended in (0, child):
            return status if ended else None


def _prctl(option: int, value: int) -> None:
    import ctypes

    ctypes.CDLL(None).prctl(option, value)


def _end_with(guard: int) -> None:
    """Have the system kill this process as soon as the guard is gone, however it went."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != guard:
        os._exit(_INTERRUPTED)


def _read(told: int) -> bytes:
    os.set_blocking(told, False)  # a process that the child forked may still hold the other end
    try:
        return os.read(told, 1)
    except BlockingIOError:
        return b""


def _end_as(status: int, told: bytes, *, interrupted: bool) -> NoReturn:
    if told:
        os._exit(told[0])
    _end_what_is_left()
    if interrupted:
        _say(f"interrupted; {_CONTINUES}")
        os._exit(_INTERRUPTED)
    _say(f"{_how(os.waitstatus_to_exitcode(status))}; {_CONTINUES}")
    os._exit(_INCOMPLETE)


def _end_what_is_left() -> None:
    from audit.cluster import descendants  # not before it is needed: nothing may fail before the guard stands

    descendants.end_all()


def _how(code: int) -> str:
    """How the child ended, in words."""
    if code >= 0:
        return f"ended from within with exit code {code}, as Ray does where a part of it was lost"
    from audit.failures import signal_name  # as above

    hint = ", as the system does it where memory runs out" if -code == signal.SIGKILL else ""
    return f"ended by {signal_name(-code)}{hint}"


def _say(text: str) -> None:
    with contextlib.suppress(OSError):
        os.write(2, f"release-audit: {text}\n".encode())
