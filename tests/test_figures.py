from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from analysis import figures, ratio_figure, timeline_figure
from analysis.figures import COLOURS, DASHES, Curve, separation_figure
from analysis.ratio_figure import Ratios
from analysis.timeline_figure import Stretch, Timeline


def climbing(environment: str, pair: str) -> Curve:
    return Curve(environment=environment, pair=pair, separation=np.logspace(-16, 0, 50))


def of_zeros(environment: str, pair: str) -> Curve:
    return Curve(environment=environment, pair=pair, separation=np.zeros(50))


def overlaps(figure: Figure) -> list[tuple[str, str]]:
    """Texts of a drawn picture that lie over each other."""
    figure.draw_without_rendering()
    boxes = [(text.get_text(), text.get_window_extent().padded(-1)) for text in shown(figure) if text.get_text()]
    assert len(boxes) > 5
    return [
        (one, other)
        for place, (one, box) in enumerate(boxes)
        for other, beside in boxes[:place]
        if box.overlaps(beside)
    ]


def shown(figure: Figure) -> Iterator[Text]:
    """Titles, labels, legends and ticks, without those beyond the limits of an axis: they are there and not drawn."""
    for legend in figure.legends:
        yield from legend.get_texts()
    for axes in figure.axes:
        if not axes.axison:
            continue
        yield from (axes.xaxis.label, axes.yaxis.label, axes.title, axes._left_title, *axes.texts)  # type: ignore[attr-defined]
        for axis, place in ((axes.xaxis, 0), (axes.yaxis, 1)):
            low, high = sorted(axis.get_view_interval())
            yield from (text for text in axis.get_ticklabels() if low <= text.get_position()[place] <= high)


@pytest.mark.parametrize(("suffix", "begins"), [(".png", b"\x89PNG"), (".svg", b"<?xml")])
def test_the_suffix_says_the_format_and_the_same_curves_make_the_same_file(
    tmp_path: Path, suffix: str, begins: bytes
) -> None:
    curves = [climbing("Hopper-v5", "1 → 2"), of_zeros("Reacher-v5", "1 → 2")]
    one, other = tmp_path / f"one{suffix}", tmp_path / f"other{suffix}"
    separation_figure(curves, one)
    separation_figure(curves, other)
    assert one.read_bytes().startswith(begins)
    assert one.read_bytes() == other.read_bytes()


def test_another_suffix_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="an \\.svg or a \\.png"):
        separation_figure([climbing("Hopper-v5", "1 → 2")], tmp_path / "figure.jpeg")


def test_a_panel_is_an_environment_and_a_style_a_pair() -> None:
    curves = [climbing(environment, pair) for environment in ("a", "b") for pair in ("1 → 2", "2 → 3")]
    panels = figures._draw(curves).axes
    assert [axes.get_title(loc="left") for axes in panels] == ["a", "b"]
    (one, other), (again, _) = (axes.lines for axes in panels)
    assert one.get_color() == again.get_color() != other.get_color()
    assert one.get_linestyle() == again.get_linestyle() != other.get_linestyle()


def test_the_legend_names_every_pair_once() -> None:
    curves = [climbing(environment, pair) for environment in ("a", "b") for pair in ("1 → 2", "2 → 3", "3 → 4")]
    named = [[text.get_text() for text in legend.get_texts()] for legend in figures._draw(curves).legends]
    assert named == [["1 → 2", "2 → 3", "3 → 4"]]


def test_more_pairs_than_colours_still_differ() -> None:
    curves = [climbing("a", f"pair {index}") for index in range(len(COLOURS) * len(DASHES))]
    assert len({str(style) for style in figures._pair_styles(curves).values()}) == len(curves)


def test_no_label_of_many_panels_lies_over_another(tmp_path: Path) -> None:
    curves = [
        climbing(f"Environment{index}-v5", f"simulator-{index % 9}.10.0 → simulator-{index % 9}.11.0")
        for index in range(20)
    ]
    assert overlaps(figures._draw(curves)) == []


def test_zeros_are_drawn_on_the_axis_below_everything_else() -> None:
    figure = figures._draw([climbing("a", "1 → 2"), of_zeros("a", "2 → 3")])
    axes = figure.axes[0]
    bottom = axes.get_ylim()[0]
    assert axes.get_yscale() == "log"
    assert bottom < 1e-16
    assert set(np.asarray(axes.lines[1].get_ydata()).tolist()) == {bottom}
    assert "zero" in figure.get_supylabel()


def test_infinite_separations_leave_a_gap() -> None:
    heights = figures._drawable(np.array([1e-3, np.inf, 0.0]), 1e-9)
    assert heights[0] == 1e-3
    assert np.isnan(heights[1])
    assert heights[2] == 1e-9


@pytest.mark.parametrize("curves", [[], [of_zeros("a", "1 → 2")], [climbing("a", "1 → 2")]])
def test_few_curves_make_a_figure_without_a_warning(tmp_path: Path, curves: list[Curve]) -> None:
    separation_figure(curves, tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 0


@pytest.mark.parametrize("steps", [0, 1])
def test_curves_of_hardly_a_step(tmp_path: Path, steps: int) -> None:
    separation_figure([Curve(environment="a", pair="p", separation=np.zeros(steps))], tmp_path / "figure.svg")
    assert (tmp_path / "figure.svg").exists()


# Ratios and timelines


def test_ratios_and_nulls_are_counted_where_they_belong() -> None:
    ratios = Ratios(
        pairs={"rounding": [0.0, 0.5, 2.0], "changed": [1e7, math.inf, 3.0]}, nulls=[5.0, 18.0], threshold=1e3
    )
    above, below = ratio_figure._draw(ratios).axes
    counts = {bars.get_label(): sum(bar.get_height() for bar in bars) for bars in above.containers}
    assert counts == {"rounding": 3, "changed": 2, "changed in reset, space or dtype": 1}
    assert sum(bar.get_height() for bars in below.containers for bar in bars) == 2
    assert above.get_xscale() == "log"
    assert np.asarray(above.lines[0].get_xdata())[0] == 1e3
    seen = next(bars for bars in above.containers if bars.get_label() == "changed")
    assert all(bar.get_x() >= 1e3 for bar in seen if bar.get_height())


def test_only_nulls_make_a_picture(tmp_path: Path) -> None:
    ratio_figure.ratio_figure(Ratios(pairs={}, nulls=[5.0], threshold=1e3), tmp_path / "ratios.svg")
    assert (tmp_path / "ratios.svg").read_bytes().startswith(b"<?xml")


def timelines(releases: int, environments: int) -> list[Timeline]:
    stretches = [Stretch(first=0, last=1, behaviour=0), Stretch(first=2, last=releases - 1, behaviour=1)]
    return [
        Timeline(environment=f"InvertedDoublePendulum-v{place}", stretches=stretches, boundaries=[(2, "changed")])
        for place in range(environments)
    ]


def test_a_timeline_shows_behaviours_and_what_lies_between() -> None:
    axes = timeline_figure._draw(["1.0", "1.1", "2.0", "2.1"], timelines(4, 2)).axes[0]
    assert [text.get_text() for text in axes.texts] == ["1", "2"] * 2
    assert [np.asarray(line.get_xdata())[0] for line in axes.lines] == [1.5, 1.5]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1.0", "1.1", "2.0", "2.1"]


@pytest.mark.parametrize("count", [2, 20, 300])
def test_no_label_of_a_timeline_lies_over_another(count: int) -> None:
    names = [f"3.{place}.0" for place in range(count)]
    assert overlaps(timeline_figure._draw(names, timelines(count, 11))) == []
