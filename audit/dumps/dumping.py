"""The dumping stage: recordings to dumps, those in the store as they are, the others run now and stored one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from analysis import yardstick
from analysis.yardstick import Forced
from audit.digests import digest
from audit.dumps.keeping import Keeper
from audit.failures import Failure, Status
from audit.planning import building, plan
from audit.planning.plan import Recording
from audit.processes.answers import CellAnswer
from audit.processes.dumper_process import CellOutcome
from audit.stimuli.stimulus import Stimulus
from audit.storage.records import DumpRecord, NewDump, StoredArray
from audit.storage.store import Store
from audit.storage.stored_attempts import Attempt
from audit.tools import Tools

BUILD = "build"
"""Stage of a failure that is the whole release's: where workers are elsewhere, they find out that it does not build."""

_YARDSTICK_OUTPUTS = ("state", "observation", "reward")


@dataclass(frozen=True, slots=True, kw_only=True)
class Dumped:
    """What a recording came to."""

    key: str
    record: DumpRecord
    reused: bool
    """Whether the store had it before this run."""
    shared: bool = False
    """Whether it is the dump of another recording of this run, which is the same but for its name."""


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
    if tools.again:
        there = {name: each for name, each in there.items() if each.record.status is not Status.RAISED}
    given_up = _given_up([each for each in recordings if each.identifier not in there], tools)
    missing = [each for each in recordings if each.identifier not in there and each.identifier not in given_up]
    if missing:
        tools.runner.prepare()
    unbuilt = {
        **unbuilt,
        **building.build_for_workers(
            [each.cell.release for each in missing if each.cell.release.id not in unbuilt], tools
        ),
    }
    runnable = [each for each in missing if each.cell.release.id not in unbuilt]
    fresh = record(runnable, tools)
    return Dumps(
        dumped={**there, **fresh.dumped},
        failures=(*unbuilt.values(), *fresh.failures, *_remembered_failures(there), *given_up.values()),
    )


def _given_up(recordings: Sequence[Recording], tools: Tools) -> dict[str, Failure]:
    """Failures of recordings that failed too often to be tried once more, by identifier."""
    if tools.again or not recordings:
        return {}
    asked = [Attempt(key=each.key, subject=each.identifier, stage="dump") for each in recordings]
    return {each.subject: failure for each, failure in tools.store.attempts.given_up(asked, tools.timeout).items()}


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
        if each.record.status is Status.RAISED
    ]


