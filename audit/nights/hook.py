"""The command that is told when there is news: one that fails, or never ends, changes nothing about the night."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

SECONDS = 300
"""That it may take: it sends a message."""


def tell(command: str, text: str, seconds: float = SECONDS) -> str:
    """Hand the text to a shell command on standard input; what was wrong with that, or nothing.

    What the command prints goes to standard error: standard output may be a summary that a program reads.
    """
    with subprocess.Popen(
        command, shell=True, stdin=subprocess.PIPE, stdout=sys.stderr.fileno(), encoding="utf-8", start_new_session=True
    ) as process:
        try:
            process.communicate(text, timeout=seconds)
        except subprocess.TimeoutExpired:
            return f"the command of --notify took longer than {seconds:g} s, and was ended"
        finally:
            _end(process)
    return f"the command of --notify failed with exit code {process.returncode}" if process.returncode else ""


def _end(process: subprocess.Popen[str]) -> None:
    """End the shell and what it started, where it has not come to an end by itself."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
