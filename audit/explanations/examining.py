"""Examine releases: what they are made of, and the stages of their steps. What was answered is not asked again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from audit.digests import digest
from audit.failures import Failure
from audit.planning import building, plan
from audit.planning.plan import Cell
from audit.processes.answers import CellAnswer
from audit.processes.dumper_request import CellTask
from audit.storage.records import Examination
from audit.tools import Tools

ANATOMY, STAGES = "anatomy", "stages"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One thing to ask one release about one environment."""

    cell: Cell
    task: str
    given: bytes = b""
    again: bool = False
    """Whether it is asked a second time, in another process, to see what it does not reproduce."""

    @property
    def label(self) -> str:
        """Its name within the release: one is asked about the steps of several pairs, each with its own states."""
        about = f" {digest(self.given)[:8]}" if self.given else ""
        return f"{self.cell.environment.title} ({self.task}{about}{' again' if self.again else ''})"

    @property
    def identifier(self) -> str:
        """``release/label``."""
        return f"{self.cell.release.id}/{self.label}"

    @property
    def key(self) -> str:
        """What the answer is found again by."""
        return self.cell.examination_key(f"{self.task}{' again' if self.again else ''}", self.given)

    def asked(self) -> CellTask:
        """The question as a dumper takes it."""
        question = self.cell.asked(self.task, self.given or None)
        return replace(question, label=self.label, apart=self.again)


def examine(questions: Sequence[Question], tools: Tools) -> dict[str, Examination]:
    """Answers by the questions' keys. A process that failed has none, and is asked again the next time."""
    found = {
        each.key: known for each in questions if (known := tools.store.explanations.examination(each.key)) is not None
    }
    missing = {each.identifier: each for each in questions if each.key not in found}
    if not missing:
        return found
    unbuilt = building.build_for_workers([each.cell.release for each in missing.values()], tools)
    waiting = [each for each in missing.values() if each.cell.release.id not in unbuilt]
    jobs = plan.jobs([(each.cell, each.asked()) for each in waiting], tools.timeout)
    with tools.reporter.stage("examining", len(waiting)) as done:
        for outcome in tools.runner.run(jobs):
            question = missing[outcome.identifier]
            answered = _answered(outcome.result)
            if answered is not None:
                tools.store.explanations.put_examination(question.key, answered)
                found[question.key] = answered
            done(outcome.identifier)
    return found


def _answered(result: CellAnswer | Failure) -> Examination | None:
    if isinstance(result, Failure):
        return None
    return Examination(status=result.status, reason=result.reason, meta=result.meta, arrays=result.arrays)


def both(cells: Iterable[Cell], given: bytes) -> list[Question]:
    """All that is asked of the releases of a pair: their constants once, their steps twice."""
    found = []
    for cell in cells:
        found.append(Question(cell=cell, task=ANATOMY))
        if given:
            found += [Question(cell=cell, task=STAGES, given=given, again=again) for again in (False, True)]
    return found
