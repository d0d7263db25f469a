"""Find a Python for a release: what uv finds, what a pyenv installation has, what uv can download, in that order."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from packaging.version import InvalidVersion, Version

from audit.errors import AuditError
from audit.failures import Status
from audit.installing import uv

ASKING_SECONDS = 60.0
"""For a Python to start."""

_NO_SUCH_VERSION = "No download found for request"

_ASK = "import platform; print(platform.python_implementation(), platform.python_version())"


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpreter:
    """A Python that starts."""

    path: Path
    implementation: str
    version: str


class NoInterpreter(AuditError):
    """No Python of the requested version was found, and none could be downloaded."""

    def __init__(self, reason: str, *, exists: bool = True) -> None:
        """``exists`` is whether there may be one elsewhere, so that this machine is at fault and not who asks."""
        super().__init__(reason)
        self.status = Status.NO_PYTHON if exists else Status.UNRESOLVED


class _NoneInstalled(NoInterpreter):
    """This machine has none."""


def find(request: str) -> Interpreter:
    """Find a Python of version ``request`` (``3.11`` or ``3.11.7``); download one if there is none."""
    found = _find(request)
    if not found.path.exists():  # it was removed since it was found
        forget()
        found = _find(request)
    return found


def forget() -> None:
    """Look for every Python anew."""
    _find.cache_clear()
    find_installed.cache_clear()


@cache
def _find(request: str) -> Interpreter:
    try:
        return find_installed(request)
    except _NoneInstalled:
        return _download(request)


@cache
def find_installed(request: str) -> Interpreter:
    """Find a Python of version ``request`` on this machine."""
    # uv stops at the first executable that does not start, and pyenv's shims of inactive versions are such.
    found = uv.call("python", "find", "--system", "--no-python-downloads", request, quiet=False)
    if found.ended_by:
        raise NoInterpreter(f"no Python {request} could be looked for: {found.reason}")
    candidates = [Path(found.output.strip())] if found.ok and found.output.strip() else []
    for path in candidates + _pyenv(request):
        interpreter = ask(path)
        if interpreter is not None:
            return interpreter
    raise _NoneInstalled(f"no Python {request} is installed")


def ask(path: Path) -> Interpreter | None:
    """What the interpreter at ``path`` says of itself; ``None`` when it does not start."""
    try:
        done = subprocess.run(question(path), capture_output=True, text=True, timeout=ASKING_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return told(path, done.stdout)


def question(path: Path) -> list[str]:
    """The command that asks it, without site packages: what is installed there may run code when a Python starts."""
    return [str(path), "-I", "-S", "-c", _ASK]


def told(path: Path, answer: str) -> Interpreter | None:
    """What it answered; ``None`` where that is no answer."""
    words = answer.split()
    return Interpreter(path=path, implementation=words[0], version=words[1]) if len(words) == 2 else None


def _pyenv(request: str) -> list[Path]:
    """Interpreters of a pyenv installation, newest first, whether or not their shims are active."""
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    found: list[tuple[Version, Path]] = []
    for folder in root.glob("*") if root.is_dir() else ():
        try:
            version = Version(folder.name)
        except InvalidVersion:
            continue
        if (str(version) + ".").startswith(request + "."):
            found.append((version, folder / "bin" / "python"))
    return [path for _, path in sorted(found, reverse=True)]


def _download(request: str) -> Interpreter:
    installed = uv.call("python", "install", request, quiet=False)
    if installed.ok:
        found = uv.call("python", "find", "--system", "--managed-python", request, quiet=False)
        interpreter = ask(Path(found.output.strip())) if found.ok else None
        if interpreter is not None:
            return interpreter
    reason = f"no Python {request} is installed, and uv could not download one: {installed.reason}"
    raise NoInterpreter(reason, exists=_NO_SUCH_VERSION not in installed.errors)
