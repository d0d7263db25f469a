"""Run the dumper inside a release's virtualenv and turn whatever happens into outcomes, cell by cell.

One process serves all cells of a release. When it dies or hangs, the cell it was at is the culprit: it gets another
try in a new process, then it has failed, and the rest go on without it.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from audit import answers, folders, machine, venvs
from audit.answers import CellAnswer, DamagedAnswer
from audit.attachments import Attachment
from audit.digests import digest
from audit.failures import Failure, readable
from audit.stimulus import Stimulus, unpacked
from audit.venvs import Recipe

PROTOCOL = 3
DUMPER = Path(__file__).resolve().parent.parent / "dumper"

TRIES = 2
"""Processes that may die or hang on a cell. A package that crashes does so again; a machine's hiccup does not."""

LONGEST_OUTPUT = 16 * 2**20
"""Bytes that a process may print before what it printed is forgotten: only the end is ever shown."""
LONGEST_TAIL = 2**16

_POLL_SECONDS = 0.02

# What the caller's environment hands on. Everything else stays out: a variable such as NPY_DISABLE_CPU_FEATURES decides
# what a release computes, and no key would know of it. LD_LIBRARY_PATH does so too, and is part of the machine's class.
_HANDED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "TZ", "LD_LIBRARY_PATH")
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
class Plant:
    """A fault to plant: a constant (the first that acts, where none is named) and what to multiply it by."""

    factor: float
    name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CellTask:
    """One thing to be asked about one environment."""

    task: str
    """``probe``, ``bank``, ``dump``, ``anatomy``, ``stages`` or ``registry``."""
    label: str
    """What the answer is found by; one release is asked each label once in a job."""
    environment: str
    kind: str
    """``mjcf``, ``dm_control``, ``adapter``, or the module with which an id is registered."""
    source: str
    arguments: str
    """Keyword arguments of the constructor, as JSON."""
    edits: str
    """What is set otherwise before anything is stepped, as JSON."""
    attachment: Attachment | None
    given: bytes | None
    """An npz; ``None`` where there is nothing to give: for a probe, an anatomy, a registry."""
    stimulus: Stimulus | None = None
    """What a dump has to answer to; its payload is ``given``."""
    plant: Plant | None = None
    apart: bool = False
    """Whether it must run in another process than the rest."""

    @property
    def steps(self) -> int:
        """Steps that it takes, as far as is known beforehand."""
        return self.stimulus.steps if self.stimulus is not None else self.rows

    @property
    def rows(self) -> int:
        """States whose stages are asked for."""
        return len(unpacked(self.given)["states"]) if self.task == "stages" and self.given is not None else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpJob:
    """All that one process of a release is asked, and all that a worker needs to ask it."""

    release: str
    recipe: Recipe
    api: str | None
    """The module through which environments are made, where there is one for all of them."""
    expect: dict[str, str]
    cells: tuple[CellTask, ...]
    timeout: float

    @property
    def waits(self) -> bool:
        """The dumper is another process."""
        return True

    def run(self) -> Iterator[CellOutcome]:
        """Serve the cells in order."""
        return run(self)

    def without(self, outcome: CellOutcome) -> DumpJob:
        """The cells that are not answered yet."""
        return replace(self, cells=tuple(cell for cell in self.cells if cell.label != outcome.label))

    def lost(self, reason: str) -> Iterator[CellOutcome]:
        """No cell that is left has an answer, because of the machine."""
        trouble = _Trouble(status="worker-lost", reason=reason)
        return (_failed(self, cell, trouble) for cell in self.cells)


@dataclass(frozen=True, slots=True, kw_only=True)
class CellOutcome:
    """What became of one cell."""

    release: str
    environment: str
    label: str
    result: CellAnswer | Failure
    seconds: float
    machine: str

    @property
    def identifier(self) -> str:
        """``release/label``."""
        return f"{self.release}/{self.label}"


@cache
def dumper_digest() -> str:
    """Digest of the dumper's own source: a dump made by another dumper is another dump."""
    files = sorted(DUMPER.glob("*.py"))
    return digest(*(part for file in files for part in (file.name, file.read_bytes())))


def run(job: DumpJob) -> Iterator[CellOutcome]:
    """Serve the job's cells in order; yield each outcome as soon as it is there."""
    # Where the orchestrator built it, it has just been started too; another machine builds its own.
    failure = None if venvs.finished(job.recipe) else venvs.ensure(job.recipe, job.release)
    if failure is not None:
        trouble = _Trouble(status=failure.status, reason=failure.reason, tail=failure.stderr_tail)
        yield from (_failed(job, cell, trouble) for cell in job.cells)
        return
    remaining = list(job.cells)
    tries = TRIES
    while remaining:
        end: _End | None = None
        with contextlib.closing(_serve(job, tuple(remaining))) as served:
            for outcome in served:
                if isinstance(outcome, _End):
                    end = outcome
                    break
                remaining.pop(0)
                tries = TRIES
                yield outcome
        if end is None:
            continue
        tries -= 1
        if tries == 0:
            culprits = remaining[:1] if end.imported else list(remaining)
            yield from (_failed(job, cell, end.trouble) for cell in culprits)
            del remaining[: len(culprits)]
            tries = TRIES


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trouble:
    """Why there is no answer to a cell."""

    status: str
    reason: str
    tail: str = ""
    exit_code: int | None = None
    signal: int | None = None
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _End:
    """The process ended, or was ended, before all cells were answered."""

    trouble: _Trouble
    imported: bool


