"""How large the effects are that the tests decide on: ratios of residuals, smallest p, areas under curves."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from analysis.paper.comparison import NOISY, PAIRED, Comparison, Method, Setting
from analysis.paper.experiment import Figure, Rule, share

Found = Mapping[tuple[Setting, str], Comparison]

RATIOS = {"acrobot_g_9.81": 1.19e7, "acrobot_m2_1.3": 2.08e9}
"""Of the energy, over blocks, as the paper quotes them: an error of 0.1% and one of 30%."""

SMALLEST = {Method.BLOCK: (3.26e-12, 9.77e-12), Method.TRAJECTORY: (7.8e-5, 2.33e-4)}
"""The smallest p, and that corrected for Acrobot's three laws."""
ACROBOT_LAWS = 3

DIFFERENCES = {"smallest": ("reacher_dz_offset", 1.23), "largest": ("acrobot_obs_swap", 782.0)}
AREAS = {"none_acrobot": 0.506, "acrobot_m2_1.3": 0.963}


def effect_figures(comparisons: Sequence[Comparison]) -> Iterator[Figure]:
    """Paired, where the arms differ in the fault alone.

    Limits: sizes of effects without intervals: each is one pair of arms.
    """
    found = {(each.setting, each.fault.name): each for each in comparisons}
    yield from _ratios(found)
    yield from _smallest(found)
    yield from _differences([each for each in comparisons if not each.control])
    yield from _areas(found)


def _ratios(found: Found) -> Iterator[Figure]:
    for fault, paper in RATIOS.items():
        measured = found[PAIRED, fault].ratio(Method.BLOCK, "energy")
        name = f"{PAIRED.name}, {fault}: ratio of block residuals"
        yield Figure(name=name, paper=paper, measured=measured, where="appendix E, p-values")


def _smallest(found: Found) -> Iterator[Figure]:
    for method, (raw, corrected) in SMALLEST.items():
        for fault in RATIOS:
            p = found[PAIRED, fault].p(method)
            name, where = f"{PAIRED.name}, {fault}: p of the {method}", "appendix E, p-values"
            yield Figure(name=name, paper=raw, measured=p / ACROBOT_LAWS, where=where)
            yield Figure(name=f"{name}, corrected", paper=corrected, measured=p, where=where)


def _differences(faulty: Sequence[Comparison]) -> Iterator[Figure]:
    where = "appendix H, detection and localisation"
    ratios = {each.fault.name: each.outcomes[Method.PAIRED].statistic for each in faulty if each.setting == NOISY}
    for (which, (fault, paper)), choose in zip(DIFFERENCES.items(), (min, max), strict=True):
        measured = choose(ratios, key=lambda name: ratios[name])
        name = f"{NOISY.name}: {which} ratio of paired differences"
        yield Figure(name=f"{name}, of", paper=fault, measured=measured, rule=Rule.SAME, where=where)
        yield Figure(name=name, paper=paper, measured=ratios[measured], where=where)
    exact = [math.isinf(each.outcomes[Method.PAIRED].statistic) for each in faulty if each.setting == PAIRED]
    name = f"{PAIRED.name}: infinite ratios of paired differences"
    yield Figure(name=name, paper="15/15", measured=share(exact), rule=Rule.SAME, where=where)


def _areas(found: Found) -> Iterator[Figure]:
    for fault, paper in AREAS.items():
        outcome = found[PAIRED, fault].outcomes.get(Method.DISCRIMINATOR)
        if outcome is not None:
            name = f"{PAIRED.name}, {fault}: area under the discriminator's curve"
            figure = Figure(
                name=name, paper=paper, measured=outcome.statistic, exact=False, where="appendix H, protocol"
            )
            yield figure.explained("the network starts from other weights and sees other rows")
