from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from analysis import figures
from analysis.figures import COLOURS, DASHES, Curve, separation_figure


def climbing(environment: str, pair: str) -> Curve:
    return Curve(environment=environment, pair=pair, separation=np.logspace(-16, 0, 50))


def of_zeros(environment: str, pair: str) -> Curve:
    return Curve(environment=environment, pair=pair, separation=np.zeros(50))


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


def test_colour_is_the_environment_and_style_the_pair() -> None:
    curves = [climbing(environment, pair) for environment in ("a", "b") for pair in ("1 → 2", "2 → 3")]
    lines = figures._draw(curves).axes[0].lines
    assert [line.get_color() for line in lines] == [COLOURS[0], COLOURS[0], COLOURS[1], COLOURS[1]]
    assert lines[0].get_linestyle() == lines[2].get_linestyle() != lines[1].get_linestyle()


def test_the_legends_name_every_environment_and_every_pair_once() -> None:
    curves = [climbing(environment, pair) for environment in ("a", "b") for pair in ("1 → 2", "2 → 3", "3 → 4")]
    named = [[text.get_text() for text in legend.get_texts()] for legend in figures._draw(curves).legends]
    assert named == [["a", "b"], ["1 → 2", "2 → 3", "3 → 4"]]


def test_more_environments_than_colours_and_more_pairs_than_dashes_still_differ() -> None:
    curves = [climbing(f"environment {index}", f"pair {index}") for index in range(2 * len(COLOURS))]
    lines = figures._draw(curves).axes[0].lines
    assert len({(line.get_color(), line.get_marker()) for line in lines}) == len(curves)
    styles = figures._pair_styles(curves)
    assert len({str(style) for style in styles.values()}) == len(curves) > len(DASHES)


def test_zeros_are_drawn_on_the_axis_below_everything_else() -> None:
    axes = figures._draw([climbing("a", "1 → 2"), of_zeros("b", "1 → 2")]).axes[0]
    bottom = axes.get_ylim()[0]
    assert axes.get_yscale() == "log"
    assert bottom < 1e-16
    assert set(np.asarray(axes.lines[1].get_ydata()).tolist()) == {bottom}
    assert "zero" in axes.get_ylabel()


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
