"""The way data goes through an audit, in the order in which it goes.

::

    matrix ─▶ requests ─▶ releases ─▶ cells ─▶ layouts ─▶ stimuli ─▶ dumps ─▶ comparisons ─▶ run
    (YAML)    (index)     (locks)     (plan)   (probed)   (drawn)    (in-venv)  (exact)      (DuckDB)

Each stage takes frozen values and returns frozen values. A release or a cell that fails becomes a ``Failure`` beside
the others' results. Whatever is in the store already is not done again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from audit import building, comparing, drawing, dumping, locks, plan, probing, releases, runs
from audit.errors import EXIT_COMPLETE, EXIT_INCOMPLETE, IndexUnreachable
from audit.failures import Failure
from audit.locks import Release
from audit.matrix_file import MatrixFile
from audit.records import RunCell, RunRecord
from audit.releases import ReleaseRequest
from audit.tools import Reporter, Tools, at_once


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditResult:
    """What an audit came to; the rest is in the store."""

    run_id: str
    dumped: int
    reused: int
    failures: tuple[Failure, ...]

    @property
    def exit_code(self) -> int:
        """Complete, whatever it found; or not, when the machine was at fault somewhere."""
        return EXIT_INCOMPLETE if any(each.is_infrastructure for each in self.failures) else EXIT_COMPLETE


def audit(file: MatrixFile, tools: Tools) -> AuditResult:
    """Run the whole of a matrix."""
    store, reporter = tools.store, tools.reporter
    run = runs.begun(file)
    store.begin_run(run)
    requests = expand(file, reporter)
    resolved, unresolved = resolve(requests, reporter)
    store.put_locks({each.lock.digest: (each.lock.text, each.lock.packages) for each in resolved.values()})
    cells = plan.cells(file.matrix, requests, resolved)

    layouts = probing.probe(cells, tools)
    stimuli = drawing.draw(file.matrix, layouts.known)
    store.put_stimuli(stimuli.drawn.values())

    keys = dumping.keys(cells, stimuli.drawn)
    known = dumping.known(keys, store)
    missing = [cell for cell in cells if cell.identifier in keys and cell.identifier not in known]
    if missing:
        tools.runner.prepare()
    wanted = [cell.release for cell in missing if cell.release.id not in layouts.unbuilt]
    unbuilt = {**layouts.unbuilt, **building.build(wanted, reporter)}
    fresh = dumping.dump([cell for cell in missing if cell.release.id not in unbuilt], keys, stimuli.drawn, tools)

    dumped = {**known, **fresh.by_cell}
    failures = (
        *unresolved,
        *layouts.failures,
        *runs.undrawable(cells, stimuli),
        *unbuilt.values(),
        *fresh.failures,
        *dumping.remembered_failures(known),
    )
    cell_rows = runs.cell_rows(file.matrix, requests, dumped, failures)
    compare(cell_rows, run, file.matrix.outputs, tools)
    result = AuditResult(
        run_id=run.run_id,
        dumped=sum(not each.reused for each in dumped.values()),
        reused=sum(each.reused for each in dumped.values()),
        failures=failures,
    )
    release_rows = runs.release_rows(requests, resolved, failures)
    store.finish_run(run.run_id, result.exit_code, release_rows, cell_rows, failures)
    return result


def expand(file: MatrixFile, reporter: Reporter) -> tuple[ReleaseRequest, ...]:
    """Rows of the matrix to releases, with the versions that the index has."""
    with reporter.stage("listing", 1) as done:
        requests = releases.expand(file)
        done(f"{len(requests)} releases")
    return requests


def resolve(requests: Sequence[ReleaseRequest], reporter: Reporter) -> tuple[dict[str, Release], list[Failure]]:
    """Releases to hashed locks."""
    resolved: dict[str, Release] = {}
    failures: list[Failure] = []
    with reporter.stage("resolving", len(requests)) as done:
        for request, outcome in at_once(locks.resolve, requests):
            if isinstance(outcome, Failure):
                failures.append(outcome)
                done(f"{request.id}: {outcome.status}")
            else:
                resolved[request.id] = outcome
                done(request.id)
    if not resolved and any(each.status == "unreachable" for each in failures):
        raise IndexUnreachable.because(failures[0].reason)
    return resolved, failures


def compare(cells: Sequence[RunCell], run: RunRecord, outputs: Sequence[str], tools: Tools) -> None:
    """Behaviours to verdicts; pairs that were judged in the same way in an earlier run are not judged again."""
    wanted = comparing.wanted(cells, run.pairing, run.against)
    missing = wanted.keys() - tools.store.compared(run.reads)
    if missing:
        with tools.reporter.stage("comparing", len(missing)) as done:
            for pair in sorted(missing, key=lambda pair: wanted[pair]):
                comparing.compare(tools.store, pair, outputs)
                done(wanted[pair])
