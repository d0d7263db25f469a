"""The dumping stage without a process: what it keeps of failures, and when."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from audit.cluster.jobs import Job, Outcome
from audit.dumps import dumping
from audit.failures import MOST_RUNS, Failure, Status
from audit.planning.plan import Recording
from audit.processes.dumper_process import CellOutcome
from audit.storage.store import Store
from audit.storage.stored_attempts import Attempt
from audit.tools import Tools
from tests.planned_cells import batch, drawn, planned
from tests.silent import Silent


class Interrupted(Silent):
    """A runner that is interrupted after its first process has hung."""

    def run(self, jobs: Sequence[Job[Outcome]]) -> Iterator[Outcome]:
        job: Any = jobs[0]
        failure = Failure(subject=f"{job.release}/E", stage="dump", status=Status.TIMEOUT, reason="no answer")
        outcome: Any = CellOutcome(
            release=job.release, environment="E", label="E", result=failure, seconds=1.0, machine=""
        )
        yield outcome
        raise KeyboardInterrupt


def test_what_hung_is_counted_also_where_the_audit_is_interrupted_later(store: Store) -> None:
    """Else an audit that is ended each night before it is done tries the same cells for ever."""
    runner = Interrupted()
    tools = Tools(store=store, runner=runner, reporter=runner, timeout=1.0)
    cells = [planned("a"), planned("b")]
    recordings = [Recording(cell=cell, stimulus=drawn(cell, batch(2, 3), batch(4, 1)).stimulus) for cell in cells]
    for _ in range(MOST_RUNS):
        with pytest.raises(KeyboardInterrupt):
            dumping.record(recordings, tools)
    asked = [Attempt(key=each.key, subject=each.identifier, stage="dump") for each in recordings]
    assert list(store.attempts.given_up(asked, 1.0)) == asked[:1]
