"""The two ways to call uv where something may be built: it fetches and starts nothing, or it builds, confined."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import IO

from audit import folders
from audit.confining import confinement, weighing
from audit.confining.confinement import LARGEST_BUILT_FILE_BYTES, LAUNCHER, Bounds
from audit.confining.weighing import ANYTHING, MOST_FILES, WEIGH_SECONDS, Weight
from audit.failures import NoSandbox, Status
from audit.installing import source_cache, uv, uv_variables
from audit.installing.uv import Answer
from audit.installing.uv_variables import redacted

_REFUSED = "confine: "
"""What the launcher begins with where it could not keep uv from starting programs."""

LONGEST_BUILD_SECONDS = 1800
"""Half an hour: large ones take some minutes on a fast machine."""

LARGEST_BUILD_BYTES = 2 * LARGEST_BUILT_FILE_BYTES
"""Of all that is written while a build lasts: its own files twice, as it makes them and as they are installed."""

_MOST_UNSEEN = 100
"""Places in the cache of sources that are removed because nobody can look into them, before that is given up."""

LONGEST_ANSWER = 16 * 2**20
"""Bytes. A lock of 500 distributions, each with the hashes of a hundred files, takes a quarter of it."""

LONGEST_ERRORS = 2**20
"""Bytes that are read of what uv says when it fails, with what it quotes of a build."""

_QUOTE = b"\n[stderr]\n"
"""How uv begins what it quotes. What follows a gap may be a quotation."""

_DENIED = "Permission denied (os error 13)"
_LOADERS = ("lib*/ld-*", "lib/*-linux-*/ld-*", "usr/lib*/ld-*", "usr/lib/*-linux-*/ld-*")
_SECRET = re.compile(
    r"PASSWORD|USERNAME|TOKEN|KEYRING|CREDENTIAL|NETRC|PUBLISH|KEY|SECRET|CACHE_DIR|CONFIG_FILE|PYTHON"
)
_TOOLCHAIN = (
    "CC", "CXX", "CFLAGS", "CXXFLAGS", "LDFLAGS", "CPATH", "LIBRARY_PATH", "PKG_CONFIG_PATH", "MAKEFLAGS",
)  # fmt: skip


def was_denied(answer: Answer) -> bool:
    """Whether uv wanted to start something."""
    return not answer.ok and _DENIED in answer.errors


def fetch(asked: Sequence[str], given: str, settings: Path | None = None, writable: Sequence[Path] = ()) -> Answer:
    """Let uv fetch what it can, without starting anything. ``settings`` is a folder with the settings to use.

    Builds may have written to ``writable`` and to the cache: uv writes nowhere else, wherever a link in there leads.
    What a source distribution requires for being built is not fetched here, because it may require any address: a build
    that misses something says so, and that is fetched from the index.
    """
    execute = [f"execute={path}" for path in (uv.executable(), *_loaders())]
    with tempfile.TemporaryDirectory() as own:
        write = [f"write={path}" for path in (own, source_cache.place(), *writable)]
        command = [sys.executable, "-I", "-S", str(LAUNCHER), *execute, *write, "--"]
        variables = {"UV_CACHE_DIR": str(source_cache.place()), "TMPDIR": own, "UV_NO_BUILD_ISOLATION": "1"}
        answer = uv.call(*asked, given=given, before=command, variables=variables, folder=settings)
        return replace(answer, refused=Status.NO_SANDBOX if answer.errors.startswith(_REFUSED) else None)


def _loaders() -> list[str]:
    """The programs that start a dynamically linked one: the system counts them as executed too."""
    return sorted({str(path.resolve()) for pattern in _LOADERS for path in Path("/").glob(pattern)})


def build(asked: Sequence[str], given: str, python: Path | None, writable: Sequence[Path] = ()) -> Answer:
    """Let uv build from what was fetched, confined and without what it needs for fetching."""
    interpreter = confinement.interpreter_folders(python) if python is not None else ()
    with folders.working_folder() as folder:
        bounds = Bounds(
            folder=folder,
            writable=(source_cache.place(), *writable),
            needed=(uv.executable(), *interpreter, *_local_sources(), *_files(asked)),
            cpu_seconds=LONGEST_BUILD_SECONDS * (os.cpu_count() or 1),
            largest_file=LARGEST_BUILT_FILE_BYTES,
        )
        _copy_settings(bounds)
        quietly = "--offline", "--quiet", "--color", "never", "--no-progress"
        return _run([str(uv.executable()), *asked, *quietly], bounds, given)


def _run(command: Sequence[str], bounds: Bounds, given: str) -> Answer:
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors, tempfile.TemporaryFile() as feed:
        feed.write(given.encode())
        feed.seek(0)
        written = _WriteGauge(bounds, (output, errors))
        mark = source_cache.begun()
        child = confinement.start(command, bounds, environment=_variables(), output=output, errors=errors, given=feed)
        try:
            overran, trouble = _await(child.process, written)
        finally:
            child.end()
        if not trouble and child.process.returncode >= 0:
            mark.unlink(missing_ok=True)
        told = f"{_both_ends(errors)}{child.notes}\n{trouble}".rstrip("\n") + "\n"
        answered = os.pread(output.fileno(), LONGEST_ANSWER, 0).decode("utf-8", errors="replace")
        code = child.process.returncode
        ok = code == 0 and not trouble
        refused = None if child.launched else Status.NO_SANDBOX
        if not ok and child.launched and written.lacks_room:
            refused = Status.DISK_FULL
    return Answer(ok=ok, output=answered, errors=told, exit_code=code, refused=refused, offline=True, overran=overran)


class _WriteGauge:
    """What builds write while one of them is watched, there and on standard output and error."""

    def __init__(self, bounds: Bounds, printed: Sequence[IO[bytes]]) -> None:
        self._disks: dict[int, list[Path]] = {}
        for place in (bounds.folder, *bounds.writable):
            self._disks.setdefault(place.stat().st_dev, []).append(place)
        self._printed = printed
        self._before = {disk: _weighed(places) for disk, places in self._disks.items()}

    def too_much(self) -> str:
        """The sentence that says so."""
        most = sum(self._before.values(), start=Weight(size=LARGEST_BUILD_BYTES, files=MOST_FILES))
        try:
            now = weighing.of_folders(*chain(*self._disks.values()), most=most)
        except folders.Unseen:
            return "error: it wrote where nobody can look, and was ended"
        printed = sum(os.fstat(each.fileno()).st_size for each in self._printed)
        if now.size + printed > most.size or now.files > most.files:
            return f"error: it wrote more than {LARGEST_BUILD_BYTES / 2**30:g} GiB or {MOST_FILES} files and was ended"
        answer = os.fstat(self._printed[0].fileno()).st_size
        return f"error: its answer is longer than {LONGEST_ANSWER} bytes" if answer > LONGEST_ANSWER else ""

    @property
    def lacks_room(self) -> bool:
        """Whether a disk has no room left, and would have none without what was written to it."""
        return any(map(self._is_full, self._disks))

    def _is_full(self, disk: int) -> bool:
        places = self._disks[disk]
        left = Weight.left_at(places[0])
        if not left.is_no_room:
            return False
        try:
            written = weighing.of_folders(*places, most=ANYTHING).since(self._before[disk])
        except folders.Unseen:
            return False
        return (left + written).is_no_room


def _weighed(places: Sequence[Path]) -> Weight:
    """What lies there. Where an earlier build left something that nobody can look into, that goes.

    Else nobody would see what later ones write.
    """
    for _ in range(_MOST_UNSEEN):
        try:
            return weighing.of_folders(*places, most=ANYTHING)
        except folders.Unseen as error:
            place = Path(error.filename)
            folders.remove(place.parent if error.errno == errno.ENAMETOOLONG else place)
    raise NoSandbox("what builds write cannot be limited: delete `uv-source` in the cache")


def _await(process: subprocess.Popen[bytes], written: _WriteGauge) -> tuple[str, str]:
    """Wait for the end. Why it has to be brought about, also as uv would say it; nothing where it came by itself."""
    deadline = time.monotonic() + LONGEST_BUILD_SECONDS
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(WEIGH_SECONDS)
        trouble = written.too_much()
        if trouble or process.returncode is not None:
            return uv.ROOM if trouble else "", trouble
        if time.monotonic() > deadline:
            return uv.TIME, f"error: it was not done within {LONGEST_BUILD_SECONDS} s and was ended"


def _both_ends(printed: IO[bytes]) -> str:
    """What was printed: where it is long, the beginning, which is uv's own, and the end, which a build said."""
    size, half = os.fstat(printed.fileno()).st_size, LONGEST_ERRORS // 2
    parts = [os.pread(printed.fileno(), half, 0), os.pread(printed.fileno(), half, max(half, size - half))]
    between = _QUOTE if size > LONGEST_ERRORS else b""
    return between.join(parts).decode("utf-8", errors="replace")


def _variables() -> dict[str, str]:
    """What uv is told by variables, without credentials, and which compilers to use."""
    settings = {name: value for name, value in uv_variables.handed_on().items() if name.startswith("UV_")}
    own = {name: redacted(value) for name, value in settings.items() if not _SECRET.search(name)}
    return {**toolchain(), **own, "UV_CACHE_DIR": str(source_cache.place())}


def toolchain() -> dict[str, str]:
    """Which compilers a build is to use, and how."""
    return {name: os.environ[name] for name in _TOOLCHAIN if name in os.environ}


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
