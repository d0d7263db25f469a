"""Ask, for each environment, one release after the other until one can answer; remember what each said.

These questions are asked here and not by the workers: they are short, and what follows waits for their answers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from audit.failures import Failure
from audit.planning import building, plan
from audit.planning.plan import Cell
from audit.processes import dumper_process
from audit.processes.answers import CellAnswer
from audit.processes.dumper_process import CellOutcome, DumpJob
from audit.processes.dumper_request import CellTask
from audit.tools import Tools, at_once

AT_ONCE = 2
"""Processes that are asked at the same time."""

Told = TypeVar("Told")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question(Generic[Told]):
    """What is asked, and how an answer is found again and kept."""

    stage: str
    asked: Callable[[Cell], CellTask]
    recall: Callable[[Cell], Told | Failure | None]
    keep: Callable[[Cell, CellAnswer], None]
    together: bool
    """Whether one process of a release is asked about all environments, or a process about each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers(Generic[Told]):
    """By environment: what was told, and by whom."""

    told: Mapping[str, Told]
    by: Mapping[str, Cell]
    failures: Mapping[str, tuple[Failure, ...]]
    """Of environments that no release could tell about."""
    unbuilt: Mapping[str, Failure]
    """Releases that were to be asked and could not be built."""


@dataclass(slots=True, kw_only=True)
class _Search(Generic[Told]):
    """One environment's way through its releases to the first that can tell."""

    waiting: list[Cell]
    found: Told | None = None
    by: Cell | None = None
    failures: list[Failure] = field(default_factory=list)

    def advance(self, question: Question[Told], unbuilt: Collection[str]) -> Cell | None:
        """Use what is known; return the release to be asked next, if one has to be."""
        while self.waiting and self.found is None:
            cell = self.waiting[0]
            known = question.recall(cell)
            if known is None and cell.release.id not in unbuilt:
                return cell
            self.waiting.pop(0)
            if isinstance(known, Failure):
                self.failures.append(known)
            elif known is not None:
                self.found, self.by = known, cell
        return None


def known(queues: Mapping[str, Sequence[Cell]], question: Question[Told]) -> Answers[Told]:
    """What can be told without asking a release."""
    searches = {title: _Search[Told](waiting=list(cells)) for title, cells in queues.items()}
    for search in searches.values():
        search.advance(question, ())
    return _answers(searches, {})


def ask(queues: Mapping[str, Sequence[Cell]], question: Question[Told], tools: Tools) -> Answers[Told]:
    """Ask until every environment has been told about, or nobody is left to ask."""
    searches = {title: _Search[Told](waiting=list(cells)) for title, cells in queues.items()}
    unbuilt: dict[str, Failure] = {}
    while True:
        steps = (search.advance(question, unbuilt) for search in searches.values())
        asked = [cell for cell in steps if cell is not None]
        if not asked:
            return _answers(searches, unbuilt)
        unbuilt |= building.build([cell.release for cell in asked], tools.reporter)
        _round([cell for cell in asked if cell.release.id not in unbuilt], searches, question, tools)


def _answers(searches: Mapping[str, _Search[Told]], unbuilt: Mapping[str, Failure]) -> Answers[Told]:
    return Answers(
        told={title: search.found for title, search in searches.items() if search.found is not None},
        by={title: search.by for title, search in searches.items() if search.by is not None},
        failures={title: tuple(search.failures) for title, search in searches.items() if search.found is None},
        unbuilt=unbuilt,
    )


def _round(
    asked: Sequence[Cell], searches: Mapping[str, _Search[Told]], question: Question[Told], tools: Tools
) -> None:
    """Ask once. Answers go into the store; a release whose process failed is passed over."""
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
                if isinstance(outcome.result, Failure):
                    search = searches[cell.environment.title]
                    search.failures.append(outcome.result)
                    search.waiting.pop(0)
                else:
                    question.keep(cell, outcome.result)
                done(cell.identifier)


def _run(job: DumpJob) -> list[CellOutcome]:
    return list(dumper_process.run(job))
