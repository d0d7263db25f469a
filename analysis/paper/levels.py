"""Table S5: the rate of faults detected as the level moves over twelve decades, and what bounds it from below."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from scipy import stats

from analysis.paper.comparison import ALPHA, NOISY, PAIRED, TWO_SAMPLE, Comparison, Method, Setting
from analysis.paper.experiment import Figure, Rule, share

WHERE = "table S5"

LEVELS = (1e-12, 1e-6, 1e-4, 1e-3, 1e-2, 0.05)
RATES: dict[Setting, dict[Method, tuple[float, ...]]] = {
    PAIRED: {
        Method.MMD: (0.00, 0.00, 0.33, 0.33, 0.40, 0.53),
        Method.KS: (0.13, 0.20, 0.20, 0.20, 0.40, 0.40),
        Method.DISCRIMINATOR: (0.53, 0.53, 0.53, 0.53, 0.53, 0.53),
        Method.TRAJECTORY: (0.00, 0.00, 0.00, 1.00, 1.00, 1.00),
    },
    NOISY: {
        Method.MMD: (0.00, 0.00, 0.33, 0.33, 0.40, 0.53),
        Method.KS: (0.20, 0.27, 0.27, 0.27, 0.47, 0.47),
        Method.DISCRIMINATOR: (0.53, 0.53, 0.53, 0.53, 0.53, 0.53),
        Method.TRAJECTORY: (0.00, 0.00, 0.00, 0.80, 0.80, 0.80),
    },
}
"""As the paper rounds them."""
DIGITS = 2

FLOORS = {Method.TRAJECTORY: 2.33e-4, Method.MMD: 1.0e-4}
WILSON = 0.66
"""Of no false alarm in the two controls."""


def level_figures(comparisons: Sequence[Comparison]) -> Iterator[Figure]:
    """Every cell of the table, the false alarms, and the smallest p that a method can give.

    Limits: rates over fifteen faults in steps of 1/15; the two controls bound a false-alarm rate hardly at all.
    """
    for setting, rates in RATES.items():
        here = [each for each in comparisons if each.setting == setting]
        methods = [method for method in rates if here and method in here[0].methods]
        for method in methods:
            yield from _rates(here, method, rates[method])
        yield from _false_alarms(here, methods)
    for method, paper in FLOORS.items():
        smallest = min(each.p(method) for each in comparisons)
        yield Figure(name=f"smallest p of the {method}", paper=paper, measured=smallest, where=WHERE)
    controls = [each.p(Method.TRAJECTORY) < ALPHA for each in comparisons if each.setting == PAIRED and each.control]
    if controls:
        bound = float(stats.binomtest(sum(controls), len(controls)).proportion_ci(method="wilson").high)
        yield Figure(name="Wilson upper bound of the false alarms", paper=WILSON, measured=bound, where=WHERE)


def _rates(here: Sequence[Comparison], method: Method, paper: Sequence[float]) -> Iterator[Figure]:
    found = [each.p(method) for each in here if not each.control]
    for level, expected in zip(LEVELS, paper, strict=True):
        rate = sum(p < level for p in found) / len(found)
        figure = Figure(
            name=f"{here[0].setting.name}, {method}: rate at α = {level:g}",
            paper=expected,
            measured=round(rate, DIGITS),
            rule=Rule.SAME,
            exact=method not in TWO_SAMPLE,
            where=WHERE,
        )
        yield figure.explained(f"the rows and what {method} makes of them are other draws")


def _false_alarms(here: Sequence[Comparison], methods: Sequence[Method]) -> Iterator[Figure]:
    for method in methods:
        alarms = [each.p(method) < max(LEVELS) for each in here if each.control]
        yield Figure(
            name=f"{here[0].setting.name}, {method}: false alarms at any level",
            paper="0/2",
            measured=share(alarms),
            rule=Rule.SAME,
            exact=method not in TWO_SAMPLE,
            where=WHERE,
        )
