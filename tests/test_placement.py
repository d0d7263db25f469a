"""Which node takes which job: properties over any jobs on any nodes, with workers and nodes lost at any point."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from audit.cluster.jobs import Needs
from audit.cluster.placement import LOST_IN_ALL, LOST_ON_ONE_NODE, Node, Placement
from audit.planning.assigning import spread

CLASSES = ("old", "new")
VENVS = ("a", "b", "c", "d", "e")

needs = st.builds(Needs, machine=st.sampled_from(["", *CLASSES]), venv=st.sampled_from(["", *VENVS]))
nodes = st.lists(
    st.builds(
        Node,
        name=st.text("xyz", min_size=1, max_size=3),
        machine=st.sampled_from(CLASSES),
        slots=st.integers(1, 3),
        venvs=st.frozensets(st.sampled_from(VENVS), max_size=3),
    ),
    min_size=1,
    max_size=5,
    unique_by=lambda node: node.name,
)
jobs = st.lists(needs, max_size=25)


@dataclass
class Cluster:
    """Plays the nodes: they take what they are given and end it, or lose it, in any order."""

    placement: Placement
    wanted: list[Needs]
    there: dict[str, Node]
    running: list[tuple[str, int]] = field(default_factory=list)
    begun: list[tuple[str, int]] = field(default_factory=list)
    built: Counter[tuple[str, str]] = field(default_factory=Counter)
    ended: list[int] = field(default_factory=list)
    given_up: list[int] = field(default_factory=list)

    @classmethod
    def of(cls, wanted: list[Needs], members: list[Node]) -> Cluster:
        cluster = cls(Placement(wanted), wanted, {node.name: node for node in members})
        for node in members:
            cluster.placement.join(node)
        return cluster

    def fill(self) -> None:
        takers = list(self.there)
        while takers:
            for name in tuple(takers):
                number = self.placement.take(name)
                if number is None:
                    takers.remove(name)
                    continue
                node, job = self.there[name], self.wanted[number]
                assert job.machine in ("", node.machine), "a job goes to its class of machines alone"
                if job.venv and job.venv not in node.venvs:
                    self.built[name, job.venv] = 1
                self.running.append((name, number))
                self.begun.append((name, number))
                assert sum(name == each for each, _ in self.running) <= node.slots, "a node runs what it has room for"

    def end(self, which: int) -> None:
        _, number = self.running.pop(which % len(self.running))
        self.placement.done(number)
        self.ended.append(number)

    def put_back(self, which: int) -> None:
        name, number = self.running.pop(which % len(self.running))
        self.begun.remove((name, number))
        self.placement.put_back(number, name)

    def lose(self, which: int) -> None:
        name, number = self.running.pop(which % len(self.running))
        if not self.placement.lost(number, name):
            self.given_up.append(number)

    def lose_node(self, which: int) -> None:
        name = sorted(self.there)[which % len(self.there)]
        del self.there[name]
        self.placement.leave(name)
        for each, number in [each for each in self.running if each[0] == name]:
            self.running.remove((each, number))
            if not self.placement.lost(number, each):
                self.given_up.append(number)

    def strand(self) -> None:
        for number in self.placement.stranded():
            wanted = self.wanted[number].machine
            assert not any(wanted in ("", node.machine) for node in self.there.values()), "there is a node for it"
            self.placement.give_up(number)
            self.given_up.append(number)


@given(jobs, nodes, st.lists(st.integers(0, 99), max_size=60))
def test_every_job_is_run_once_or_told_to_have_no_node(
    wanted: list[Needs], members: list[Node], order: list[int]
) -> None:
    cluster = Cluster.of(wanted, members)
    for which in [*order, *([0] * len(wanted))]:
        cluster.fill()
        cluster.strand()
        if cluster.running:
            cluster.end(which)
    assert cluster.placement.is_over
    assert sorted(cluster.ended + cluster.given_up) == list(range(len(wanted)))
    offered = {node.machine for node in members}
    assert all(wanted[number].machine not in ("", *offered) for number in cluster.given_up)


@settings(max_examples=300)
@given(
    jobs,
    nodes,
    st.lists(
        st.tuples(st.sampled_from(["end", "end", "put_back", "lose", "lose_node"]), st.integers(0, 99)), max_size=60
    ),
)
def test_losses_end_nothing_but_what_was_lost_too_often(
    wanted: list[Needs], members: list[Node], events: list[tuple[str, int]]
) -> None:
    cluster = Cluster.of(wanted, members)
    for event, which in [*events, *([("end", 0)] * LOST_IN_ALL * (len(wanted) + 1))]:
        cluster.fill()
        cluster.strand()
        if cluster.running and (event != "lose_node" or cluster.there):
            getattr(cluster, event)(which)
    assert cluster.placement.is_over
    assert sorted(cluster.ended + cluster.given_up) == list(range(len(wanted)))
    tries = Counter(number for _, number in cluster.begun)
    on_node = Counter(cluster.begun)
    assert all(count <= LOST_IN_ALL for count in tries.values())
    assert all(count <= LOST_ON_ONE_NODE for count in on_node.values())


@given(st.lists(st.builds(Needs, machine=st.just("old"), venv=st.sampled_from(VENVS)), max_size=25), nodes)
def test_nobody_is_idle_while_a_virtualenv_that_nobody_has_waits(wanted: list[Needs], members: list[Node]) -> None:
    cluster = Cluster.of(wanted, members)
    cluster.fill()
    homes = {venv for venvs in cluster.placement.venvs.values() for venv in venvs}
    room = any(
        node.machine == "old" and sum(name == node.name for name, _ in cluster.running) < node.slots for node in members
    )
    if room:
        assert all(wanted[number].venv in homes for number in cluster.placement.waiting)


@given(st.lists(st.sampled_from(VENVS), max_size=25), st.integers(1, 4), st.lists(st.integers(0, 99), max_size=30))
def test_a_release_goes_where_its_virtualenv_is(venvs: list[str], count: int, order: list[int]) -> None:
    """Where every node has room for all that waits at home, each virtualenv is built once."""
    members = [Node(name=f"n{number}", machine="old", slots=25) for number in range(count)]
    cluster = Cluster.of([Needs(machine="old", venv=venv) for venv in venvs], members)
    for which in [*order, *([0] * len(venvs))]:
        cluster.fill()
        if cluster.running:
            cluster.end(which)
    assert sum(cluster.built.values()) == len(set(venvs))


def test_a_job_that_would_wait_for_its_turn_is_taken_over() -> None:
    """One node has the virtualenv and one slot; three jobs of it are too many to wait for."""
    members = [Node(name=name, machine="old", slots=1, venvs=frozenset(has)) for name, has in (("h", "a"), ("i", ""))]
    cluster = Cluster.of([Needs(machine="old", venv="a")] * 3, members)
    assert cluster.placement.take("h") == 0
    assert cluster.placement.take("i") == 2  # the second is next at home
    cluster.placement.done(0)
    assert cluster.placement.take("h") == 1


def test_a_job_is_tried_on_another_node_first() -> None:
    members = [Node(name=name, machine="old", slots=1, venvs=frozenset("a")) for name in "xy"]
    cluster = Cluster.of([Needs(machine="old", venv="a")], members)
    assert cluster.placement.take("x") == 0
    assert cluster.placement.lost(0, "x")
    assert cluster.placement.take("x") is None
    assert cluster.placement.take("y") == 0


def test_what_a_node_did_not_begin_is_anybodys_again() -> None:
    """It took two of a virtualenv and can begin neither: it has fewer slots than it seemed, and builds nothing."""
    members = [Node(name=name, machine="old", slots=slots) for name, slots in (("x", 3), ("y", 1))]
    placement = Cluster.of([Needs(), *[Needs(machine="old", venv="a")] * 2], members).placement
    assert [placement.take("x") for _ in range(3)] == [0, 1, 2]
    placement.join(Node(name="x", machine="old", slots=1))
    for number in (2, 1):
        assert placement.has_too_many("x")
        placement.put_back(number, "x")
    assert not placement.has_too_many("x")
    assert placement.venvs == {"x": frozenset(), "y": frozenset()}
    assert [placement.take(name) for name in "xy"] == [None, 1]


def test_what_is_kept_for_a_node_that_is_gone_is_too_much() -> None:
    placement = Cluster.of([Needs()], [Node(name="x", machine="old", slots=1)]).placement
    assert placement.take("x") == 0
    placement.leave("x")
    assert placement.has_too_many("x")
    placement.put_back(0, "x")
    assert placement.stranded() == (0,)


def test_a_lone_node_tries_again() -> None:
    cluster = Cluster.of([Needs()], [Node(name="x", machine="old", slots=1)])
    assert cluster.placement.take("x") == 0
    assert cluster.placement.lost(0, "x")
    assert cluster.placement.take("x") == 0
    assert not cluster.placement.lost(0, "x")
    assert cluster.placement.is_over


# Environments to classes

steps = st.dictionaries(st.text("ENV", min_size=1, max_size=3), st.integers(1, 10**6), max_size=8)
slots = st.dictionaries(st.sampled_from(["old", "new", "newer"]), st.integers(1, 64), min_size=1)


@given(steps, slots, st.data())
def test_an_environment_stays_where_it_was_begun(
    steps: dict[str, int], slots: dict[str, int], data: st.DataObject
) -> None:
    began = st.dictionaries(st.sampled_from(["old", "new", "newer", "gone"]), st.integers(1, 9), max_size=3)
    begun = {title: data.draw(began) for title in steps}
    chosen = spread(steps, begun, slots, here="old")
    assert chosen.keys() == steps.keys()
    assert set(chosen.values()) <= slots.keys()
    for title, name in chosen.items():
        there = {each: count for each, count in begun[title].items() if each in slots}
        if there:
            assert there.get(name) == max(there.values())


def test_environments_are_spread_by_what_they_take() -> None:
    nothing: dict[str, dict[str, int]] = {title: {} for title in "abc"}
    assert spread({"a": 30, "b": 20, "c": 10}, nothing, {"old": 1, "new": 1}, "old") == {
        "a": "old", "b": "new", "c": "new",
    }  # fmt: skip
    assert spread({"a": 5, "b": 5, "c": 5}, nothing, {"old": 10, "new": 1}, "new") == dict.fromkeys("abc", "old")
    assert spread({"a": 5}, nothing, {}, "old") == {}
