"""Ask the dumper of a release and turn whatever happens into outcomes, cell by cell.

One process serves all cells of a release. When it dies or hangs, the cell it was at is the culprit: it gets another
try in a new process, then it has failed, and the rest go on without it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from audit import folders, machine
from audit.cluster.jobs import Needs
from audit.failures import Failure, Status, of_the_machine, readable, said
from audit.installing import venvs
from audit.installing.venvs import Recipe
from audit.processes import answers, dumper_request
from audit.processes.answer_file import DamagedAnswer
from audit.processes.answers import CellAnswer
from audit.processes.dumper_child import DumperChild, Trouble
from audit.processes.dumper_request import IMPORTED, CellTask

TRIES = 2
"""Processes that may die or hang on a cell. A package that crashes does so again; a machine's hiccup does not."""


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
    machine: str = ""
    """The class of machines that it must run on; empty where any will do."""

    @property
    def needs(self) -> Needs:
        """A machine of its class, with its virtualenv."""
        return Needs(machine=self.machine, venv=self.recipe.name)

    def parted(self) -> tuple[DumpJob, dict[str, bytes]]:
        """Itself without what its cells are given: other releases are given the same."""
        cells = tuple(cell.parted() for cell in self.cells)
        whole = zip(cells, self.cells, strict=True)
        return replace(self, cells=cells), {cell.given_as: was.given for cell, was in whole if was.given is not None}

    def joined(self, parts: Mapping[str, bytes]) -> DumpJob:
        """Itself with what its cells are given."""
        return replace(self, cells=tuple(replace(cell, given=parts.get(cell.given_as)) for cell in self.cells))

    def blames_node(self, outcome: CellOutcome) -> bool:
        """Whether the machine failed, and not the package."""
        return isinstance(outcome.result, Failure) and outcome.result.is_infrastructure

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
        trouble = Trouble(status=Status.WORKER_LOST, reason=reason)
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


def run(job: DumpJob) -> Iterator[CellOutcome]:
    """Serve the job's cells in order; yield each outcome as soon as it is there."""
    # Where the orchestrator built it, it has just been started too; another machine builds its own.
    failure = None if venvs.finished(job.recipe) else venvs.ensure(job.recipe, job.release)
    if failure is not None:
        yield from _unbuilt(job, job.cells, failure)
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
        elif end.may_lack_python:
            failure = venvs.ensure(job.recipe, job.release)
            if failure is not None:
                yield from _unbuilt(job, remaining, failure)
                return


def _unbuilt(job: DumpJob, cells: Sequence[CellTask], failure: Failure) -> Iterator[CellOutcome]:
    return (_came_to(job, cell, failure, failure.seconds) for cell in cells)


@dataclass(frozen=True, slots=True, kw_only=True)
class _End:
    """The process ended, or was ended, before all cells were answered."""

    trouble: Trouble
    imported: bool

    @property
    def may_lack_python(self) -> bool:
        """Whether it ended so early that the Python of its virtualenv may be gone since that was built."""
        return not self.imported and self.trouble.status in (Status.CRASHED, Status.NO_PYTHON)


def _serve(job: DumpJob, cells: Sequence[CellTask]) -> Generator[CellOutcome | _End, None, None]:
    """Serve cells in one process, which ends with this; whatever the system refuses meanwhile is an end of it too."""
    with contextlib.ExitStack() as stack:
        imported = False
        child: DumperChild | None = None
        try:
            folder = stack.enter_context(folders.working_folder())
            paths = dumper_request.write(folder, job.api, job.expect, cells)
            child = DumperChild(folder, job.recipe, len(cells) * job.timeout * (os.cpu_count() or 1))
            stack.callback(child.end)
            for cell, path in zip(cells, paths, strict=True):
                ended = child.await_answer(path, job.timeout)
                came = ended or _answer(cell, path)
                imported = os.path.lexists(folder / IMPORTED)
                if isinstance(came, Trouble) and (ended is not None or child.lacks_room):
                    yield _End(trouble=child.judged(came), imported=imported)
                    return
                yield _failed(job, cell, came) if isinstance(came, Trouble) else _came_to(job, cell, came, came.seconds)
                with contextlib.suppress(OSError):  # a folder, or gone: it goes with all the others
                    path.unlink()
        except (OSError, MemoryError) as error:
            yield _End(trouble=_refused(error, began=child is not None), imported=imported)


def _refused(error: Exception, *, began: bool) -> Trouble:
    """What the system refused to this side: the machine's fault, but where the dumper may have spoilt its folder."""
    status = of_the_machine(error) or (Status.CRASHED if began else Status.NO_SANDBOX)
    return Trouble(status=status, reason=readable(f"it could not be served: {said(error)}"))


def _answer(cell: CellTask, path: Path) -> CellAnswer | Trouble:
    try:
        answer = answers.read(path, cell.task, cell.source, cell.stimulus, cell.rows)
    except DamagedAnswer as error:
        return Trouble(status=Status.DAMAGED, reason=str(error))
    if answer.status is Status.RAISED:
        return Trouble(status=answer.status, reason=answer.reason, tail=answer.detail)
    return answer


def _failed(job: DumpJob, cell: CellTask, trouble: Trouble) -> CellOutcome:
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
    return _came_to(job, cell, failure, trouble.seconds)


def _came_to(job: DumpJob, cell: CellTask, result: CellAnswer | Failure, seconds: float) -> CellOutcome:
    return CellOutcome(
        release=job.release,
        environment=cell.environment,
        label=cell.label,
        result=result,
        seconds=seconds,
        machine=machine.here().digest,
    )
