"""Screening with laws read off data, at the noise they were read at (second half of the paper's table approx)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from analysis.algebra.recovery import GAP
from analysis.paper import catalogue
from analysis.paper.catalogue import CATALOGUE
from analysis.paper.experiment import Figure, Rule
from analysis.paper.laws import SETS
from analysis.paper.recovered_sets import recovered_laws, recovered_sets
from analysis.paper.scores import Score, screened

Sets = str
"""exact, recovered, or forced: with a law for every name, whatever its gap."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row of the table."""

    generators: int
    deviation: float
    """The worst, relatively, its scale fitted out."""
    score: Score


def _row(generators: int, deviation: float, detected: int, localised: int) -> Row:
    score = Score(detected=detected, localised=localised, alarms=0)
    return Row(generators=generators, deviation=deviation, score=score)


TABLE: dict[float, dict[Sets, Row]] = {
    0.0: {
        "exact": _row(8, 0.0, 15, 15),
        "recovered": _row(8, 2.4e-8, 15, 15),
        "forced": _row(8, 2.4e-8, 15, 15),
    },
    1e-8: {
        "exact": _row(8, 0.0, 14, 14),
        "recovered": _row(7, 1.0e-5, 14, 14),
        "forced": _row(8, 1.0e-5, 15, 14),
    },
    1e-6: {
        "exact": _row(8, 0.0, 14, 14),
        "recovered": _row(7, 7.0e-4, 14, 14),
        "forced": _row(8, 7.0e-4, 15, 14),
    },
    1e-4: {
        "exact": _row(8, 0.0, 13, 13),
        "recovered": _row(6, 4.4e-4, 5, 3),
        "forced": _row(8, 1.00, 12, 11),
    },
}
"""By noise."""

PARTS = tuple(TABLE)


def rows(noise: float) -> dict[Sets, Row]:
    """Every set of a noise, on the same paired arms.

    Limits: paired arms only, as in the paper; unpaired ones are not measured.
    """
    laws = recovered_laws(noise)
    arms = [(fault, *catalogue.arms(fault, paired=True, noise=noise)) for fault in CATALOGUE]
    specified = sum(len(each.laws) for each in SETS.values())
    found = {"exact": Row(generators=specified, deviation=0.0, score=screened(SETS, arms))}
    for name, gap in (("recovered", GAP), ("forced", math.inf)):
        kept = [each.deviation for every in laws.values() for each in every if each.gap < gap]
        score = screened(recovered_sets(laws, gap), arms)
        found[name] = Row(generators=len(kept), deviation=max(kept), score=score)
    return found


def figures(results: Sequence[Mapping[Sets, Row]]) -> list[Figure]:
    """What recovered sets detect and localise, by the noise that they were recovered from.

    Limits: with noise the recovered laws are draws, so that their deviations agree in size and not in digits.
    """
    return [
        figure
        for noise, found in zip(PARTS, results, strict=True)
        for name, row in found.items()
        for figure in _compared(f"{name}, noise {noise:g}", TABLE[noise][name], row, clean=noise == 0)
    ]


def _compared(of: str, paper: Row, found: Row, *, clean: bool) -> list[Figure]:
    same = partial(Figure, rule=Rule.SAME, where="table approx (b)")
    figures = [
        same(name=f"generators, {of}", paper=paper.generators, measured=found.generators),
        same(name=f"detected, {of}", paper=paper.score.detected, measured=found.score.detected),
        same(name=f"localised, {of}", paper=paper.score.localised, measured=found.score.localised),
    ]
    if paper.deviation:
        rule = Rule.ABOUT if clean else Rule.CLOSE  # without noise it is rounding
        measured, where = found.deviation, "table approx (b)"
        name = f"deviation, {of}"
        figures.append(
            Figure(
                name=name, paper=paper.deviation, measured=measured, rule=rule, exact=not clean, where=where
            ).explained("without noise it is rounding" if clean else "")
        )
    return figures
