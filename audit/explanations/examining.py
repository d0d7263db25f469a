"""Examine releases: what they are made of, and the stages of their steps. What was answered is not asked again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from audit.digests import digest
from audit.failures import Failure, Status
from audit.planning import building, plan
from audit.planning.plan import Cell
from audit.processes.answers import CellAnswer
from audit.processes.dumper_request import CellTask
from audit.storage.records import Examination
from audit.storage.stored_attempts import Attempt
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


def examine(questions: Sequence[Question], tools: Tools) -> dict[str, Failure]:
    """Ask what the store has no answer to, and keep the answers there; return by key why there is none.

    What a release raises is an answer, unless the user wants it asked again. One whose process dies or hangs is asked
    again by later runs, a few times.
    """
    missing = [each for each in questions if not _is_known(each, tools)]
    failed = _given_up(missing, tools)
    missing = [each for each in missing if each.key not in failed]
    if not missing:
        return failed
    unbuilt = building.build_for_workers([each.cell.release for each in missing], tools)
    failed |= {each.key: unbuilt[each.cell.release.id] for each in missing if each.cell.release.id in unbuilt}
    return failed | _ask([each for each in missing if each.key not in failed], tools)


def _is_known(question: Question, tools: Tools) -> bool:
    status = tools.store.explanations.examined(question.key)
    return status is not None and not (tools.again and status is Status.RAISED)


def _given_up(questions: Sequence[Question], tools: Tools) -> dict[str, Failure]:
    if tools.again:
        return {}
    asked = [Attempt(key=each.key, subject=each.identifier, stage=each.task) for each in questions]
    return {each.key: failure for each, failure in tools.store.attempts.given_up(asked, tools.timeout).items()}


def _ask(questions: Sequence[Question], tools: Tools) -> dict[str, Failure]:
    named = {each.identifier: each for each in questions}
    failed: dict[str, Failure] = {}
    jobs = plan.jobs([(each.cell, each.asked()) for each in questions], tools.timeout)
    with tools.reporter.stage("examining", len(questions)) as done:
        for outcome in tools.runner.run(jobs):
            key, result = named[outcome.identifier].key, outcome.result
            if isinstance(result, Failure) and result.status is not Status.RAISED:
                failed[key] = result
                tools.store.attempts.count({key: result}, [], tools.timeout)
                done(f"{outcome.identifier}: {result.status}")
                continue
            tools.store.explanations.put_examination(key, _answered(result))
            tools.store.attempts.count({}, [key], tools.timeout)
            done(outcome.identifier)
    return failed


def _answered(result: CellAnswer | Failure) -> Examination:
    if isinstance(result, Failure):
        return Examination(status=result.status, reason=result.reason, meta={}, arrays={})
    return Examination(status=result.status, reason=result.reason, meta=result.meta, arrays=result.arrays)


def both(cells: Iterable[Cell], given: bytes) -> list[Question]:
    """All that is asked of the releases of a pair: their constants once, their steps twice."""
    found = []
    for cell in cells:
        found.append(Question(cell=cell, task=ANATOMY))
        if given:
            found += [Question(cell=cell, task=STAGES, given=given, again=again) for again in (False, True)]
    return found
