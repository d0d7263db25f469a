"""Pictures of what was measured: how pairs separate, and what all pictures share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

SUFFIXES = (".svg", ".png")

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's palette, which readers with any colour vision tell apart; its yellow is too pale for a line."""

DASHES = ("-", (0, (6, 2)), (0, (1.5, 1.5)), (0, (7, 2, 1.5, 2)), (0, (3, 1, 1, 1, 1, 1)))
"""As many as share no factor with the colours: all combinations are reached by counting both on."""

COLUMNS, LEGEND_COLUMNS = 3, 3
"""Panels and names of pairs that stand beside each other."""

ROOM_BELOW = 10.0
"""The axis begins this factor below the smallest separation; what is zero is drawn there."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Curve:
    """The separation of a pair of releases on an environment, per step."""

    environment: str
    pair: str
    separation: NDArray[np.float64]


def separation_figure(curves: Sequence[Curve], path: Path) -> None:
    """Draw separations against steps, a panel for each environment, style by pair; the suffix says SVG or PNG.

    Limits: it draws what it is given, on a logarithmic axis where zero has no place; verdicts are not read from it.
    """
    save(_draw(curves), path)


def save(figure: Figure, path: Path) -> None:
    """Write a picture; the same one makes the same file.

    Limits: an SVG or a PNG, and no other kind.
    """
    if path.suffix not in SUFFIXES:
        raise ValueError(f"{path.name}: a figure is an .svg or a .png")
    with matplotlib.rc_context({"svg.hashsalt": "release-audit"}):
        metadata = {"Date": None} if path.suffix == ".svg" else {"Software": None}
        figure.savefig(path, dpi=150, metadata=metadata)


def empty(width: float, height: float) -> Figure:
    """A picture of that many inches with nothing in it.

    Limits: it is drawn without a window, and cannot be shown in one.
    """
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _draw(curves: Sequence[Curve]) -> Figure:
    environments = list(dict.fromkeys(each.environment for each in curves))
    pairs = list(dict.fromkeys(each.pair for each in curves))
    columns = min(len(environments), COLUMNS) or 1
    rows = -(-len(environments) // columns) or 1
    legend_rows = -(-len(pairs) // LEGEND_COLUMNS)
    figure = empty(9.0 if columns > 1 else 6.5, 1.0 + (2.1 if rows > 1 else 3.6) * rows + 0.24 * legend_rows)
    panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel()
    bottom, styles = _bottom(curves), _pair_styles(curves)
    for axes, environment in zip(panels, environments, strict=False):
        _panel(axes, [each for each in curves if each.environment == environment], styles, bottom)
    for axes in panels[len(environments) :]:
        axes.set_axis_off()
    for axes in panels[max(0, len(environments) - columns) : len(environments)]:  # those with nothing below
        axes.set_xlabel("step")
    _dress(figure, panels[0], curves, bottom)
    if pairs:
        figure.legend(
            handles=_handles(styles), loc="outside lower center", frameon=False, handlelength=4, fontsize=9,
            ncols=min(len(pairs), LEGEND_COLUMNS),
        )  # fmt: skip
    return figure


def _panel(axes: Axes, curves: Sequence[Curve], styles: dict[str, dict[str, Any]], bottom: float) -> None:
    """One environment, with all of its pairs."""
    for each in curves:
        # A line of zeros lies over the axis, not under it, and half of it outside.
        axes.plot(_drawable(each.separation, bottom), **styles[each.pair], clip_on=False, zorder=3)
    axes.set_title(curves[0].environment, fontsize=10, loc="left")
    axes.grid(visible=True, which="major", color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelbottom=True)


def _pair_styles(curves: Sequence[Curve]) -> dict[str, dict[str, Any]]:
    """Colours and dashes go on together, so that neighbours in the legend differ in both."""
    count = len(COLOURS) * len(DASHES)
    styles = [
        {"color": COLOURS[place % len(COLOURS)], "linestyle": DASHES[place % len(DASHES)], "linewidth": 1.5}
        for place in range(count)
    ]
    return _assign((each.pair for each in curves), styles)


def _assign(names: Iterable[str], marks: Sequence[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """One mark per name, in order of appearance; more names than marks make no readable picture, but do make one."""
    return {name: marks[index % len(marks)] for index, name in enumerate(dict.fromkeys(names))}


def _handles(marks: dict[str, dict[str, Any]]) -> list[Line2D]:
    return [Line2D([], [], label=name, **mark) for name, mark in marks.items()]


def _bottom(curves: Sequence[Curve]) -> float:
    """Where the axis begins: a power of ten below everything that is not zero."""
    smallest = min((float(each.separation[each.separation > 0].min(initial=1.0)) for each in curves), default=1.0)
    return max(float(10 ** np.floor(np.log10(smallest / ROOM_BELOW))), np.finfo(np.float64).tiny)


def _drawable(separation: NDArray[np.float64], bottom: float) -> NDArray[np.float64]:
    """Zero stands on the axis; what is infinite stands nowhere and leaves a gap."""
    return np.where(np.isfinite(separation), np.maximum(separation, bottom), np.nan)


def _dress(figure: Figure, axes: Axes, curves: Sequence[Curve], bottom: float) -> None:
    axes.set_yscale("log")
    axes.set_ylim(bottom=bottom)
    axes.set_xlim(0, max((len(each.separation) - 1 for each in curves), default=1) or 1)
    zeros = any((each.separation == 0).any() for each in curves)
    figure.supylabel("largest absolute separation" + (" (zero: on the axis)" if zeros else ""), fontsize=10)
