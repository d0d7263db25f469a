"""Environments to classes of machines, with what the store knows of earlier runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest

from audit import machine
from audit.cluster.jobs import Job, Outcome
from audit.failures import Status
from audit.planning import assigning
from audit.planning.drawing import DrawnEnvironment
from audit.planning.plan import Cell, Recording
from audit.storage.records import DumpRecord, NewDump
from audit.storage.store import Store
from audit.tools import Tools
from tests.planned_cells import batch, drawn, planned

HERE = machine.here().digest


@dataclass
class Machines:
    """A cluster of some classes, on which nothing is run."""

    slots: Mapping[str, int] | None
    is_elsewhere: bool = True

    def classes(self) -> Mapping[str, int]:
        assert self.slots is not None, "the cluster is not to be asked"
        return self.slots

    def prepare(self) -> None: ...

    def finish(self) -> None: ...

    def run(self, jobs: Sequence[Job[Outcome]]) -> Iterator[Outcome]:
        raise AssertionError("nothing is run to assign it")

    @contextmanager
    def stage(self, name: str, total: int) -> Iterator[Callable[[str], None]]:
        yield lambda _: None


CELLS = [planned(name, environment) for environment in "EF" for name in ("one", "two")]


@pytest.fixture
def stimuli() -> dict[str, DrawnEnvironment]:
    return {title: drawn(planned("one", title), batch(2, 5), batch(3, 1)) for title in "EF"}


def keep(store: Store, cell: Cell, on: str, stimuli: Mapping[str, DrawnEnvironment]) -> None:
    stimulus = stimuli[cell.environment.title].stimulus
    key = Recording(cell=replace(cell, machine=on), stimulus=stimulus).key
    record = DumpRecord(status=Status.UNAVAILABLE, reason="", behaviour=None)
    nothing: dict[str, Any] = {"outputs": {}, "description": {}, "steps": 0, "seconds": 0.0}
    store.put_dumps([NewDump(record=record, key=key, machine=on, stimulus=stimulus.digest, **nothing)])


def assigned(store: Store, stimuli: Mapping[str, DrawnEnvironment], machines: Machines) -> dict[str, set[str]]:
    tools = Tools(store=store, runner=machines, reporter=machines, timeout=1.0)
    found: dict[str, set[str]] = {}
    for cell in assigning.assign(CELLS, stimuli, tools):
        found.setdefault(cell.environment.title, set()).add(cell.machine)
    return found


def test_on_one_machine_there_is_nothing_to_assign(store: Store, stimuli: dict[str, DrawnEnvironment]) -> None:
    keep(store, CELLS[0], "old", stimuli)
    assert assigned(store, stimuli, Machines(None, is_elsewhere=False)) == {"E": {HERE}, "F": {HERE}}


def test_all_releases_of_an_environment_have_one_class(store: Store, stimuli: dict[str, DrawnEnvironment]) -> None:
    found = assigned(store, stimuli, Machines({"old": 4, "new": 4}))
    assert sorted(found.values(), key=str) == [{"new"}, {"old"}]


def test_an_environment_goes_on_where_it_was_begun(store: Store, stimuli: dict[str, DrawnEnvironment]) -> None:
    keep(store, CELLS[0], "old", stimuli)
    keep(store, CELLS[2], "new", stimuli)
    assert assigned(store, stimuli, Machines({"old": 1, "new": 100})) == {"E": {"old"}, "F": {"new"}}


def test_an_environment_whose_class_is_gone_begins_anew(store: Store, stimuli: dict[str, DrawnEnvironment]) -> None:
    keep(store, CELLS[0], "gone", stimuli)
    assert assigned(store, stimuli, Machines({"new": 1})) == {"E": {"new"}, "F": {"new"}}


def test_what_is_known_needs_no_cluster(store: Store, stimuli: dict[str, DrawnEnvironment]) -> None:
    for cell in CELLS:
        keep(store, cell, "gone", stimuli)
    assert assigned(store, stimuli, Machines(None)) == {"E": {"gone"}, "F": {"gone"}}


def test_without_a_node_cells_keep_the_class_that_they_had(store: Store, stimuli: dict[str, DrawnEnvironment]) -> None:
    """Their jobs find no node, and say so."""
    assert assigned(store, stimuli, Machines({})) == {"E": {HERE}, "F": {HERE}}
