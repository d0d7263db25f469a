"""Cells of releases that were never resolved, and what came of them, for tests of the stages without a process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from audit.asked.environment_rows import EnvironmentRow
from audit.asked.releases import ReleaseRequest
from audit.failures import Failure
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

ACTION: Any = {"type": "Discrete", "n": 2, "start": 0}
LAYOUT = Layout(kind="state", state_size=2, positions=1, quaternions=(), reference=(0.0, 0.0), action=ACTION)


def release(name: str) -> Release:
    request = ReleaseRequest(
        id=name, requires=("gymnasium==1.0.0",), pins=(), python="3.11", exclude_newer=None, series=""
    )
    interpreter = Interpreter(path=Path("python"), implementation="cpython", version="3.11.0")
    return Release(request=request, interpreter=interpreter, lock=Lock.from_text(f"gymnasium==1.0.0\n# {name}\n"))


def planned(name: str, environment: str = "E", position: int = 0) -> Cell:
    row = EnvironmentRow.model_validate({"id": environment})
    return Cell(release=release(name), environment=row, position=position)


def came_to(job: DumpJob, cell: CellTask, result: CellAnswer | Failure) -> CellOutcome:
    """What a process that never ran is said to have answered, or to have failed with."""
    return CellOutcome(
        release=job.release, environment=cell.environment, label=cell.label, result=result, seconds=0, machine=""
    )


def drawn(cell: Cell, horizon: Batch | None, forced: Batch | None, layout: Layout = LAYOUT) -> DrawnEnvironment:
    batches = {name: batch for name, batch in (("horizon", horizon), ("forced", forced)) if batch is not None}
    return DrawnEnvironment(
        known=KnownLayout(cell=cell, layout=layout),
        horizon=horizon,
        forced=forced,
        source=np.zeros(0 if forced is None else len(forced.starts), dtype=np.uint8),
        stimulus=stimulus.assemble(batches, rows=layout.rows),
        coverage=None,
        baseline=cell.release.id,
        seed=0,
    )


def batch(rows: int, steps: int) -> Batch:
    generator = np.random.default_rng(rows)
    return Batch(starts=generator.uniform(0.5, 1, (rows, 2)), actions=np.zeros((rows, steps), np.int64))
