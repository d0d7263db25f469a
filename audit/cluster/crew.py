"""The nodes of a running Ray, and the actors on them. Ray is handed in: ``workers.py`` alone imports it."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from audit.cluster import descendants, outfitting, questions
from audit.cluster.placement import Node
from audit.cluster.questions import Hand, Question, Questions
from audit.failures import readable

THIS_MACHINE = "this machine"


@dataclass(slots=True, kw_only=True)
class _Tally:
    """What a node did."""

    address: str
    machine: str
    had: frozenset[str]
    """The virtualenvs that stood there before."""
    venvs: frozenset[str]
    """Those that it has now."""
    outcomes: int = 0
    seconds: float = 0.0


class Crew:
    """The nodes of a running Ray and the actors on them. Actors are started when there is something for them."""

    def __init__(
        self,
        ray: Any,
        worker: Any,
        *,
        most: int | None,
        here: Callable[[], Node] | None,
        tell: Callable[[str], None],
        part: tuple[str, bool],
    ) -> None:
        """``worker`` is the actors' class, ``most`` jobs run at once; ``here`` tells of a local Ray's one node.

        ``part`` is told to each actor: the run that it works for. ``tell`` is given a sentence where somebody has to
        wait for long.
        """
        self.ray = ray
        self.most = most
        self.nodes: dict[str, Node] = {}
        self.asked = Questions()
        self.tallies: dict[str, _Tally] = {}
        self._worker = worker
        self._here = here
        self._tell = tell
        self._part = part
        self._known: set[str] = set()
        self._refused: dict[str, str] = {}
        self._told_busy: set[str] = set()
        self._addresses: dict[str, str] = {}
        self._idle: dict[str, list[Hand]] = {}
        self._hands: list[Hand] = []

    def at_hand(self) -> list[Node]:
        """The nodes that can be used now, with no slots but those that an actor has or may soon have."""
        late, doubted = self.asked.late, self.asked.in_doubt
        there = (node for name, node in self.nodes.items() if name not in doubted)
        return [replace(node, slots=node.slots - late[node.name]) for node in there]

    def survey(self) -> None:
        """Ask all nodes that are new what they are, and wait for what they say; others may join meanwhile."""
        self.look_for_nodes()
        told = False
        while new := self.asked.awaited:
            ready = self.ray.wait(new, timeout=min(questions.SILENT_SECONDS, questions.SURVEY_SECONDS))[0]
            for each in ready:
                self.settle(each)
            if not ready and not told:
                who = f"waiting up to {questions.SURVEY_SECONDS:.0f} s for {self._in_doubt_told}"
                self._tell(f"{who}: others may keep them busy")
                told = True
            self.look_for_nodes()

    @property
    def _in_doubt_told(self) -> str:
        return ", ".join(sorted(self._address(name) for name in self.asked.in_doubt))

    def look_for_nodes(self) -> None:
        """Begin to ask the nodes that have joined since the last time."""
        if self._here is not None:
            self._welcome(THIS_MACHINE, self._here())
            return
        for each in self.ray.nodes():
            name, slots = each["NodeID"], int(each["Resources"].get("CPU", 0))
            if each["Alive"] and slots and name not in self._known:
                self._known.add(name)
                self._addresses[name] = each["NodeManagerAddress"]
                self.ask(name, slots)

    def ask(self, name: str, slots: int, *, is_further: bool = False) -> None:
        """Start an actor on the node that says what it is; the answer is settled when it is there."""
        hand = self._hire(name)
        question = Question(hand=hand, slots=slots, is_further=is_further, began=time.monotonic())
        self.asked.open[hand.actor.look.remote(slots)] = question

    def reinforce(self, name: str, wanted: int) -> None:
        """Ask for further actors on the node, all at once, so that as many as are wanted may soon be there."""
        if not wanted:
            return
        left = self.nodes[name].slots - sum(hand.node == name for hand in self._hands)
        for _ in range(min(left, wanted - self.asked.in_time(name))):
            self.ask(name, self.nodes[name].slots, is_further=True)

    def doubt(self, name: str) -> None:
        """Ask the node anew: a worker was lost there. Further ones are not waited for, which would stand before it.

        Nor is one used that has nothing to do: it was mostly lost with that worker, which only its next job would show.
        Another starts within seconds.
        """
        for hand in (*self._idle.pop(name, ()), *self.asked.withdraw(name)):
            self.dismiss(hand)
        self.ask(name, self.nodes[name].slots)

    def tell_of_busy_nodes(self) -> None:
        """Say of each node once that others keep part of it busy."""
        for name in sorted(self.asked.busy & self.nodes.keys() - self._told_busy):
            self._told_busy.add(name)
            cores = self.nodes[name].slots
            self._tell(f"{self._address(name)} works on fewer than its {cores} cores: others may keep some busy")

    def settle(self, answer: Any) -> None:
        """Take a node's answer: it can be used, or has one slot more."""
        question = self.asked.open.pop(answer)
        try:
            node: Node = self.ray.get(answer)
        except self.ray.exceptions.RayError as error:
            self.dismiss(question.hand)
            self._came_to_nothing(question, error)
            return
        self.asked.answered(question)
        if not question.is_further:
            self._welcome(question.hand.node, node)
        self.release(question.hand)

    def _came_to_nothing(self, question: Question, error: Exception) -> None:
        """What cannot be asked again is not used: a further slot, or the node."""
        name = question.hand.node
        if self._was_lost(error) and self.asked.may_be_repeated(question):
            if not question.is_further:  # who wants it asks for it anew
                self.ask(name, question.slots)
        elif question.is_further:
            if name in self.nodes:
                self.nodes[name] = replace(self.nodes[name], slots=self.nodes[name].slots - 1)
        else:
            self.nodes.pop(name, None)
            self._refused[name] = first_line(cause(error))

    def _was_lost(self, error: Exception) -> bool:
        """Whether the actor was ended, and neither said why its node cannot be used nor found the node gone."""
        lost = (self.ray.exceptions.RayActorError, self.ray.exceptions.OutOfMemoryError)
        return isinstance(error, lost) and cause(error) is error

    def hand(self, name: str) -> Hand | None:
        """An actor on the node that has nothing to do.

        A local Ray is there for this audit alone, so that whatever is hired on it starts. On a cluster it may never.
        """
        idle = self._idle.get(name)
        if idle:
            return idle.pop()
        return self._hire(name) if self._here is not None else None

    def release(self, hand: Hand) -> None:
        """The actor has nothing to do any more."""
        self._idle.setdefault(hand.node, []).append(hand)

    def dismiss(self, hand: Hand) -> None:
        """The actor is lost. Should it only be out of reach, it must not keep its core."""
        self._hands.remove(hand)
        self.ray.kill(hand.actor)

    def end(self) -> None:
        """End all actors, and Ray; of a local one also what it leaves where its head or its raylet was lost."""
        for hand in self._hands:
            self.ray.kill(hand.actor)
        parts = self._parts_of_ray() if self._here is not None else set()
        # An error of Ray's about a lost worker refers to itself and to what was asked of that worker. Were it collected
        # in another thread while Ray shuts down, Ray would end the whole program.
        gc.collect()
        self.ray.shutdown()
        descendants.end(parts)

    def _parts_of_ray(self) -> set[int]:
        """Processes of a local Ray, and those that they have started."""
        started = self.ray._private.worker._global_node.all_processes.values()
        own = {each.process.pid for kind in started for each in kind}
        return own.union(*(descendants.below(each) for each in own))

    def lacking(self, machine: str) -> str:
        """Why there is no node for a job that wants this class of machines."""
        if self._here is not None:
            why = self._refused.get(THIS_MACHINE)
            return f"no worker starts on this machine: {why}" if why else f"this machine is not of the class {machine}"
        of_class = f" of the class {machine}" if machine else ""
        silent = self._in_doubt_told
        why = f": {silent} did not answer within {questions.SURVEY_SECONDS:.0f} s" if silent else ""
        return f"the cluster has no node{of_class} that can be used{why}"

    def told(self) -> tuple[str, ...]:
        """A line for every node."""
        lines = []
        for name, tally in sorted(self.tallies.items(), key=lambda item: item[1].address):
            built = len(tally.venvs - tally.had)
            lost = "" if name in self.nodes and name not in self.asked.in_doubt else "; then it was lost"
            lines.append(
                f"{tally.address}: {tally.outcomes} cells in {tally.seconds:.1f} s, {built} virtualenvs built, "
                f"class {tally.machine}{lost}"
            )
        silent = dict.fromkeys(self.asked.in_doubt, f"it did not answer within {questions.SURVEY_SECONDS:.0f} s")
        unused = {name: why for name, why in {**silent, **self._refused}.items() if name not in self.tallies}
        return (*lines, *(f"{self._address(name)}: not used: {why}" for name, why in unused.items()))

    def _address(self, name: str) -> str:
        return self._addresses.get(name, name)

    def _welcome(self, name: str, node: Node) -> None:
        known = self.nodes.get(name)
        venvs = node.venvs | known.venvs if known is not None else node.venvs
        self.nodes[name] = replace(node, name=name, venvs=venvs)
        if name not in self.tallies:
            self.tallies[name] = _Tally(
                address=self._address(name), machine=node.machine, had=node.venvs, venvs=node.venvs
            )

    def keep_venvs(self, venvs: Mapping[str, frozenset[str]]) -> None:
        """Remember which virtualenvs the nodes have by now."""
        for name, there in venvs.items():
            self.tallies[name].venvs |= there
            if name in self.nodes:
                self.nodes[name] = replace(self.nodes[name], venvs=self.nodes[name].venvs | there)

    def _hire(self, name: str) -> Hand:
        if self._here is not None:
            actor = self.ray.remote(num_cpus=1)(self._worker).remote((), *self._part)
        else:
            strategy = self.ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(name, soft=False)
            options = {"num_cpus": 1, "scheduling_strategy": strategy}
            actor = self.ray.remote(**options)(self._worker).remote(outfitting.pins(), *self._part)
        hand = Hand(actor=actor, node=name)
        self._hands.append(hand)
        return hand


def cause(error: Exception) -> Exception:
    """What a worker raised; the error itself where the worker was lost."""
    found = getattr(error, "cause", None)
    return found if isinstance(found, Exception) else error


def first_line(error: Exception) -> str:
    """The first line of what an error says, as it can be printed: Ray colours its own, others quote a package."""
    return next(iter(readable(str(error)).strip().splitlines()), type(error).__name__)
