"""The way data goes through an audit, in the order in which it goes.

::

    matrix ─▶ requests ─▶ releases ─▶ cells ─▶ layouts ─▶ stimuli ─▶ dumps ─▶ comparisons ─▶ second look ─▶ laws
    (YAML)    (index)     (locks)     (plan)   (probed)   (banks)    (in-venv)  (yardstick)   (controls)    (algebra)

         ─▶ run ─▶ explanations
         (DuckDB)  (stages, constants)

Each stage takes frozen values and returns frozen values. A release or a cell that fails becomes a ``Failure`` beside
the others' results. Whatever is in the store already is not done again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from audit.asked import attachments, plan, releases
from audit.asked.matrix_file import MatrixFile
from audit.asked.plan import Cell
from audit.asked.releases import ReleaseRequest
from audit.cluster import assigning
from audit.comparisons import comparing, controls, second_look
from audit.dumps import dumping
from audit.dumps.counts import DumpCounts
from audit.errors import EXIT_COMPLETE, EXIT_INCOMPLETE, IndexUnreachable
from audit.explanations import explaining, showing, telling
from audit.failures import Failure
from audit.installing import locks
from audit.installing.locks import Release
from audit.stimuli import bank, drawing, probing
from audit.stimuli.drawing import Drawn
from audit.storage import runs
from audit.storage.records import RunCell, RunRecord
from audit.tools import Reporter, Tools, at_once

if TYPE_CHECKING:
    from audit.laws.reference_file import ReferenceFile  # it brings SymPy, which takes a second to import


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The releases of an audit: what was asked for, and what that is tonight."""

    requests: tuple[ReleaseRequest, ...]
    resolved: Mapping[str, Release]
    unresolved: tuple[Failure, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditResult:
    """What an audit came to; the rest is in the store."""

    run_id: str
    counts: DumpCounts
    failures: tuple[Failure, ...]
    blind: tuple[str, ...]
    """Environments in which a planted fault was not seen."""
    empty: bool
    """Whether not a single cell could be dumped."""

    @property
    def exit_code(self) -> int:
        """Complete, whatever it found; or not, when the machine was at fault, or nothing could have been seen."""
        incomplete = self.blind or self.empty or any(each.is_infrastructure for each in self.failures)
        return EXIT_INCOMPLETE if incomplete else EXIT_COMPLETE


def audit(
    file: MatrixFile, tools: Tools, *, asked: Asked | None = None, laws: bool = True, explained: bool = True
) -> AuditResult:
    """Run the whole of a matrix; what changed is held against ``laws`` and ``explained`` unless that is not wanted.

    The releases are those that the matrix stands for today, or those that are ``asked``.
    """
    store, reporter = tools.store, tools.reporter
    attached = attachments.read(file)
    bank.check_files(file)
    references = own_laws(file) if laws else ()
    run = runs.begun(file)
    store.begin_run(run)
    asked = asked or ask(file, reporter)
    requests, resolved, unresolved = asked.requests, asked.resolved, asked.unresolved
    store.put_locks({each.lock.digest: (each.lock.text, each.lock.packages) for each in resolved.values()})
    cells = plan.cells(file.matrix, requests, resolved, attached)

    layouts = probing.probe(cells, file.matrix.baseline, tools)
    stimuli = drawing.draw(file, cells, layouts.known, tools)
    store.put_stimuli(each.stimulus for each in stimuli.drawn.values())

    cells = assigning.assign(cells, stimuli.drawn, tools)
    recordings = plan.recordings(cells, {title: each.stimulus for title, each in stimuli.drawn.items()})
    baselines = controls.baselines(cells, stimuli.drawn)
    planted = controls.recordings(baselines, stimuli.drawn)
    dumps = dumping.dump([*recordings, *planted], layouts.unbuilt, tools)
    failures = (*unresolved, *layouts.failures, *runs.undrawable(cells, stimuli), *dumps.failures)
    cell_rows = runs.cell_rows(file.matrix, requests, dumps.dumped, failures)

    compare(cell_rows, run, file.matrix.outputs, tools)
    second = second_look.look(cells, cell_rows, run, file.matrix, stimuli.drawn, tools)
    unheld = hold_against_laws(references, cells, second.cells, run, stimuli.drawn, tools) if laws else ()
    if not explained:
        tools.runner.finish()
    held = controls.evaluate(baselines, stimuli.drawn, cell_rows, {**dumps.dumped, **second.dumped}, store)
    own = {each.identifier for each in recordings}
    audited = [found for name, found in dumps.dumped.items() if name in own]
    checked = [found for name, found in {**dumps.dumped, **second.dumped}.items() if name not in own]
    result = AuditResult(
        run_id=run.run_id,
        counts=DumpCounts.of(audited, checked),
        failures=(*failures, *second.failures, *unheld),
        blind=tuple(title for title, control in held.items() if control.blind),
        empty=all(row.behaviour is None for row in cell_rows),
    )
    store.finish_run(
        run.run_id,
        result.exit_code,
        runs.release_rows(requests, resolved, failures),
        second.cells,
        runs.environment_rows(stimuli.drawn, held),
        result.failures,
    )
    if explained:
        explain(run, cells, stimuli.drawn, tools)
        tools.runner.finish()
    return result


def ask(file: MatrixFile, reporter: Reporter) -> Asked:
    """The matrix as it stands today."""
    requests = expand(file, reporter)
    resolved, unresolved = resolve(requests, reporter)
    return Asked(requests=requests, resolved=resolved, unresolved=tuple(unresolved))


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


def own_laws(file: MatrixFile) -> tuple[ReferenceFile, ...]:
    """The reference sets that a matrix brings, read before any work, so that mistakes in them are told at once."""
    if not file.matrix.laws:
        return ()
    from audit.laws import reference_file

    return reference_file.of_a_matrix([file.path.parent / name for name in file.matrix.laws])


def explain(run: RunRecord, cells: Sequence[Cell], drawn: Mapping[str, Drawn], tools: Tools) -> None:
    """Changed neighbours to the stage in which they part, the constants that differ, and a script that shows it."""
    of = {cell.identifier: cell for cell in cells}
    store = tools.store
    found = {}
    for environment, older, newer in telling.changed_neighbours(store, run.run_id):
        stored = telling.stored_pair(store, environment, older, newer, run_id=run.run_id)
        if stored is not None:
            ends = of[f"{older}/{environment}"], of[f"{newer}/{environment}"]
            found[stored.older_behaviour, stored.newer_behaviour] = ends, stored
    pairs = [
        explaining.pair(store, *ends, (stored.older_behaviour, stored.newer_behaviour), stored.beyond)
        for ends, stored in found.values()
    ]
    for explanation in explaining.explain(pairs, tools):
        ends, stored = found[explanation.record.older_behaviour, explanation.record.newer_behaviour]
        kind = drawn[explanation.record.environment].known.layout.kind
        showing.reproduce(store, ends, stored, kind, explanation.lines)


def hold_against_laws(
    own: Sequence[ReferenceFile],
    cells: Sequence[Cell],
    rows: Sequence[RunCell],
    run: RunRecord,
    drawn: Mapping[str, Drawn],
    tools: Tools,
) -> tuple[Failure, ...]:
    """Changed behaviours to laws that broke and constants that broke them, where the environment has laws."""
    if "changed" not in tools.store.comparisons.verdicts(run.reads).values():
        return ()
    from audit.laws import diagnosing, reference_file  # they bring SymPy and SciPy: only where something changed

    return diagnosing.diagnose(rows, cells, run, drawn, (*reference_file.shipped(), *own), tools)


def compare(cells: Sequence[RunCell], run: RunRecord, outputs: Sequence[str], tools: Tools) -> None:
    """Behaviours to verdicts; pairs that were judged in the same way in an earlier run are not judged again."""
    wanted = comparing.wanted(cells, run.pairing, run.against)
    missing = wanted.keys() - tools.store.comparisons.compared(run.reads)
    if missing:
        with tools.reporter.stage("comparing", len(missing)) as done:
            ordered = sorted(missing, key=lambda pair: wanted[pair])
            comparing.compare(tools.store, ordered, outputs, run.reads, lambda pair: done(wanted[pair]))
