"""Everything that the paper states of the systems and the algebra without an experiment (appendix I)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from analysis.paper import certificates, dimensions, gap_units, identities
from analysis.paper.experiment import Experiment, Figure

GROUPS: dict[str, Callable[[], list[Figure]]] = {
    each.__name__: each
    for each in (
        identities.plateau,
        gap_units.units_of_the_gap,
        certificates.verdicts,
        certificates.alignments,
        certificates.ranks,
        certificates.leaks,
        identities.energy,
        identities.kinematics,
        identities.units,
        identities.targets,
        dimensions.sizes,
        dimensions.one_law,
        dimensions.acrobot,
        dimensions.orthogonal_laws,
        dimensions.bases,
        dimensions.wide_design,
    )
}


def _run(group: str) -> list[Figure]:
    return GROUPS[group]()


def _figures(results: Sequence[list[Figure]]) -> list[Figure]:
    return [figure for group in results for figure in group]


PROPERTIES = Experiment(
    name="properties",
    title="properties of the systems and of the algebra",
    parts=tuple(GROUPS),
    run=_run,
    figures=_figures,
)
