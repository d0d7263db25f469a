"""Run what somebody else wrote where it can do no harm: which folders, how much of everything, which variables.

The confinement itself is in ``confine/``, a launcher that is started in front of the command.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO

from audit import folders
from audit.failures import SHORTAGES, NoSandbox

LAUNCHER = folders.ROOT / "confine" / "__main__.py"

ADDRESS_SPACE_BYTES = 64 * 2**30
"""Generous: libraries reserve far more than they use. smoke, classic and mjcf fit; torch and jax are untried."""

MEMORY_BYTES = 16 * 2**30
"""That a process may hold privately; less where the machine has less. A choice, not a measurement."""
SHARE_OF_MEMORY = 0.75
"""Of the machine's memory, at most: the rest is for the audit itself."""

LARGEST_FILE_BYTES = 2**31
"""A choice. An answer may be no larger than ``answer_file.LARGEST_BYTES``."""

LARGEST_BUILT_FILE_BYTES = 8 * 2**30
"""Of a build: debug symbols of a compiled library can be some GiB."""

OPEN_FILES = 4096

PROCESSES = 1024
"""With threads. Numerical libraries start some per core, so that a machine with many cores needs room. A choice."""

_MOST_LINKS = 40
"""One after the other, as for the system itself; more than that is a circle."""

_GUARDING = (
    "new network", "new mounts", "new processes", "new memory", "proc", "mounts", "landlock", "capabilities", "filter",
)  # fmt: skip
"""Of what the launcher tries, that without which a protection is off. Where it worked once, a command is not started
without it: a system that is short of something may refuse it for a moment."""

_TRYING_SECONDS = 30.0

_ENDING_SECONDS = 10.0
"""For a launcher to end everything after its lifeline was cut, before it is killed itself."""

_HIDDEN = ("/tmp", "/var/tmp", "/run", "/dev/pts")
"""Besides the home folder: sockets of agents, of displays and of container engines lie there, and terminals."""

_NOBODYS = ("/", "/bin", "/dev", "/etc", "/sbin", "/usr", "/usr/bin", "/usr/sbin")
"""Folders that some systems give to users who have no home. Nothing could be started without them."""

_DEVICES = "/dev"
"""Nothing in it can be read but what the launcher lists: what is typed at a terminal could be, for one."""

HANDED_ON = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "LD_LIBRARY_PATH")
"""Variables that reach a confined command. LD_LIBRARY_PATH decides what is computed, and is in the machine's class."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What one command may use."""

    folder: Path
    """Its own: it starts there, and its home and temporary files are in there."""
    writable: tuple[Path, ...] = ()
    """Other folders that it may write to."""
    needed: tuple[Path, ...] = ()
    """What it reads, wherever that lies."""
    cpu_seconds: float
    largest_file: int = LARGEST_FILE_BYTES

    @property
    def home(self) -> Path:
        """The home folder that it is shown."""
        return self.folder / "home"

    @property
    def variables(self) -> dict[str, str]:
        """Its environment, without anything that nobody listed."""
        handed_on = {name: os.environ[name] for name in HANDED_ON if name in os.environ}
        return {**handed_on, "HOME": str(self.home), "TMPDIR": str(self.folder / "tmp")}

    def options(self) -> Iterator[str]:
        """As the launcher reads them."""
        yield from (f"write={path}" for path in (self.folder, *self.writable))
        yield from (f"need={path}" for path in (*self.needed, *_libraries()))
        hidden = hidden_folders()
        yield from (f"hide={path}" for path in hidden)
        yield from (f"read={path}" for path in all_but((*hidden, _DEVICES)))
        yield from (f"limit={name}:{most}" for name, most in self._limits().items())
        yield f"processes={PROCESSES}"

    def _limits(self) -> dict[str, int]:
        limits = {"NOFILE": OPEN_FILES, "FSIZE": self.largest_file, "CPU": int(self.cpu_seconds) + 1, "CORE": 0}
        if sys.platform == "linux":  # elsewhere these are not enforced, or count what the system itself reserves
            limits |= {"AS": ADDRESS_SPACE_BYTES, "DATA": memory()}
        return limits


class Child:
    """A confined command that has been started."""

    def __init__(self, process: subprocess.Popen[bytes], lifeline: int, report: int) -> None:
        self.process = process
        self._lifeline = lifeline
        self._report = report
        self.told: dict[str, str] = {}
        """What the launcher told; complete once it has ended."""

    def end(self) -> None:
        """End the command and whatever it started, wherever that went. All that it had to say is in files."""
        if self._lifeline < 0:
            return
        os.close(self._lifeline)
        self._lifeline = -1
        try:
            self.process.wait(_ENDING_SECONDS)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, 9)
            self.process.wait()
        self.told = _told(self._report)

    @property
    def launched(self) -> bool:
        """Whether the launcher got as far as the command; known once it has ended. The command cannot tell it."""
        return "launched" in self.told

    @property
    def unexecuted(self) -> str:
        """Why the system did not execute the command, once it has ended; nothing where it did."""
        return self.told.get("unexecuted", "")

    @property
    def notes(self) -> str:
        """What a person should know of its end."""
        lines = []
        if "bomb" in self.told:
            lines.append(f"[confined] more than {self.told['bomb']} processes: all were ended")
        if "left" in self.told:
            lines.append(f"[confined] it left {self.told['left']} processes behind, which were ended")
        return "".join(f"\n{line}" for line in lines)