def _serve(job: DumpJob, cells: Sequence[CellTask]) -> Generator[CellOutcome | _End, None, None]:
    folder = folders.working_folder()
    child: subprocess.Popen[bytes] | None = None
    try:
        paths = _write_request(folder, job, cells)
        child = _start(folder, job)
        for cell, path in zip(cells, paths, strict=True):
            began = time.monotonic()
            happened = _await_answer(child, path, folder / "output", began + job.timeout)
            if happened != "answered":
                trouble = _describe(folder, child, happened, time.monotonic() - began)
                yield _End(trouble=trouble, imported=(folder / "imported").exists())
                return
            yield _outcome(job, cell, path)
            path.unlink()
    finally:
        if child is not None:
            _end_group(child)
        shutil.rmtree(folder, ignore_errors=True)


def _write_request(folder: Path, job: DumpJob, cells: Sequence[CellTask]) -> list[Path]:
    asked, paths = [], []
    for index, cell in enumerate(cells):
        given = folder / f"{index}.given.npz"
        if cell.given is not None:
            given.write_bytes(cell.given)
        paths.append(folder / f"{index}.answer.npz")
        asked.append(
            {
                "task": cell.task,
                "environment": cell.source,
                "kind": cell.kind,
                "source": cell.source,
                "arguments": json.loads(cell.arguments),
                "edits": json.loads(cell.edits),
                "files": _unpack(cell, folder / f"{index}.files"),
                "given": str(given),
                "plant": {"name": cell.plant.name, "factor": cell.plant.factor} if cell.plant else None,
                "answer": str(paths[-1]),
            }
        )
    request = {
        "protocol": PROTOCOL,
        "api": job.api,
        "expect": job.expect,
        "imported": str(folder / "imported"),
        "cells": asked,
    }
    (folder / "request.json").write_text(json.dumps(request), encoding="utf-8")
    return paths


def _unpack(cell: CellTask, folder: Path) -> dict[str, str]:
    """Write the files that the environment is made of; say where its source lies."""
    if cell.attachment is None:
        return {}
    for name, data in cell.attachment.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return {cell.source: str(folder / cell.attachment.main)}


def _start(folder: Path, job: DumpJob) -> subprocess.Popen[bytes]:
    command = [str(job.recipe.executable), "-I", str(DUMPER / "__main__.py"), str(folder / "request.json")]
    handed_on = {name: os.environ[name] for name in _HANDED_ON if name in os.environ}
    with (folder / "output").open("ab") as output:
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,  # the dumper's lifeline: it ends when this side is gone
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env={**handed_on, **_ONE_THREAD, **_QUIET},
            start_new_session=True,
        )


def _await_answer(child: subprocess.Popen[bytes], path: Path, output: Path, deadline: float) -> str:
    """Wait for the file: ``answered``, or the process ``died`` or ``hung``."""
    while True:
        if output.stat().st_size > LONGEST_OUTPUT:
            os.truncate(output, 0)  # it is appended to, so this leaves no hole
        ended = child.poll() is not None  # asked before looking: a file written last thing is still seen
        if path.exists():
            return "answered"
        if ended:
            return "died"
        if time.monotonic() > deadline:
            return "hung"
        time.sleep(_POLL_SECONDS)


def _describe(folder: Path, child: subprocess.Popen[bytes], happened: str, seconds: float) -> _Trouble:
    tail = readable((folder / "output").read_bytes()[-LONGEST_TAIL:].decode("utf-8", errors="replace"))
    if happened == "hung":
        return _Trouble(status="timeout", reason=f"no answer within {seconds:.0f} s", tail=tail, seconds=seconds)
    code = child.returncode
    if code < 0:
        reason = f"the process was ended by {signal.Signals(-code).name}"
        return _Trouble(status="crashed", reason=reason, tail=tail, signal=-code, seconds=seconds)
    last = tail.strip().splitlines()[-1] if tail.strip() else "it printed nothing"
    reason = f"the process ended with exit code {code} before it answered: {last}"
    return _Trouble(status="crashed", reason=reason, tail=tail, exit_code=code, seconds=seconds)


def _outcome(job: DumpJob, cell: CellTask, path: Path) -> CellOutcome:
    try:
        answer = answers.read(path, cell.task, cell.source, cell.stimulus, cell.rows)
    except DamagedAnswer as error:
        return _failed(job, cell, _Trouble(status="damaged", reason=str(error)))
    if answer.status == "failed":
        return _failed(job, cell, _Trouble(status="raised", reason=answer.reason, tail=readable(answer.detail)))
    return CellOutcome(
        release=job.release,
        environment=cell.environment,
        label=cell.label,
        result=answer,
        seconds=answer.seconds,
        machine=machine.here().digest,
    )


def _failed(job: DumpJob, cell: CellTask, trouble: _Trouble) -> CellOutcome:
    failure = Failure(
        subject=f"{job.release}/{cell.label}",
        stage=cell.task,
        status=trouble.status,
        reason=trouble.reason,
        exit_code=trouble.exit_code,
        signal=trouble.signal,
        stderr_tail=trouble.tail,
        seconds=trouble.seconds,
    )
    return CellOutcome(
        release=job.release,
        environment=cell.environment,
        label=cell.label,
        result=failure,
        seconds=trouble.seconds,
        machine=machine.here().digest,
    )


def _end_group(child: subprocess.Popen[bytes]) -> None:
    """End the process, if it still runs, and whatever it forked. All that it had to say is in files."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    if child.stdin is not None:
        child.stdin.close()
