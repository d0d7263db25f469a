"""What a node of a cluster needs: the harness's code is sent, what that imports is installed there where it is missing.

A node has Python, Ray and pip. This file is imported there before anything else is known to be, so that it imports the
standard library alone.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOMS = ("audit", "analysis", "confine", "dumper")
"""Packages that a worker imports or hands to a virtualenv's Python."""

IMPORTED = ("numpy", "packaging", "pydantic")
"""Distributions that a worker imports, beside Ray, under the names that they are imported by."""
CALLED = "uv"

_INSTALL_SECONDS = 600.0
"""For pip. Nobody waits for that long: an audit goes on without the node, and uses it as soon as a slow index has given
all that it needs."""
_ERROR_LETTERS = 300


class NotOutfitted(OSError):
    """Something is missing on this node and could not be installed."""


@contextmanager
def packed() -> Iterator[Path]:
    """A folder with the harness's own packages and nothing else, to be sent to every node."""
    root = Path(__file__).resolve().parent.parent.parent
    with tempfile.TemporaryDirectory(prefix="release-audit-code-") as folder:
        for room in ROOMS:
            ignored = shutil.ignore_patterns("__pycache__", "matrices", "*.svg")
            shutil.copytree(root / room, Path(folder) / room, ignore=ignored)
        yield Path(folder)


def pins() -> tuple[str, ...]:
    """What a worker needs, at the versions that are installed here."""
    return tuple(f"{name}=={importlib.metadata.version(name)}" for name in (*IMPORTED, CALLED))


def outfit(wanted: Sequence[str], cache: Path) -> None:
    """Make what the harness imports importable in this process; install it into the cache where it is missing."""
    if not wanted or not missing():
        return
    folder = cache / "harness" / hashlib.sha256(" ".join([sys.version, *wanted]).encode()).hexdigest()[:16]
    if not folder.is_dir():
        _install(wanted, folder)
    sys.path.append(str(folder))
    os.environ["PATH"] = os.pathsep.join([str(folder / "bin"), os.environ.get("PATH", "")])
    importlib.invalidate_caches()
    if missing():
        raise NotOutfitted(f"{', '.join(missing())} cannot be found after being installed into {folder}")


def missing() -> list[str]:
    """Of what a worker needs, what is not there."""
    lacking = [name for name in IMPORTED if importlib.util.find_spec(name) is None]
    beside = Path(sys.executable).parent / CALLED
    return lacking if beside.is_file() or shutil.which(CALLED) else [*lacking, CALLED]


def _install(wanted: Sequence[str], folder: Path) -> None:
    """Into a folder of its own, then renamed: a node's workers come at the same time, and one of them is first."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target"]
    try:
        done = subprocess.run(
            [*command, str(temporary), *wanted], capture_output=True, text=True, timeout=_INSTALL_SECONDS, check=False
        )
        if done.returncode:
            told = " ".join(done.stderr.split())[-_ERROR_LETTERS:]
            raise NotOutfitted(f"{', '.join(missing())} could not be installed: {told}")
        temporary.rename(folder)
    except subprocess.TimeoutExpired:  # which is no OSError, so that nobody would be told of it
        if folder.is_dir():  # another worker was first
            return
        told = f"pip was not done within {_INSTALL_SECONDS:.0f} s"
        raise NotOutfitted(f"{', '.join(missing())} could not be installed: {told}") from None
    except OSError:
        if not folder.is_dir():  # another worker was first
            raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
