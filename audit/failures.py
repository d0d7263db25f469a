"""A failure is a value: it goes into the store with everything a person needs, and never stops the others."""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass

INFRASTRUCTURE = frozenset({"unreachable", "disk-full", "worker-lost", "no-python", "no-sandbox"})
"""Statuses that say nothing about the package. An audit that has one of these is not complete."""

BREAKAGE = frozenset({"raised", "crashed", "timeout", "damaged"})
"""Statuses of a cell that its release has, but cannot run. Where an older release can, that is as bad as a change."""

_CONTROL = re.compile(
    r"\x1b\][^\x07\x1b]{0,1000}(?:\x07|\x1b\\)"  # titles, links, what goes to the clipboard
    r"|\x1b\[[0-9;?]*[ -/]*[@-~]"  # cursor and colour
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f]"
    r"|[\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"  # what turns the direction of reading
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Something that could not be done: a release that does not resolve, a cell whose process died."""

    subject: str
    """A release's id, or a cell's identifier ``release/environment``."""
    stage: str
    """``resolve``, ``build``, ``probe`` or ``dump``."""
    status: str
    reason: str
    exit_code: int | None = None
    signal: int | None = None
    stderr_tail: str = ""
    seconds: float = 0.0

    @property
    def is_infrastructure(self) -> bool:
        """Whether it is the machine's fault, not the package's."""
        return self.status in INFRASTRUCTURE


def readable(text: str, limit: int = 4000) -> str:
    """The end of a text that some package wrote, without what could move a terminal's cursor or colour."""
    return printable(text)[-limit:]


def signal_name(number: int) -> str:
    """What a signal is called."""
    try:
        return signal.Signals(number).name
    except ValueError:  # one of the real-time signals
        return f"signal {number}"


def printable(text: str) -> str:
    """A text without what a terminal would obey."""
    return _CONTROL.sub("", text)
