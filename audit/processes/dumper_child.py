"""One process of a dumper: started within its bounds, watched, and ended with all that it started."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

from audit import folders
from audit.cluster import descendants
from audit.confining import confinement, weighing
from audit.confining.confinement import Bounds
from audit.confining.weighing import Weight
from audit.failures import Status, readable, signal_name
from audit.installing.venvs import Recipe
from audit.processes.dumper_request import DUMPER, REQUEST

LONGEST_OUTPUT = 16 * 2**20
"""Bytes that a process may print before what it printed is forgotten: only the end is ever shown."""
LONGEST_TAIL = 2**16

_PERHAPS_THE_DISKS = (Status.CRASHED, Status.RAISED, Status.DAMAGED)
"""What a release comes to that finds no room for what it writes."""

_POLL_SECONDS = 0.02

# Numerical libraries run on one thread: their reductions would otherwise depend on the machine's core count.
_ONE_THREAD = dict.fromkeys(
    (
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "NUMEXPR_NUM_THREADS",
        "VECLIB_MAXIMUM_THREADS",
        "BLIS_NUM_THREADS",
    ),
    "1",
)
_QUIET = {"SDL_VIDEODRIVER": "dummy", "SDL_AUDIODRIVER": "dummy", "PYGAME_HIDE_SUPPORT_PROMPT": "1", "NO_COLOR": "1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """Why there is no answer to a cell."""

    status: Status
    reason: str
    tail: str = ""
    exit_code: int | None = None
    signal: int | None = None
    seconds: float = 0.0


class DumperChild:
    """A dumper that serves the request in its folder.

    Nothing in that folder is trusted: the dumper may have put a link or a pipe where a file was. What it prints goes to
    a file without a name.
    """

    def __init__(self, folder: Path, recipe: Recipe, cpu_seconds: float) -> None:
        self._bytecode = recipe.bytecode
        """The one place where what it leaves would stay, as long as the virtualenv does."""
        self._folders = (folder, recipe.bytecode)
        self._before = _weighed(folder, recipe.bytecode)
        self._output = tempfile.TemporaryFile(dir=folder.parent, buffering=0)  # noqa: SIM115
        fcntl.fcntl(self._output, fcntl.F_SETFL, os.O_APPEND)
        self._disk = os.fstat(self._output.fileno()).st_dev
        bounds = Bounds(
            folder=folder,
            writable=(recipe.bytecode,),
            needed=(DUMPER, recipe.folder, *confinement.interpreter_folders(recipe.executable)),
            cpu_seconds=cpu_seconds,
        )
        bytecode = f"pycache_prefix={recipe.bytecode}"
        command: list[str | Path] = [recipe.executable, "-I", "-X", bytecode, DUMPER / "__main__.py", folder / REQUEST]
        try:
            self._child = confinement.start(
                command,
                bounds,
                environment={**_ONE_THREAD, **_QUIET},
                output=self._output,
                given=subprocess.PIPE,  # the dumper's own lifeline: it ends when this side is gone
            )
        except BaseException:
            self._output.close()
            raise
        self._weighed = time.monotonic()

    def await_answer(self, path: Path, timeout: float) -> Trouble | None:
        """Wait for the file; tell what happened instead if it does not come."""
        began = time.monotonic()
        while True:
            if os.fstat(self._output.fileno()).st_size > LONGEST_OUTPUT:
                self._output.truncate(0)  # it is appended to, so this leaves no hole
            if self._overflows():  # asked first: who has written all answers may go on writing while they are read
                most = f"{weighing.LARGEST_BYTES / 2**30:g} GiB or {weighing.MOST_FILES} files"
                reason = f"it wrote more than {most}, or where nobody can look, and was ended"
                trouble = self._stopped(Status.CRASHED, reason, time.monotonic() - began)
                folders.emptied(self._bytecode)
                return trouble
            ended = self._child.process.poll() is not None  # asked first: a file written last thing is still seen
            if os.path.lexists(path):  # whatever it is: reading it will tell
                return None
            if ended:
                return self._died(time.monotonic() - began)
            if time.monotonic() > began + timeout:
                return self._stopped(Status.TIMEOUT, f"no answer within {timeout:g} s", time.monotonic() - began)
            time.sleep(_POLL_SECONDS)

    @property
    def lacks_room(self) -> bool:
        """Whether its disk has no room left, whoever took it."""
        return Weight.left_at(self._folders[0]).is_no_room

    def judged(self, trouble: Trouble) -> Trouble:
        """What a trouble is where the disk is full: the machine's, unless there would be room without what it wrote.

        It is ended first, so that what it wrote without a name is gone.
        """
        self._child.end()
        left = Weight.left_at(self._folders[0])
        if trouble.status not in _PERHAPS_THE_DISKS or not left.is_no_room:
            return trouble
        if self._is_at_fault(left):
            folders.emptied(self._bytecode)
            return replace(trouble, reason=f"{trouble.reason}; it had filled the disk itself")
        reason = f"the disk is full, with {left.size / 2**20:.0f} MiB left: {trouble.reason}"
        return replace(trouble, status=Status.DISK_FULL, reason=reason)

    def _is_at_fault(self, left: Weight) -> bool:
        """Whether there would be room without what it wrote. Bytecode of earlier processes was there before it."""
        try:
            written = weighing.of_folders(*self._folders).since(self._before)
        except folders.Unseen:
            return True
        return written.is_too_much or not (left + written).is_no_room

    def end(self) -> None:
        """End it, if it still runs, and whatever it forked. All that it had to say is in files."""
        self._child.end()
        if self._child.process.stdin is not None:
            self._child.process.stdin.close()
        self._output.close()

    def _overflows(self) -> bool:
        if time.monotonic() < self._weighed + weighing.WEIGH_SECONDS:
            return False
        try:
            nameless = weighing.of_nameless(descendants.below(self._child.process.pid), self._disk)
            written = weighing.of_folders(*self._folders) + nameless
        except folders.Unseen:
            return True
        self._weighed = time.monotonic()
        return written.is_too_much

    def _stopped(self, status: Status, reason: str, seconds: float) -> Trouble:
        self._child.end()
        return Trouble(status=status, reason=reason, tail=self._tail(), seconds=seconds)

    def _died(self, seconds: float) -> Trouble:
        self._child.end()
        code, tail = self._child.process.returncode, self._tail()
        if not self._child.launched:
            reason = f"the launcher ended with exit code {code} before the command began: {_last_line(tail)}"
            return Trouble(status=Status.NO_SANDBOX, reason=reason, tail=tail, exit_code=code, seconds=seconds)
        if self._child.unexecuted:
            reason = f"its Python could not be executed: {self._child.unexecuted}"
            return Trouble(status=Status.NO_PYTHON, reason=reason, tail=tail, exit_code=code, seconds=seconds)
        if code < 0:
            hint = ", as the system does it where memory runs out" if -code == signal.SIGKILL else ""
            reason = f"the process was ended by {signal_name(-code)}{hint}"
            return Trouble(status=Status.CRASHED, reason=reason, tail=tail, signal=-code, seconds=seconds)
        reason = f"the process ended with exit code {code} before it answered: {_last_line(tail)}"
        return Trouble(status=Status.CRASHED, reason=reason, tail=tail, exit_code=code, seconds=seconds)

    def _tail(self) -> str:
        size = os.fstat(self._output.fileno()).st_size
        printed = os.pread(self._output.fileno(), LONGEST_TAIL, max(0, size - LONGEST_TAIL))
        return readable(printed.decode("utf-8", errors="replace") + self._child.notes)


def _weighed(folder: Path, bytecode: Path) -> Weight:
    """What lies there. Where an earlier process of the release left bytecode that nobody can look into, all of it goes.

    Else whatever the release does next would be told as what the machine refused.
    """
    try:
        return weighing.of_folders(folder, bytecode)
    except folders.Unseen:
        folders.emptied(bytecode)
        return weighing.of_folders(folder, bytecode)


def _last_line(tail: str) -> str:
    return tail.strip().splitlines()[-1] if tail.strip() else "it printed nothing"
