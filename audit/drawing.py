"""The drawing stage: layouts to stimuli."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from audit import stimulus
from audit.matrix import Matrix
from audit.probing import KnownLayout
from audit.stimulus import Stimulus


@dataclass(frozen=True, slots=True, kw_only=True)
class Stimuli:
    """By environment: what was drawn, and why nothing could be."""

    drawn: Mapping[str, Stimulus]
    undrawable: Mapping[str, str]


def draw(matrix: Matrix, known: Mapping[str, KnownLayout]) -> Stimuli:
    """Draw the stimulus of every environment whose layout is known."""
    drawn: dict[str, Stimulus] = {}
    reasons: dict[str, str] = {}
    for title, each in known.items():
        try:
            drawn[title] = stimulus.draw(matrix.stimulus, each.environment, each.layout)
        except stimulus.Undrawable as error:
            reasons[title] = str(error)
    return Stimuli(drawn=drawn, undrawable=reasons)
