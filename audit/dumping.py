"""The dumping stage: recordings to dumps, those in the store as they are, the others run now and stored one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from analysis import yardstick
from analysis.yardstick import Forced
from audit import building, plan
from audit.answers import CellAnswer
from audit.digests import digest
from audit.dumper_process import CellOutcome
from audit.failures import Failure
from audit.plan import Recording
from audit.records import DumpRecord, NewDump, StoredArray
from audit.stimulus import Stimulus
from audit.store import Store
from audit.tools import Tools

RAISED = "raised"
"""Status of a cell at which the release's own code raised an exception, as it will again."""

_YARDSTICK_OUTPUTS = ("state", "observation", "reward")


@dataclass(frozen=True, slots=True, kw_only=True)
class Dumped:
    """What a recording came to."""

    key: str
    record: DumpRecord
    reused: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Dumps:
    """What the stage came to, by identifier."""

    dumped: Mapping[str, Dumped]
    failures: tuple[Failure, ...]
    """Of recordings that have no dump, and of those whose dump says that the release raises."""


def known(recordings: Sequence[Recording], store: Store) -> dict[str, Dumped]:
    """The dumps that the store has, by identifier."""
    keys = {each.identifier: each.key for each in recordings}
    found = store.dumps(keys.values())
    return {name: Dumped(key=key, record=found[key], reused=True) for name, key in keys.items() if key in found}


def dump(recordings: Sequence[Recording], unbuilt: Mapping[str, Failure], tools: Tools) -> Dumps:
    """Dump what is not in the store. Recordings with the same key are the same: one is run and the others have it."""
    there = known(recordings, tools.store)
    missing = [each for each in recordings if each.identifier not in there]
    if missing:
        tools.runner.prepare()
    unbuilt = {
        **unbuilt,
        **building.build(
            [each.cell.release for each in missing if each.cell.release.id not in unbuilt], tools.reporter
        ),
    }
    runnable = [each for each in missing if each.cell.release.id not in unbuilt]
    fresh = _run_leaders(runnable, tools)
    return Dumps(
        dumped={**there, **fresh.dumped},
        failures=(*unbuilt.values(), *fresh.failures, *_remembered_failures(there)),
    )


def _remembered_failures(dumped: Mapping[str, Dumped]) -> list[Failure]:
    """Where the store knows that the release raises: a package's own failure is not tried again."""
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


def _run_leaders(recordings: Sequence[Recording], tools: Tools) -> Dumps:
    leaders: dict[str, Recording] = {}
    for each in recordings:
        leaders.setdefault(each.key, each)
    fresh, failed = _run(list(leaders.values()), tools)
    dumped: dict[str, Dumped] = {}
    failures: list[Failure] = []
    for each in recordings:
        leader = leaders[each.key].identifier
        if each.key in fresh:
            dumped[each.identifier] = Dumped(key=each.key, record=fresh[each.key], reused=each.identifier != leader)
        if leader in failed:
            failures.append(replace(failed[leader], subject=each.identifier))
    return Dumps(dumped=dumped, failures=tuple(failures))


def _run(recordings: Sequence[Recording], tools: Tools) -> tuple[dict[str, DumpRecord], dict[str, Failure]]:
    """Records by key, failures by identifier."""
    fresh: dict[str, DumpRecord] = {}
    failed: dict[str, Failure] = {}
    if not recordings:
        return fresh, failed
    by_name = {each.identifier: each for each in recordings}
    jobs = plan.jobs([(each.cell, each.asked()) for each in recordings], tools.timeout)
    with tools.reporter.stage("dumping", len(recordings)) as done:
        for outcome in tools.runner.run(jobs):
            name = outcome.identifier
            wanted = by_name[name]
            if isinstance(outcome.result, Failure):
                failed[name] = outcome.result
                if outcome.result.status == RAISED:
                    fresh[wanted.key] = _keep(tools.store, wanted, outcome, _as_answer(outcome.result))
                done(f"{name}: {outcome.result.status}")
            else:
                fresh[wanted.key] = record = _keep(tools.store, wanted, outcome, outcome.result)
                done(name if record.status == "ok" else f"{name}: {record.status}")
    return fresh, failed


def _as_answer(failure: Failure) -> CellAnswer:
    return CellAnswer(status=failure.status, reason=failure.reason, detail=failure.stderr_tail)


def _keep(store: Store, wanted: Recording, outcome: CellOutcome, answer: CellAnswer) -> DumpRecord:
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
            key=wanted.key,
            machine=outcome.machine,
            stimulus=wanted.stimulus.digest,
            outputs=outputs,
            description=answer.meta,
            steps=answer.steps,
            seconds=outcome.seconds,
            null_ratio=_null_ratio(answer, wanted.stimulus) if behaviour is not None else None,
        )
    )
    return record


def _null_ratio(answer: CellAnswer, given: Stimulus) -> float | None:
    """The release against its own nudged copies, the largest over outputs."""
    if "nudged" not in given.batches:
        return None
    arrays = answer.arrays
    return max(
        yardstick.null_ratio(Forced.of(arrays[f"forced.{output}"], arrays[f"nudged.{output}"]))
        for output in _YARDSTICK_OUTPUTS
    )
