"""The catalogue of faults against every method, in three settings: table I, table S5, and what appendix H says of both.

They are one experiment because they read the same comparisons, of which MMD and the discriminator take all the time.
"""

from __future__ import annotations

from collections.abc import Sequence

from analysis.paper.catalogue import CATALOGUE
from analysis.paper.comparison import SETTINGS, Comparison, compare
from analysis.paper.detection import detection_figures
from analysis.paper.effects import effect_figures
from analysis.paper.experiment import Experiment, Figure
from analysis.paper.levels import level_figures
from analysis.paper.refusals import refusal_figures
from analysis.paper.values import value_figures


def figures(comparisons: Sequence[Comparison]) -> list[Figure]:
    """All that the paper reports of them.

    Limits: all from the same draws, so that they stand and fall together.
    """
    return [
        *detection_figures(comparisons),
        *value_figures(comparisons),
        *refusal_figures(comparisons),
        *effect_figures(comparisons),
        *level_figures(comparisons),
    ]


FAULTS = Experiment(
    name="faults",
    title="fifteen faults and two controls: detection, localisation, attribution, levels",
    parts=tuple((fault, setting) for setting in SETTINGS for fault in CATALOGUE),
    run=compare,
    figures=figures,
)
