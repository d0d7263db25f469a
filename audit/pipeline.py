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

from audit import comparing, locks, plan, releases, runs
from audit.dumps import dump
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
    requests = expand(file, tools.reporter)
    resolved, unresolved = resolve(requests, tools.reporter)
    run = runs.begun(file)
    tools.store.begin_run(run)
    tools.store.put_locks({each.lock.digest: (each.lock.text, each.lock.packages) for each in resolved.values()})
    cells = plan.cells(file.matrix, requests, resolved)
    dumps = dump(file.matrix, cells, tools)
    failures = (*unresolved, *dumps.failures)
    cell_rows = runs.cell_rows(file.matrix, requests, dumps, failures)
    compare(cell_rows, run, tools)
    result = AuditResult(
        run_id=run.run_id,
        dumped=sum(not each.reused for each in dumps.by_cell.values()),
        reused=sum(each.reused for each in dumps.by_cell.values()),
        failures=failures,
    )
    release_rows = runs.release_rows(requests, resolved, failures)
    tools.store.finish_run(run.run_id, result.exit_code, release_rows, cell_rows, failures)
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
        raise IndexUnreachable(
            f"the package index cannot be reached: {failures[0].reason}. Check the network and uv's index settings, "
            "then run the same command again"
        )
    return resolved, failures


def compare(cells: Sequence[RunCell], run: RunRecord, tools: Tools) -> None:
    """Behaviours to verdicts; pairs that were judged in an earlier run are not judged again."""
    missing = comparing.wanted(cells, run.pairing, run.against) - tools.store.compared(run.reads)
    if missing:
        with tools.reporter.stage("comparing", len(missing)) as done:
            for pair in sorted(missing):
                comparing.compare(tools.store, pair, run.reads.split(","))
                done(f"{pair[0][:8]} and {pair[1][:8]}")
