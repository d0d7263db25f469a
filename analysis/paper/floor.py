"""Table S4: the smallest relative error of a constant that each method still rejects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from analysis.paper import laws
from analysis.paper.catalogue import Fault, arms, parameter_fault
from analysis.paper.comparison import ALPHA, TWO_SAMPLE, Method, screens, two_sample
from analysis.paper.experiment import Experiment, Figure, Rule

WHERE = "table S4"
NONE = "none"

MAGNITUDES = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3)
SCREENED = {
    0.0: {"m2": 1e-4, "g": 1e-4, "lc2": 1e-4, "ell2": 1e-4},
    1e-3: {"m2": 0.1, "g": 3e-2, "lc2": 0.1, "ell2": 1e-3},
}
"""The screen's floors by noise and constant. Without noise the paper says: at most that, the least that was tried."""
BASELINES: dict[str, float | str] = {"m2": 0.3, "g": 0.3, "lc2": 0.3, "ell2": NONE}
"""Those of each baseline, at either noise."""

PROBE, PROBE_RATIO = "m2", 5.5e5
"""The constant whose ratio of residuals the paper quotes at the smallest error: the median over blocks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One constant moved by a relative amount, under one noise."""

    constant: str
    magnitude: float
    noise: float

    @property
    def fault(self) -> Fault:
        """As an entry of a catalogue."""
        system = "reacher" if self.constant.startswith("ell") else "acrobot"
        value = float(laws.SETS[system].parameters[self.constant]) * (1 + self.magnitude)
        return parameter_fault(f"{self.constant} off by {self.magnitude:g}", self.constant, value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """What the methods said of one cell."""

    p: Mapping[Method, float]
    """The smallest, corrected."""
    ratio: float
    """Of block residuals, of the law that shows most."""


def measure(cell: Cell) -> Sweep:
    """Ask the screens and the two-sample tests.

    Limits: one draw for each size of fault; the floor lies between two sizes and is not interpolated.
    """
    reference, test = arms(cell.fault, paired=True, noise=cell.noise)
    found = screens(cell.fault, reference, test)
    p = {method: min(law.p for law in screen.laws) for method, screen in found.items()}
    outcomes = two_sample(reference, test)
    return Sweep(
        p=p | {method: outcome.p for method, outcome in outcomes.items()},
        ratio=max(law.ratio for law in found[Method.BLOCK].laws),
    )


CELLS = tuple(
    Cell(constant=constant, magnitude=magnitude, noise=noise)
    for magnitude in reversed(MAGNITUDES)
    for noise, constants in SCREENED.items()
    for constant in constants
)


def figures(results: Sequence[Sweep]) -> list[Figure]:
    """From which size on each method detects a fault, and the ratio at the smallest.

    Limits: floors on this grid of sizes, none finer.
    """
    found = dict(zip(CELLS, results, strict=True))
    least = Cell(constant=PROBE, magnitude=min(MAGNITUDES), noise=0.0)
    name = f"{PROBE} off by {least.magnitude:g}: ratio of block residuals"
    ratio = Figure(name=name, paper=PROBE_RATIO, measured=found[least].ratio, where="appendix H, floor")
    return [*_floors(found), ratio]


def _floors(found: Mapping[Cell, Sweep]) -> Iterator[Figure]:
    for noise, constants in SCREENED.items():
        for constant, paper in constants.items():
            cells = [cell for cell in found if (cell.noise, cell.constant) == (noise, constant)]
            swept = {cell.magnitude: found[cell].p for cell in cells}
            for method in (each for each in Method if all(each in p for p in swept.values())):
                name = f"σ = {noise:g}, {constant}: smallest error rejected by {method}"
                yield _floor(name, method, BASELINES[constant] if method in TWO_SAMPLE else paper, swept)


def _floor(name: str, method: Method, paper: float | str, swept: Mapping[float, Mapping[Method, float]]) -> Figure:
    exact = method not in TWO_SAMPLE
    smallest = min((magnitude for magnitude, p in swept.items() if p[method] < ALPHA), default=None)
    measured = NONE if smallest is None else smallest
    figure = Figure(name=name, paper=paper, measured=measured, rule=Rule.SAME, exact=exact, where=WHERE)
    largest = max(swept)
    note = f"the rows that it sees are another draw: at {largest:g} it has p = {swept[largest][method]:.2g}"
    return figure if exact else figure.explained(note)


FLOOR = Experiment(
    name="floor",
    title="smallest error of a constant that is rejected, four constants, two noises",
    parts=CELLS,
    run=measure,
    figures=figures,
)
