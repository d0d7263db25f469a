"""Releases, environments and what they would have recorded, made up: everything that an audit needs but simulators."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from audit import machine
from audit.asked.matrix import Matrix
from audit.asked.matrix_file import MatrixFile
from audit.asked.releases import ReleaseRequest
from audit.cluster.jobs import Job, Outcome
from audit.failures import Status
from audit.installing.interpreters import Interpreter
from audit.installing.locks import Lock, Release
from audit.planning.drawing import DrawnEnvironment
from audit.planning.plan import Cell
from audit.planning.probing import KnownLayout
from audit.processes.answers import CellAnswer
from audit.processes.dumper_process import CellOutcome, DumpJob
from audit.processes.dumper_request import CellTask
from audit.stimuli import stimulus
from audit.stimuli.layout import Layout
from audit.stimuli.stimulus import Batch

ENVIRONMENTS = 10
STATES, NUDGES, TRAJECTORIES, STEPS, ENTRIES = 32, 4, 2, 20, 4
LOCKED = 16
"""Distributions in a lock, as many as one of gymnasium with mujoco has."""
HASHES = 12
"""Files of a distribution whose hashes stand in a lock."""

Arrays = dict[str, NDArray[Any]]
_ACTION: Any = {"type": "Discrete", "n": 2, "start": 0}
_LAYOUT = Layout(
    kind="state",
    state_size=ENTRIES,
    positions=ENTRIES,
    quaternions=(),
    reference=(0.0,) * ENTRIES,
    action=_ACTION,
)
_CHANGED, _ROUNDED = 1e-3, 2**-53


@dataclass(frozen=True, kw_only=True)
class Size:
    """How large an audit is."""

    releases: int
    behaviours: int
    """Distinct ones of each environment; releases that show one follow each other."""

    @cached_property
    def file(self) -> MatrixFile:
        """A matrix of that size. Its rows are validated; they are not written out as YAML."""
        rows = [{"id": f"sim-{number}", "requires": [f"sim=={number}"]} for number in range(self.releases)]
        environments = [{"id": f"World{number}-v0"} for number in range(ENVIRONMENTS)]
        matrix = Matrix.model_validate(
            {"name": "scale", "python": "3.11", "releases": rows, "environments": environments}
        )
        return MatrixFile(path=Path("scale.yaml"), text="name: scale\n", matrix=matrix, lines={(): 1})

    def behaviour(self, release: str) -> int:
        """Which of its environment's behaviours a release shows."""
        return int(release.partition("-")[2]) * self.behaviours // self.releases


def resolved(requests: Sequence[ReleaseRequest]) -> dict[str, Release]:
    """Every release with a lock of its own, as large as real ones are."""
    interpreter = Interpreter(path=Path("python"), implementation="cpython", version="3.11.7")
    return {
        request.id: Release(request=request, interpreter=interpreter, lock=Lock.from_text(_lock(request.requires[0])))
        for request in requests
    }


def _lock(first: str) -> str:
    return "".join(_locked(first if not number else f"package-{number}==1.0") for number in range(LOCKED))


def _locked(pinned: str) -> str:
    hashes = (sha256(f"{pinned} {number}".encode()).hexdigest() for number in range(HASHES))
    return " \\\n".join([pinned, *(f"    --hash=sha256:{each}" for each in hashes)]) + "\n"


def drawn(cells: Sequence[Cell]) -> dict[str, DrawnEnvironment]:
    """What every environment is given; the oldest release is its baseline."""
    first: dict[str, Cell] = {}
    for cell in cells:
        first.setdefault(cell.environment.title, cell)
    return {title: _drawn(cell, number) for number, (title, cell) in enumerate(first.items())}


