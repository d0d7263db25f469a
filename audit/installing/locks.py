"""Releases resolved to hashed locks. The lock and the Python are what is installed, whatever it is called."""

from __future__ import annotations

import contextlib
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from audit import folders
from audit.asked.releases import ReleaseRequest
from audit.digests import digest
from audit.failures import Failure, Status, of_the_machine, said
from audit.installing import index, interpreters, source_builds
from audit.installing.interpreters import Interpreter
from audit.installing.uv import Answer

_BARE = (
    "--no-header", "--no-annotate", "--no-emit-index-url", "--no-emit-find-links", "--no-emit-index-annotation",
    "--no-emit-build-options",
)  # fmt: skip
"""Nothing in a lock but what is installed, whatever the user's settings say: it is stored, shown and sent to nodes, and
an index's address may hold a password."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lock:
    """Every distribution at one version, with the hashes of its files."""

    text: str
    packages: tuple[tuple[str, str], ...]
    digest: str

    @classmethod
    def from_text(cls, text: str) -> Lock:
        """Read a requirements file that uv wrote."""
        found = index.PINNED.finditer(text)
        packages = tuple(sorted((canonicalize_name(match["name"]), match["version"]) for match in found))
        return cls(text=text, packages=packages, digest=digest(text))

    def version_of(self, name: str) -> str | None:
        """The locked version of a distribution."""
        return dict(self.packages).get(canonicalize_name(name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A request that has been resolved."""

    request: ReleaseRequest
    interpreter: Interpreter
    lock: Lock

    @property
    def id(self) -> str:
        """The id in the matrix."""
        return self.request.id

    @property
    def key(self) -> str:
        """Digest of the lock, the Python and what may be built: what has the same key shares a virtualenv."""
        python = self.interpreter.implementation, self.interpreter.version
        return digest(self.lock.digest, *python, *self.request.source)

    @property
    def required(self) -> dict[str, str]:
        """The distributions that the request names, with their locked versions."""
        names = [canonicalize_name(Requirement(text).name) for text in self.request.requires]
        return {name: version for name in names if (version := self.lock.version_of(name)) is not None}


def resolve(request: ReleaseRequest) -> Release | Failure:
    """Resolve to a hashed lock. A lock with a day is remembered: that day's index does not change."""
    known = remembered(request)
    if known is not None:
        return known
    began = time.monotonic()
    try:
        interpreter = interpreters.find(request.python)
        answer = _compiled(request, interpreter)
    except interpreters.NoInterpreter as error:
        return Failure(subject=request.id, stage="resolve", status=error.status, reason=str(error))
    except (OSError, MemoryError) as error:
        status = of_the_machine(error)
        if status is None:
            raise
        return Failure(subject=request.id, stage="resolve", status=status, reason=said(error))
    if not answer.ok:
        return answer.failure(request.id, "resolve", Status.UNRESOLVED, time.monotonic() - began)
    memory = _memory(request, interpreter)
    if memory is not None:
        with contextlib.suppress(OSError):  # then the index is asked again the next time
            folders.write_whole(memory, answer.output.encode())
    return Release(request=request, interpreter=interpreter, lock=Lock.from_text(answer.output))


def _compiled(request: ReleaseRequest, interpreter: Interpreter) -> Answer:
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as pins:
        pins.write("\n".join(request.pins) + "\n")
        pins.flush()
        return source_builds.resolve(
            "pip", "compile", "-", "--generate-hashes", *_BARE, "--python", str(interpreter.path), "--constraints",
            pins.name, *index.until(request.exclude_newer),
            source=request.source, python=interpreter.path,
            given="\n".join(request.requires) + "\n",
        )  # fmt: skip


def remembered(request: ReleaseRequest) -> Release | None:
    """The release if its lock is known without asking the index and its Python without fetching one."""
    try:
        interpreter = interpreters.find_installed(request.python)
    except interpreters.NoInterpreter:
        return None
    memory = _memory(request, interpreter)
    if memory is None or not memory.is_file():
        return None
    return Release(request=request, interpreter=interpreter, lock=Lock.from_text(memory.read_text(encoding="utf-8")))


def _memory(request: ReleaseRequest, interpreter: Interpreter) -> Path | None:
    asked = (digest(*sorted(request.requires)), digest(*sorted(request.pins)), interpreter.version, *request.source)
    return index.remembered_at("locks", request.exclude_newer, *asked)
