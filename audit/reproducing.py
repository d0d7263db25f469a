"""The paper's figures measured again: experiments in parts on the workers, audits of shipped releases, both kept."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.paper.experiment import Experiment, Figure, ShippedExperiment
from analysis.paper.experiments import EXPERIMENTS, SHIPPED
from audit import pipeline
from audit.asked import matrix_file
from audit.cluster.jobs import Needs
from audit.errors import AuditError, UsageError
from audit.storage.records import ReproductionRecord, now
from audit.storage.store import Store
from audit.tools import Tools

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartOutcome:
    """What one part of an experiment came to."""

    experiment: str
    part: int
    result: Any
    seconds: float
    lost: str = ""
    """Why there is no result, where there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartJob:
    """One part of an experiment, for a worker."""

    experiment: str
    part: int

    @property
    def waits(self) -> bool:
        """It computes."""
        return False

    @property
    def needs(self) -> Needs:
        """Nothing: it runs anywhere."""
        return Needs()

    def parted(self) -> tuple[PartJob, dict[str, bytes]]:
        """Itself: it holds two names."""
        return self, {}

    def joined(self, parts: Mapping[str, bytes]) -> PartJob:
        """Itself."""
        del parts
        return self

    def blames_node(self, outcome: PartOutcome) -> bool:
        """Whether there is no result: whatever else goes wrong in arithmetic is a bug."""
        return bool(outcome.lost)

    def run(self) -> Iterator[PartOutcome]:
        """Measure it."""
        began = time.perf_counter()
        experiment = EXPERIMENTS[self.experiment]
        result = experiment.run(experiment.parts[self.part])
        yield PartOutcome(
            experiment=self.experiment, part=self.part, result=result, seconds=time.perf_counter() - began
        )

    def without(self, outcome: PartOutcome) -> PartJob:
        """Itself: it has one outcome, and nothing is left after it."""
        assert outcome.part == self.part
        return self

    def lost(self, reason: str) -> Iterator[PartOutcome]:
        """No result."""
        yield PartOutcome(experiment=self.experiment, part=self.part, result=None, seconds=0.0, lost=reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reproduced:
    """An experiment's figures."""

    experiment: str
    title: str
    figures: tuple[Figure, ...]

    @property
    def wrong(self) -> tuple[Figure, ...]:
        """Figures that are exact and disagree."""
        return tuple(figure for figure in self.figures if figure.exact and not figure.agrees)


def chosen(names: Sequence[str]) -> tuple[list[Experiment], list[ShippedExperiment]]:
    """The experiments of these names, or all.

    Raises:
        UsageError: where there is none of that name.
    """
    known = [*EXPERIMENTS, *SHIPPED]
    unknown = [name for name in names if name not in known]
    if unknown:
        raise UsageError(f"there is no experiment {', '.join(unknown)}; there are {', '.join(known)}")
    wanted = names or known
    return [EXPERIMENTS[name] for name in wanted if name in EXPERIMENTS], [
        SHIPPED[name] for name in wanted if name in SHIPPED
    ]


def reproduce(names: Sequence[str], tools: Tools) -> list[Reproduced]:
    """Measure the experiments, all parts together on the workers, and keep the figures of each once it is through.

    Audits go first: where the index cannot be reached that is told before minutes of arithmetic.

    Raises:
        KeyboardInterrupt: where somebody interrupts it, with the command that measures what is left.
    """
    computed, shipped = chosen(names)
    wanted = [*(each.name for each in shipped), *(each.name for each in computed)]
    found: dict[str, Reproduced] = {}
    try:
        for each in chain(_shipped(shipped, tools), _computed(computed, tools)):
            found[each.experiment] = each
        tools.runner.finish()
    except KeyboardInterrupt:
        raise KeyboardInterrupt(_left(wanted, found)) from None
    return [found[name] for name in wanted]


def _left(wanted: Sequence[str], found: Collection[str]) -> str:
    left = [name for name in wanted if name not in found]
    kept = f"the figures of {', '.join(found)} are stored" if found else "no experiment is through"
    return f"{kept}; release-audit reproduce {' '.join(left)} measures the rest from its beginning"


def _computed(experiments: Sequence[Experiment], tools: Tools) -> Iterator[Reproduced]:
    jobs = [PartJob(experiment=each.name, part=part) for each in experiments for part in range(len(each.parts))]
    if not jobs:
        return
    results: dict[str, dict[int, Any]] = {each.name: {} for each in experiments}
    with tools.reporter.stage("measuring", len(jobs)) as done:
        for outcome in tools.runner.run(jobs):
            if outcome.lost:
                raise AuditError(f"{outcome.experiment} could not be measured: {outcome.lost}")
            there = results[outcome.experiment]
            there[outcome.part] = outcome.result
            done(outcome.experiment)
            experiment = EXPERIMENTS[outcome.experiment]
            if len(there) == len(experiment.parts):
                figures = experiment.figures([there[part] for part in range(len(there))])
                yield _kept(experiment.name, experiment.title, figures, tools)


def _shipped(experiments: Sequence[ShippedExperiment], tools: Tools) -> Iterator[Reproduced]:
    for matrix in dict.fromkeys(each.matrix for each in experiments):
        result = pipeline.audit(matrix_file.read(matrix_file.find(matrix)), tools, laws=False, explained=False)
        recordings = StoredRecordings(tools.store, result.run_id)
        for each in experiments:
            if each.matrix == matrix:
                yield _kept(each.name, each.title, each.figures(recordings), tools)


def _kept(name: str, title: str, figures: Sequence[Figure], tools: Tools) -> Reproduced:
    tools.store.put_reproductions(
        [
            ReproductionRecord(
                experiment=name,
                figure=figure.name,
                paper=_text(figure.paper),
                measured=_text(figure.measured),
                rule=str(figure.rule),
                agrees=figure.agrees,
                exact=figure.exact,
                note=figure.note,
                place=figure.where,
                reproduced=now(),
            )
            for figure in figures
        ]
    )
    return Reproduced(experiment=name, title=title, figures=tuple(figures))


def _text(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.6g}"


class StoredRecordings:
    """What a run recorded, for the arithmetic on it."""

    def __init__(self, store: Store, run_id: str) -> None:
        self._store = store
        self._run = run_id
        rows = store.query(
            "SELECT release, environment, behaviour, cell_key, reason FROM internal.run_cells WHERE run_id = ?",
            [run_id],
        ).rows
        self._cells = {(release, environment): tuple(rest) for release, environment, *rest in rows}
        self._matrix = str(store.query("SELECT matrix FROM internal.runs WHERE run_id = ?", [run_id]).rows[0][0])

    def array(self, release: str, environment: str, output: str) -> Floats:
        """An output of a cell."""
        stored = self._store.outputs(self._recorded(release, environment)[0])[output]
        return self._store.arrays.get(stored.digest).astype(np.float64)

    def description(self, release: str, environment: str) -> Mapping[str, Any]:
        """What the release said of the environment."""
        return self._store.description(self._recorded(release, environment)[1])

    def table(self, sql: str) -> Sequence[tuple[Any, ...]]:
        """Rows of a query on the views; ``$matrix`` stands for the matrix's name."""
        return self._store.query(sql.replace("$matrix", f"'{self._matrix}'")).rows

    def _recorded(self, release: str, environment: str) -> tuple[str, str]:
        """The behaviour of a cell, and its key."""
        behaviour, key, reason = self._cells.get((release, environment), (None, None, "it is not in the matrix"))
        if behaviour is None:
            raise AuditError(f"{release}/{environment} could not be recorded: {reason}")
        return str(behaviour), str(key)
