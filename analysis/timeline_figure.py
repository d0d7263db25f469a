"""Behaviours of environments along the releases: which release is like which, and where something changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from analysis.figures import empty, save

TONES = ("#E3EAF0", "#C5D3DE")
"""Neighbouring behaviours differ in tone; the number says which comes back."""

BOUNDARIES = {"changed": ("#D55E00", 4.0), "amplified": ("#0072B2", 2.0), "rounding": ("#56B4E9", 1.2)}
"""Colour and width, by what lies between two releases; the worse, the wider."""

MOST_LABELS = 45
"""More names of releases than this do not stand beside each other; every second, third … is written."""

ROW_INCHES, RELEASE_INCHES = 0.34, 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Releases one after the other that behave alike to the last bit."""

    first: int
    last: int
    """Places among the releases."""
    behaviour: int
    """Numbered in order of appearance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """One environment along the releases."""

    environment: str
    stretches: Sequence[Stretch]
    boundaries: Sequence[tuple[int, str]]
    """Place of the newer release, verdict."""


def timeline_figure(releases: Sequence[str], timelines: Sequence[Timeline], path: Path) -> None:
    """Draw a row per environment; the suffix says SVG or PNG.

    Limits: another colour is another behaviour, perhaps by rounding alone; the verdict is the sign between two.
    """
    save(_draw(releases, timelines), path)


def _draw(releases: Sequence[str], timelines: Sequence[Timeline]) -> Figure:
    width = min(max(2.2 + RELEASE_INCHES * len(releases), 6.0), 16.0)
    figure = empty(width, 1.6 + ROW_INCHES * len(timelines))
    axes = figure.add_subplot()
    for row, timeline in enumerate(timelines):
        _row(axes, row, timeline)
    _dress(axes, releases, timelines)
    verdicts = {verdict for each in timelines for _, verdict in each.boundaries}
    handles = [
        Line2D([], [], color=colour, linewidth=thick, label=verdict)
        for verdict, (colour, thick) in BOUNDARIES.items()
        if verdict in verdicts
    ]
    if handles:
        figure.legend(handles=handles, loc="outside upper right", ncols=len(handles), frameon=False)
    return figure


def _row(axes: Axes, row: int, timeline: Timeline) -> None:
    for place, stretch in enumerate(timeline.stretches):
        width = stretch.last - stretch.first + 1
        axes.add_patch(
            Rectangle((stretch.first - 0.5, row - 0.36), width, 0.72, facecolor=TONES[place % 2], linewidth=0)
        )
        axes.text(
            stretch.first - 0.5 + width / 2, row, str(stretch.behaviour + 1), ha="center", va="center", fontsize=8,
            color="0.2", clip_on=True,
        )  # fmt: skip
    for newer, verdict in timeline.boundaries:
        if verdict in BOUNDARIES:
            colour, thick = BOUNDARIES[verdict]
            axes.plot([newer - 0.5] * 2, [row - 0.42, row + 0.42], color=colour, linewidth=thick, solid_capstyle="butt")


def _dress(axes: Axes, releases: Sequence[str], timelines: Sequence[Timeline]) -> None:
    axes.set_xlim(-0.5, len(releases) - 0.5)
    axes.set_ylim(len(timelines) - 0.4, -0.6)
    every = -(-len(releases) // MOST_LABELS)
    places = range(0, len(releases), every)
    longest = max((len(name) for name in releases), default=0)
    axes.set_xticks(places, [releases[place] for place in places], rotation=90 if longest > 4 else 0, fontsize=8)
    axes.set_yticks(range(len(timelines)), [each.environment for each in timelines], fontsize=9)
    axes.set_xlabel("release (numbers: behaviours, the same bits have the same number)", fontsize=9)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
