"""What the stages need of the world outside: the store, the workers, and somebody to tell."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol, TypeVar

from audit.cluster.jobs import Job, Outcome
from audit.storage.store import Store

UV_AT_ONCE = 4
"""Calls of uv that run at the same time: they wait for the index more than they compute."""

CELL_SECONDS = 300.0
"""That one cell may take unless told otherwise: enough for what is slow, and an end for what hangs."""

Value = TypeVar("Value")
Result = TypeVar("Result")


class Runner(Protocol):
    """What runs jobs. It starts when it is first needed."""

    @property
    def is_elsewhere(self) -> bool:
        """Whether jobs run on machines that share no files with this one."""
        ...

    def classes(self) -> Mapping[str, int]:
        """The classes of machines that it has, with how many jobs run at once on each."""
        ...

    def prepare(self) -> None:
        """Be told that jobs are coming."""
        ...

    def finish(self) -> None:
        """Be told that no more are coming."""
        ...

    def run(self, jobs: Sequence[Job[Outcome]]) -> Iterator[Outcome]:
        """Yield all outcomes of every job."""
        ...


class Reporter(Protocol):
    """Who is told what happens."""

    def stage(self, name: str, total: int) -> AbstractContextManager[Callable[[str], None]]:
        """Begin a stage of ``total`` items; the function given back is told of each as it is done."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """Handed from stage to stage."""

    store: Store
    runner: Runner
    reporter: Reporter
    timeout: float
    """Seconds that one cell may take."""
    again: bool = False
    """Whether releases are asked again what they failed at too often before, or what they raised at."""


def at_once(
    function: Callable[[Value], Result], values: Sequence[Value], workers: int = UV_AT_ONCE
) -> Iterator[tuple[Value, Result]]:
    """Apply to all, a few at a time; yield each with its result as it is done."""
    pool = ThreadPoolExecutor(workers)
    waiting = {pool.submit(function, value): value for value in values}
    try:
        for future in as_completed(waiting):
            yield waiting[future], future.result()
    finally:  # reached early when the user interrupts: what is under way is not waited for
        pool.shutdown(wait=False, cancel_futures=True)
