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
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from analysis.verdicts import Verdict
from audit import run_rows
from audit.asked import attachments
from audit.asked.matrix_file import MatrixFile
from audit.comparisons import comparing, controls, second_look
from audit.comparisons.controls import Control
from audit.dumps import dumping
from audit.dumps.counts import DumpCounts
from audit.dumps.dumping import Dumped
from audit.errors import EXIT_COMPLETE, EXIT_INCOMPLETE
from audit.explanations import explaining, showing, stored_pairs
from audit.explanations.explaining import Explanation
from audit.failures import Failure
from audit.laws import speaking
from audit.planning import assigning, banks, drawing, plan, probing, releasing
from audit.planning.drawing import Stimuli
from audit.planning.plan import Cell
from audit.planning.probing import Layouts
from audit.planning.releasing import ResolvedReleases
from audit.storage.records import RunCell, RunRecord
from audit.storage.store import Store
from audit.tools import Tools

if TYPE_CHECKING:
    from audit.laws.reference_file import ReferenceFile  # it brings SymPy, which takes a second to import


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """All that is to be run, before anything is dumped."""

    file: MatrixFile
    run: RunRecord
    releases: ResolvedReleases
    cells: Sequence[Cell]
    layouts: Layouts
    stimuli: Stimuli


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """What the releases did with it."""

    own: frozenset[str]
    """Names of the cells' recordings, as against those of controls."""
    baselines: Mapping[str, Cell]
    dumped: Mapping[str, Dumped]
    rows: Sequence[RunCell]
    failures: tuple[Failure, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What that comes to, pair by pair and environment by environment; verdicts are in the store."""

    rows: Sequence[RunCell]
    """As recorded, without what turned out not to reproduce itself."""
    dumped: Mapping[str, Dumped]
    """As recorded, and what was dumped for a second look."""
    held: Mapping[str, Control]
    failures: tuple[Failure, ...]


def audit(
    file: MatrixFile, tools: Tools, *, asked: ResolvedReleases | None = None, laws: bool = True, explained: bool = True
) -> AuditResult:
    """Run the whole of a matrix; what changed is held against ``laws`` and ``explained`` unless that is not wanted.

    The releases are those that the matrix stands for today, or those that are ``asked``.
    """
    references = own_laws(file) if laws else ()
    planned = prepare(file, tools, asked)
    recorded = record(planned, tools)
    judged = judge(planned, recorded, tools)
    if laws:
        judged = hold_against_laws(references, planned, judged, tools)
    if not explained:
        tools.runner.finish()
    result = finish(planned, recorded, judged, tools.store)
    if explained:
        lost = explain(planned, tools)
        tools.runner.finish()
        result = amend(result, lost, tools.store)
    return result


def prepare(file: MatrixFile, tools: Tools, asked: ResolvedReleases | None) -> Planned:
    """A matrix to cells, with the stimulus of every environment. Mistakes in files are told before any work."""
    attached = attachments.read(file)
    banks.check_files(file)
    run = run_rows.begun(file)
    tools.store.begin_run(run)
    tools.store.put_run_files(run.run_id, file.path.absolute().parent, attachments.digests(file, attached))
    found = asked or releasing.ask(file, tools.reporter)
    locks = [each.lock for each in found.resolved.values()]
    tools.store.put_locks({lock.digest: (lock.text, lock.packages) for lock in locks})
    cells = plan.cells(file.matrix, found.requests, found.resolved, attached)
    layouts = probing.probe(cells, file.matrix.baseline, tools)
    stimuli = drawing.draw(file, cells, layouts.known, tools)
    tools.store.put_stimuli(each.stimulus for each in stimuli.drawn.values())
    cells = assigning.assign(cells, stimuli.drawn, tools)
    return Planned(file=file, run=run, releases=found, cells=cells, layouts=layouts, stimuli=stimuli)


def record(planned: Planned, tools: Tools) -> Recorded:
    """Cells to dumps, and with them the controls that every audit has."""
    drawn, layouts = planned.stimuli.drawn, planned.layouts
    recordings = plan.recordings(planned.cells, {title: each.stimulus for title, each in drawn.items()})
    baselines = controls.baselines(planned.cells, drawn)
    dumps = dumping.dump([*recordings, *controls.recordings(baselines, drawn)], layouts.unbuilt, tools)
    own = frozenset(each.identifier for each in recordings)
    asked = (*layouts.failures, *planned.stimuli.failures)
    others = (*run_rows.undrawable(planned.cells, planned.stimuli), *dumps.failures)
    # Who failed before another release told is recorded all the same: if there is no dump, it is not for that.
    without = (*planned.releases.unresolved, *(each for each in asked if each.subject not in own), *others)
    return Recorded(
        own=own,
        baselines=baselines,
        dumped=dumps.dumped,
        rows=run_rows.cell_rows(planned.file.matrix, planned.releases.requests, dumps.dumped, without),
        failures=(*planned.releases.unresolved, *asked, *others),
    )


def judge(planned: Planned, recorded: Recorded, tools: Tools) -> Judged:
    """Dumps to verdicts; what stands out is looked at again, and the controls say what would have been seen."""
    matrix, run, drawn = planned.file.matrix, planned.run, planned.stimuli.drawn
    compare(recorded.rows, run, matrix.outputs, tools)
    second = second_look.look(planned.cells, recorded.rows, run, matrix, drawn, tools)
    dumped = {**recorded.dumped, **second.dumped}
    held = controls.evaluate(recorded.baselines, drawn, recorded.rows, dumped, tools.store)
    return Judged(rows=second.cells, dumped=dumped, held=held, failures=second.failures)


def finish(planned: Planned, recorded: Recorded, judged: Judged, store: Store) -> AuditResult:
    """Everything to the rows of a finished run."""
    audited = [found for name, found in recorded.dumped.items() if name in recorded.own]
    checked = [found for name, found in judged.dumped.items() if name not in recorded.own]
    result = AuditResult(
        run_id=planned.run.run_id,
        counts=DumpCounts.of(audited, checked),
        failures=_once_each((*recorded.failures, *judged.failures)),
        blind=tuple(title for title, control in judged.held.items() if control.blind),
        empty=all(row.behaviour is None for row in recorded.rows),
    )
    store.finish_run(
        planned.run.run_id,
        result.exit_code,
        run_rows.release_rows(planned.releases.requests, planned.releases.resolved, recorded.failures),
        judged.rows,
        run_rows.environment_rows(planned.stimuli.drawn, judged.held),
        result.failures,
    )
    return result


def _once_each(failures: Sequence[Failure]) -> tuple[Failure, ...]:
    """What fails in one stage may fail in a later one for the same reason, as a build does: it is told once."""
    return tuple({(each.subject, each.stage): each for each in reversed(failures)}.values())[::-1]


def own_laws(file: MatrixFile) -> tuple[ReferenceFile, ...]:
    """The reference sets that a matrix brings, read before any work, so that mistakes in them are told at once."""
    if not file.matrix.laws:
        return ()
    from audit.laws import reference_file

    return reference_file.of_a_matrix([file.path.parent / name for name in file.matrix.laws])


def explain(planned: Planned, tools: Tools) -> tuple[Failure, ...]:
    """Changed neighbours to the stage in which they part, the constants that differ, and a script that shows it.

    Returned is what the machine left unanswered.
    """
    of = {cell.identifier: cell for cell in planned.cells}
    run, drawn, store = planned.run, planned.stimuli.drawn, tools.store
    found = {}
    for environment, older, newer in stored_pairs.changed_neighbours(store, run.run_id):
        stored = stored_pairs.find(store, environment, older, newer, run_id=run.run_id)
        if stored is not None:
            ends = of[f"{older}/{environment}"], of[f"{newer}/{environment}"]
            found[stored.older_behaviour, stored.newer_behaviour] = ends, stored
    pairs = [
        explaining.pair(store, *ends, (stored.older_behaviour, stored.newer_behaviour), stored.beyond)
        for ends, stored in found.values()
    ]

    def show(explanation: Explanation) -> None:
        ends, stored = found[explanation.record.older_behaviour, explanation.record.newer_behaviour]
        kind = drawn[explanation.record.environment].known.layout.kind
        showing.reproduce(store, ends, stored, kind, explanation.lines)

    return explaining.explain(pairs, tools, show)


def amend(result: AuditResult, lost: Sequence[Failure], store: Store) -> AuditResult:
    """The result with what the machine left unanswered since the run was recorded, which is then not complete."""
    there = {(each.subject, each.stage) for each in result.failures}
    new = {(each.subject, each.stage): each for each in lost if (each.subject, each.stage) not in there}
    if not new:
        return result
    amended = replace(result, failures=(*result.failures, *new.values()))
    store.amend_run(result.run_id, amended.exit_code, list(new.values()))
    return amended


def hold_against_laws(own: Sequence[ReferenceFile], planned: Planned, judged: Judged, tools: Tools) -> Judged:
    """Changed behaviours to laws that broke and constants that broke them, where the environment has laws."""
    if Verdict.CHANGED not in tools.store.comparisons.verdicts(planned.run.reads).values():
        return judged
    shipped = speaking.shipped_for(cell.environment for cell in planned.cells)
    if not shipped and not own:
        return judged
    from audit.laws import diagnosing, reference_file  # they bring SymPy and SciPy: only where there are laws

    references = (*map(reference_file.read, shipped), *own)
    unheld = diagnosing.diagnose(judged.rows, planned.cells, planned.run, planned.stimuli.drawn, references, tools)
    return replace(judged, failures=(*judged.failures, *unheld))


def compare(cells: Sequence[RunCell], run: RunRecord, outputs: Sequence[str], tools: Tools) -> None:
    """Behaviours to verdicts; pairs that were judged in the same way in an earlier run are not judged again."""
    wanted = comparing.wanted(cells, run.pairing, run.against)
    missing = wanted.keys() - tools.store.comparisons.compared(run.reads)
    if missing:
        with tools.reporter.stage("comparing", len(missing)) as done:
            ordered = sorted(missing, key=lambda pair: wanted[pair])
            comparing.compare(tools.store, ordered, outputs, run.reads, lambda pair: done(wanted[pair]))
