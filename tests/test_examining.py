"""Examining releases without a process: what is kept of their answers and failures, when, and what is asked again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from audit.cluster.jobs import Job, Outcome
from audit.explanations import examining, explaining
from audit.explanations.examining import ANATOMY, Question
from audit.explanations.explaining import ChangedPair
from audit.failures import MOST_RUNS, Failure, Status
from audit.processes.answers import CellAnswer
from audit.storage.store import Store
from audit.tools import Tools
from tests.planned_cells import came_to, planned
from tests.silent import Silent

_NO_CONSTANTS = CellAnswer(status=Status.OK, reason="", meta={"names": {}, "texts": {}})


@dataclass
class Examined(Silent):
    """A runner whose releases answer, or fail, as they are told to; one that has nothing to say interrupts the run."""

    says: dict[str, Status]
    asked: list[str] = field(default_factory=list)

    def run(self, jobs: Sequence[Job[Outcome]]) -> Iterator[Outcome]:
        asked: Any = jobs
        for job, cell in [(each, cell) for each in asked for cell in each.cells]:
            if job.release not in self.says:
                raise KeyboardInterrupt
            self.asked.append(job.release)
            status = self.says[job.release]
            failure = Failure(subject=f"{job.release}/{cell.label}", stage=cell.task, status=status, reason="so it is")
            outcome: Any = came_to(job, cell, _NO_CONSTANTS if status == "ok" else failure)
            yield outcome


@pytest.fixture(autouse=True)
def built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("audit.planning.building.build", lambda *_: {})


def tools_for(store: Store, runner: Silent, *, again: bool = False) -> Tools:
    return Tools(store=store, runner=runner, reporter=runner, timeout=1.0, again=again)


def questions(*releases: str) -> list[Question]:
    return [Question(cell=planned(name), task=ANATOMY) for name in releases]


def examine(store: Store, says: dict[str, Status], *, again: bool = False) -> tuple[list[str], dict[str, Failure]]:
    """Who was asked about its constants, and what failed."""
    runner = Examined(says)
    return runner.asked, examining.examine(questions("a", "b"), tools_for(store, runner, again=again))


def test_what_died_is_counted_also_where_the_audit_is_interrupted_later(store: Store) -> None:
    """Else an audit that is ended each night before it is done examines the same releases for ever."""
    for _ in range(MOST_RUNS):
        with pytest.raises(KeyboardInterrupt):
            examine(store, {"a": Status.CRASHED})
    asked, failed = examine(store, {"a": Status.OK, "b": Status.OK})
    assert asked == ["b"]
    ((key, failure),) = failed.items()
    assert [key] == [each.key for each in questions("a")]
    assert (failure.subject, failure.stage, failure.status) == ("a/E (anatomy)", "anatomy", "crashed")
    assert "is not tried again" in failure.reason


def test_an_answer_makes_up_for_earlier_failures_also_where_the_audit_is_interrupted_later(store: Store) -> None:
    examine(store, {"a": Status.CRASHED, "b": Status.OK})
    with pytest.raises(KeyboardInterrupt):
        examining.examine(questions("a", "c"), tools_for(store, Examined({"a": Status.RAISED})))
    assert store.query("SELECT count(*) FROM internal.attempts").rows == ((0,),)


def test_what_a_release_raises_is_an_answer_unless_it_is_to_be_asked_again(store: Store) -> None:
    says = {"a": Status.RAISED, "b": Status.OK}
    assert examine(store, says) == (["a", "b"], {})
    assert examine(store, says) == ([], {})
    assert examine(store, says, again=True) == (["a"], {})


def test_a_pair_is_explained_again_where_a_release_raised_and_is_to_be_asked_again(store: Store) -> None:
    nothing = np.empty((0, 0))
    pair = ChangedPair(
        older=planned("a"),
        newer=planned("b"),
        older_behaviour="x",
        newer_behaviour="y",
        states=nothing,
        actions=nothing,
    )

    def explained(says: dict[str, Status], *, again: bool = False) -> tuple[list[str], list[str]]:
        shown: list[str] = []
        runner = Examined(says)
        explaining.explain([pair], tools_for(store, runner, again=again), lambda each: shown.append(each.record.reason))
        return runner.asked, shown

    raises, answers = {"a": Status.RAISED, "b": Status.OK}, {"a": Status.OK, "b": Status.OK}
    asked, (reason,) = explained(raises)
    assert (asked, "a/E (anatomy): raised: so it is" in reason) == (["a", "b"], True)
    assert explained(answers) == ([], [])
    asked, (reason,) = explained(answers, again=True)
    assert (asked, "raised" in reason) == (["a"], False)
    assert explained(answers, again=True) == ([], []), "nothing is left that raised"
