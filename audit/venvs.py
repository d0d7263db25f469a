"""One virtualenv per release, built from its lock, reused only when its recipe matches and its Python starts."""

from __future__ import annotations

import errno
import json
import shutil
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from audit import folders, interpreters, uv
from audit.failures import Failure, uv_failure
from audit.interpreters import Interpreter
from audit.locks import Release

_RECIPE = "recipe.json"
_FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """Everything a virtualenv is made from."""

    key: str
    lock: str
    python: Path
    python_version: str
    platform: str = sys.platform
    format: int = _FORMAT

    @classmethod
    def of(cls, release: Release) -> Recipe:
        """The recipe of a release."""
        return cls(
            key=release.key,
            lock=release.lock.text,
            python=release.interpreter.path,
            python_version=release.interpreter.version,
        )

    @property
    def folder(self) -> Path:
        """Where it stands, or will."""
        return folders.cache() / "venvs" / self.key[:32]

    @property
    def executable(self) -> Path:
        """Its Python."""
        return self.folder / "bin" / "python"

    def text(self) -> str:
        """As it is saved beside the virtualenv."""
        return json.dumps({**asdict(self), "python": str(self.python)}, indent=1, sort_keys=True)


def finished(recipe: Recipe) -> bool:
    """Whether a virtualenv has been built from exactly this recipe, to its end."""
    try:
        return (recipe.folder / _RECIPE).read_text(encoding="utf-8") == recipe.text()
    except OSError:
        return False


def ready(recipe: Recipe) -> bool:
    """Whether a virtualenv made from exactly this recipe is there and starts."""
    return finished(recipe) and _starts(recipe) is not None


def ensure(recipe: Recipe, subject: str) -> Failure | None:
    """Build the virtualenv unless it is ready. Whoever comes second waits and finds it built."""
    began = time.monotonic()
    with folders.locked(recipe.folder.with_suffix(".lock")):
        if ready(recipe):
            return None
        shutil.rmtree(recipe.folder, ignore_errors=True)  # half-built, or from another recipe
        try:
            failure = _build(recipe, subject, began)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            failure = Failure(subject=subject, stage="build", status="disk-full", reason=str(error))
        if failure is not None:
            shutil.rmtree(recipe.folder, ignore_errors=True)
        return failure


def _build(recipe: Recipe, subject: str, began: float) -> Failure | None:
    lock = recipe.folder / "requirements.txt"
    made = uv.call("venv", "--python", str(recipe.python), "--no-project", str(recipe.folder))
    if made.ok:
        folders.write_whole(lock, recipe.lock.encode())
        made = uv.call("pip", "sync", "--require-hashes", "--python", str(recipe.executable), str(lock))
    if not made.ok:
        return uv_failure(subject, "build", "unbuilt", made, time.monotonic() - began)
    if _starts(recipe) is None:
        return Failure(subject=subject, stage="build", status="unbuilt", reason="its Python does not start")
    folders.write_whole(recipe.folder / _RECIPE, recipe.text().encode())
    return None


def _starts(recipe: Recipe) -> Interpreter | None:
    found = interpreters.ask(recipe.executable)
    return found if found is not None and found.version == recipe.python_version else None
