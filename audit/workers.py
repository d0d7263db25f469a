"""Ray: actors that run jobs. The only file that imports it, and only when something has to be run."""

from __future__ import annotations

import logging
import os
import socket
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from queue import Empty, Queue
from typing import Any, Generic

from audit.errors import AuditError
from audit.jobs import Job, Outcome

OBJECT_STORE_BYTES = 256 * 2**20
"""Of a local cluster. Outcomes pass through it and are taken out at once; the largest is under 20 MB."""

CONNECT_SECONDS = 10.0

HEAD_START_JOBS = 2
"""Jobs that run here at the same time while Ray starts. Measured on two cores: one leaves a core idle for a second."""
JOBS_FOR_ACTORS = 2
"""Jobs for each actor that are never taken from them."""

_LOOK_SECONDS = 0.05

LOST_TRIES = 2
"""Workers that may be lost under one job before its cells are given up for this run."""


class Workers:
    """Actors on a Ray cluster: a local one, started quietly and ended on leaving, or a running one at an address.

    Nothing is started before it is asked for. Starting and ending a local cluster takes seconds that others can use,
    so both go on in the background.
    """

    def __init__(self, address: str | None, count: int | None) -> None:
        self._address = address or os.environ.get("RAY_ADDRESS") or None
        self._count = count
        self._background = ThreadPoolExecutor(1)
        self._started: Future[Any] | None = None
        self._actors: list[Any] = []

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        if self._started is not None and not self._started.done():
            # Left while Ray was starting: what has started ends with this process.
            self._background.shutdown(wait=False)
            return
        self.finish()
        self._background.shutdown(wait=True)

    def prepare(self) -> None:
        """Begin to start Ray: jobs are coming."""
        if self._started is None:
            self._started = self._background.submit(_start_ray, self._address, self._count)

    def finish(self) -> None:
        """Begin to end Ray: no more jobs are coming."""
        if self._started is not None:
            self._background.submit(_end_ray, self._started, self._actors)
            self._started, self._actors = None, []

    def run(self, jobs: Sequence[Job[Outcome]]) -> Iterator[Outcome]:
        """Run the jobs, as many at once as there are workers; yield each outcome as it comes in."""
        self.prepare()
        assert self._started is not None
        waiting = deque((job, LOST_TRIES) for job in jobs)
        early = _HeadStart(waiting, self._started, spare=self._spare(jobs))
        while not self._started.done():
            yield from early.outcomes(wait=_LOOK_SECONDS)
        ray = self._started.result()
        running: dict[Any, tuple[Any, Job[Outcome], int]] = {}
        idle = self._idle(ray, len(waiting))
        while waiting or running or early.busy:
            while waiting and idle:
                actor, (job, tries) = idle.pop(), waiting.popleft()
                stream = actor.run.options(num_returns="streaming").remote(job)
                running[stream] = (actor, job, tries)
            yield from early.outcomes(wait=0.0 if running else _LOOK_SECONDS)
            timeout = _LOOK_SECONDS if early.busy else None
            ready = ray.wait(list(running), timeout=timeout, fetch_local=False)[0] if running else []
            for stream in ready:
                actor, job, tries = running.pop(stream)
                try:
                    outcome: Outcome = ray.get(next(stream))
                except StopIteration:
                    idle.append(actor)
                    continue
                except ray.exceptions.RayError as error:
                    _raise_if_bug(error)
                    self._actors.remove(actor)
                    idle.append(self._start(ray))
                    if tries > 1:
                        waiting.append((job, tries - 1))
                    else:
                        yield from job.lost(f"the worker was lost {LOST_TRIES} times: {_first_line(error)}")
                    continue
                running[stream] = (actor, job.without(outcome), tries)
                yield outcome

    def _spare(self, jobs: Sequence[Job[Outcome]]) -> int:
        """Jobs beyond what keeps the actors busy for a while, which this process may take while a local Ray starts."""
        if self._address is not None or not all(job.waits for job in jobs):
            return 0
        return max(0, len(jobs) - JOBS_FOR_ACTORS * (self._count or os.cpu_count() or 1))

    def _idle(self, ray: Any, jobs: int) -> list[Any]:
        wanted = min(jobs, self._count or max(1, int(ray.cluster_resources().get("CPU", 1))))
        while len(self._actors) < wanted:
            self._start(ray)
        return list(self._actors)

    def _start(self, ray: Any) -> Any:
        actor = ray.remote(num_cpus=1)(_Worker).remote()
        self._actors.append(actor)
        return actor


class _HeadStart(Generic[Outcome]):
    """Runs jobs in this process while a local Ray is starting, the shortest first: those seconds would be idle."""

    def __init__(self, waiting: deque[tuple[Job[Outcome], int]], started: Future[Any], *, spare: int) -> None:
        self._waiting = waiting
        self._started = started
        self._found: Queue[Outcome] = Queue()
        pool = ThreadPoolExecutor(HEAD_START_JOBS)
        self._threads = [pool.submit(self._work, spare // HEAD_START_JOBS) for _ in range(HEAD_START_JOBS)]
        pool.shutdown(wait=False)

    @property
    def busy(self) -> bool:
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

    def _work(self, spare: int) -> None:
        while spare > 0 and not self._started.done():
            spare -= 1
            job, _ = self._waiting.pop()
            for outcome in job.run():
                self._found.put(outcome)


def _start_ray(address: str | None, count: int | None) -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    import ray

    if address:
        _require_somebody(address)
    local = {"num_cpus": count, "include_dashboard": False, "object_store_memory": OBJECT_STORE_BYTES}
    where = {"address": address} if address else local
    try:
        ray.init(log_to_driver=False, logging_level=logging.ERROR, **where)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        cluster = f"the Ray cluster at {address}" if address else "a local Ray cluster"
        raise AuditError(f"{cluster} could not be used: {_first_line(error)}") from None
    return ray


def _require_somebody(address: str) -> None:
    """Raise when nobody listens at ``host:port``: Ray itself would try for ever."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host:
        return  # a word such as `auto`, which Ray resolves by itself
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_SECONDS).close()
    except (OSError, ValueError) as error:
        raise AuditError(f"the Ray cluster at {address} could not be used: {error}") from None


def _end_ray(started: Future[Any], actors: Sequence[Any]) -> None:
    if started.exception() is None:
        ray = started.result()
        for actor in actors:
            ray.kill(actor)
        ray.shutdown()


def _raise_if_bug(error: Exception) -> None:
    """Raise what a worker raised, which is ours; one that was lost, or that the system refused something, is not."""
    cause = getattr(error, "cause", None)
    if isinstance(cause, Exception) and not isinstance(cause, OSError):
        raise cause


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]


class _Worker:
    """What runs in an actor: one job at a time, one outcome after the other."""

    def run(self, job: Job[Any]) -> Iterator[Any]:
        yield from job.run()
