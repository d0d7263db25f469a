"""One round of jobs on the actors of a cluster, from the first to the last outcome.

Who runs what is decided in ``placement.py``; here it is done. The outcomes of a job are a stream that waits for this
side, and what several jobs are given lies in the object store once, so that memory is bounded on either side.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic

from audit.cluster.crew import Crew, cause, first_line
from audit.cluster.head_start import HeadStart
from audit.cluster.jobs import Job, Outcome
from audit.cluster.placement import Placement
from audit.cluster.questions import Hand

OUTCOMES_AHEAD = 2
"""Outcomes of one job that may lie in the object store before it waits for this side to take them: the next one is
ready when one has been written, and a node holds at most this many for each of its cores."""

LOOK_FOR_NODES_SECONDS = 10.0
"""Between looks for nodes that have joined the cluster while jobs are waiting."""

LOOK_SECONDS = 0.05
"""Between looks at two sources that cannot be waited for together."""


@dataclass(slots=True, kw_only=True)
class _Stream(Generic[Outcome]):
    """A job that runs, and what it came to as far as that is held back: another node may do better."""

    hand: Hand
    number: int
    began: float
    held_back: list[Outcome] = field(default_factory=list)


class Round(Generic[Outcome]):
    """Some jobs, from the first to the last outcome."""

    def __init__(self, crew: Crew, jobs: Sequence[Job[Outcome]], early: HeadStart[Outcome]) -> None:
        self._crew = crew
        self._ray = crew.ray
        self._jobs = list(jobs)
        self._early = early
        self._placement = Placement([job.needs for job in jobs])
        self._streams: dict[Any, _Stream[Outcome]] = {}
        self._kept: defaultdict[str, deque[int]] = defaultdict(deque)
        """Jobs that each node took and for which an actor is about to start there."""
        self._parts = Parts(crew.ray, jobs)
        self._looked = time.monotonic()

    def outcomes(self) -> Iterator[Outcome]:
        """Yield each outcome as it comes in."""
        if self._jobs:
            self._crew.survey()
        while not self._placement.is_over or self._early.is_busy:
            self._muster()
            self._begin()
            yield from self._stranded()
            yield from self._early.outcomes(wait=0.0 if self._streams else LOOK_SECONDS)
            for ready in self._ready():
                yield from self._advance(ready)
        self._crew.keep_venvs(self._placement.venvs)

    def _muster(self) -> None:
        """See who is there; a job that was kept for an actor that is late, or on a node in doubt, waits for anybody."""
        for node in self._crew.at_hand():
            self._placement.join(node)
        for name, numbers in self._kept.items():
            while numbers and self._placement.has_too_many(name):
                self._placement.put_back(numbers.pop(), name)

    def _begin(self) -> None:
        """Give every node what it should take now, one job at a time to each, the least busy first."""
        busy = Counter(stream.hand.node for stream in self._streams.values())
        takers = sorted(self._crew.nodes, key=lambda name: busy[name])
        while takers:
            for name in tuple(takers):
                number = None if self._is_full else self._placement.take(name)
                if number is None:
                    takers.remove(name)
                else:
                    self._kept[name].append(number)
        for name, numbers in self._kept.items():
            while numbers and (hand := self._crew.hand(name)) is not None:
                self._start(hand, numbers.popleft())
            self._crew.reinforce(name, len(numbers))

    @property
    def _is_full(self) -> bool:
        """Whether as many jobs are under way as may be at once."""
        under_way = len(self._streams) + sum(map(len, self._kept.values()))
        return self._crew.most is not None and under_way >= self._crew.most

    def _start(self, hand: Hand, number: int) -> None:
        job, parts = self._parts.of(self._jobs[number])
        options = {"num_returns": "streaming", "_generator_backpressure_num_objects": OUTCOMES_AHEAD}
        stream = hand.actor.run.options(**options).remote(job, parts)
        self._streams[stream] = _Stream(hand=hand, number=number, began=time.monotonic())

    def _stranded(self) -> Iterator[Outcome]:
        """Jobs for which there is no node, and none that may still answer in time."""
        for number in () if self._crew.asked.awaited else self._placement.stranded():
            self._placement.give_up(number)
            self._parts.done(number)
            yield from self._jobs[number].lost(self._crew.lacking(self._jobs[number].needs.machine))

    def _ready(self) -> list[Any]:
        """What has something to say; also nodes that have joined, once in a while."""
        waited = [*self._crew.asked.open, *self._streams]
        if not waited:
            return []
        patience = LOOK_SECONDS if self._early.is_busy else LOOK_FOR_NODES_SECONDS
        ready: list[Any] = self._ray.wait(waited, timeout=patience, fetch_local=False)[0]
        if time.monotonic() - self._looked > LOOK_FOR_NODES_SECONDS and self._placement.waiting:
            self._crew.look_for_nodes()
            self._looked = time.monotonic()
        if self._placement.waiting:
            self._crew.tell_of_busy_nodes()
        return ready

    def _advance(self, ready: Any) -> Iterator[Outcome]:
        if ready in self._crew.asked.open:
            self._crew.settle(ready)
            return
        stream = self._streams[ready]
        try:
            outcome: Outcome = self._ray.get(next(ready))
        except StopIteration:
            self._crew.release(stream.hand)
            yield from self._ended(ready)
        except self._ray.exceptions.RayError as error:
            raise_if_bug(error, lost=self._ray.exceptions.RayError)
            yield from self._lost(ready, error)
        else:
            yield from self._came_in(stream, outcome)

    def _came_in(self, stream: _Stream[Outcome], outcome: Outcome) -> Iterator[Outcome]:
        job = self._jobs[stream.number]
        if job.blames_node(outcome) and self._placement.can_move(stream.number, stream.hand.node):
            stream.held_back.append(outcome)
            return
        self._jobs[stream.number] = job.without(outcome)
        self._crew.tallies[stream.hand.node].outcomes += 1
        yield outcome

    def _ended(self, ready: Any) -> Iterator[Outcome]:
        stream = self._forget(ready)
        if not stream.held_back:
            self._placement.done(stream.number)
            self._parts.done(stream.number)
        elif not self._placement.lost(stream.number, stream.hand.node):
            self._parts.done(stream.number)
            yield from stream.held_back

    def _lost(self, ready: Any, error: Exception) -> Iterator[Outcome]:
        """The node is in doubt until an actor on it answers: Ray itself takes many seconds to say that one is gone."""
        stream = self._forget(ready)
        name = stream.hand.node
        self._crew.dismiss(stream.hand)
        if not self._placement.lost(stream.number, name):
            self._parts.done(stream.number)
            times = self._placement.losses(stream.number)
            yield from self._jobs[stream.number].lost(f"the worker was lost {times} times: {first_line(cause(error))}")
        if name in self._crew.nodes and name not in self._crew.asked.in_doubt:
            self._placement.leave(name)
            self._crew.doubt(name)

    def _forget(self, ready: Any) -> _Stream[Outcome]:
        stream = self._streams.pop(ready)
        self._crew.tallies[stream.hand.node].seconds += time.monotonic() - stream.began
        return stream


class Parts:
    """Bytes that several jobs are given: in the object store once, for as long as one of those jobs is not done."""

    def __init__(self, ray: Any, jobs: Sequence[Job[Any]]) -> None:
        self._ray = ray
        self._names = [tuple(job.parted()[1]) for job in jobs]
        self._users = Counter(name for names in self._names for name in names)
        self._put: dict[str, Any] = {}

    def of(self, job: Job[Any]) -> tuple[Job[Any], dict[str, Any]]:
        """The job without them, and where they are."""
        parted, parts = job.parted()
        for name, data in parts.items():
            if name not in self._put:
                self._put[name] = self._ray.put(data)
        return parted, {name: self._put[name] for name in parts}

    def done(self, number: int) -> None:
        """The job with that number needs none any more."""
        for name in self._names[number]:
            self._users[name] -= 1
            if not self._users[name]:
                self._put.pop(name, None)


def raise_if_bug(error: Exception, *, lost: type[Exception]) -> None:
    """Raise what a worker raised, which is ours.

    It is not where the worker was ``lost``, or what it was sent, nor where the system refused it something.
    """
    found = cause(error)
    is_unsendable = type(found) is lost  # what Ray makes of an exception that cannot be pickled
    if found is not error and (is_unsendable or not isinstance(found, (OSError, MemoryError, lost))):
        raise found
