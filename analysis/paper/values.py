"""The constants that attribution names on the faults of a parameter, and how near their values are (appendix H)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from analysis.paper.comparison import PAIRED, UNPAIRED, Comparison, Setting
from analysis.paper.experiment import Figure, Rule

WHERE = "appendix H, attribution"

WORST = {UNPAIRED: 1.0e-7, PAIRED: 1.7e-7}
"""The paper's relative errors."""
ACCEPTED = 2e-7
"""An error of this size is what rounding leaves; the digits before it do not depend on the processor."""


def value_figures(comparisons: Sequence[Comparison]) -> Iterator[Figure]:
    """Values of the constants that are named without noise, and the worst of their errors.

    Limits: the value only, where the right constant is named; a wrong constant shows as not a number.
    """
    for setting, worst in WORST.items():
        faults = [each for each in comparisons if each.setting == setting and each.fault.category == "parameter"]
        yield from (_value(each) for each in faults)
        yield from _errors(setting, max(map(_error, faults), default=math.nan), worst)


def _value(found: Comparison) -> Figure:
    """Not a number where another constant was named, or none."""
    assert found.fault.value is not None
    value = math.nan if found.value is None else found.value.fitted
    name = f"{found.setting.name}, {found.fault.name}: {found.fault.parameter}"
    return Figure(name=name, paper=found.fault.value, measured=value, where=WHERE)


def _errors(setting: Setting, measured: float, paper: float) -> Iterator[Figure]:
    name = f"{setting.name}: worst relative error of a value"
    yield Figure(name=f"{name}, bound", paper=ACCEPTED, measured=measured, rule=Rule.AT_MOST, where=WHERE)
    figure = Figure(name=name, paper=paper, measured=measured, rule=Rule.ABOUT, exact=False, where=WHERE)
    yield figure.explained("at 1e-7 it is rounding, which the order of operations decides")


def _error(found: Comparison) -> float:
    assert found.fault.value is not None
    return math.inf if found.value is None else abs(found.value.fitted / found.fault.value - 1)
