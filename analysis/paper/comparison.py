"""Two arms compared in every way that the paper compares them: by the screen, by attribution, and by the baselines."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum

from analysis.algebra import diagnosis, screening
from analysis.algebra.attribution import Attribution, Value
from analysis.algebra.screening import Screen, Unit
from analysis.algebra.verdict import Verdict
from analysis.paper import baselines, laws
from analysis.paper.baselines import BaselineUnavailable, Outcome
from analysis.paper.catalogue import Arm, Fault, arms, healthy_pair

ALPHA = 0.01
"""The level of the paper's protocol table."""


class Method(StrEnum):
    """A way to tell two arms apart, in the order of the paper's tables."""

    MMD = "MMD"
    KS = "KS"
    DISCRIMINATOR = "discriminator"
    PAIRED = "paired difference"
    BLOCK = "screen by blocks"
    TRAJECTORY = "screen by trajectories"


TWO_SAMPLE = (Method.MMD, Method.KS, Method.DISCRIMINATOR)
"""Those that ask whether pooled rows come of one distribution. They draw rows."""
SCREENS = {Method.BLOCK: Unit.BLOCK, Method.TRAJECTORY: Unit.TRAJECTORY}


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """How the two arms are drawn."""

    name: str
    paired: bool
    noise: float = 0.0


UNPAIRED = Setting(name="unpaired σ=0", paired=False)
PAIRED = Setting(name="paired σ=0", paired=True)
NOISY = Setting(name="paired σ=1e-3", paired=True, noise=1e-3)
SETTINGS = (UNPAIRED, PAIRED, NOISY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What every method said of one fault in one setting."""

    fault: Fault
    setting: Setting
    screens: Mapping[Method, Screen]
    outcomes: Mapping[Method, Outcome]
    """Of the baselines that could run."""
    attribution: Attribution

    @property
    def control(self) -> bool:
        """Whether there is no fault to be found."""
        return self.fault.category == "control"

    @property
    def methods(self) -> tuple[Method, ...]:
        """Those that could run."""
        return tuple(method for method in Method if method in self.outcomes or method in self.screens)

    def p(self, method: Method) -> float:
        """The smallest that a method gave, corrected for how often it tested.

        Limits: not comparable between methods: they test different hypotheses.
        """
        if method in self.screens:
            return min(law.p for law in self.screens[method].laws)
        return self.outcomes[method].p

    def localised(self, method: Method) -> bool:
        """Whether a screen named the laws that the fault breaks, and no others.

        Limits: right names by a wrong reason count as right.
        """
        return set(self.screens[method].broken) == set(self.fault.breaks)

    def ratio(self, method: Method, law: str) -> float:
        """A law's residual over what it is without the fault.

        Limits: a ratio of medians without an error bar.
        """
        return next(each.ratio for each in self.screens[method].laws if each.law == law)

    @property
    def value(self) -> Value | None:
        """The value of the one constant that is named, if it is the wrong one."""
        found = named(self.attribution)
        return found if found is not None and found.parameter == self.fault.parameter else None


def named(attribution: Attribution) -> Value | None:
    """The constant that is the only explanation; ``None`` where there are several, or none.

    Limits: that one constant is the only explanation offered, not that it is right.
    """
    if attribution.verdict is not Verdict.PARAMETER_FAULT or len(attribution.explanations) != 1:
        return None
    values = attribution.explanations[0].values
    return values[0] if len(values) == 1 else None


def left(attribution: Attribution) -> float:
    """What the best single constant leaves of the law; not a number where the gap admitted no law.

    Limits: by coefficients. A small number is no proof of the constant, a large one a reason to refuse it.
    """
    return attribution.hypotheses[0].residual if attribution.hypotheses else math.nan


def compare(part: tuple[Fault, Setting]) -> Comparison:
    """Draw both arms and ask every method.

    Limits: one draw of each arm; how often a method errs is not told by it.
    """
    fault, setting = part
    reference, test = arms(fault, paired=setting.paired, noise=setting.noise)
    outcomes = two_sample(reference, test)
    if setting.paired:
        healthy = healthy_pair(fault, paired=True, noise=setting.noise)
        outcomes[Method.PAIRED] = baselines.paired_difference_test(reference, test, *healthy)
    return Comparison(
        fault=fault,
        setting=setting,
        screens=screens(fault, reference, test),
        outcomes=outcomes,
        attribution=attributed(fault, test),
    )


def two_sample(reference: Arm, test: Arm) -> dict[Method, Outcome]:
    """The baselines that see pooled rows, with the settings of the protocol; without those that are not installed.

    Limits: what is not installed is absent from the answer, and not counted as silent.
    """
    found = {Method.MMD: baselines.kernel_test(reference, test), Method.KS: baselines.ks_test(reference, test)}
    with suppress(BaselineUnavailable):
        found[Method.DISCRIMINATOR] = baselines.discriminator_test(reference, test)
    return found


def screens(fault: Fault, reference: Arm, test: Arm) -> dict[Method, Screen]:
    """The screen with both units.

    Limits: both units see the same trajectories, so that they are no confirmation of each other.
    """
    laws_of_system = laws.SETS[fault.system]
    return {
        method: screening.screen(laws_of_system, reference, test, unit=unit, alpha=ALPHA)
        for method, unit in SCREENS.items()
    }


def attributed(fault: Fault, test: Arm, lag: int | None = None) -> Attribution:
    """What the law with constants in it says of them.

    Limits: by coefficients, as the paper does, so that its figures can be held against these; not the rule of the
    audit.
    """
    return diagnosis.attribute(
        laws.SETS[fault.system], laws.parameterised(fault.system), test, lag, by_coefficients=True
    )
