"""Pictures of what was measured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
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

MARKERS = ("", "o", "s", "^")
"""Environments beyond the palette begin it again with a marker on the line."""

DASHES = ("-", (0, (6, 2)), (0, (1.5, 1.5)), (0, (7, 2, 1.5, 2)), (0, (3, 1, 1, 1, 1, 1)))

WIDTHS = (1.8, 0.9, 3.0)
"""Pairs beyond the dashes begin them again in another width."""

ROOM_BELOW = 10.0
"""The axis begins this factor below the smallest separation; what is zero is drawn there."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Curve:
    """The separation of a pair of releases on an environment, per step."""

    environment: str
    pair: str
    separation: NDArray[np.float64]


def separation_figure(curves: Sequence[Curve], path: Path) -> None:
    """Draw separations against steps, colour by environment and style by pair; the suffix says SVG or PNG."""
    if path.suffix not in SUFFIXES:
        raise ValueError(f"{path.name}: a figure is an .svg or a .png")
    with matplotlib.rc_context({"svg.hashsalt": "release-audit"}):  # the same curves make the same file
        metadata = {"Date": None} if path.suffix == ".svg" else {"Software": None}
        _draw(curves).savefig(path, dpi=150, metadata=metadata)


def _draw(curves: Sequence[Curve]) -> Figure:
    figure = Figure(figsize=(8.0, 5.2), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    bottom = _bottom(curves)
    looks = _environment_looks(curves)
    styles = _pair_styles(curves)
    for each in curves:
        heights = _drawable(each.separation, bottom)
        look = looks[each.environment] | styles[each.pair]
        # A line of zeros lies over the axis, not under it, and half of it outside.
        axes.plot(heights, **look, markevery=0.1, clip_on=False, zorder=3)
    _dress(axes, curves, bottom)
    # Names of pairs are long: they stand below one another, those of environments side by side.
    figure.legend(handles=_handles(looks, {}), loc="outside upper center", ncols=4, frameon=False)
    figure.legend(
        handles=_handles(styles, {"color": "0.25"}), loc="outside lower center", frameon=False, handlelength=4
    )
    return figure


def _environment_looks(curves: Sequence[Curve]) -> dict[str, dict[str, Any]]:
    looks = ({"color": colour, "marker": marker, "markersize": 5} for marker, colour in product(MARKERS, COLOURS))
    return _assign((each.environment for each in curves), list(looks))


def _pair_styles(curves: Sequence[Curve]) -> dict[str, dict[str, Any]]:
    styles = ({"linestyle": dashes, "linewidth": width} for width, dashes in product(WIDTHS, DASHES))
    return _assign((each.pair for each in curves), list(styles))


def _assign(names: Iterable[str], marks: Sequence[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """One mark per name, in order of appearance; more names than marks make no readable picture, but do make one."""
    return {name: marks[index % len(marks)] for index, name in enumerate(dict.fromkeys(names))}


def _handles(marks: dict[str, dict[str, Any]], also: dict[str, Any]) -> list[Line2D]:
    return [Line2D([], [], label=name, **(also | mark)) for name, mark in marks.items()]


def _bottom(curves: Sequence[Curve]) -> float:
    """Where the axis begins: a power of ten below everything that is not zero."""
    smallest = min((float(each.separation[each.separation > 0].min(initial=1.0)) for each in curves), default=1.0)
    return max(float(10 ** np.floor(np.log10(smallest / ROOM_BELOW))), np.finfo(np.float64).tiny)


def _drawable(separation: NDArray[np.float64], bottom: float) -> NDArray[np.float64]:
    """Zero stands on the axis; what is infinite stands nowhere and leaves a gap."""
    return np.where(np.isfinite(separation), np.maximum(separation, bottom), np.nan)


def _dress(axes: Axes, curves: Sequence[Curve], bottom: float) -> None:
    axes.set_yscale("log")
    axes.set_ylim(bottom=bottom)
    axes.set_xlim(0, max((len(each.separation) - 1 for each in curves), default=1) or 1)
    axes.set_xlabel("step")
    zeros = any((each.separation == 0).any() for each in curves)
    axes.set_ylabel("largest absolute separation" + (" (zero: on the axis)" if zeros else ""))
    axes.grid(visible=True, which="major", color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
