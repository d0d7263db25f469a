"""What the nodes of a cluster were asked and have not answered yet. Nothing here knows of Ray."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from typing import Any

SURVEY_SECONDS = 90.0
"""For a node to tell what it is. It may have to fetch what the harness imports; one that is full of others' work cannot
answer, and is not waited for any longer."""

SILENT_SECONDS = 10.0
"""In which an idle node answers, which takes it a few. A longer silence means that others keep it busy: that is told,
and no job is kept there for an actor that has not started."""

ASKINGS = 3
"""Workers in a row that may be lost while they are asked what their node is before it is given up: where memory runs
out, the system may end one that did nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hand:
    """An actor, on the node where it was started."""

    actor: Any
    node: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a node was asked, and when."""

    hand: Hand
    slots: int
    is_further: bool
    """Whether the node can be used without the answer: it only has one slot less for as long."""
    began: float

    @property
    def may_be_answered(self) -> bool:
        """Whether it is not yet too long ago."""
        return time.monotonic() < self.began + SURVEY_SECONDS

    @property
    def is_late(self) -> bool:
        """Whether an idle node would have answered."""
        return time.monotonic() > self.began + SILENT_SECONDS


class Questions:
    """Those without an answer, and how many workers in a row were lost over those before."""

    def __init__(self) -> None:
        self.open: dict[Any, Question] = {}
        """By what the answer will come in as."""
        self._lost: Counter[tuple[str, bool]] = Counter()

    @property
    def in_doubt(self) -> set[str]:
        """Nodes that were asked and have not answered, so that nobody knows whether they can be used."""
        return {question.hand.node for question in self.open.values() if not question.is_further}

    @property
    def awaited(self) -> list[Any]:
        """The answers of nodes in doubt that may still come in time."""
        asked = self.open.items()
        return [answer for answer, question in asked if not question.is_further and question.may_be_answered]

    @property
    def late(self) -> Counter[str]:
        """How many actors of each node should have started by now."""
        return Counter(question.hand.node for question in self.open.values() if question.is_late)

    @property
    def busy(self) -> set[str]:
        """Nodes of which others keep a part busy."""
        return {question.hand.node for question in self.open.values() if question.is_further and question.is_late}

    def in_time(self, name: str) -> int:
        """How many actors of the node may be about to start."""
        return sum(question.hand.node == name and not question.is_late for question in self.open.values())

    def withdraw(self, name: str) -> list[Hand]:
        """Ask the node nothing any more; the actors that it was asked for."""
        withdrawn = [answer for answer, question in self.open.items() if question.hand.node == name]
        return [self.open.pop(answer).hand for answer in withdrawn]

    def answered(self, question: Question) -> None:
        """A worker lives there: those that were lost before are not in a row with any that will be."""
        for is_further in (False, True):
            del self._lost[question.hand.node, is_further]

    def may_be_repeated(self, question: Question) -> bool:
        """Count one worker more that was lost over it; whether there may be another."""
        kind = question.hand.node, question.is_further
        if self._lost[kind] == ASKINGS - 1:
            return False
        self._lost[kind] += 1
        return True
