"""Run jobs in this process while a local Ray is starting: those seconds would be idle."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from queue import Empty, Queue
from typing import Any, Generic

from audit.cluster.jobs import Job, Outcome

JOBS_AT_ONCE = 2
"""Jobs that run here at the same time. Measured on two cores: one leaves a core idle for a second."""


class HeadStart(Generic[Outcome]):
    """Takes jobs from the end of the queue, the shortest first, until Ray is there or each thread took ``spare``."""

    def __init__(self, waiting: deque[Job[Outcome]], started: Future[Any], *, spare: int) -> None:
        self._waiting = waiting
        self._started = started
        self._found: Queue[Outcome] = Queue()
        pool = ThreadPoolExecutor(JOBS_AT_ONCE)
        self._threads = [pool.submit(self._work, spare) for _ in range(JOBS_AT_ONCE)]
        pool.shutdown(wait=False)

    @property
    def is_busy(self) -> bool:
        """Whether an outcome may still come."""
        return not all(thread.done() for thread in self._threads) or not self._found.empty()

    def outcomes(self, wait: float) -> Iterator[Outcome]:
        """What has come in, after waiting that long for the first."""
        try:
            yield self._found.get(timeout=wait) if wait else self._found.get_nowait()
            while True:
                yield self._found.get_nowait()
        except Empty:
            pass
        for thread in self._threads:
            if thread.done():
                thread.result()  # raises what went wrong there

    def rest(self) -> list[Job[Outcome]]:
        """All jobs that it has not taken, which it will not take any more."""
        left = []
        while self._waiting:
            left.append(self._waiting.popleft())
        return left

    def _work(self, spare: int) -> None:
        while spare > 0 and not self._started.done():
            spare -= 1
            try:
                job = self._waiting.pop()
            except IndexError:  # Ray came in between, and the rest was taken
                return
            for outcome in job.run():
                self._found.put(outcome)
