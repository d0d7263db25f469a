"""Measure what it costs to look into steps: the stages of forced steps over the same steps only taken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from audit.asked.stimulus_spec import StimulusSpec
from audit.planning import plan
from audit.planning.drawing import DrawnEnvironment
from audit.planning.plan import Cell
from audit.processes import dumper_process
from audit.processes.answers import CellAnswer
from audit.stimuli import starts, stimulus
from audit.terminal.screen import Screen
from audit.tools import CELL_SECONDS

TARGET = 3.0
STATES = 320
"""Sixteen states and their nudged copies four times over."""
_ROUNDS = 5


def compare(cells: Sequence[Cell], drawn: Mapping[str, DrawnEnvironment], screen: Screen) -> None:
    """Environment by environment on its newest release, both tasks in one process, in turns."""
    rows, taken_total, looked_total = [], 0.0, 0.0
    for title, cell in {cell.environment.title: cell for cell in cells}.items():
        taken, looked = _measure(cell, drawn[title])
        taken_total, looked_total = taken_total + taken, looked_total + looked
        rows.append((title, f"{1e3 * taken:.1f}", f"{1e3 * looked:.1f}", f"{looked / taken:.2f}"))
    screen.table(("stages", "forced steps, ms", "looked into, ms", "ratio"), rows)
    ratio = looked_total / taken_total
    screen.note(f"looking into {STATES} forced steps over taking them: {ratio:.2f} (target at most {TARGET})")


def _measure(cell: Cell, drawn: DrawnEnvironment) -> tuple[float, float]:
    spec = StimulusSpec(trajectories=STATES, steps=1, actions="uniform")
    batch = starts.horizon(spec, cell.environment, drawn.known.layout)
    forced = stimulus.assemble({"forced": batch}, resets=0)
    examined = stimulus.packed({"states": batch.starts, "actions": batch.actions[:, 0]})
    tasks = []
    for number in range(_ROUNDS):
        taking = cell.asked("dump", forced.payload)
        tasks.append(replace(taking, label=f"taken {number}", stimulus=forced))
        tasks.append(replace(cell.asked("stages", examined), label=f"looked {number}"))
    seconds: dict[str, float] = {}
    for outcome in dumper_process.run(plan.job(cell, tasks, CELL_SECONDS)):
        assert isinstance(outcome.result, CellAnswer), outcome.result
        kind = outcome.label.split()[0]
        seconds[kind] = min(seconds.get(kind, float("inf")), outcome.seconds)
    return seconds["taken"], seconds["looked"]
