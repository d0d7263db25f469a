"""Table S3: attribution under noise of measurement, and how the gap of one recovery grows with it (appendix E)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from analysis.algebra.attribution import Attribution
from analysis.paper.catalogue import CATALOGUE, Fault, arms
from analysis.paper.comparison import attributed, left, named
from analysis.paper.experiment import CLOSE, Experiment, Figure, Rule

WHERE = "table S3"
GAPS_WHERE = "appendix E, gap sensitivity"

LAGS = (1, 10, 50, 100)
COUNTS = {
    0.0: (7, 7, 7, 7),
    1e-8: (6, 6, 7, 6),
    1e-7: (2, 6, 6, 6),
    1e-6: (2, 2, 4, 2),
    1e-5: (2, 2, 2, 2),
    1e-4: (2, 2, 2, 2),
}
"""The paper's table: noise, then faults of seven that are attributed at each lag."""

PROBE, PROBE_LAG = "acrobot_m2_1.3", 50
GAPS = {1e-8: 3.0e-4, 1e-7: 3.0e-3, 1e-6: 2.9e-2, 1e-5: 0.29}
FITS = {1e-8: 9.1e-6, 1e-6: 7.7e-4}

OTHER_RULE = (
    "a constant is named here where the specification explains the law ten times worse, not where it moved by 1e-3, "
    "and pairs of constants are tried"
)

PARAMETER_FAULTS = tuple(fault for fault in CATALOGUE if fault.category == "parameter")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One noise and one lag."""

    noise: float
    lag: int


def measure(cell: Cell) -> tuple[Attribution, ...]:
    """Attribute all seven faults.

    Limits: one draw of noise for each fault. A count of seven may be another with another seed.
    """
    return tuple(
        attributed(fault, arms(fault, paired=True, noise=cell.noise)[1], cell.lag) for fault in PARAMETER_FAULTS
    )


def right(fault: Fault, attribution: Attribution) -> bool:
    """Whether the wrong constant is named, and its value is within 5% of the truth.

    Limits: 5% is generous: clean data are right to 1e-7. Another constant is never right, however near its value.
    """
    value = named(attribution)
    assert fault.value is not None
    return (
        value is not None
        and value.parameter == fault.parameter
        and math.isclose(value.fitted, fault.value, rel_tol=CLOSE)
    )


CELLS = tuple(Cell(noise=noise, lag=lag) for noise in COUNTS for lag in LAGS)


def figures(results: Sequence[Sequence[Attribution]]) -> list[Figure]:
    """How many of seven faults are attributed in each cell, in their order, and the gaps of one of them.

    Limits: of the paper's rule. On the data themselves more is attributed than this table has, which ``bench``
    measures.
    """
    found = dict(zip(CELLS, results, strict=True))
    return [*_counts(found), *_probe(found)]


def _counts(found: dict[Cell, Sequence[Attribution]]) -> Iterator[Figure]:
    for cell, attributions in found.items():
        count = sum(map(right, PARAMETER_FAULTS, attributions))
        paper = COUNTS[cell.noise][LAGS.index(cell.lag)]
        name = f"σ = {cell.noise:g}, lag {cell.lag}: attributed of seven"
        yield Figure(name=name, paper=paper, measured=count, rule=Rule.SAME, where=WHERE).explained(OTHER_RULE)


def _probe(found: dict[Cell, Sequence[Attribution]]) -> Iterator[Figure]:
    place = [fault.name for fault in PARAMETER_FAULTS].index(PROBE)
    probed = {cell.noise: found[cell][place] for cell in CELLS if cell.lag == PROBE_LAG}
    for noise, paper in GAPS.items():
        name = f"σ = {noise:g}, {PROBE}: gap"
        yield Figure(name=name, paper=paper, measured=probed[noise].gap, where=GAPS_WHERE)
    for noise, paper in FITS.items():
        name = f"σ = {noise:g}, {PROBE}: residual of the fit"
        yield Figure(name=name, paper=paper, measured=left(probed[noise]), where=GAPS_WHERE)


NOISE = Experiment(
    name="noise",
    title="attribution of seven faults under noise, at four lags",
    parts=CELLS,
    run=measure,
    figures=figures,
)
