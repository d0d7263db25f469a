"""The paper's figures beside those measured here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from audit.terminal.screen import Screen

if TYPE_CHECKING:
    from audit.reproducing import Reproduced  # it brings SymPy and SciPy, which take a second to import

_AGREEMENT = {
    (True, True): "=",
    (True, False): "=",
    (False, True): "✗",
    (False, False): "≠",
}
"""Sign of a figure by whether it agrees, and whether it must."""


def show(screen: Screen, found: Sequence[Reproduced], seconds: float) -> None:
    """Print them, and count those that agree."""
    for each in found:
        screen.note((f"\n{each.experiment}: {each.title}", "bold"))
        rows = [
            (_AGREEMENT[figure.agrees, figure.exact], figure.name, figure.paper, figure.measured, figure.note)
            for figure in each.figures
        ]
        screen.table(("", "figure", "paper", "measured", "note"), rows)
    figures = [figure for each in found for figure in each.figures]
    exact = [figure for figure in figures if figure.exact]
    screen.note(
        f"\n{len(figures)} figures: {sum(figure.agrees for figure in figures)} agree; of the {len(exact)} exact "
        f"ones {sum(figure.agrees for figure in exact)} do. {seconds:.0f} s. They are in the view reproductions"
    )