def record(recordings: Sequence[Recording], tools: Tools) -> Dumps:
    """Dump, on virtualenvs that stand. Recordings with the same key are the same: one is run, the others have it."""
    keys = {each.identifier: each.key for each in recordings}
    leaders: dict[str, Recording] = {}
    for each in recordings:
        leaders.setdefault(keys[each.identifier], each)
    fresh, failed = _run(leaders, tools)
    dumped: dict[str, Dumped] = {}
    failures: dict[str, Failure] = {}
    for each in recordings:
        name, key = each.identifier, keys[each.identifier]
        leader = leaders[key].identifier
        if key in fresh:
            dumped[name] = Dumped(key=key, record=fresh[key], reused=False, shared=name != leader)
        if leader in failed:
            subject = each.cell.release.id if failed[leader].stage == BUILD else name
            failures.setdefault(subject, replace(failed[leader], subject=subject))
    return Dumps(dumped=dumped, failures=tuple(failures.values()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """An answer that came in, to be kept."""

    key: str
    wanted: Recording
    outcome: CellOutcome
    answer: CellAnswer

    @property
    def size(self) -> int:
        """Bytes of its arrays and of what stands beside them."""
        return sum(array.nbytes for array in self.answer.arrays.values()) + self.answer.description_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """A process that failed instead, to be counted."""

    key: str
    failure: Failure

    @property
    def size(self) -> int:
        """It weighs nothing."""
        return 0


def _run(recordings: Mapping[str, Recording], tools: Tools) -> tuple[dict[str, DumpRecord], dict[str, Failure]]:
    """Of recordings by key: records by key, failures by identifier."""
    fresh: dict[str, DumpRecord] = {}
    failed: dict[str, Failure] = {}
    if not recordings:
        return fresh, failed
    by_name = {each.identifier: (key, each) for key, each in recordings.items()}
    jobs = plan.jobs([(each.cell, each.asked()) for each in recordings.values()], tools.timeout)
    with tools.reporter.stage("dumping", len(recordings)) as done:

        def keep(things: Sequence[Arrival | Loss]) -> None:
            came = [each for each in things if isinstance(each, Arrival)]
            lost = {each.key: each.failure for each in things if isinstance(each, Loss)}
            for each, record in zip(came, keep_all(tools.store, came), strict=True):
                fresh[each.key] = record
                name = each.outcome.identifier
                done(name if record.status is Status.OK else f"{name}: {record.status}")
            # Counted as they come in: who interrupts an audit that hangs has seen it hang.
            tools.store.attempts.count(lost, [each.key for each in came], tools.timeout)
            for failure in lost.values():
                done(f"{failure.subject}: {failure.status}")

        with Keeper(keep, lambda thing: thing.size) as keeper:
            for outcome in tools.runner.run(jobs):
                name, answer = outcome.identifier, outcome.result
                key, wanted = by_name[name]
                if isinstance(answer, Failure):
                    failed[name] = answer
                    if answer.status is not Status.RAISED:
                        keeper.put(Loss(key=key, failure=answer))
                        continue
                    answer = CellAnswer.of_failure(answer)
                keeper.put(Arrival(key=key, wanted=wanted, outcome=outcome, answer=answer))
    return fresh, failed


def keep_all(store: Store, came: Sequence[Arrival]) -> list[DumpRecord]:
    """Arrays to files, then the dumps to the database."""
    digests = [{name: store.arrays.put(array) for name, array in each.answer.arrays.items()} for each in came]
    behaviours = [_behaviour(each, named) for each, named in zip(came, digests, strict=True)]
    known: set[str | None] = {None, *store.known_behaviours({each for each in behaviours if each is not None})}
    dumps = []
    for each, named, behaviour in zip(came, digests, behaviours, strict=True):
        dumps.append(_new_dump(each, named if behaviour not in known else {}, behaviour))
        known.add(behaviour)
    store.put_dumps(dumps)
    return [dump.record for dump in dumps]


def _behaviour(came: Arrival, digests: Mapping[str, str]) -> str | None:
    if came.answer.status is not Status.OK:
        return None
    return digest(came.outcome.machine, *(text for name in sorted(digests) for text in (name, digests[name])))


def _new_dump(came: Arrival, new: Mapping[str, str], behaviour: str | None) -> NewDump:
    """With the digests of its outputs where the store does not have the behaviour yet."""
    answer, given = came.answer, came.wanted.stimulus
    arrays = answer.arrays
    return NewDump(
        record=DumpRecord(status=answer.status, reason=answer.reason, behaviour=behaviour, detail=answer.detail),
        key=came.key,
        machine=came.outcome.machine,
        stimulus=given.digest,
        outputs={
            name: StoredArray(digest=each, dtype=str(arrays[name].dtype), shape=arrays[name].shape)
            for name, each in new.items()
        },
        description=answer.meta,
        steps=answer.steps,
        seconds=came.outcome.seconds,
        null_ratio=_null_ratio(answer, given) if new else None,
    )


def _null_ratio(answer: CellAnswer, given: Stimulus) -> float | None:
    """The release against its own nudged copies, the largest over outputs."""
    if "nudged" not in given.batches:
        return None
    arrays = answer.arrays
    return max(
        yardstick.null_ratio(Forced.of(arrays[f"forced.{output}"], arrays[f"nudged.{output}"]))
        for output in _YARDSTICK_OUTPUTS
    )
