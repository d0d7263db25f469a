"""Stand in front of the program, so that its exit codes are its own, whatever a library does to its process.

Ray's core ends a driver whose raylet or head is gone, at once and with exit code 1, which here means that something
changed. Therefore the program runs in a child and tells what it ends with through a pipe. A child that ended without
having told was ended by something else, and that is the machine's fault. Signals reach the child as interruptions, in
a group of its own, so that a terminal does not send them twice. Only Linux ends a child together with its parent, so
that elsewhere the program runs without a guard.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from typing import NoReturn

_INTERRUPTIONS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_PR_SET_PDEATHSIG = 1

# As in `audit.errors`, which is not imported here: the guard is there before anything can fail.
_INCOMPLETE, _INTERRUPTED = 3, 130
_CONTINUES = "what was dumped is stored, the same command continues from there"

_telling = -1
"""The end of the pipe that the program tells its exit code through."""


def main() -> NoReturn:
    """Be the guard, and let a child be the program."""
    if sys.platform == "linux":
        _stand_guard()
    from audit.cli import main as program

    program()


def tell(code: int) -> None:
    """Tell the guard what the program is about to end with, if there is one."""
    if _telling >= 0:
        os.write(_telling, bytes([code]))


def _stand_guard() -> None:
    """Return in the child alone."""
    global _telling
    told, _telling = os.pipe()
    guard = os.getpid()
    child = os.fork()
    if child == 0:
        os.close(told)
        os.setpgid(0, 0)
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # until the program has been imported and handles it
        _end_with(guard)
        return
    os.close(_telling)
    interrupted = _pass_signals_on(child)
    status = os.waitpid(child, 0)[1]
    _end_as(status, _read(told), interrupted=bool(interrupted))


def _end_with(guard: int) -> None:
    """Have the system kill this process as soon as the guard is gone, however it went."""
    import ctypes

    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != guard:
        os._exit(_INTERRUPTED)


def _pass_signals_on(child: int) -> list[int]:
    """Interrupt the child for every signal that means this; return the list of those that come."""
    came: list[int] = []

    def interrupt(number: int, _: object) -> None:
        came.append(number)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGINT)  # Ray prints a stack for others

    def pause(*_: object) -> None:
        os.killpg(child, signal.SIGSTOP)
        os.kill(os.getpid(), signal.SIGSTOP)
        os.killpg(child, signal.SIGCONT)

    for number in _INTERRUPTIONS:
        if signal.getsignal(number) != signal.SIG_IGN:  # as `nohup` and a shell's background have it
            signal.signal(number, interrupt)
    signal.signal(signal.SIGTSTP, pause)
    return came


def _read(told: int) -> bytes:
    os.set_blocking(told, False)  # a process that the child forked may still hold the other end
    try:
        return os.read(told, 1)
    except BlockingIOError:
        return b""


def _end_as(status: int, told: bytes, *, interrupted: bool) -> NoReturn:
    if told:
        os._exit(told[0])
    if interrupted:
        _say(f"interrupted; {_CONTINUES}")
        os._exit(_INTERRUPTED)
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        _say(f"ended by {signal.Signals(number).name}; {_CONTINUES}")
        with contextlib.suppress(OSError):
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    code = os.waitstatus_to_exitcode(status)
    _say(f"ended from within with exit code {code}, as Ray does where a part of it was lost; {_CONTINUES}")
    os._exit(_INCOMPLETE)


def _say(text: str) -> None:
    with contextlib.suppress(OSError):
        os.write(2, f"release-audit: {text}\n".encode())
