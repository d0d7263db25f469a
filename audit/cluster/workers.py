"""Ray: actors that run jobs, here or on a cluster. The only file that imports it, when something has to be run.

Which node runs what is decided in ``placement.py`` and done in ``rounds.py``; ``crew.py`` knows the nodes.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from audit import folders
from audit.cluster import outfitting
from audit.cluster.crew import Crew, first_line
from audit.cluster.head_start import JOBS_AT_ONCE, HeadStart
from audit.cluster.jobs import Job, Outcome
from audit.cluster.placement import Node
from audit.cluster.rounds import LOOK_SECONDS, Round
from audit.errors import AuditError

OBJECT_STORE_BYTES = 256 * 2**20
"""Of a local cluster. Outcomes pass through it and are taken out at once; the largest is under 20 MB."""

CONNECT_SECONDS = 10.0

UNASKED_PARTS = ("start_monitor", "start_log_monitor", "start_api_server")
"""What would scale a cluster, bring its log to the driver and serve its pages: nobody asks anything of them in a Ray
that is there for one audit, and ``ray.init`` has no option for that. Each is a Python that imports most of Ray: without
them, starting it takes 5.4 s of processor time instead of 13.9 (Ray 2.60, side by side on one slow machine)."""

JOBS_FOR_ACTORS = 2
"""Jobs for each actor that are never taken from them while Ray starts."""


class Workers:
    """Actors on a Ray cluster: a local one, started quietly and ended on leaving, or a running one at an address.

    Nothing is started before it is asked for. Starting and ending a local cluster takes seconds that others can use,
    so both go on in the background.
    """

    def __init__(
        self,
        address: str | None,
        count: int | None,
        tell: Callable[[str], None] = lambda _: None,
        *,
        again: bool = False,
    ) -> None:
        """``tell`` is given a sentence where somebody has to wait for long.

        ``again`` says that nodes are to build again what failed to build there in earlier runs.
        """
        self._tell = tell
        self._again = again
        self._address = address or os.environ.get("RAY_ADDRESS") or None
        self._count = count
        self._background = ThreadPoolExecutor(1)
        self._started: Future[Crew] | None = None
        self._crew: Crew | None = None

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        if self._started is not None and not self._started.done():
            # Left while Ray was starting: what has started ends with this process.
            self._background.shutdown(wait=False)
            return
        self.finish()
        self._background.shutdown(wait=True)

    @property
    def is_elsewhere(self) -> bool:
        """Whether it is a cluster, whose nodes have no files of this machine."""
        return self._address is not None

    def prepare(self) -> None:
        """Begin to start Ray: jobs are coming."""
        if self._started is None:
            from audit.installing import failed_builds

            part = failed_builds.run(), self._again
            self._started = self._background.submit(_start_ray, self._address, self._count, self._tell, part)

    def finish(self) -> None:
        """Begin to end Ray: no more jobs are coming."""
        if self._started is not None:
            self._background.submit(_end_ray, self._started)
            self._started = None

    def classes(self) -> Mapping[str, int]:
        """Classes of machines, with how many jobs run at once on each; a cluster's nodes are asked."""
        crew = self._hired()
        crew.survey()
        found: Counter[str] = Counter()
        for node in crew.nodes.values():
            found[node.machine] += node.slots
        return found

    def run(self, jobs: Sequence[Job[Outcome]]) -> Iterator[Outcome]:
        """Run the jobs, as many at once as there are workers; yield each outcome as it comes in.

        One or two are done here, where they run at the same time anyhow, before a Ray that nobody prepared has started.
        """
        if self._started is None and self._spare(jobs, kept=0) and len(jobs) <= JOBS_AT_ONCE:
            yield from _run_here(jobs)
            return
        self.prepare()
        assert self._started is not None
        kept = JOBS_FOR_ACTORS * (self._count or os.cpu_count() or 1)
        early = HeadStart(deque(jobs), self._started, spare=self._spare(jobs, kept) // JOBS_AT_ONCE)
        while not self._started.done():
            yield from early.outcomes(wait=LOOK_SECONDS)
        yield from Round(self._hired(), early.rest(), early).outcomes()

    def told(self) -> tuple[str, ...]:
        """On a cluster: which node did what, and which could not be used."""
        return self._crew.told() if self._crew is not None and self.is_elsewhere else ()

    def _hired(self) -> Crew:
        self.prepare()
        assert self._started is not None
        self._crew = self._started.result()
        return self._crew

    def _spare(self, jobs: Sequence[Job[Outcome]], kept: int) -> int:
        """Jobs that this process may take while there is no local Ray, beyond those ``kept`` for the actors."""
        if self.is_elsewhere or not all(job.waits for job in jobs):
            return 0
        return max(0, len(jobs) - kept)


def _run_here(jobs: Sequence[Job[Outcome]]) -> Iterator[Outcome]:
    here = HeadStart(deque(jobs), Future(), spare=len(jobs))
    while here.is_busy:
        yield from here.outcomes(wait=LOOK_SECONDS)


def _start_ray(address: str | None, count: int | None, tell: Callable[[str], None], part: tuple[str, bool]) -> Crew:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    if not address:
        # Where memory runs out, the system ends a dumper first: it is marked for that. Ray would end a worker instead.
        os.environ.setdefault("RAY_memory_monitor_refresh_ms", "0")
        os.environ.setdefault("RAY_worker_oom_score_adjustment", "0")
    import ray
    import ray.util.scheduling_strategies

    connected: Any = ray
    if address:
        _require_somebody(address)
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    local: dict[str, Any] = {"include_dashboard": False, "object_store_memory": OBJECT_STORE_BYTES}
    try:
        if address:
            with outfitting.packed() as folder:
                ray.init(address=address, runtime_env={"working_dir": str(folder)}, **quiet)
        else:
            with _only_what_runs_jobs(connected._private.node.Node):
                ray.init(num_cpus=count, **local, **quiet)
    except Exception as error:  # Ray raises that very class when a loaded machine does not start in time
        cluster = f"the Ray cluster at {address}" if address else "a local Ray cluster"
        raise AuditError(f"{cluster} could not be used: {first_line(error)}{_advice(error)}") from None
    # Ray prints what befalls its nodes between the lines of this program, which tells of it in its own words.
    connected._private.worker._worker_logs_enabled = False
    if address:
        return Crew(connected, _Worker, most=count, here=None, tell=tell, part=part)
    slots = max(1, int(connected.cluster_resources().get("CPU", 1)))
    return Crew(connected, _Worker, most=count, here=lambda: _look_around(slots), tell=tell, part=part)


@contextlib.contextmanager
def _only_what_runs_jobs(node: Any) -> Iterator[None]:
    """Let Ray's class of nodes start nothing else meanwhile. A version that has no such parts is left as it is."""
    unasked = {name: getattr(node, name) for name in UNASKED_PARTS if hasattr(node, name)}
    for name in unasked:
        setattr(node, name, lambda *_, **__: None)
    try:
        yield
    finally:
        for name, method in unasked.items():
            setattr(node, name, method)


def _advice(error: Exception) -> str:
    """What to look at where somebody listens and Ray does not get in, which says no more than that itself."""
    if not isinstance(error, ConnectionError):
        return ""
    return (
        "; somebody listens there, who may want another token: RAY_AUTH_MODE and the token have to be those of the head"
    )


def _require_somebody(address: str) -> None:
    """Raise when nobody listens at ``host:port``: Ray itself would try for ever."""
    if address.startswith("ray://"):
        raise AuditError(
            f"{address} is an address for Ray's client, which cannot stream what jobs yield: run release-audit on a "
            "machine of the cluster, with --address HOST:PORT of its head"
        )
    host, _, port = address.rpartition(":")
    if not host:
        return  # a word such as `auto`, which Ray resolves by itself
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_SECONDS).close()
    except (OSError, ValueError) as error:
        raise AuditError(f"the Ray cluster at {address} could not be used: {error}") from None


