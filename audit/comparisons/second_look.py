"""The second look: at what stands out after everything has been compared.

What was amplified is held against twins; what they do not explain is forced from where trajectories part; whoever
stands alone with a change, or is a baseline and stands alone, is asked to reproduce itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from analysis.growth import UNEXPLAINED
from audit.asked.matrix import Matrix
from audit.comparisons import certifying, comparing, controls, parting
from audit.comparisons.certifying import Amplified, Explained
from audit.comparisons.parting import PartedPair
from audit.dumps import dumping
from audit.dumps.dumping import Dumped, Dumps
from audit.failures import Failure
from audit.planning.drawing import DrawnEnvironment
from audit.planning.plan import Cell, Recording
from audit.storage.records import RunCell, RunRecord
from audit.tools import Tools


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondLook:
    """What it came to."""

    cells: Sequence[RunCell]
    """The cells, without the behaviours of those that do not reproduce themselves."""
    dumped: Mapping[str, Dumped]
    failures: tuple[Failure, ...]


def look(
    cells: Sequence[Cell],
    rows: Sequence[RunCell],
    run: RunRecord,
    matrix: Matrix,
    drawn: Mapping[str, DrawnEnvironment],
    tools: Tools,
) -> SecondLook:
    """Look again, with as few processes as what was found needs."""
    store = tools.store
    of = {cell.identifier: cell for cell in cells}
    pairs = comparing.wanted(rows, run.pairing, run.against)
    verdicts = store.comparisons.verdicts(run.reads)
    amplified = certifying.wanted(rows, pairs.keys() - store.comparisons.certified(run.reads), verdicts)
    twins = _twins(amplified, of, drawn)
    first = dumping.dump([*_again(rows, verdicts, of, drawn).values(), *twins.values()], {}, tools)
    explained = _certified(amplified, twins, first, pairs, run, matrix, tools)
    parted = parting.wanted([each for each in explained if not each.holds], rows, of, drawn, store)
    second = _part(parted, run, matrix.outputs, tools)
    unexplained = dict.fromkeys(store.comparisons.unexplained(run.reads), UNEXPLAINED)
    suspects = _again(rows, {**store.comparisons.verdicts(run.reads), **unexplained}, of, drawn)
    third = dumping.dump(_not_failed(suspects.values(), first.failures), {}, tools)
    dumped = {**third.dumped, **second.dumped, **first.dumped}
    return SecondLook(
        cells=controls.void(rows, suspects, dumped, drawn, store),
        dumped=dumped,
        failures=(*first.failures, *second.failures, *third.failures),
    )


def _not_failed(recordings: Iterable[Recording], failures: Sequence[Failure]) -> list[Recording]:
    """Without those that failed in this very look, for themselves or with their release."""
    failed = {each.subject for each in failures}
    return [each for each in recordings if not {each.identifier, each.cell.release.id} & failed]


def _again(
    rows: Sequence[RunCell],
    verdicts: Mapping[comparing.Pair, str],
    of: Mapping[str, Cell],
    drawn: Mapping[str, DrawnEnvironment],
) -> dict[str, Recording]:
    suspects = controls.suspects(rows, verdicts, {title: each.baseline for title, each in drawn.items()})
    return {row.identifier: controls.again(of[row.identifier], drawn[row.environment]) for row in suspects}


def _twins(
    amplified: Sequence[Amplified], of: Mapping[str, Cell], drawn: Mapping[str, DrawnEnvironment]
) -> dict[str, Recording]:
    """By the cell that speaks; none where its state cannot be imposed."""
    speakers = {each.speaker.identifier: each.speaker for each in amplified}
    found = {name: certifying.twins(of[name], drawn[speaker.environment]) for name, speaker in speakers.items()}
    return {name: recording for name, recording in found.items() if recording is not None}


def _certified(
    amplified: Sequence[Amplified],
    twins: Mapping[str, Recording],
    dumps: Dumps,
    pairs: Mapping[comparing.Pair, str],
    run: RunRecord,
    matrix: Matrix,
    tools: Tools,
) -> list[Explained]:
    if not amplified:
        return []
    explained = []
    with tools.reporter.stage("certifying", len(amplified)) as done:
        for each in amplified:
            twin = twins.get(each.speaker.identifier)
            found = dumps.dumped.get(twin.identifier) if twin is not None else None
            behaviour = found.record.behaviour if found is not None else None
            complete = twin is None or behaviour is not None
            held = certifying.certify(each, behaviour, run.reads, matrix, tools.store, complete=complete)
            if held.holds:  # what does not is decided where trajectories part
                tools.store.comparisons.put_certificate(held.record)
            explained.append(held)
            done(pairs[each.pair])
    return explained


def _part(parted: Sequence[PartedPair], run: RunRecord, outputs: Sequence[str], tools: Tools) -> Dumps:
    """Force steps from where unexplained pairs part; what the yardstick calls changed there is changed."""
    recordings = {each.identifier: each for pair in parted for each in pair.recordings}
    dumps = dumping.dump(list(recordings.values()), {}, tools)
    behaviours = {name: each.record.behaviour for name, each in dumps.dumped.items()}
    for each in parted:
        found = parting.judge(each, behaviours, outputs, tools.store)
        if found is not None:
            tools.store.comparisons.put_comparison(*each.explained.pair, run.reads, *found)
        elif each.explained.complete and all(behaviours.get(name.identifier) for name in each.recordings):
            # What could not be run is tried again the next time.
            tools.store.comparisons.put_certificate(each.explained.record)
    return dumps
