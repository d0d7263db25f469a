"""What the stages need of the world outside: the store, the workers, and somebody to tell."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol, TypeVar

from audit.dumping import CellOutcome, DumpJob
from audit.store import Store

UV_AT_ONCE = 4
"""Calls of uv that run at the same time: they wait for the index more than they compute."""

Value = TypeVar("Value")
Result = TypeVar("Result")


class Runner(Protocol):
    """What runs jobs."""

    def run(self, jobs: Sequence[DumpJob]) -> Iterator[CellOutcome]:
        """Yield the outcome of every cell of every job."""
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


class LazyRunner:
    """A runner that is started at its first job, or never."""

    def __init__(self, start: Callable[[], AbstractContextManager[Runner]]) -> None:
        self._start = start
        self._context: AbstractContextManager[Runner] | None = None
        self._runner: Runner | None = None

    def __enter__(self) -> LazyRunner:
        return self

    def __exit__(self, *_: object) -> None:
        if self._context is not None:
            self._context.__exit__(None, None, None)

    def run(self, jobs: Sequence[DumpJob]) -> Iterator[CellOutcome]:
        """Start what runs jobs if that has not been done, and hand over."""
        if self._runner is None:
            self._context = self._start()
            self._runner = self._context.__enter__()
        return self._runner.run(jobs)


def at_once(function: Callable[[Value], Result], values: Sequence[Value]) -> Iterator[tuple[Value, Result]]:
    """Apply to all, a few at a time; yield each with its result as it is done."""
    with ThreadPoolExecutor(UV_AT_ONCE) as pool:
        waiting = {pool.submit(function, value): value for value in values}
        try:
            for future in as_completed(waiting):
                yield waiting[future], future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