def _end_ray(started: Future[Crew]) -> None:
    if started.exception() is None:
        started.result().end()


def _look_around(slots: int) -> Node:
    """What this machine is."""
    from audit import machine
    from audit.installing import venvs  # on a bare node they can be imported only after it was outfitted

    return Node(name="", machine=machine.here().digest, slots=slots, venvs=venvs.standing())


def _outlive_dumpers() -> None:
    """Let the system spare this worker where memory runs out, as far as it spares the raylet that started it.

    A cluster's Ray marks its workers as the first to be ended; then nobody would say what became of a dumper.
    """
    with contextlib.suppress(OSError):  # there is no such file but on Linux, and some keep it from being lowered
        score = Path(f"/proc/{os.getppid()}/oom_score_adj").read_text(encoding="ascii")
        Path("/proc/self/oom_score_adj").write_text(score, encoding="ascii")


class _Worker:
    """What runs in an actor: one job at a time, one outcome after the other."""

    def __init__(self, wanted: Sequence[str], run: str, again: bool) -> None:
        """``wanted`` has to be importable before a job can arrive; what went wrong with that is told when asked.

        It works for the ``run`` of that name, which may want ``again`` what failed to build here before.
        """
        self._trouble: OSError | None = None
        _outlive_dumpers()
        try:
            outfitting.outfit(wanted, folders.cache())
            from audit.installing import failed_builds  # which needs what has just been made importable

            failed_builds.take_part(run, again=again)
        except OSError as error:
            self._trouble = error

    def look(self, slots: int) -> Node:
        """Say what the node is, or why it cannot be used."""
        if self._trouble is not None:
            raise self._trouble
        return _look_around(slots)

    def run(self, job: Job[Any], parts: Mapping[str, Any]) -> Iterator[Any]:
        """Run a job, with what was sent apart."""
        import ray

        yield from job.joined(dict(zip(parts, ray.get(list(parts.values())), strict=True))).run()
