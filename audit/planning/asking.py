"""Ask, for each environment, one release after the other until one can answer; remember what each said.

These questions are asked here and not by the workers: they are short, and what follows waits for their answers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Generic, TypeVar

from audit.failures import Failure, Status
from audit.planning import building, plan
from audit.planning.plan import Cell
from audit.processes import dumper_process
from audit.processes.answers import CellAnswer
from audit.processes.dumper_process import CellOutcome, DumpJob
from audit.processes.dumper_request import CellTask
from audit.storage.stored_attempts import Attempt
from audit.tools import Tools, at_once

AT_ONCE = 2
"""Processes that are asked at the same time."""

Told = TypeVar("Told")

GivenUp = Callable[[Cell], Failure | None]
"""Of a release that failed too often to be asked: what it failed with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question(Generic[Told]):
    """What is asked, and how an answer is found again and kept."""

    stage: str
    asked: Callable[[Cell], CellTask]
    recall: Callable[[Cell], Told | Failure | None]
    keep: Callable[[Cell, CellAnswer], Failure | None]
    """Keeps an answer, or tells why it cannot be one: then it is counted like a process that failed."""
    key: Callable[[Cell], str]
    """What it is counted by that a process fails to answer."""
    together: bool
    """Whether one process of a release is asked about all environments, or a process about each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers(Generic[Told]):
    """By environment: what was told, and by whom."""

    told: Mapping[str, Told]
    by: Mapping[str, Cell]
    failures: Mapping[str, tuple[Failure, ...]]
    """Of environments that no release could tell about, all of them; of others, what was raised and those of processes
    that failed: who was asked after that may have told something else."""
    unbuilt: Mapping[str, Failure]
    """Releases that were to be asked and could not be built."""


@dataclass(slots=True, kw_only=True)
class _Search(Generic[Told]):
    """One environment's way through its releases to the first that can tell."""

    waiting: list[Cell]
    found: Told | None = None
    by: Cell | None = None
    failures: list[Failure] = field(default_factory=list)
    mishaps: list[Failure] = field(default_factory=list)
    """Those among the failures that were raised or are of processes, and of releases that failed too often before."""

    def advance(
        self, question: Question[Told], unbuilt: Collection[str], given_up: GivenUp, *, again: bool = False
    ) -> Cell | None:
        """Use what is known; return the release to be asked next, if one has to be. What raised may be asked again."""
        while self.waiting and self.found is None:
            cell = self.waiting[0]
            known = question.recall(cell)
            if isinstance(known, Failure) and known.status is Status.RAISED:
                if not again:
                    self.fail(known)  # as when it was asked: else a run would tell what the next one does not
                    continue
                known = None
            refused = given_up(cell) if known is None and cell.release.id not in unbuilt else None
            if refused is not None:
                self.fail(refused)
                continue
            if known is None and cell.release.id not in unbuilt:
                return cell
            self.waiting.pop(0)
            if isinstance(known, Failure):
                self.failures.append(known)
            elif known is not None:
                self.found, self.by = known, cell
        return None

    def fail(self, failure: Failure) -> None:
        """Pass over the release that is next: it raised, or its process failed."""
        self.waiting.pop(0)
        self.failures.append(failure)
        self.mishaps.append(failure)

    @property
    def told(self) -> tuple[Failure, ...]:
        """What a person has to know of it."""
        return tuple(self.failures if self.found is None else self.mishaps)


def known(queues: Mapping[str, Sequence[Cell]], question: Question[Told]) -> Answers[Told]:
    """What can be told without asking a release."""
    searches = {title: _Search[Told](waiting=list(cells)) for title, cells in queues.items()}
    for search in searches.values():
        search.advance(question, (), _nobody)
    return _answers(searches, {})


def ask(queues: Mapping[str, Sequence[Cell]], question: Question[Told], tools: Tools) -> Answers[Told]:
    """Ask until every environment has been told about, or nobody is left to ask."""
    searches = {title: _Search[Told](waiting=list(cells)) for title, cells in queues.items()}
    unbuilt: dict[str, Failure] = {}
    while True:
        given_up = partial(_given_up, question, tools)
        steps = (search.advance(question, unbuilt, given_up, again=tools.again) for search in searches.values())
        asked = [cell for cell in steps if cell is not None]
        if not asked:
            return _answers(searches, unbuilt)
        unbuilt |= building.build([cell.release for cell in asked], tools.reporter)
        _round([cell for cell in asked if cell.release.id not in unbuilt], searches, question, tools)


def _nobody(_: Cell) -> None:
    """Nobody is given up where nobody is asked."""


def _given_up(question: Question[Told], tools: Tools, cell: Cell) -> Failure | None:
    """The failure of a release that failed too often to be asked once more."""
    if tools.again:
        return None
    asked = Attempt(key=question.key(cell), subject=cell.identifier, stage=question.asked(cell).task)
    return tools.store.attempts.given_up([asked], tools.timeout).get(asked)


def _answers(searches: Mapping[str, _Search[Told]], unbuilt: Mapping[str, Failure]) -> Answers[Told]:
    return Answers(
        told={title: search.found for title, search in searches.items() if search.found is not None},
        by={title: search.by for title, search in searches.items() if search.by is not None},
        failures={title: search.told for title, search in searches.items() if search.told},
        unbuilt=unbuilt,
    )


def _round(
    asked: Sequence[Cell], searches: Mapping[str, _Search[Told]], question: Question[Told], tools: Tools
) -> None:
    """Ask once. Answers go into the store; a release whose process failed is passed over, and that is counted."""
    if not asked:
        return
    tools.runner.prepare()  # whatever is asked here, dumps follow it
    by_name = {cell.identifier: cell for cell in asked}
    questions = [(cell, question.asked(cell)) for cell in asked]
    if question.together:
        jobs = plan.jobs(questions, tools.timeout)
    else:
        jobs = tuple(plan.job(cell, [task], tools.timeout) for cell, task in questions)
    with tools.reporter.stage(question.stage, len(asked)) as done:
        for _, outcomes in at_once(_run, jobs, AT_ONCE):
            for outcome in outcomes:
                cell = by_name[outcome.identifier]
                failure = _remember(cell, outcome.result, question, tools)
                if failure is not None:
                    searches[cell.environment.title].fail(failure)
                done(cell.identifier if failure is None else f"{cell.identifier}: {failure.status}")


def _remember(cell: Cell, result: CellAnswer | Failure, question: Question[Told], tools: Tools) -> Failure | None:
    """What a release says, or raises, is kept; what its process died of is counted. Returned is what failed."""
    key, attempts = question.key(cell), tools.store.attempts
    failure = result if isinstance(result, Failure) else question.keep(cell, result)
    if failure is not None and failure.status is not Status.RAISED:
        attempts.count({key: failure}, [], tools.timeout)
        return failure
    if failure is not None:
        question.keep(cell, CellAnswer.of_failure(failure))
    attempts.count({}, [key], tools.timeout)
    return failure


def _run(job: DumpJob) -> list[CellOutcome]:
    return list(dumper_process.run(job))
