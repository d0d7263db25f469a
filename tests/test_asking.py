"""Asking one release after the other: who is asked next, what is remembered, who is passed over."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import pytest

from audit.failures import MOST_RUNS, Failure, Status
from audit.installing.locks import Release
from audit.planning import asking, probing
from audit.planning.asking import Question
from audit.planning.plan import Cell
from audit.processes.answers import CellAnswer
from audit.processes.dumper_process import CellOutcome, DumpJob
from audit.storage.records import ProbeRecord
from audit.storage.store import Store
from audit.tools import Reporter, Tools
from tests.planned_cells import came_to, planned
from tests.silent import Silent


@dataclass
class Releases:
    """What each release would say, by identifier, and what was asked of whom."""

    says: dict[str, str]
    unbuildable: tuple[str, ...] = ()
    asked: list[list[str]] = field(default_factory=list)
    kept: dict[str, str] = field(default_factory=dict)

    def build(self, releases: Sequence[Release], reporter: Reporter) -> dict[str, Failure]:
        return {
            each.id: Failure(subject=each.id, stage="build", status=Status.UNBUILT, reason="no compiler")
            for each in releases
            if each.id in self.unbuildable
        }

    def run(self, job: DumpJob) -> Iterator[CellOutcome]:
        self.asked.append([f"{job.release}/{cell.label}" for cell in job.cells])
        for cell in job.cells:
            name = f"{job.release}/{cell.label}"
            said = self.says[name]
            result: CellAnswer | Failure = CellAnswer(status=Status.OK, reason=said)
            if said in ("crash", "full disk", "raise"):
                status = {"crash": Status.CRASHED, "full disk": Status.DISK_FULL, "raise": Status.RAISED}[said]
                result = Failure(subject=name, stage="probe", status=status, reason=said)
            yield came_to(job, cell, result)

    def question(self, *, together: bool = True) -> Question[str]:
        def recall(cell: Cell) -> str | Failure | None:
            known = self.kept.get(cell.identifier)
            if known in ("lacks it", "raise"):
                status = Status.RAISED if known == "raise" else Status.UNAVAILABLE
                return Failure(subject=cell.identifier, stage="probe", status=status, reason=known)
            return known

        def keep(cell: Cell, answer: CellAnswer) -> Failure | None:
            if answer.reason == "nonsense":
                return Failure(subject=cell.identifier, stage="probe", status=Status.DAMAGED, reason=answer.reason)
            self.kept[cell.identifier] = answer.reason
            return None

        return Question(
            stage="asking",
            asked=lambda cell: cell.asked("probe"),
            recall=recall,
            keep=keep,
            key=lambda cell: cell.identifier,
            together=together,
        )


@pytest.fixture
def ask(store: Store, monkeypatch: pytest.MonkeyPatch) -> Callable[..., asking.Answers[str]]:
    silent = Silent()
    tools = Tools(store=store, runner=silent, reporter=silent, timeout=1.0)

    def asked(
        releases: Releases, cells: Sequence[Cell], *, together: bool = True, again: bool = False
    ) -> asking.Answers[str]:
        monkeypatch.setattr("audit.planning.building.build", releases.build)
        monkeypatch.setattr("audit.processes.dumper_process.run", releases.run)
        question = releases.question(together=together)
        return asking.ask(probing.queues(cells, None), question, replace(tools, again=again))

    return asked


Ask = Callable[..., asking.Answers[str]]


def test_the_first_that_can_tell_is_believed_and_nobody_else_is_asked(ask: Ask) -> None:
    releases = Releases({"a/E": "four entries", "b/E": "five entries"})
    found = ask(releases, [planned("a"), planned("b")])
    assert found.told == {"E": "four entries"}
    assert found.by["E"].identifier == "a/E"
    assert (found.failures, found.unbuilt) == ({}, {})
    assert releases.asked == [["a/E"]]


def test_one_that_lacks_it_or_crashes_is_passed_over(ask: Ask) -> None:
    releases = Releases({"a/E": "lacks it", "b/E": "crash", "c/E": "four entries"})
    found = ask(releases, [planned("a"), planned("b"), planned("c")])
    assert found.told == {"E": "four entries"}
    assert found.by["E"].release.id == "c"
    assert releases.asked == [["a/E"], ["b/E"], ["c/E"]]
    assert [(each.subject, each.status) for each in found.failures["E"]] == [("b/E", "crashed")]


def test_the_machine_is_named_where_it_kept_a_release_from_telling(ask: Ask) -> None:
    """Else the next run asks that release, is told something else, and nobody knows why."""
    found = ask(Releases({"a/E": "full disk", "b/E": "five entries"}), [planned("a"), planned("b")])
    assert found.told == {"E": "five entries"}
    assert [(each.subject, each.status) for each in found.failures["E"]] == [("a/E", "disk-full")]


def test_one_that_fails_again_and_again_is_not_asked_for_ever(ask: Ask) -> None:
    cells = [planned("a"), planned("b")]
    for _ in range(MOST_RUNS):
        assert ask(Releases({"a/E": "crash", "b/E": "four"}), cells).told == {"E": "four"}
    last, again = (Releases({"a/E": "crash", "b/E": "four"}) for _ in range(2))
    found = ask(last, cells)
    assert last.asked == [["b/E"]]
    ((failure,),) = found.failures.values()
    assert (failure.subject, failure.stage, failure.status) == ("a/E", "probe", "crashed")
    assert "is not tried again" in failure.reason
    ask(again, cells, again=True)
    assert again.asked == [["a/E"], ["b/E"]]


def test_an_answer_that_cannot_be_one_counts_like_a_process_that_failed(ask: Ask) -> None:
    cells = [planned("a"), planned("b")]
    for _ in range(MOST_RUNS):
        releases = Releases({"a/E": "nonsense", "b/E": "four"})
        found = ask(releases, cells)
        assert releases.asked[0] == ["a/E"]
        assert [(each.subject, each.status) for each in found.failures["E"]] == [("a/E", "damaged")]
    last, again = (Releases({"a/E": "nonsense", "b/E": "four"}) for _ in range(2))
    ask(last, cells)
    assert last.asked == [["b/E"]]
    ask(again, cells, again=True)
    assert again.asked == [["a/E"], ["b/E"]]


def test_the_machine_is_never_given_up(ask: Ask) -> None:
    for _ in range(MOST_RUNS + 1):
        releases = Releases({"a/E": "full disk"})
        ask(releases, [planned("a")])
        assert releases.asked == [["a/E"]]


def test_what_a_release_raises_is_remembered(ask: Ask) -> None:
    releases = Releases({"a/E": "raise", "b/E": "four"})
    for _ in range(2):
        found = ask(releases, [planned("a"), planned("b")])
        assert found.told == {"E": "four"}
        assert [(each.subject, each.status) for each in found.failures["E"]] == [("a/E", "raised")]
    assert releases.asked == [["a/E"], ["b/E"]]
    ask(releases, [planned("a"), planned("b")], again=True)
    assert releases.asked == [["a/E"], ["b/E"], ["a/E"]]


def test_where_nobody_can_tell_everybody_says_why(ask: Ask) -> None:
    found = ask(Releases({"a/E": "lacks it", "b/E": "crash"}), [planned("a"), planned("b")])
    assert found.told == {}
    assert [(each.subject, each.status) for each in found.failures["E"]] == [
        ("a/E", "unavailable"),
        ("b/E", "crashed"),
    ]


def test_a_release_that_cannot_be_built_is_told_once_and_passed_over(ask: Ask) -> None:
    releases = Releases({"b/E": "four", "b/F": "five"}, unbuildable=("a",))
    cells = [planned("a"), planned("b"), planned("a", "F"), planned("b", "F")]
    found = ask(releases, cells)
    assert found.told == {"E": "four", "F": "five"}
    assert set(found.unbuilt) == {"a"}


def test_one_process_is_asked_about_all_environments_or_a_process_about_each(ask: Ask) -> None:
    cells = [planned("a"), planned("a", "F"), planned("a", "G")]
    says = {"a/E": "1", "a/F": "2", "a/G": "3"}
    together, apart = Releases(says), Releases(says)
    ask(together, cells)
    ask(apart, cells, together=False)
    assert together.asked == [["a/E", "a/F", "a/G"]]
    assert sorted(apart.asked) == [["a/E"], ["a/F"], ["a/G"]]


def test_environments_go_their_own_ways(ask: Ask) -> None:
    releases = Releases({"a/E": "one", "a/F": "lacks it", "b/F": "two"})
    found = ask(releases, [planned("a"), planned("b"), planned("a", "F"), planned("b", "F")])
    assert found.told == {"E": "one", "F": "two"}
    assert releases.asked == [["a/E", "a/F"], ["b/F"]]


def test_what_is_remembered_is_not_asked_again(ask: Ask) -> None:
    releases = Releases({}, kept={"a/E": "lacks it", "b/E": "four entries"})
    found = ask(releases, [planned("a"), planned("b")])
    assert found.told == {"E": "four entries"}
    assert releases.asked == []


def test_what_is_known_stops_at_the_first_that_would_have_to_be_asked() -> None:
    releases = Releases({}, kept={"a/E": "lacks it", "c/E": "four entries", "a/F": "five"})
    cells = [planned("a"), planned("b"), planned("c"), planned("a", "F")]
    found = asking.known(probing.queues(cells, None), releases.question())
    assert found.told == {"F": "five"}
    assert [each.subject for each in found.failures["E"]] == ["a/E"]


def test_nothing_is_asked_of_nothing(ask: Ask) -> None:
    found = ask(Releases({}), [])
    assert (found.told, found.failures) == ({}, {})


# Whom first


def test_the_baseline_is_asked_first_and_then_the_oldest() -> None:
    cells = [planned("a"), planned("b"), planned("c"), planned("a", "F")]
    assert {title: [each.release.id for each in queue] for title, queue in probing.queues(cells, "b").items()} == {
        "E": ["b", "a", "c"],
        "F": ["a"],
    }
    assert [each.release.id for each in probing.queues(cells, None)["E"]] == ["a", "b", "c"]


def test_layouts_are_known_from_the_store_alone(store: Store) -> None:
    cells = [planned("a"), planned("b")]
    assert probing.known_layouts(cells, None, store) == {}
    layout = {
        "kind": "state", "state_size": 1, "positions": 1, "quaternions": [], "reference": [0.5],
        "action": {"type": "Discrete", "n": 2, "start": 0},
    }  # fmt: skip
    store.put_probe(cells[0].probe_key, ProbeRecord(status=Status.UNAVAILABLE, reason="none", layout=None))
    store.put_probe(cells[1].probe_key, ProbeRecord(status=Status.OK, reason="", layout=layout))
    found = probing.known_layouts(cells, None, store)
    assert found["E"].cell.identifier == "b/E"
    assert found["E"].layout.state_size == 1
