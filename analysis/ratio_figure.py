"""How far pairs are apart in multiples of rounding, beside releases and their own copies: is there a gap?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from analysis.figures import empty, save

STYLES = {
    "rounding": ("#56B4E9", ""),
    "amplified": ("#0072B2", "///"),
    "changed": ("#D55E00", ""),
    "changed elsewhere": ("#E69F00", "xxx"),
}
"""Colour of Okabe and Ito's palette and hatching, by what is said of a pair."""

ELSEWHERE = "changed elsewhere"
"""In resets, spaces or dtypes: what no ratio measures."""

LABELS = {ELSEWHERE: "changed in reset, space or dtype"}

BINS_PER_DECADE = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratios:
    """Of all pairs of distinct behaviours, and of behaviours against their own copies."""

    pairs: Mapping[str, Sequence[float]]
    """By verdict."""
    nulls: Sequence[float]
    threshold: float


def ratio_figure(ratios: Ratios, path: Path) -> None:
    """Draw both distributions, one above the other on one axis; the suffix says SVG or PNG.

    Limits: pairs of behaviours are counted, not of releases; how many releases behave alike does not show.
    """
    save(_draw(ratios), path)


def _draw(ratios: Ratios) -> Figure:
    figure = empty(8.0, 4.6)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    bins = _bins(ratios)
    groups = {name: _placed(values, bins) for name, values in _groups(ratios).items() if len(values)}
    _stack(above, groups, bins)
    counts, _ = np.histogram(_placed(ratios.nulls, bins), bins)
    below.bar(bins[:-1], counts, np.diff(bins), align="edge", color="0.6", edgecolor="white", linewidth=0.6)
    for axes in (above, below):
        axes.axvline(ratios.threshold, color="black", linestyle=(0, (4, 3)), linewidth=1.2)
        axes.spines[["top", "right"]].set_visible(False)
        axes.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=5))
    _dress(above, below, ratios, bins)
    if groups:
        figure.legend(loc="outside upper center", ncols=len(groups), frameon=False)
    return figure


def _groups(ratios: Ratios) -> dict[str, Sequence[float]]:
    changed = np.asarray(ratios.pairs.get("changed", ()), dtype=np.float64)
    seen = changed >= ratios.threshold
    return {
        "rounding": ratios.pairs.get("rounding", ()),
        "amplified": ratios.pairs.get("amplified", ()),
        "changed": changed[seen].tolist(),
        ELSEWHERE: changed[~seen].tolist(),
    }


def _bins(ratios: Ratios) -> NDArray[np.float64]:
    """Whole decades around everything that is positive and finite, cut into a few bins each."""
    values = np.array([*ratios.nulls, *(value for each in ratios.pairs.values() for value in each), ratios.threshold])
    powers = np.log10(values[(values > 0) & np.isfinite(values)])
    low, high = int(np.floor(powers.min())), int(np.ceil(powers.max()))
    return np.asarray(np.logspace(low, high + 1, (high + 1 - low) * BINS_PER_DECADE + 1))


def _placed(values: Sequence[float], bins: NDArray[np.float64]) -> NDArray[np.float64]:
    """Zero has no place on the axis and stands in the first bin, infinity in the last."""
    return np.clip(np.nan_to_num(np.asarray(values, dtype=np.float64), nan=np.inf), bins[0], bins[-1] * (1 - 1e-9))


def _stack(axes: Axes, groups: Mapping[str, NDArray[np.float64]], bins: NDArray[np.float64]) -> None:
    bottom = np.zeros(len(bins) - 1)
    for name, values in groups.items():
        counts, _ = np.histogram(values, bins)
        colour, hatch = STYLES[name]
        axes.bar(
            bins[:-1], counts, np.diff(bins), bottom, align="edge", color=colour, hatch=hatch, edgecolor="white",
            linewidth=0.6, label=LABELS.get(name, name),
        )  # fmt: skip
        bottom += counts


def _dress(above: Axes, below: Axes, ratios: Ratios, bins: NDArray[np.float64]) -> None:
    below.set_xscale("log")
    below.set_xlim(bins[0], bins[-1])
    above.tick_params(labelbottom=False)
    above.set_ylabel("pairs of behaviours")
    below.set_ylabel("releases against\ntheir own copies")
    zeros = any(value == 0 for each in (ratios.nulls, *ratios.pairs.values()) for value in each)
    where = " (zero: in the first bin)" if zeros else ""
    below.set_xlabel(f"ratio: separation after one step over what rounding does{where}")
    above.annotate(
        f"changed from {ratios.threshold:g} on", (ratios.threshold, 1), xycoords=("data", "axes fraction"),
        xytext=(5, -4), textcoords="offset points", va="top", fontsize=9,
    )  # fmt: skip
