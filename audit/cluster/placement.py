"""Which node takes which job next. Pure: nothing here knows of Ray, processes or the clock.

A job goes only to a node of its class of machines. A node that has the job's virtualenv comes first, so that few are
built; a job whose virtualenv nobody has goes to whoever is idle; a job that waits for a busy node is taken from it only
when it would wait for longer than a round.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from audit.cluster.jobs import Needs

ROUNDS_BEFORE_STEALING = 1
"""Rounds of jobs that a node has to have waiting before others build its virtualenvs too and take from it. A job takes
seconds to minutes, building one from a warm cache about a second: waiting out one job is no worse than building."""

LOST_ON_ONE_NODE = 2
"""Workers that may be lost under one job on one node before it is given up: what kills a worker twice does so again."""

LOST_IN_ALL = 3
"""Workers that may be lost under one job anywhere. Losing a node is seldom the job's doing, but one that eats
a machine's memory must not take a whole cluster down, node by node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A machine of the cluster, as it told of itself."""

    name: str
    machine: str
    """Its class."""
    slots: int
    """Jobs that it runs at the same time: its cores, without those on which no actor starts."""
    venvs: frozenset[str] = frozenset()
    """The virtualenvs that stand there."""


@dataclass(slots=True, kw_only=True)
class _Place:
    """A node and what was given to it."""

    node: Node
    venvs: set[str]
    running: dict[int, str] = field(default_factory=dict)
    """Jobs that it took, with the virtualenv that each has to build; empty where it was there or is being built."""
    is_gone: bool = False

    @property
    def is_full(self) -> bool:
        return len(self.running) >= self.node.slots


class Placement:
    """Jobs, numbered in the order in which they should begin, on nodes that come and go."""

    def __init__(self, needs: Sequence[Needs]) -> None:
        self._needs = tuple(needs)
        self._waiting = dict.fromkeys(range(len(needs)))  # a set that keeps its order
        self._places: dict[str, _Place] = {}
        self._losses: list[list[str]] = [[] for _ in needs]

    @property
    def is_over(self) -> bool:
        """Whether nothing waits and nothing runs."""
        return not self._waiting and not any(place.running for place in self._places.values())

    @property
    def waiting(self) -> tuple[int, ...]:
        """Jobs that nobody has."""
        return tuple(self._waiting)

    @property
    def venvs(self) -> dict[str, frozenset[str]]:
        """The virtualenvs that each node has, or was given jobs of."""
        return {name: frozenset(place.venvs) for name, place in self._places.items()}

    def losses(self, number: int) -> int:
        """How often the job was lost."""
        return len(self._losses[number])

    def join(self, node: Node) -> None:
        """A node is there. One that is known keeps what it is at and may have more slots, or fewer."""
        known = self._places.get(node.name)
        self._places[node.name] = _Place(
            node=node,
            venvs={*node.venvs, *(known.venvs if known else ())},
            running=known.running if known else {},
        )

    def leave(self, name: str) -> None:
        """A node is gone: it takes nothing any more. What it was at is told by :meth:`lost`, job by job."""
        if name in self._places:
            self._places[name].is_gone = True

    def take(self, name: str) -> int | None:
        """The job that the node should begin now, which from here on is its; nothing where it should wait."""
        place = self._places.get(name)
        if place is None or place.is_gone or place.is_full:
            return None
        number = self._choose(place)
        if number is not None:
            del self._waiting[number]
            place.running[number] = "" if self._is_at_home(number, place) else self._needs[number].venv
            place.venvs.update(filter(None, [self._needs[number].venv]))
        return number

    def has_too_many(self, name: str) -> bool:
        """Whether the node is gone, or took more than it has slots by now."""
        place = self._places[name]
        return place.is_gone or len(place.running) > place.node.slots

    def put_back(self, number: int, name: str) -> None:
        """The node did not begin the job, which waits again, nor build anything for it."""
        place = self._places[name]
        place.venvs.discard(place.running.pop(number))
        self._wait_again(number)

    def done(self, number: int) -> None:
        """The job has ended."""
        for place in self._places.values():
            place.running.pop(number, None)

    def lost(self, number: int, name: str) -> bool:
        """The job did not end on that node. Whether it will be tried again: it waits, and prefers another node."""
        self.done(number)
        losses = self._losses[number]
        losses.append(name)
        if losses.count(name) >= LOST_ON_ONE_NODE or len(losses) >= LOST_IN_ALL:
            return False
        self._wait_again(number)
        return True

    def can_move(self, number: int, name: str) -> bool:
        """Whether there is another node that the job was not lost on."""
        others = (place.node for place in self._fitting(number) if place.node.name != name)
        return any(node.name not in self._losses[number] for node in others)

    def stranded(self) -> tuple[int, ...]:
        """Jobs that wait, and for which there is no node."""
        return tuple(number for number in self._waiting if not any(True for _ in self._fitting(number)))

    def give_up(self, number: int) -> None:
        """Nobody will run it."""
        self._waiting.pop(number, None)

    def _wait_again(self, number: int) -> None:
        self._waiting = dict.fromkeys(sorted({*self._waiting, number}))  # in the place that its number gives it

    def _fitting(self, number: int) -> Iterator[_Place]:
        wanted = self._needs[number].machine
        there = (place for place in self._places.values() if not place.is_gone)
        return (place for place in there if wanted in ("", place.node.machine))

    def _choose(self, place: _Place) -> int | None:
        mine = [number for number in self._waiting if self._may(number, place)]
        at_home = next((number for number in mine if self._is_at_home(number, place)), None)
        if at_home is not None:
            return at_home
        homeless = next((number for number in mine if not self._homes(number)), None)
        return homeless if homeless is not None else self._stolen(mine)

    def _homes(self, number: int) -> list[_Place]:
        """The nodes that may take it and have its virtualenv, or are building it."""
        fitting = (place for place in self._fitting(number) if self._is_at_home(number, place))
        return [place for place in fitting if self._may(number, place)]

    def _may(self, number: int, place: _Place) -> bool:
        """A node of the job's class, and none that it was lost on as long as there is another."""
        if self._needs[number].machine not in ("", place.node.machine):
            return False
        return place.node.name not in self._losses[number] or not self.can_move(number, place.node.name)

    def _is_at_home(self, number: int, place: _Place) -> bool:
        venv = self._needs[number].venv
        return not venv or venv in place.venvs

    def _stolen(self, numbers: Sequence[int]) -> int | None:
        """The first job that is more than a round away from its turn on every node that has its virtualenv."""
        ahead: Counter[str] = Counter()
        for number in numbers:
            homes = self._homes(number)
            if all(ahead[place.node.name] >= ROUNDS_BEFORE_STEALING * place.node.slots for place in homes):
                return number
            ahead.update(place.node.name for place in homes)
        return None
