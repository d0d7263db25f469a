"""The two ways to call uv where something may be built: it fetches and starts nothing, or it builds, confined."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from audit import folders
from audit.confining import confinement
from audit.confining.confinement import LARGEST_BUILT_FILE_BYTES, LAUNCHER, Bounds
from audit.installing import uv
from audit.installing.uv import Answer

UNCONFINED = "confine: "
"""What the launcher begins with where this system cannot keep uv from starting programs."""

_DENIED = "Permission denied (os error 13)"
_LOADERS = ("lib*/ld-*", "lib/*-linux-*/ld-*", "usr/lib*/ld-*", "usr/lib/*-linux-*/ld-*")
_SECRET = re.compile(
    r"PASSWORD|USERNAME|TOKEN|KEYRING|CREDENTIAL|NETRC|PUBLISH|KEY|SECRET|CACHE_DIR|CONFIG_FILE|PYTHON"
)
_CREDENTIALS = re.compile(r"(?<=://)[^/\s\"]*@")  # up to the last @: a password may hold one, and an apostrophe
_TOOLCHAIN = (
    "CC", "CXX", "CFLAGS", "CXXFLAGS", "LDFLAGS", "CPATH", "LIBRARY_PATH", "PKG_CONFIG_PATH", "MAKEFLAGS",
)  # fmt: skip


def was_denied(answer: Answer) -> bool:
    """Whether uv wanted to start something."""
    return not answer.ok and _DENIED in answer.errors


def fetch(asked: Sequence[str], given: str, settings: Path | None = None, writable: Sequence[Path] = ()) -> Answer:
    """Let uv fetch what it can, without starting anything. ``settings`` is a folder with the settings to use.

    Builds may have written to ``writable`` and to the cache: uv writes nowhere else, wherever a link in there leads.
    """
    execute = [f"execute={path}" for path in (uv.executable(), *_loaders())]
    with tempfile.TemporaryDirectory() as own:
        write = [f"write={path}" for path in (own, _cache(), *writable)]
        command = [sys.executable, "-I", "-S", str(LAUNCHER), *execute, *write, "--"]
        variables = {"UV_CACHE_DIR": str(_cache()), "TMPDIR": own}
        return uv.call(*asked, given=given, before=command, variables=variables, folder=settings)


def _loaders() -> list[str]:
    """The programs that start a dynamically linked one: the system counts them as executed too."""
    return sorted({str(path.resolve()) for pattern in _LOADERS for path in Path("/").glob(pattern)})


def build(asked: Sequence[str], given: str, python: Path | None, writable: Sequence[Path] = ()) -> Answer:
    """Let uv build from what was fetched, confined and without what it needs for fetching."""
    interpreter = confinement.interpreter_folders(python) if python is not None else ()
    with folders.working_folder() as folder:
        bounds = Bounds(
            folder=folder,
            writable=(_cache(), *writable),
            needed=(uv.executable(), *interpreter, *_local_sources(), *_files(asked)),
            cpu_seconds=uv.TIMEOUT_SECONDS * (os.cpu_count() or 1),
            largest_file=LARGEST_BUILT_FILE_BYTES,
        )
        _copy_settings(bounds)
        quietly = "--offline", "--quiet", "--color", "never", "--no-progress"
        return _run([str(uv.executable()), *asked, *quietly], bounds, given)


def _run(command: Sequence[str], bounds: Bounds, given: str) -> Answer:
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors, tempfile.TemporaryFile() as feed:
        feed.write(given.encode())
        feed.seek(0)
        child = confinement.start(command, bounds, environment=_variables(), output=output, errors=errors, given=feed)
        try:
            code = child.process.wait(uv.TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            code = -9
        finally:
            child.end()
        texts = []
        for file in (output, errors):
            file.seek(0)
            texts.append(file.read().decode("utf-8", errors="replace"))
    answered, told = texts
    return Answer(ok=code == 0, output=answered, errors=told + child.notes, exit_code=code, launched=child.launched)


def _cache() -> Path:
    """Apart from that of wheels: what a build writes there must not reach a release that needs none."""
    place = folders.cache() / "uv-source"
    place.mkdir(parents=True, exist_ok=True)
    return place


def _variables() -> dict[str, str]:
    """What uv is told by variables, without credentials, and which compilers to use."""
    own = {name: value for name, value in os.environ.items() if name.startswith("UV_") and not _SECRET.search(name)}
    tools = {name: os.environ[name] for name in _TOOLCHAIN if name in os.environ}
    return {**tools, **{name: redacted(value) for name, value in own.items()}, "UV_CACHE_DIR": str(_cache())}


def redacted(text: str) -> str:
    """A text without the user and password of an address."""
    return _CREDENTIALS.sub("", text)


def _copy_settings(bounds: Bounds) -> None:
    """The user's and the project's settings of uv, without credentials, where a confined uv looks for them."""
    own = bounds.home / ".config" / "uv" / "uv.toml"
    for place, copy in ((uv.user_settings(), own), (uv.project_settings(), bounds.folder)):
        if place is not None and place.is_file():
            target = copy if copy.suffix else copy / place.name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(redacted(place.read_text(encoding="utf-8", errors="replace")), encoding="utf-8")


def _files(asked: Sequence[str]) -> Iterator[Path]:
    """Files that are named in a call: constraints, requirements."""
    yield from (Path(each) for each in asked if each.startswith("/") and Path(each).is_file())


def _local_sources() -> Iterator[Path]:
    """Folders on this machine that uv takes packages from."""
    for name, value in os.environ.items():
        if re.match(r"UV_.*(INDEX|LINKS)", name):
            for part in re.split(r"[\s,]+", value):
                path = Path(part.rpartition("=")[2].removeprefix("file://"))
                if path.is_absolute() and path.exists():
                    yield path
