"""What a crew makes of lost workers. A pretended Ray loses those that the test says, as a real one does not."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from audit.cluster import questions
from audit.cluster.crew import Crew
from audit.cluster.outfitting import NotOutfitted
from audit.cluster.placement import Node
from audit.cluster.questions import Hand

SLOTS = 3
NODE = Node(name="", machine="class", slots=SLOTS)


class RayError(Exception):
    """Whatever Ray raises, also for what a worker did."""

    cause: Exception | None = None


class Lost(RayError):
    """A worker has died."""


class Actor:
    """A process of its own."""

    look = SimpleNamespace(remote=lambda _: object())


class Pretended:
    """Of Ray what a crew uses, on a cluster of one node."""

    exceptions = SimpleNamespace(RayError=RayError, RayActorError=Lost, OutOfMemoryError=Lost)
    scheduling: ClassVar = {"NodeAffinitySchedulingStrategy": lambda name, soft: name}
    util = SimpleNamespace(scheduling_strategies=SimpleNamespace(**scheduling))

    def __init__(self) -> None:
        self.answer: Node | Exception = NODE
        self.killed: list[Any] = []

    def nodes(self) -> list[dict[str, Any]]:
        return [{"NodeID": "node", "NodeManagerAddress": "10.0.0.1", "Alive": True, "Resources": {"CPU": SLOTS}}]

    def remote(self, **_: object) -> Callable[[type], SimpleNamespace]:
        return lambda _: SimpleNamespace(remote=lambda *_: Actor())

    def get(self, _: object) -> Node:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def kill(self, actor: object) -> None:
        self.killed.append(actor)

    def shutdown(self) -> None:
        self.killed.append(self)


def _hired() -> Crew:
    return Crew(Pretended(), object, most=None, here=None, tell=lambda _: None, part=("run", False))


@pytest.fixture
def crew() -> Crew:
    """One whose node has answered, so that it has an actor with nothing to do."""
    hired = _hired()
    hired.look_for_nodes()
    _settle(hired, NODE)
    return hired


def _settle(crew: Crew, *answers: Node | Exception) -> None:
    """Answer what was asked first."""
    for each in answers:
        crew.ray.answer = each
        crew.settle(next(iter(crew.asked.open)))


def _reinforce(crew: Crew, *answers: Node | Exception) -> None:
    """Ask for a further actor again and again; one that is there has nothing to do for long."""
    for each in answers:
        crew.reinforce("node", 1)
        _settle(crew, each)
        for hand in _idle(crew):
            crew.dismiss(hand)


def _idle(crew: Crew) -> list[Hand]:
    """All that have nothing to do, which have something from here on."""
    return list(iter(lambda: crew.hand("node"), None))


def test_an_idle_actor_is_not_used_once_another_was_lost(crew: Crew) -> None:
    """They are mostly lost together, and a job would be lost a second time on one that is dead too."""
    crew.reinforce("node", SLOTS - 1)
    _settle(crew, NODE, NODE)
    lost, *others = before = _idle(crew)
    for each in others:
        crew.release(each)
    crew.dismiss(lost)
    crew.doubt("node")
    _settle(crew, NODE)
    (fresh,) = _idle(crew)
    assert fresh not in before
    assert {each.actor for each in before} == set(crew.ray.killed)


def test_workers_lost_now_and_then_take_no_slot(crew: Crew) -> None:
    _reinforce(crew, Lost(), NODE, Lost(), NODE, Lost())
    assert crew.nodes["node"].slots == SLOTS


def test_workers_lost_in_a_row_take_a_slot(crew: Crew) -> None:
    _reinforce(crew, NODE, Lost(), Lost())
    assert crew.nodes["node"].slots == SLOTS
    _reinforce(crew, Lost())
    assert crew.nodes["node"].slots == SLOTS - 1


def test_further_workers_that_were_lost_do_not_count_against_the_node(crew: Crew) -> None:
    """It is given up only where those were lost in a row that are to say whether it can be used."""
    _reinforce(crew, Lost(), Lost(), Lost())
    crew.doubt("node")
    _settle(crew, Lost(), Lost())
    assert "node" in crew.nodes
    _settle(crew, Lost("it has no memory"))
    assert "node" not in crew.nodes
    assert crew.told()[0].endswith("; then it was lost")


def test_what_a_lost_worker_left_is_collected_before_ray_is_shut_down(crew: Crew) -> None:
    """A real Ray ends the program where a reference of its own is dropped meanwhile."""
    error = Lost()
    error.cause = error
    weakref.finalize(error, crew.ray.killed.append, "garbage")
    del error
    gc.disable()
    try:
        crew.end()
    finally:
        gc.enable()
    assert crew.ray.killed[-2:] == ["garbage", crew.ray]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> Crew:
    """One that went on without the node, which had not answered."""
    monkeypatch.setattr(questions, "SURVEY_SECONDS", 0.0)
    hired = _hired()
    hired.survey()
    assert hired.told() == ("10.0.0.1: not used: it did not answer within 0 s",)
    return hired


def test_a_node_that_answers_late_is_used_from_then_on(impatient: Crew) -> None:
    _settle(impatient, NODE)
    assert [node.name for node in impatient.at_hand()] == ["node"]


def test_a_node_that_says_late_why_it_cannot_be_used_is_told_with_that(impatient: Crew) -> None:
    error = RayError()
    error.cause = NotOutfitted("numpy could not be installed: pip was not done within 600 s")
    _settle(impatient, error)
    assert impatient.told() == (f"10.0.0.1: not used: {error.cause}",)
