"""The dumping stage: cells to dumps, those in the store as they are, the others run now and stored one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from audit import building, folders, layouts, plan, stimulus
from audit.answers import CellAnswer
from audit.dumping import CellOutcome
from audit.failures import Failure
from audit.layouts import KnownLayout
from audit.matrix import Matrix
from audit.plan import Cell
from audit.records import DumpRecord, NewDump, StoredArray
from audit.stimulus import Stimulus
from audit.store import Store
from audit.tools import Tools


@dataclass(frozen=True, slots=True, kw_only=True)
class Dumped:
    """A cell's dump."""

    key: str
    record: DumpRecord
    reused: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Dumps:
    """What the stage came to: dumps by cell, and failures of cells and of releases that do not build."""

    by_cell: Mapping[str, Dumped]
    failures: tuple[Failure, ...]


def dump(matrix: Matrix, cells: Sequence[Cell], tools: Tools) -> Dumps:
    """Dump every cell that is not in the store."""
    unbuilt: dict[str, Failure] = {}
    known_layouts, failures = layouts.probe(cells, tools, unbuilt)
    stimuli, undrawable = draw(matrix, known_layouts)
    for drawn in stimuli.values():
        tools.store.put_stimulus(drawn)
    failures += [
        Failure(subject=cell.identifier, stage="draw", status="undrawable", reason=undrawable[cell.environment.title])
        for cell in cells
        if cell.environment.title in undrawable
    ]
    keys = cell_keys(cells, stimuli)
    known = tools.store.dumps(keys.values())
    by_cell = {name: Dumped(key=key, record=known[key], reused=True) for name, key in keys.items() if key in known}
    missing = [cell for cell in cells if cell.identifier in keys and cell.identifier not in by_cell]
    if missing:
        tools.runner.prepare()
    unbuilt |= building.build([cell.release for cell in missing if cell.release.id not in unbuilt], tools.reporter)
    runnable = [cell for cell in missing if cell.release.id not in unbuilt]
    fresh, failed = _run(runnable, keys, stimuli, tools)
    return Dumps(by_cell=by_cell | fresh, failures=(*failures, *unbuilt.values(), *failed))


def draw(matrix: Matrix, known: Mapping[str, KnownLayout]) -> tuple[dict[str, Stimulus], dict[str, str]]:
    """Stimuli by environment; and the reasons where none can be drawn."""
    drawn: dict[str, Stimulus] = {}
    reasons: dict[str, str] = {}
    for title, each in known.items():
        try:
            drawn[title] = stimulus.draw(matrix.stimulus, each.environment, each.layout)
        except stimulus.Undrawable as error:
            reasons[title] = str(error)
    return drawn, reasons


def cell_keys(cells: Sequence[Cell], stimuli: Mapping[str, Stimulus]) -> dict[str, str]:
    """The keys of the cells whose environment has a stimulus."""
    return {
        cell.identifier: cell.key(stimuli[cell.environment.title])
        for cell in cells
        if cell.environment.title in stimuli
    }


def _run(
    cells: Sequence[Cell], keys: Mapping[str, str], stimuli: Mapping[str, Stimulus], tools: Tools
) -> tuple[dict[str, Dumped], list[Failure]]:
    fresh: dict[str, Dumped] = {}
    failures: list[Failure] = []
    if not cells:
        return fresh, failures
    with tools.reporter.stage("dumping", len(cells)) as done:
        for outcome in tools.runner.run(plan.jobs("dump", cells, stimuli, tools.timeout)):
            name = outcome.identifier
            if isinstance(outcome.result, Failure):
                failures.append(outcome.result)
                done(f"{name}: {outcome.result.status}")
                continue
            record = _keep(tools.store, keys[name], stimuli[outcome.environment], outcome, outcome.result)
            fresh[name] = Dumped(key=keys[name], record=record, reused=False)
            done(name if record.status == "ok" else f"{name}: {record.status}")
    tools.runner.finish()
    return fresh, failures


def _keep(store: Store, key: str, given: Stimulus, outcome: CellOutcome, answer: CellAnswer) -> DumpRecord:
    """Arrays to files, then the dump to the database."""
    outputs = {
        name: StoredArray(digest=store.arrays.put(array), dtype=str(array.dtype), shape=array.shape)
        for name, array in answer.arrays.items()
    }
    behaviour = None
    if answer.status == "ok":
        digests = (part for name in sorted(outputs) for part in (name, outputs[name].digest))
        behaviour = folders.digest(outcome.cpu, *digests)
    record = DumpRecord(status=answer.status, reason=answer.reason, behaviour=behaviour)
    store.put_dump(
        NewDump(
            record=record,
            key=key,
            cpu=outcome.cpu,
            stimulus=given.digest,
            outputs=outputs,
            description=answer.meta,
            steps=answer.steps,
            seconds=outcome.seconds,
        )
    )
    return record
