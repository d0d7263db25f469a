"""The way data goes through an audit, in the order in which it goes::

    matrix ─▶ releases ─▶ locks ─▶ cells ─▶ layouts ─▶ stimuli ─▶ dumps ─▶ comparisons ─▶ store
    (YAML)    (requests)  (uv)     (plan)   (probes)   (drawn)    (in-venv)  (exact)      (DuckDB)

Each stage takes frozen values and returns frozen values. A release or a cell that fails becomes a :class:`Failure`
beside the others' results. Whatever is in the store already is not done again.
"""

from __future__ import annotations

import datetime
import platform
import socket
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from audit import __version__, comparing, cpu, folders, plan, releases, stimulus, uv, venvs
from audit.answers import CellAnswer
from audit.dumping import CellOutcome, DumpJob
from audit.errors import EXIT_COMPLETE, EXIT_INCOMPLETE, IndexUnreachable
from audit.failures import Failure
from audit.matrix import Against, EnvironmentRow, Matrix
from audit.matrix_file import MatrixFile
from audit.plan import Cell
from audit.releases import Release, ReleaseRequest
from audit.stimulus import Layout, Stimulus
from audit.store import DumpRecord, NewDump, ProbeRecord, RunCell, RunRecord, RunRelease, Store, StoredArray
from audit.venvs import Recipe

UV_AT_ONCE = 4
"""Calls of uv that run at the same time: they wait for the index more than they compute."""

Value = TypeVar("Value")
Result = TypeVar("Result")


class Runner(Protocol):
    """What runs jobs: Ray's workers, or a test's stand-in."""

    def run(self, jobs: Sequence[DumpJob]) -> Iterator[CellOutcome]:
        """Yield the outcome of every cell of every job."""
        ...


class Reporter(Protocol):
    """Who is told what happens."""

    def stage(self, name: str, total: int) -> AbstractContextManager[Callable[[str], None]]:
        """Begin a stage of ``total`` items; the function given back is told of each as it is done."""
        ...

    def note(self, text: str) -> None:
        """Say something that is not progress."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to run, as opposed to what."""

    timeout: float = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """The world outside: the store, the workers (started only when needed), and who is told."""

    store: Store
    workers: Callable[[], AbstractContextManager[Runner]]
    reporter: Reporter
    options: Options = field(default_factory=Options)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditResult:
    """What an audit came to."""

    run_id: str
    matrix: Matrix
    dumped: int
    reused: int
    failures: tuple[Failure, ...]

    @property
    def exit_code(self) -> int:
        """Complete, whatever it found; or not complete, when the machine was at fault somewhere."""
        return EXIT_INCOMPLETE if any(each.is_infrastructure for each in self.failures) else EXIT_COMPLETE


def audit(file: MatrixFile, tools: Tools) -> AuditResult:
    """Run the whole of a matrix."""
    requests = expand(file, tools.reporter)
    resolved, failures = resolve(requests, tools.reporter)
    run = _run_record(file)
    tools.store.begin_run(run)
    tools.store.put_locks({each.lock.digest: (each.lock.text, each.lock.packages) for each in resolved.values()})
    cells = plan.cells(file.matrix, requests, resolved)
    with _Lazy(tools.workers) as workers:
        dumped, cell_failures = dump(file.matrix, cells, workers, tools)
    failures += cell_failures
    run_cells = _run_cells(file.matrix, requests, cells, dumped, failures)
    compare(run_cells, run, tools)
    result = AuditResult(
        run_id=run.run_id,
        matrix=file.matrix,
        dumped=sum(not each.reused for each in run_cells if each.cell_key),
        reused=sum(each.reused for each in run_cells),
        failures=tuple(failures),
    )
    tools.store.finish_run(
        run.run_id, result.exit_code, _run_releases(requests, resolved, failures), run_cells, failures
    )
    return result


def expand(file: MatrixFile, reporter: Reporter) -> tuple[ReleaseRequest, ...]:
    """Rows of the matrix to releases, with the versions that the index has."""
    with reporter.stage("listing versions", 1) as done:
        requests = releases.expand(file)
        done(f"{len(requests)} releases")
    return requests


