"""One virtualenv per release, built from its lock, reused only when its recipe matches and its Python starts."""

from __future__ import annotations

import csv
import ctypes
import json
import os
import stat
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from audit import folders
from audit.confining import confinement
from audit.confining.confinement import Bounds
from audit.failures import Failure, NoSandbox, Status, of_the_machine, printable, readable, said
from audit.installing import interpreters, source_builds, uv

if TYPE_CHECKING:  # a recipe travels to nodes that resolve nothing, and have nothing to read a matrix with
    from audit.installing.locks import Release

_RECIPE, FILES = "recipe.json", "files.json"
_STARTS = 2
"""Times that a Python is started before it counts as one that does not: a busy machine may have been in the way."""
_FORMAT = 2

_LONGEST_PATH = 100
"""Characters that are told of one that a package chose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """Everything a virtualenv is made from. Nothing in it is a place: another machine makes the same from it."""

    key: str
    lock: str
    python_version: str
    source: tuple[str, ...] = ()
    """Packages that may be built here; all others are wheels."""
    platform: str = sys.platform
    format: int = _FORMAT

    @classmethod
    def of(cls, release: Release) -> Recipe:
        """The recipe of a release."""
        return cls(
            key=release.key,
            lock=release.lock.text,
            python_version=release.interpreter.version,
            source=release.request.source,
        )

    @property
    def name(self) -> str:
        """That of its folder, on every machine."""
        return self.key[:32]

    @property
    def folder(self) -> Path:
        """Where it stands, or will."""
        return folders.cache() / "venvs" / self.name

    @property
    def executable(self) -> Path:
        """Its Python."""
        return self.folder / "bin" / "python"

    @property
    def bytecode(self) -> Path:
        """Where what its Python compiles is kept: the one place in it that its own code may write to."""
        return self.folder / "bytecode"

    def text(self) -> str:
        """As it is saved beside the virtualenv."""
        return json.dumps(asdict(self), indent=1, sort_keys=True)


def finished(recipe: Recipe) -> bool:
    """Whether a virtualenv has been built from exactly this recipe, to its end, and has lost nothing since."""
    try:
        same = (recipe.folder / _RECIPE).read_text(encoding="utf-8") == recipe.text()
        return same and _has_all(recipe.folder)
    except (OSError, ValueError):
        return False


def _has_all(folder: Path) -> bool:
    """Whether each file has the size with which it was installed. 20 ms for the 5,300 files of one with MuJoCo."""
    sizes: dict[str, int] = json.loads((folder / FILES).read_bytes())
    return all(os.lstat(f"{folder}/{name}").st_size == size for name, size in sizes.items())


def _sizes(folder: Path) -> dict[str, int]:
    """Of all files that were installed, by their paths in the folder."""
    there = ((os.path.relpath(path, folder), found) for path, found in folders.below(folder))
    sizes = {name: found.st_size for name, found in there if not stat.S_ISDIR(found.st_mode)}
    return {name: size for name, size in sizes.items() if name not in (FILES, _RECIPE)}


def _sync(folder: Path) -> None:
    """Have all that was installed written to the disk: a machine that loses its power may else keep empty files.

    Only its file system, which takes 10 to 340 ms on a busy machine; the others have nothing to do with it.
    """
    library = ctypes.CDLL(None, use_errno=True)
    if not hasattr(library, "syncfs"):  # macOS
        os.sync()
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        if library.syncfs(handle):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(folder))
    finally:
        os.close(handle)


def standing() -> frozenset[str]:
    """Names of the virtualenvs that were built to their end on this machine."""
    return frozenset(path.parent.name for path in (folders.cache() / "venvs").glob(f"*/{_RECIPE}"))


def ready(recipe: Recipe) -> bool:
    """Whether a virtualenv made from exactly this recipe is there and starts."""
    try:
        return finished(recipe) and _starts_now(recipe)
    except (OSError, MemoryError) as error:
        if of_the_machine(error) is None:
            raise
        return False  # who makes sure of it will tell


def ensure(recipe: Recipe, subject: str) -> Failure | None:
    """Build the virtualenv unless it is ready. Whoever comes second waits and finds it built."""
    began = time.monotonic()
    try:
        with folders.locked(recipe.folder.with_suffix(".lock")):
            return None if finished(recipe) and _starts(recipe) else _built_anew(recipe, subject, began)
    except (OSError, MemoryError) as error:
        status = of_the_machine(error)
        if status is None:
            raise
        return Failure(subject=subject, stage="build", status=status, reason=said(error))


def _built_anew(recipe: Recipe, subject: str, began: float) -> Failure | None:
    """Build it in the place of what is half-built, spoilt, or from another recipe; leave it only where it is done."""
    is_built = False
    try:
        folders.remove(recipe.folder)
        failure = _build(recipe, subject, began)
        is_built = failure is None
        return failure
    finally:
        if not is_built:
            folders.remove(recipe.folder)


def _build(recipe: Recipe, subject: str, began: float) -> Failure | None:
    lock = recipe.folder / "requirements.txt"
    try:
        python = interpreters.find(recipe.python_version).path
    except interpreters.NoInterpreter as error:
        return Failure(subject=subject, stage="build", status=Status.NO_PYTHON, reason=str(error))
    made = uv.call("venv", "--python", str(python), "--no-project", str(recipe.folder))
    if not made.ok:  # there is nothing of a package in it yet
        return made.failure(subject, "build", Status.NO_PYTHON, time.monotonic() - began)
    linked = _link(recipe.executable)
    folders.write_whole(lock, recipe.lock.encode())
    installed = _install(recipe, lock)
    if installed.ok and not recipe.source and not _as_recorded(recipe.folder):  # uv's cache may have lost it, too
        installed = _install(recipe, lock, "--no-cache", "--reinstall")
    if not installed.ok:
        return installed.failure(subject, "build", Status.UNBUILT, time.monotonic() - began)
    if _link(recipe.executable) != linked:  # what is around the one that it links to may be read
        reason = "it puts something else in the place of its Python"
        return Failure(subject=subject, stage="build", status=Status.UNBUILT, reason=reason)
    reason = _finish(recipe) if _starts(recipe) else "its Python does not start"
    return Failure(subject=subject, stage="build", status=Status.UNBUILT, reason=reason) if reason else None


def _finish(recipe: Recipe) -> str:
    """Write down what was installed; what of it is in the way of that, if something is."""
    try:
        recipe.bytecode.mkdir()  # where something is there already, it may be a link that leads out
        folders.write_whole(recipe.folder / FILES, json.dumps(_sizes(recipe.folder)).encode())
        _sync(recipe.folder)
        folders.write_whole(recipe.folder / _RECIPE, recipe.text().encode())
    except folders.Unseen as error:
        path = printable(os.path.relpath(error.filename, recipe.folder))  # a build may have named it
        return f"it installs what nobody can look into: {path[:_LONGEST_PATH]}"
    except (FileExistsError, IsADirectoryError, PermissionError) as error:
        return f"it installs something where the audit keeps its own: {Path(error.filename2 or error.filename).name}"
    return ""


def _install(recipe: Recipe, lock: Path, *options: str) -> uv.Answer:
    return source_builds.install(
        "pip", "sync", "--require-hashes", "--no-compile-bytecode", "--python", str(recipe.executable), str(lock),
        *options,
        source=recipe.source, python=recipe.executable, writable=[recipe.folder], key=recipe.key,
    )  # fmt: skip


def _as_recorded(folder: Path) -> bool:
    """Whether the files of wheels have the sizes that these say; one that says nonsense is installed once more for it.

    uv links files from its cache, and does not have them written to the disk.
    """
    try:
        return all(_holds(record) for record in folder.glob("lib/*/site-packages/*.dist-info/RECORD"))
    except (OSError, ValueError, csv.Error):
        return False


def _holds(record: Path) -> bool:
    site = record.parent.parent
    with record.open(encoding="utf-8", newline="") as file:
        named = (row for row in csv.reader(file) if len(row) == 3 and row[2])  # one by one: there may be any number
        return all(os.lstat(f"{site}/{name}").st_size == int(size) for name, _, size in named)


def _link(path: Path) -> Path | None:
    """Where a link leads, as it is written there; nothing where it is none."""
    return path.readlink() if path.is_symlink() else None


def _starts(recipe: Recipe) -> bool:
    return any(_starts_now(recipe) for _ in range(_STARTS))


def _starts_now(recipe: Recipe) -> bool:
    """Start its Python, confined: whatever was built into it has had the whole folder to itself.

    Raises:
        NoSandbox: where nothing can be started here.
    """
    needed = (recipe.folder, *confinement.interpreter_folders(recipe.executable))
    try:
        with folders.working_folder() as folder, tempfile.TemporaryFile() as output:
            bounds = Bounds(folder=folder, needed=needed, cpu_seconds=interpreters.ASKING_SECONDS)
            child = confinement.start(interpreters.question(recipe.executable), bounds, environment={}, output=output)
            try:
                child.process.wait(interpreters.ASKING_SECONDS)
            finally:
                child.end()
            output.seek(0)
            said = output.read(1000).decode("utf-8", errors="replace")
    except subprocess.TimeoutExpired:
        return False
    except OSError as error:
        if isinstance(error, NoSandbox) or of_the_machine(error) is Status.DISK_FULL:
            raise
        raise NoSandbox(f"a confined process cannot be started here: {error}") from error
    if not child.launched:
        raise NoSandbox(f"the launcher ended before the command began: {readable(said).strip()}")
    found = interpreters.told(recipe.executable, said)
    return found is not None and found.version == recipe.python_version
