"""A failure is a value: it goes into the store with everything a person needs, and never stops the others."""

from __future__ import annotations

import errno
import os
import re
import signal
from dataclasses import dataclass
from enum import StrEnum


class Status(StrEnum):
    """What became of a release or a cell, in one word. Each but the first two is told with a reason."""

    READY = "ready"
    """Of a release: it is installed."""
    OK = "ok"
    """Of a cell: it is dumped."""

    UNREACHABLE = "unreachable"
    DISK_FULL = "disk-full"
    WORKER_LOST = "worker-lost"
    NO_PYTHON = "no-python"
    NO_SANDBOX = "no-sandbox"

    UNRESOLVED = "unresolved"
    UNBUILT = "unbuilt"

    UNAVAILABLE = "unavailable"
    INCOMPARABLE = "incomparable"
    NONDETERMINISTIC = "nondeterministic"
    UNDRAWABLE = "undrawable"
    UNHELD = "unheld"

    RAISED = "raised"
    """The release's own code raised an exception, as it will again."""
    CRASHED = "crashed"
    TIMEOUT = "timeout"
    DAMAGED = "damaged"


INFRASTRUCTURE = frozenset(
    {Status.UNREACHABLE, Status.DISK_FULL, Status.WORKER_LOST, Status.NO_PYTHON, Status.NO_SANDBOX}
)
"""They say nothing about the package. An audit that has one of these is not complete."""

BREAKAGE = frozenset({Status.RAISED, Status.CRASHED, Status.TIMEOUT, Status.DAMAGED})
"""Those of a cell that its release has, but cannot run. Where an older release can, that is as bad as a change."""

MOST_RUNS = 3
"""Runs in which a release may fail at a question, each with two processes, or to be built, before later ones take it as
it is. Machines have bad days; six processes on three of them did not all have one."""

_FULL = (errno.ENOSPC, errno.EDQUOT)
"""What the system says where a disk has no room left."""

_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM)
"""What it says where a process or the machine has no more of something, which no package has taken from this one."""

SHORTAGES = frozenset(map(os.strerror, _EXHAUSTED))
"""The same, as it tells it to a person."""

_CONTROL = re.compile(
    r"\x1b\][^\x07\x1b]{0,1000}(?:\x07|\x1b\\)"  # titles, links, what goes to the clipboard
    r"|\x1b\[[0-9;?]*[ -/]*[@-~]"  # cursor and colour
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f]"
    r"|[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"  # what turns the direction of reading
)

_COMMAND = re.compile(r"^[^\S\n]*:(?=:)|##(?=\w*\[)", re.MULTILINE)
"""What services that run jobs obey in a log: ``::error::`` where a line begins, ``##[…`` and the like anywhere."""

_UNSEEN = "\u200b"
"""A space without a width."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Something that could not be done: a release that does not resolve, a cell whose process died."""

    subject: str
    """A release's id, or a cell's identifier ``release/environment``."""
    stage: str
    """``resolve``, ``build``, ``draw`` or ``laws``, or what a dumper was asked to do, such as ``probe`` or ``dump``."""
    status: Status
    reason: str
    exit_code: int | None = None
    signal: int | None = None
    stderr_tail: str = ""
    seconds: float = 0.0

    @property
    def is_infrastructure(self) -> bool:
        """Whether it is the machine's fault, not the package's."""
        return self.status in INFRASTRUCTURE


class NoSandbox(OSError):
    """Nothing can be run confined here, for now or at all, which says nothing about what was to be run."""


def of_the_machine(error: BaseException) -> Status | None:
    """Which fault of the machine an error is; nothing where a package may have brought it about."""
    if isinstance(error, (NoSandbox, MemoryError)):
        return Status.NO_SANDBOX
    if isinstance(error, OSError) and error.errno in _FULL:
        return Status.DISK_FULL
    return Status.NO_SANDBOX if isinstance(error, OSError) and error.errno in _EXHAUSTED else None


def said(error: BaseException) -> str:
    """What an error says; what it is where it says nothing, as one of memory."""
    return str(error) or type(error).__name__


def readable(text: str, limit: int = 4000) -> str:
    """The end of a text that some package wrote, without what a terminal or a log would obey."""
    return _disarmed(_CONTROL.sub("", text)[-limit:])


def signal_name(number: int) -> str:
    """What a signal is called."""
    try:
        return signal.Signals(number).name
    except ValueError:  # one of the real-time signals
        return f"signal {number}"


def printable(text: str) -> str:
    """A text without what a terminal or a log would obey."""
    return _disarmed(_CONTROL.sub("", text))


def _disarmed(text: str) -> str:
    """The same to the eye. Where a text is cut, a line may begin that did not before: first cut, then this."""
    return _COMMAND.sub(rf"\g<0>{_UNSEEN}", text)
