"""Ray: actors that run dump jobs. The only file that imports it, and only when something has to be run."""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any

from audit import dumping
from audit.dumping import CellOutcome, CellTask, DumpJob
from audit.errors import AuditError
from audit.failures import Failure

OBJECT_STORE_BYTES = 256 * 2**20
"""Of a local cluster. Outcomes pass through it and are taken out at once; the largest is under 20 MB."""

LOST_TRIES = 2
"""Workers that may be lost under one job before its cells are given up for this run."""


class Workers:
    """Actors on a Ray cluster: a local one, started quietly and ended on leaving, or a running one at an address."""

    def __init__(self, address: str | None, count: int | None) -> None:
        self._address = address or os.environ.get("RAY_ADDRESS") or None
        self._count = count
        self._actors: list[Any] = []

    def __enter__(self) -> Workers:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        import ray

        self._ray = ray
        try:
            if self._address:
                ray.init(address=self._address, log_to_driver=False, logging_level=logging.ERROR)
            else:
                ray.init(
                    num_cpus=self._count,
                    include_dashboard=False,
                    log_to_driver=False,
                    logging_level=logging.ERROR,
                    object_store_memory=OBJECT_STORE_BYTES,
                )
        except (ConnectionError, RuntimeError, ValueError, OSError) as error:
            where = f"the Ray cluster at {self._address}" if self._address else "a local Ray cluster"
            raise AuditError(f"{where} could not be used: {str(error).strip().splitlines()[0]}") from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for actor in self._actors:
            self._ray.kill(actor)
        self._ray.shutdown()

    def run(self, jobs: Sequence[DumpJob]) -> Iterator[CellOutcome]:
        """Run the jobs, as many at once as there are workers; yield each cell's outcome as it comes in."""
        ray = self._ray
        waiting = deque((job, LOST_TRIES) for job in jobs)
        running: dict[Any, tuple[Any, DumpJob, int]] = {}
        idle = self._idle(len(jobs))
        while waiting or running:
            while waiting and idle:
                actor, (job, tries) = idle.pop(), waiting.popleft()
                stream = actor.run.options(num_returns="streaming").remote(job)
                running[stream] = (actor, job, tries)
            ready, _ = ray.wait(list(running), num_returns=1, fetch_local=False)
            for stream in ready:
                actor, job, tries = running.pop(stream)
                try:
                    outcome: CellOutcome = ray.get(next(stream))
                except StopIteration:
                    idle.append(actor)
                    continue
                except ray.exceptions.RayError as error:
                    self._actors.remove(actor)
                    idle.append(self._start())
                    if tries > 1:
                        waiting.append((job, tries - 1))
                    else:
                        yield from _lost(job, error)
                    continue
                rest = tuple(cell for cell in job.cells if cell.environment != outcome.environment)
                running[stream] = (actor, replace(job, cells=rest), tries)
                yield outcome

    def _idle(self, jobs: int) -> list[Any]:
        wanted = min(jobs, self._count or max(1, int(_resources(self._ray).get("CPU", 1))))
        while len(self._actors) < wanted:
            self._start()
        return list(self._actors)

    def _start(self) -> Any:
        actor = self._ray.remote(num_cpus=1)(_Worker).remote()
        self._actors.append(actor)
        return actor


def _resources(ray: Any) -> dict[str, float]:
    return dict(ray.cluster_resources())


class _Worker:
    """What runs in an actor: one job at a time, one outcome after the other."""

    def run(self, job: DumpJob) -> Iterator[CellOutcome]:
        yield from dumping.run(job)


def _lost(job: DumpJob, error: Exception) -> Iterator[CellOutcome]:
    def outcome(cell: CellTask) -> CellOutcome:
        failure = Failure(
            subject=f"{job.release}/{cell.environment}",
            stage=job.task,
            status="worker-lost",
            reason=f"the worker was lost {LOST_TRIES} times: {str(error).strip().splitlines()[0]}",
        )
        return CellOutcome(release=job.release, environment=cell.environment, result=failure, seconds=0.0, cpu="")

    return map(outcome, job.cells)