@cache
def mechanisms() -> Mapping[str, str]:
    """What the launcher says here of each mechanism: nothing where it works, else why not.

    Raises:
        NoSandbox: where the system is short of something, so that nobody knows yet.
    """
    with tempfile.TemporaryDirectory() as folder:
        bounds = Bounds(folder=Path(folder).resolve(), cpu_seconds=_TRYING_SECONDS)
        child = start([], bounds, environment={}, output=subprocess.DEVNULL, required=())
        try:
            child.process.wait(_TRYING_SECONDS)
        except subprocess.TimeoutExpired:
            raise NoSandbox(f"the protections could not be tried within {_TRYING_SECONDS:.0f} s") from None
        finally:
            child.end()
    lacking = [child.told[name] for name in _GUARDING if child.told.get(name) in SHORTAGES]
    if child.process.returncode or lacking:
        how = lacking[0] if lacking else f"the launcher ended with exit code {child.process.returncode}"
        raise NoSandbox(f"the protections could not be tried: {how}")
    return child.told


def _guarding() -> tuple[str, ...]:
    return tuple(name for name in _GUARDING if mechanisms().get(name) == "")


def start(
    command: Sequence[str | Path],
    bounds: Bounds,
    *,
    environment: Mapping[str, str],
    output: IO[bytes] | int,
    errors: IO[bytes] | int = subprocess.STDOUT,
    given: IO[bytes] | int = subprocess.DEVNULL,
    required: Sequence[str] | None = None,
) -> Child:
    """Start a command within its bounds; its standard streams are files.

    It is not started without the mechanisms that are ``required``: all that guard and that this system has.
    """
    needed = _guarding() if required is None else required
    for folder in (bounds.home, bounds.folder / "tmp"):
        folder.mkdir(exist_ok=True)
    asked = list(bounds.options())
    held, lifeline = os.pipe()
    try:
        report, reporting = os.pipe()
    except OSError:
        os.close(held)
        os.close(lifeline)
        raise
    options = [f"lifeline={held}", f"report={reporting}", *(f"require={name}" for name in needed), *asked]
    try:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(LAUNCHER), *options, "--", *map(str, command)],
            stdin=given,
            stdout=output,
            stderr=errors,
            cwd=bounds.folder,
            env={**bounds.variables, **environment},
            start_new_session=True,
            pass_fds=(held, reporting),
        )
    except BaseException:
        os.close(lifeline)
        os.close(report)
        raise
    finally:
        os.close(held)
        os.close(reporting)
    return Child(process, lifeline, report)


def memory() -> int:
    """Bytes that a process may hold."""
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min(MEMORY_BYTES, int(SHARE_OF_MEMORY * whole))


def hidden_folders() -> tuple[str, ...]:
    """Folders that nobody's code should look into."""
    found = [*_HIDDEN, tempfile.gettempdir()]
    with contextlib.suppress(RuntimeError):
        found.append(str(Path.home()))
    with contextlib.suppress(KeyError):  # a container may run as a user that nobody wrote down
        found.append(pwd.getpwuid(os.getuid()).pw_dir)
    real = dict.fromkeys(os.path.realpath(each) for each in found)
    return tuple(each for each in real if each not in _NOBODYS)


@cache
def all_but(hidden: tuple[str, ...]) -> tuple[str, ...]:
    """The largest folders that together hold everything but what is hidden."""
    return tuple(_split("/", frozenset(hidden)))


def _split(folder: str, hidden: frozenset[str]) -> Iterator[str]:
    real = os.path.realpath(folder)
    if any(real == each or real.startswith(f"{each}/") for each in hidden):
        return
    inside = "/" if real == "/" else f"{real}/"
    if not any(each.startswith(inside) for each in hidden):
        yield real
        return
    try:
        inner = sorted(Path(real).iterdir())
    except OSError:  # who may not list it may still enter it, but nobody can say what else is in there
        return
    for path in inner:
        yield from _split(str(path), hidden)


def _libraries() -> Iterator[str]:
    yield from filter(os.path.isabs, os.environ.get("LD_LIBRARY_PATH", "").split(":"))


def interpreter_folders(executable: Path) -> tuple[Path, ...]:
    """Where a Python has its parts: its own, and those of the one that it links to.

    A build may have put links in place of those of a virtualenv: one that leads out of it is none of its parts.
    """
    found: list[Path] = []
    for _ in range(_MOST_LINKS):
        found += [executable.parent.parent / name for name in ("bin", "lib", "lib64", "include", "share")]
        if not executable.is_symlink():
            break
        executable = executable.parent / executable.readlink()
    found.append(Path(os.path.realpath(executable)).parent.parent / "lib")
    return tuple(dict.fromkeys(path for path in found if _stays(path)))


def _stays(path: Path) -> bool:
    """Whether it is there, and lies where it seems to."""
    real, around = os.path.realpath(path), os.path.realpath(path.parent)
    return os.path.lexists(real) and Path(real).is_relative_to(around)


def _told(report: int) -> dict[str, str]:
    with os.fdopen(report, "r", encoding="utf-8", errors="replace") as file:
        lines = (line.rstrip("\n").partition("\t") for line in file)
        return {name: told for name, _, told in lines}