def resolve(requests: Sequence[ReleaseRequest], reporter: Reporter) -> tuple[dict[str, Release], list[Failure]]:
    """Releases to hashed locks."""
    resolved: dict[str, Release] = {}
    failures: list[Failure] = []
    with reporter.stage("resolving", len(requests)) as done:
        for request, outcome in _at_once(releases.resolve, requests):
            if isinstance(outcome, Failure):
                failures.append(outcome)
                done(f"{request.id}: {outcome.status}")
            else:
                resolved[request.id] = outcome
                done(request.id)
    if not resolved and any(each.status == "unreachable" for each in failures):
        raise IndexUnreachable(
            f"the package index cannot be reached: {failures[0].reason}. Check the network and uv's index settings, "
            "then run the same command again"
        )
    return resolved, failures


def build(cells: Sequence[Cell], reporter: Reporter) -> dict[str, Failure]:
    """Virtualenvs of the releases that have something to do, those that failed by release."""
    recipes = {cell.release.id: Recipe.of(cell.release) for cell in cells}
    missing = [(name, recipe) for name, recipe in recipes.items() if not venvs.ready(recipe)]
    failures: dict[str, Failure] = {}
    if missing:
        with reporter.stage("building", len(missing)) as done:
            for (name, _), failure in _at_once(lambda each: venvs.ensure(each[1], each[0]), missing):
                if failure is not None:
                    failures[name] = failure
                done(name if failure is None else f"{name}: {failure.status}")
    return failures


@dataclass(frozen=True, slots=True, kw_only=True)
class Dumped:
    """A cell with its dump."""

    key: str
    record: DumpRecord
    reused: bool


def dump(
    matrix: Matrix, cells: Sequence[Cell], workers: Runner, tools: Tools
) -> tuple[dict[str, Dumped], list[Failure]]:
    """Cells to dumps: those in the store as they are, the others run now."""
    unbuilt: dict[str, Failure] = {}
    layouts, failures = probe(cells, workers, tools, unbuilt)
    stimuli, undrawn = draw(matrix, layouts, tools.store)
    failures += [
        Failure(subject=cell.identifier, stage="stimulus", status="undrawable", reason=undrawn[cell.environment.title])
        for cell in cells
        if cell.environment.title in undrawn
    ]
    drawn = [cell for cell in cells if cell.environment.title in stimuli]
    keys = {cell.identifier: cell.key(stimuli[cell.environment.title]) for cell in drawn}
    known = tools.store.dumps(keys.values())
    dumped = {name: Dumped(key=key, record=known[key], reused=True) for name, key in keys.items() if key in known}
    missing = [cell for cell in drawn if cell.identifier not in dumped]
    unbuilt |= build([cell for cell in missing if cell.release.id not in unbuilt], tools.reporter)
    failures += unbuilt.values()
    runnable = [cell for cell in missing if cell.release.id not in unbuilt]
    if runnable:
        jobs = plan.jobs("dump", runnable, stimuli, tools.options.timeout)
        with tools.reporter.stage("dumping", len(runnable)) as done:
            for outcome in workers.run(jobs):
                name = f"{outcome.release}/{outcome.environment}"
                if outcome.answer is None:
                    assert outcome.failure is not None
                    failures.append(outcome.failure)
                    done(f"{name}: {outcome.failure.status}")
                    continue
                record = _keep(tools.store, keys[name], stimuli[outcome.environment], outcome, outcome.answer)
                dumped[name] = Dumped(key=keys[name], record=record, reused=False)
                done(name if record.status == "ok" else f"{name}: {record.status}")
    return dumped, failures


