"""How often a screen alarms when nothing is wrong: five hundred healthy pairs a setting (figure 3 of the paper)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np
from scipy import stats

from analysis.algebra import screening
from analysis.algebra.screening import ALPHA, BLOCKS, CHUNKS, FLOOR, Residuals, Unit
from analysis.paper import catalogue
from analysis.paper.experiment import Experiment, Figure, Floats, Rule
from analysis.paper.laws import SETS
from analysis.paper.systems import Run

PAIRS = 500
BATCH = 50
"""Pairs to a part: their arms, 160,000 rows a noise, are integrated and evaluated together in 200 MB."""
FIRST_SEED = 1000
NOISES = (0.0, 1e-3)

System = Literal["acrobot", "reacher"]
Setting = tuple[Unit, float]
"""The unit, and the floor below which residuals are not compared."""

_RUNS: dict[System, Run] = {"acrobot": catalogue.ACROBOT, "reacher": catalogue.REACHER}


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """A part: some pairs of one system at one noise."""

    system: System
    noise: float
    first: int
    pairs: int = BATCH


@dataclass(frozen=True, slots=True, kw_only=True)
class Printed:
    """What the paper prints of one setting."""

    rate: float
    interval: str = ""


RATES: dict[tuple[System, float, Unit, float], Printed] = {
    ("acrobot", 0.0, Unit.BLOCK, FLOOR): Printed(rate=0.0, interval="[0.000, 0.008]"),
    ("acrobot", 0.0, Unit.TRAJECTORY, FLOOR): Printed(rate=0.0, interval="[0.000, 0.008]"),
    ("acrobot", 0.0, Unit.BLOCK, 0.0): Printed(rate=0.102, interval="[0.078, 0.132]"),
    ("acrobot", 0.0, Unit.TRAJECTORY, 0.0): Printed(rate=0.002),
    ("acrobot", 1e-3, Unit.BLOCK, FLOOR): Printed(rate=0.026, interval="[0.015, 0.044]"),
    ("acrobot", 1e-3, Unit.TRAJECTORY, FLOOR): Printed(rate=0.014, interval="[0.007, 0.029]"),
    ("acrobot", 1e-3, Unit.BLOCK, 0.0): Printed(rate=0.026, interval="[0.015, 0.044]"),
    ("acrobot", 1e-3, Unit.TRAJECTORY, 0.0): Printed(rate=0.014, interval="[0.007, 0.029]"),
    ("reacher", 0.0, Unit.BLOCK, FLOOR): Printed(rate=0.0, interval="[0.000, 0.008]"),
    ("reacher", 0.0, Unit.TRAJECTORY, FLOOR): Printed(rate=0.0, interval="[0.000, 0.008]"),
    ("reacher", 0.0, Unit.BLOCK, 0.0): Printed(rate=0.008, interval="[0.003, 0.020]"),
    ("reacher", 0.0, Unit.TRAJECTORY, 0.0): Printed(rate=0.0),
    ("reacher", 1e-3, Unit.BLOCK, FLOOR): Printed(rate=0.006),
    ("reacher", 1e-3, Unit.TRAJECTORY, FLOOR): Printed(rate=0.004),
    ("reacher", 1e-3, Unit.BLOCK, 0.0): Printed(rate=0.006),
    ("reacher", 1e-3, Unit.TRAJECTORY, 0.0): Printed(rate=0.004),
}

ROUNDING = {
    ("acrobot", Unit.BLOCK): "unit norms leave 1e-16: four orders of adding their terms gave 47 to 51 of 500",
    ("acrobot", Unit.TRAJECTORY): "unit norms leave 1e-16: four orders of adding their terms gave 2 to 5 of 500",
    ("reacher", Unit.BLOCK): "all laws leave 1e-16: four orders of adding their terms gave 3 to 6 of 500",
    ("reacher", Unit.TRAJECTORY): "all laws leave 1e-16: four orders of adding their terms gave 3 to 6 of 500, and none"
    " where sums within an absolute 1e-15 count as ties",
}
"""Why rates without noise and without a floor are not the paper's: rounding decides."""


def alarms(batch: Batch) -> dict[Setting, int]:
    """Pairs of which any law is broken, by setting.

    Limits: counts of false alarms of healthy pairs. They say nothing of how many faults are missed.
    """
    laws, run = SETS[batch.system], replace(_RUNS[batch.system], noise=batch.noise)
    first = FIRST_SEED + 2 * batch.first
    arms = run.arms(range(first, first + 2 * batch.pairs))
    found = {}
    for unit in Unit:
        residuals = screening.batch_residuals(laws, _units(arms, unit))
        reference, tested = (_side(residuals, side) for side in (0, 1))
        for floor in (FLOOR, 0.0):
            p = screening.p_values(tested, reference, unit, floor).reshape(batch.pairs, len(laws.laws))
            found[unit, floor] = int(np.any(p * len(laws.laws) < ALPHA, axis=1).sum())
    return found


def _units(arms: Floats, unit: Unit) -> Floats:
    """Arms × units × samples × variables, cut as a screen cuts a single arm."""
    count, trajectories, samples, variables = arms.shape
    if unit is Unit.TRAJECTORY and trajectories > 1:
        return arms
    per = CHUNKS if unit is Unit.TRAJECTORY else BLOCKS // trajectories
    size = samples // per
    return arms[:, :, : size * per].reshape(count, trajectories * per, size, variables)


def _side(residuals: Residuals, side: int) -> Residuals:
    """Every other arm, as units × (pairs and laws): each column is tested for itself."""

    def columns(values: Floats) -> Floats:
        return np.moveaxis(values[side::2], 1, 0).reshape(values.shape[1], -1)

    return Residuals(relative=columns(residuals.relative), absolute=columns(residuals.absolute))


_PARTS = tuple(
    Batch(system=system, noise=noise, first=first)
    for system in ("reacher", "acrobot")
    for noise in sorted(NOISES, reverse=True)
    for first in range(0, PAIRS, BATCH)
)


def _figures(results: Sequence[Mapping[Setting, int]]) -> list[Figure]:
    counts: Counter[tuple[System, float, Unit, float]] = Counter()
    for part, found in zip(_PARTS, results, strict=True):
        counts.update({(part.system, part.noise, *setting): count for setting, count in found.items()})
    return [figure for setting in RATES for figure in _setting(setting, counts[setting])]


def _setting(setting: tuple[System, float, Unit, float], count: int) -> list[Figure]:
    system, noise, unit, floor = setting
    of = f"{system}, noise {noise:g}, {'a floor' if floor else 'no floor'}, {unit}"
    settled, printed = bool(floor or noise), RATES[setting]
    interval = stats.binomtest(count, PAIRS).proportion_ci(0.95, "wilson")
    told = partial(Figure, rule=Rule.SAME, exact=settled, where="figure 3")
    figures = [told(name=f"false alarms, {of}", paper=printed.rate, measured=count / PAIRS)]
    if printed.interval:
        measured = f"[{interval.low:.3f}, {interval.high:.3f}]"
        figures.append(told(name=f"interval, {of}", paper=printed.interval, measured=measured))
    if unit is Unit.TRAJECTORY:
        covered = "yes" if interval.low <= ALPHA else "no"
        figures.append(told(name=f"1% covered or above, {of}", paper="yes", measured=covered))
    return figures if settled else [figure.explained(ROUNDING[system, unit]) for figure in figures]


CALIBRATION = Experiment(
    name="calibration",
    title="family-wise false-alarm rates over healthy pairs",
    parts=_PARTS,
    run=alarms,
    figures=_figures,
)
