"""One virtualenv per release, built from its lock, reused only when its recipe matches and its Python starts."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from audit import folders
from audit.confining import confinement
from audit.confining.confinement import Bounds, NoSandbox
from audit.failures import Failure, readable
from audit.installing import interpreters, source_builds, uv

if TYPE_CHECKING:  # a recipe travels to nodes that resolve nothing, and have nothing to read a matrix with
    from audit.installing.locks import Release

_RECIPE = "recipe.json"
_FORMAT = 2


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
    """Whether a virtualenv has been built from exactly this recipe, to its end."""
    try:
        return (recipe.folder / _RECIPE).read_text(encoding="utf-8") == recipe.text()
    except OSError:
        return False


def standing() -> frozenset[str]:
    """Names of the virtualenvs that were built to their end on this machine."""
    return frozenset(path.parent.name for path in (folders.cache() / "venvs").glob(f"*/{_RECIPE}"))


def ready(recipe: Recipe) -> bool:
    """Whether a virtualenv made from exactly this recipe is there and starts."""
    with contextlib.suppress(NoSandbox):
        return finished(recipe) and _starts(recipe)
    return False


def ensure(recipe: Recipe, subject: str) -> Failure | None:
    """Build the virtualenv unless it is ready. Whoever comes second waits and finds it built."""
    began = time.monotonic()
    with folders.locked(recipe.folder.with_suffix(".lock")):
        try:
            if finished(recipe) and _starts(recipe):
                return None
            folders.remove(recipe.folder)  # half-built, or from another recipe
            failure = _build(recipe, subject, began)
        except NoSandbox as error:  # what was built may be as good as ever
            return Failure(subject=subject, stage="build", status="no-sandbox", reason=str(error))
        except OSError as error:
            if error.errno not in folders.FULL:
                raise
            failure = Failure(subject=subject, stage="build", status="disk-full", reason=str(error))
        if failure is not None:
            folders.remove(recipe.folder)
        return failure


def _build(recipe: Recipe, subject: str, began: float) -> Failure | None:
    lock = recipe.folder / "requirements.txt"
    try:
        python = interpreters.find(recipe.python_version).path
    except interpreters.NoInterpreter as error:
        return Failure(subject=subject, stage="build", status="no-python", reason=str(error))
    made = uv.call("venv", "--python", str(python), "--no-project", str(recipe.folder))
    if not made.ok:  # there is nothing of a package in it yet
        return made.failure(subject, "build", "no-python", time.monotonic() - began)
    linked = _link(recipe.executable)
    folders.write_whole(lock, recipe.lock.encode())
    installed = source_builds.install(
        "pip", "sync", "--require-hashes", "--python", str(recipe.executable), str(lock),
        source=recipe.source, python=recipe.executable, writable=[recipe.folder],
    )  # fmt: skip
    if not installed.ok:
        return installed.failure(subject, "build", "unbuilt", time.monotonic() - began)
    if _link(recipe.executable) != linked:  # what is around the one that it links to may be read
        reason = "it puts something else in the place of its Python"
        return Failure(subject=subject, stage="build", status="unbuilt", reason=reason)
    if not _starts(recipe):
        return Failure(subject=subject, stage="build", status="unbuilt", reason="its Python does not start")
    try:
        recipe.bytecode.mkdir()  # where something is there already, it may be a link that leads out
        folders.write_whole(recipe.folder / _RECIPE, recipe.text().encode())
    except (FileExistsError, IsADirectoryError) as error:
        reason = f"it installs something where the audit keeps its own: {Path(error.filename2 or error.filename).name}"
        return Failure(subject=subject, stage="build", status="unbuilt", reason=reason)
    return None


def _link(path: Path) -> Path | None:
    """Where a link leads, as it is written there; nothing where it is none."""
    return path.readlink() if path.is_symlink() else None


def _starts(recipe: Recipe) -> bool:
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
        if error.errno in folders.FULL:
            raise
        raise NoSandbox(f"a confined process cannot be started here: {error}") from error
    if not child.launched:
        raise NoSandbox(f"the launcher ended before the command began: {readable(said).strip()}")
    found = interpreters.told(recipe.executable, said)
    return found is not None and found.version == recipe.python_version
