"""The way data goes through an audit, in the order in which it goes.

::

    matrix ─▶ requests ─▶ releases ─▶ cells ─▶ layouts ─▶ stimuli ─▶ dumps ─▶ comparisons ─▶ run
    (YAML)    (index)     (locks)     (plan)   (probed)   (drawn)    (in-venv)  (exact)      (DuckDB)

Each stage takes frozen values and returns frozen values. A release or a cell that fails becomes a ``Failure`` beside
the others' results. Whatever is in the store already is not done again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from audit import (
    attachments,
    certifying,
    comparing,
    controls,
    drawing,
    dumping,
    locks,
    parting,
    plan,
    probing,
    releases,
    runs,
)
from audit.drawing import Drawn
from audit.dumping import Dumps
from audit.errors import EXIT_COMPLETE, EXIT_INCOMPLETE, IndexUnreachable
from audit.failures import Failure
from audit.locks import Release
from audit.matrix import Matrix
from audit.matrix_file import MatrixFile
from audit.parting import Parted
from audit.plan import Cell, Recording
from audit.records import RunCell, RunRecord
from audit.releases import ReleaseRequest
from audit.tools import Reporter, Tools, at_once


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditResult:
    """What an audit came to; the rest is in the store."""

    run_id: str
    dumped: int
    reused: int
    checked: int
    """Controls, twins and second looks that were run besides."""
    failures: tuple[Failure, ...]
    blind: tuple[str, ...]
    """Environments in which a planted fault was not seen."""

    @property
    def exit_code(self) -> int:
        """Complete, whatever it found; or not, when the machine was at fault somewhere or the audit was blind."""
        incomplete = self.blind or any(each.is_infrastructure for each in self.failures)
        return EXIT_INCOMPLETE if incomplete else EXIT_COMPLETE


def audit(file: MatrixFile, tools: Tools) -> AuditResult:
    """Run the whole of a matrix."""
    store, reporter = tools.store, tools.reporter
    attached = attachments.read(file)
    run = runs.begun(file)
    store.begin_run(run)
    requests = expand(file, reporter)
    resolved, unresolved = resolve(requests, reporter)
    store.put_locks({each.lock.digest: (each.lock.text, each.lock.packages) for each in resolved.values()})
    cells = plan.cells(file.matrix, requests, resolved, attached)

    layouts = probing.probe(cells, file.matrix.baseline, tools)
    stimuli = drawing.draw(file, cells, layouts.known, tools)
    store.put_stimuli(each.stimulus for each in stimuli.drawn.values())

    baselines = controls.baselines(cells, stimuli.drawn)
    recordings = [
        Recording(cell=cell, stimulus=stimuli.drawn[title].stimulus)
        for cell in cells
        if (title := cell.environment.title) in stimuli.drawn
    ]
    checks = [each for title, cell in baselines.items() for each in controls.recordings(cell, stimuli.drawn[title])]
    dumps = dumping.dump([*recordings, *checks], layouts.unbuilt, tools)
    failures = (*unresolved, *layouts.failures, *runs.undrawable(cells, stimuli), *dumps.failures)
    cell_rows = runs.cell_rows(file.matrix, requests, dumps.dumped, failures)

    compare(cell_rows, run, file.matrix.outputs, tools)
    second_look = look_again(cells, cell_rows, run, stimuli.drawn, file.matrix, tools)
    tools.runner.finish()
    held = {
        title: controls.evaluate(cell, stimuli.drawn[title], dumps.dumped, store) for title, cell in baselines.items()
    }
    audited = [found for each in recordings if (found := dumps.dumped.get(each.identifier)) is not None]
    result = AuditResult(
        run_id=run.run_id,
        dumped=sum(not each.reused for each in audited),
        reused=sum(each.reused for each in audited),
        checked=second_look.dumped
        + sum(not dumps.dumped[each.identifier].reused for each in checks if each.identifier in dumps.dumped),
        failures=(*failures, *second_look.failures),
        blind=tuple(title for title, control in held.items() if control.blind),
    )
    store.finish_run(
        run.run_id,
        result.exit_code,
        runs.release_rows(requests, resolved, failures),
        second_look.cells,
        runs.environment_rows(stimuli.drawn, held),
        result.failures,
    )
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


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondLook:
    """What became of the cells when those that stand out were looked at again."""

    cells: Sequence[RunCell]
    dumped: int
    failures: tuple[Failure, ...]


def look_again(
    cells: Sequence[Cell],
    rows: Sequence[RunCell],
    run: RunRecord,
    drawn: Mapping[str, Drawn],
    matrix: Matrix,
    tools: Tools,
) -> SecondLook:
    """Ask lone suspects to reproduce themselves, and twins to explain what was amplified."""
    store = tools.store
    verdicts = store.verdicts(run.reads)
    pairs = comparing.wanted(rows, run.pairing, run.against)
    of = {cell.identifier: cell for cell in cells}
    suspects = [
        (row, controls.again(of[row.identifier], drawn[row.environment])) for row in controls.suspects(rows, verdicts)
    ]
    amplified = certifying.wanted(rows, pairs.keys() - store.certified(run.reads), verdicts)
    speakers = {each.speaker.identifier: each.speaker for each in amplified}
    twins = {
        name: found
        for name, speaker in speakers.items()
        if (found := certifying.twins(of[name], drawn[speaker.environment])) is not None
    }
    dumps = dumping.dump([*(each for _, each in suspects), *twins.values()], {}, tools)
    behaviours = {name: each.record.behaviour for name, each in dumps.dumped.items()}
    explained = []
    if amplified:
        with tools.reporter.stage("certifying", len(amplified)) as done:
            for each in amplified:
                twin = twins.get(each.speaker.identifier)
                twin_behaviour = behaviours.get(twin.identifier) if twin else None
                explained.append(certifying.certify(each, twin_behaviour, run.reads, matrix.growth_window, store))
                done(pairs[each.pair])
    parted = parting.wanted([each for each in explained if not each.holds], rows, of, drawn, store)
    more = look_where_they_part(parted, run, matrix.outputs, tools)
    fresh = [*dumps.dumped.values(), *more.dumped.values()]
    return SecondLook(
        cells=controls.void(rows, suspects, dumps.dumped, drawn, store),
        dumped=sum(not each.reused for each in fresh),
        failures=(*dumps.failures, *more.failures),
    )


def look_where_they_part(parted: Sequence[Parted], run: RunRecord, outputs: Sequence[str], tools: Tools) -> Dumps:
    """Force steps from where unexplained pairs part; what the yardstick calls changed there is changed."""
    recordings = {each.identifier: each for pair in parted for each in pair.recordings}
    dumps = dumping.dump(list(recordings.values()), {}, tools)
    behaviours = {name: each.record.behaviour for name, each in dumps.dumped.items()}
    for each in parted:
        judgement = parting.judge(each, behaviours, outputs, tools.store)
        if judgement is not None:
            tools.store.amend_comparison(*each.pair, run.reads, judgement)
    return dumps