def probe(
    cells: Sequence[Cell], workers: Runner, tools: Tools, unbuilt: dict[str, Failure]
) -> tuple[dict[str, tuple[EnvironmentRow, Layout]], list[Failure]]:
    """Ask, for each environment, the first release that has it what its states and actions look like."""
    candidates: dict[str, list[Cell]] = {}
    for cell in cells:
        candidates.setdefault(cell.environment.title, []).append(cell)
    layouts: dict[str, tuple[EnvironmentRow, Layout]] = {}
    failures: dict[str, list[Failure]] = {}
    while True:
        asked: list[Cell] = []
        for title, waiting in candidates.items():
            while waiting and title not in layouts:
                known = tools.store.probe(waiting[0].probe_key)
                if known is None and waiting[0].release.id not in unbuilt:
                    asked.append(waiting[0])
                    break
                cell = waiting.pop(0)
                if known is not None and known.layout is not None:
                    layouts[title] = (cell.environment, Layout.from_json(known.layout))
                elif known is not None:
                    failures.setdefault(title, []).append(_probe_failure(cell, known))
        if not asked:
            break
        unbuilt |= build(asked, tools.reporter)
        _ask(asked, unbuilt, candidates, failures, workers, tools)
    return layouts, [each for title, found in failures.items() if title not in layouts for each in found]


def draw(
    matrix: Matrix, layouts: Mapping[str, tuple[EnvironmentRow, Layout]], store: Store
) -> tuple[dict[str, Stimulus], dict[str, str]]:
    """Layouts to stimuli, kept in the store; and why where that cannot be done."""
    drawn: dict[str, Stimulus] = {}
    reasons: dict[str, str] = {}
    for title, (environment, layout) in layouts.items():
        try:
            drawn[title] = stimulus.draw(matrix.stimulus, environment, layout)
        except stimulus.Undrawable as error:
            reasons[title] = str(error)
        else:
            store.put_stimulus(drawn[title])
    return drawn, reasons


def compare(cells: Sequence[RunCell], run: RunRecord, tools: Tools) -> None:
    """Behaviours to verdicts; pairs that were judged in an earlier run are not judged again."""
    missing = comparing.wanted(cells, run.pairing, run.against) - tools.store.compared(run.reads)
    if missing:
        with tools.reporter.stage("comparing", len(missing)) as done:
            for pair in sorted(missing):
                comparing.compare(tools.store, pair, run.reads.split(","))
                done(f"{pair[0][:8]} and {pair[1][:8]}")


class _Lazy:
    """Workers that are started at the first job, or never."""

    def __init__(self, start: Callable[[], AbstractContextManager[Runner]]) -> None:
        self._start = start
        self._context: AbstractContextManager[Runner] | None = None
        self._runner: Runner | None = None

    def __enter__(self) -> _Lazy:
        return self

    def __exit__(self, *error: object) -> None:
        if self._context is not None:
            self._context.__exit__(None, None, None)

    def run(self, jobs: Sequence[DumpJob]) -> Iterator[CellOutcome]:
        if self._runner is None:
            self._context = self._start()
            self._runner = self._context.__enter__()
        return self._runner.run(jobs)


def _at_once(function: Callable[[Value], Result], values: Sequence[Value]) -> Iterator[tuple[Value, Result]]:
    """Apply to all, a few at a time; yield each with its result as it is done."""
    with ThreadPoolExecutor(UV_AT_ONCE) as pool:
        waiting = {pool.submit(function, value): value for value in values}
        try:
            for future in as_completed(waiting):
                yield waiting[future], future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _ask(
    asked: Sequence[Cell],
    unbuilt: Mapping[str, Failure],
    candidates: Mapping[str, list[Cell]],
    failures: dict[str, list[Failure]],
    workers: Runner,
    tools: Tools,
) -> None:
    """Run one round of probes. Answers go into the store; a candidate whose process failed is passed over."""
    runnable = [cell for cell in asked if cell.release.id not in unbuilt]
    by_name = {cell.identifier: cell for cell in runnable}
    with tools.reporter.stage("probing", len(runnable)) as done:
        for outcome in workers.run(plan.jobs("probe", runnable, {}, tools.options.timeout)) if runnable else ():
            cell = by_name[f"{outcome.release}/{outcome.environment}"]
            if outcome.answer is None:
                assert outcome.failure is not None
                failures.setdefault(cell.environment.title, []).append(outcome.failure)
                candidates[cell.environment.title].pop(0)
            else:
                layout = outcome.answer.meta.get("layout")
                tools.store.put_probe(
                    cell.probe_key,
                    ProbeRecord(status=outcome.answer.status, reason=outcome.answer.reason, layout=layout),
                )
            done(cell.identifier)