def _drawn(cell: Cell, number: int) -> DrawnEnvironment:
    generator = np.random.default_rng(number)
    horizon, forced = (
        Batch(starts=generator.uniform(0.5, 1.0, (rows, ENTRIES)), actions=np.zeros((rows, steps), np.int64))
        for rows, steps in ((TRAJECTORIES, STEPS), (STATES, 1))
    )
    batches = {"horizon": horizon, "forced": forced, "nudged": stimulus.nudged(forced, NUDGES, number)}
    return DrawnEnvironment(
        known=KnownLayout(cell=cell, layout=_LAYOUT),
        horizon=horizon,
        forced=forced,
        source=np.zeros(STATES, np.uint8),
        stimulus=stimulus.assemble(batches),
        coverage=None,
        baseline=cell.release.id,
        seed=number,
    )


@cache
def recorded(payload: bytes, behaviour: int, *, planted: bool) -> Mapping[str, NDArray[Any]]:
    """What a release records of a stimulus: every other behaviour is the one before but for rounding."""
    moved = 1.0 + _CHANGED * (behaviour // 2) + 2 * _ROUNDED * (behaviour % 2) + (1e-6 if planted else 0.0)
    arrays: Arrays = {}
    for name, starts in stimulus.unpacked(payload).items():
        batch, _, part = name.partition(".")
        if part == "states":
            steps = STEPS if batch == "horizon" else 1
            arrays |= {f"{batch}.{output}": array for output, array in _steps(starts, steps, moved).items()}
            arrays |= {f"{batch}.imposed": starts} if batch != "nudged" else {}
        elif part == "seeds":
            arrays |= {"reset.state": np.ones((len(starts), ENTRIES)), "reset.observation": np.ones((len(starts), 2))}
    return arrays | {name: np.frombuffer(b"{}", np.uint8) for name in ("structure", "spaces")}


def _steps(starts: NDArray[np.float64], steps: int, moved: float) -> Arrays:
    states = np.repeat(1.5 * moved * starts[:, None], steps, axis=1)
    flags = np.zeros(states.shape[:2], np.bool_)
    return {
        "state": states,
        "observation": states.astype(np.float32),
        "reward": states.sum(axis=2),
        "terminated": flags,
        "truncated": flags,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Answering:
    """Stands in for the workers: every dump is answered at once."""

    size: Size

    @property
    def is_elsewhere(self) -> bool:
        """They are here."""
        return False

    def classes(self) -> Mapping[str, int]:
        """This machine's alone."""
        return {machine.here().digest: 1}

    def prepare(self) -> None:
        """Nothing has to be started."""

    def finish(self) -> None:
        """Nothing has to be ended."""

    def run(self, jobs: Sequence[Job[Outcome]]) -> Iterator[Outcome]:
        """Answer job after job."""
        for job in jobs:
            assert isinstance(job, DumpJob)
            for task in job.cells:
                yield cast(Outcome, self._outcome(job, task))

    def _outcome(self, job: DumpJob, task: CellTask) -> CellOutcome:
        assert task.given is not None
        arrays = recorded(task.given, self.size.behaviour(job.release), planted=task.plant is not None)
        answer = CellAnswer(
            status=Status.OK, reason="", steps=task.steps, arrays=dict(arrays), meta={"planted": "gravity"}
        )
        return CellOutcome(
            release=job.release,
            environment=task.environment,
            label=task.label,
            result=replace(answer, seconds=0.0),
            seconds=0.0,
            machine=machine.here().digest,
        )


class Silent:
    """Tells nobody."""

    @contextmanager
    def stage(self, name: str, total: int) -> Iterator[Callable[[str], None]]:  # noqa: ARG002  # the reporter's form
        """A stage that nobody looks at."""
        yield lambda _: None


class Watch:
    """How long each part takes, how much it computes, and how much memory the process had needed by its end."""

    def __init__(self, memory: Callable[[], int]) -> None:
        self.seconds: dict[str, float] = {}
        self.computed: dict[str, float] = {}
        self.bytes: dict[str, int] = {}
        self._memory = memory

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Add what is done within to a part."""
        began, computed = time.perf_counter(), time.process_time()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - began
        self.computed[name] = self.computed.get(name, 0.0) + time.process_time() - computed
        self.bytes[name] = self._memory()
