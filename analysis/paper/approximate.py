"""Screening with laws that are only nearly right: coefficients moved, or read off data (table approx of the paper)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from analysis.paper import approximate_coefficients, approximate_recovery
from analysis.paper.approximate_coefficients import Screened
from analysis.paper.experiment import Experiment, Figure

_PARTS: tuple[float | Screened, ...] = (*approximate_recovery.PARTS, *approximate_coefficients.PARTS)


def _run(part: float | Screened) -> Any:
    return approximate_coefficients.broken(part) if isinstance(part, Screened) else approximate_recovery.rows(part)


def _figures(results: Sequence[Any]) -> list[Figure]:
    recovered = len(approximate_recovery.PARTS)
    return [*approximate_coefficients.figures(results[recovered:]), *approximate_recovery.figures(results[:recovered])]


APPROXIMATE = Experiment(
    name="approximate",
    title="screening with laws that are only nearly right",
    parts=_PARTS,
    run=_run,
    figures=_figures,
)