def _probe_failure(cell: Cell, known: ProbeRecord) -> Failure:
    return Failure(subject=cell.identifier, stage="probe", status=known.status, reason=known.reason)


def _keep(store: Store, key: str, given: Stimulus, outcome: CellOutcome, answer: CellAnswer) -> DumpRecord:
    """Arrays to files, then the dump to the database."""
    outputs = {
        name: StoredArray(digest=store.arrays.put(array), dtype=str(array.dtype), shape=array.shape)
        for name, array in answer.arrays.items()
    }
    behaviour = None
    if answer.status == "ok":
        behaviour = folders.digest(
            outcome.cpu, *(part for name in sorted(outputs) for part in (name, outputs[name].digest))
        )
    record = DumpRecord(status=answer.status, reason=answer.reason, behaviour=behaviour)
    store.put_dump(
        NewDump(
            record=record,
            key=key,
            cpu=outcome.cpu,
            stimulus=given.digest,
            outputs=outputs,
            description=answer.meta,
            steps=answer.meta.get("steps"),
            seconds=outcome.seconds,
        )
    )
    return record


def _run_record(file: MatrixFile) -> RunRecord:
    matrix, features = file.matrix, cpu.features()
    against = matrix.pairs.against if isinstance(matrix.pairs, Against) else None
    return RunRecord(
        run_id=uuid.uuid4().hex,
        matrix=matrix.name,
        matrix_text=file.text,
        pairing="against" if against else str(matrix.pairs),
        against=against,
        reads=",".join(matrix.outputs),
        started=datetime.datetime.now(datetime.UTC).replace(tzinfo=None),
        harness_version=__version__,
        python_version=platform.python_version(),
        uv_version=uv.version(),
        host=socket.gethostname(),
        cpu_model=features.model,
        cpu_flags=" ".join(features.flags),
        cpu=features.digest,
    )


def _run_releases(
    requests: Sequence[ReleaseRequest], resolved: Mapping[str, Release], failures: Sequence[Failure]
) -> list[RunRelease]:
    failed = {each.subject: each for each in failures}
    rows = []
    for position, request in enumerate(requests):
        release, failure = resolved.get(request.id), failed.get(request.id)
        rows.append(
            RunRelease(
                release=request.id,
                position=position,
                series=request.series,
                requires=", ".join(request.requires),
                python=release.interpreter.version if release else request.python,
                lock_digest=release.lock.digest if release else None,
                status=failure.status if failure else "ready",
                reason=failure.reason if failure else "",
            )
        )
    return rows


def _run_cells(
    matrix: Matrix,
    requests: Sequence[ReleaseRequest],
    cells: Sequence[Cell],
    dumped: Mapping[str, Dumped],
    failures: Sequence[Failure],
) -> list[RunCell]:
    """Every cell of the matrix, also those that have no dump, with the reason why."""
    failed = {each.subject: each for each in failures}
    rows = []
    for environment in matrix.environments:
        for request in releases.selected(requests, environment.releases):
            name = f"{request.id}/{environment.title}"
            done = dumped.get(name)
            failure = failed.get(name) or failed.get(request.id)
            if done is not None:
                status, reason = done.record.status, done.record.reason
            elif failure is not None:
                status, reason = failure.status, failure.reason
            else:
                status, reason = "unavailable", "no release of the matrix could say what its states look like"
            rows.append(
                RunCell(
                    environment=environment.title,
                    release=request.id,
                    position=list(requests).index(request),
                    cell_key=done.key if done else None,
                    status=status,
                    reason=reason,
                    behaviour=done.record.behaviour if done else None,
                    reused=done.reused if done else False,
                )
            )
    return rows
