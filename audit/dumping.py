"""The dumping stage: cells to dumps, those in the store as they are, the others run now and stored one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from audit import plan
from audit.answers import CellAnswer
from audit.digests import digest
from audit.dumper_process import CellOutcome
from audit.failures import Failure
from audit.plan import Cell
from audit.records import DumpRecord, NewDump, StoredArray
from audit.stimulus import Stimulus
from audit.store import Store
from audit.tools import Tools

RAISED = "raised"
"""Status of a cell at which the release's own code raised an exception, as it will again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dumped:
    """A cell's dump."""

    key: str
    record: DumpRecord
    reused: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Dumps:
    """What the stage came to, by cell."""

    by_cell: Mapping[str, Dumped]
    failures: tuple[Failure, ...]


def keys(cells: Sequence[Cell], stimuli: Mapping[str, Stimulus]) -> dict[str, str]:
    """The keys of the cells whose environment has a stimulus, by cell."""
    drawn = [cell for cell in cells if cell.environment.title in stimuli]
    return {cell.identifier: cell.key(stimuli[cell.environment.title]) for cell in drawn}


def known(cell_keys: Mapping[str, str], store: Store) -> dict[str, Dumped]:
    """The dumps that the store has, by cell."""
    found = store.dumps(cell_keys.values())
    return {name: Dumped(key=key, record=found[key], reused=True) for name, key in cell_keys.items() if key in found}


def remembered_failures(dumped: Mapping[str, Dumped]) -> list[Failure]:
    """The cells of which the store knows that the release raises: a package's own failure is not tried again."""
    return [
        Failure(
            subject=name,
            stage="dump",
            status=each.record.status,
            reason=each.record.reason,
            stderr_tail=each.record.detail,
        )
        for name, each in dumped.items()
        if each.record.status == RAISED
    ]


def dump(cells: Sequence[Cell], cell_keys: Mapping[str, str], stimuli: Mapping[str, Stimulus], tools: Tools) -> Dumps:
    """Dump the cells. Those with the same key are the same: one of them is run, the others have its dump."""
    leaders: dict[str, Cell] = {}
    for cell in cells:
        leaders.setdefault(cell_keys[cell.identifier], cell)
    fresh, failed = _run(list(leaders.values()), cell_keys, stimuli, tools)
    by_cell: dict[str, Dumped] = {}
    failures: list[Failure] = []
    for cell in cells:
        key = cell_keys[cell.identifier]
        leader = leaders[key].identifier
        if key in fresh:
            by_cell[cell.identifier] = Dumped(key=key, record=fresh[key], reused=cell.identifier != leader)
        if leader in failed:
            failures.append(replace(failed[leader], subject=cell.identifier))
    return Dumps(by_cell=by_cell, failures=tuple(failures))


def _run(
    cells: Sequence[Cell], cell_keys: Mapping[str, str], stimuli: Mapping[str, Stimulus], tools: Tools
) -> tuple[dict[str, DumpRecord], dict[str, Failure]]:
    """Records by key, failures by cell."""
    fresh: dict[str, DumpRecord] = {}
    failed: dict[str, Failure] = {}
    if not cells:
        return fresh, failed
    with tools.reporter.stage("dumping", len(cells)) as done:
        for outcome in tools.runner.run(plan.jobs("dump", cells, stimuli, tools.timeout)):
            name = outcome.identifier
            key, given = cell_keys[name], stimuli[outcome.environment]
            if isinstance(outcome.result, Failure):
                failed[name] = outcome.result
                if outcome.result.status == RAISED:
                    fresh[key] = _keep(tools.store, key, given, outcome, _as_answer(outcome.result))
                done(f"{name}: {outcome.result.status}")
            else:
                fresh[key] = _keep(tools.store, key, given, outcome, outcome.result)
                done(name if fresh[key].status == "ok" else f"{name}: {fresh[key].status}")
    tools.runner.finish()
    return fresh, failed


def _as_answer(failure: Failure) -> CellAnswer:
    return CellAnswer(status=failure.status, reason=failure.reason, detail=failure.stderr_tail)


def _keep(store: Store, key: str, given: Stimulus, outcome: CellOutcome, answer: CellAnswer) -> DumpRecord:
    """Arrays to files, then the dump to the database."""
    outputs = {
        name: StoredArray(digest=store.arrays.put(array), dtype=str(array.dtype), shape=array.shape)
        for name, array in answer.arrays.items()
    }
    behaviour = None
    if answer.status == "ok":
        behaviour = digest(
            outcome.machine, *(text for name in sorted(outputs) for text in (name, outputs[name].digest))
        )
    record = DumpRecord(status=answer.status, reason=answer.reason, behaviour=behaviour, detail=answer.detail)
    store.put_dump(
        NewDump(
            record=record,
            key=key,
            machine=outcome.machine,
            stimulus=given.digest,
            outputs=outputs,
            description=answer.meta,
            steps=answer.steps,
            seconds=outcome.seconds,
        )
    )
    return record
