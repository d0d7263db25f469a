"""The verdict on a pair of releases: one pure function of what was measured."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from analysis.separation import Separation
from analysis.yardstick import BORDERLINE_BELOW, BORDERLINE_FROM, THRESHOLD, Reading

FLOAT_NOISE = 1e-13
"""First-step separations below this are float noise, by the paper's rule (section VII-D).

Measured there: the largest first-step separation between releases with unchanged dynamics is 2.2e-16, three orders
below. The number is absolute, so it holds for observations of order one, as in the eleven environments it was set on.
"""

RULE = "yardstick-1"
"""Name of the rule below. Verdicts are kept with it, and judged anew where it has another name."""

_LEAST_SINGLE, _SINGLE = 2.0**-38, 2.0**-22
"""Relative size of rounding to single precision: from what a small weight or time step leaves of it (a control cost in
a reward: 9e-12) to twice its epsilon."""


class Verdict(StrEnum):
    """What a pair of releases is to each other on one environment."""

    IDENTICAL = "identical"
    ROUNDING = "rounding"
    AMPLIFIED = "amplified"
    CHANGED = "changed"
    INCOMPARABLE = "incomparable"
    NONDETERMINISTIC = "nondeterministic"
    UNAVAILABLE = "unavailable"


SIGNS = {
    Verdict.IDENTICAL: "=",
    Verdict.ROUNDING: "≈",
    Verdict.AMPLIFIED: "~",
    Verdict.CHANGED: "✗",
    Verdict.NONDETERMINISTIC: "!",
    Verdict.INCOMPARABLE: "?",
    Verdict.UNAVAILABLE: "·",
}
"""Of verdicts, on a terminal and on the page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What was measured of one output of two releases."""

    output: str
    same_bits: bool
    """In everything that was recorded of it."""
    reading: Reading | None = None
    """On single steps after states that both were handed; ``None`` where there are none or nothing differs."""
    horizon: Separation | None = None
    """Over trajectories; ``None`` where there are none or nothing differs."""
    interface: str = ""
    """A change of shape, dtype, structure or space, in words; empty when there is none."""

    @property
    def ratio(self) -> float:
        """The largest on single steps."""
        return self.reading.ratio if self.reading is not None else 0.0

    @property
    def grains(self) -> float:
        """The largest separation over trajectories, in multiples of what its numbers can be written in."""
        return self.horizon.horizon_grains if self.horizon is not None else 0.0

    @property
    def changed(self) -> bool:
        """Whether this output alone makes the pair a changed one."""
        return bool(self.interface) or self.ratio >= THRESHOLD

    @property
    def first_step_ulps(self) -> float | None:
        """The same separation in units in the last place."""
        if self.reading is not None and (self.horizon is None or self.reading.separation >= self.horizon.first_step):
            return self.reading.ulps
        return self.horizon.first_step_ulps if self.horizon is not None else None

    @property
    def first_step(self) -> float:
        """The largest separation after one step: forced, or the first of a trajectory."""
        if self.interface and self.reading is None:
            return math.inf
        forced = self.reading.separation if self.reading is not None else 0.0
        started = self.horizon.first_step if self.horizon is not None else 0.0
        return max(forced, started)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """A verdict, what it was read from, and the reason in words."""

    verdict: Verdict
    paper_verdict: Verdict
    """What the paper's absolute rule says of the trajectories alone."""
    reason: str
    first_step: float | None = None
    """``None`` where nothing was compared."""
    first_step_ulps: float | None = None
    first_step_ratio: float | None = None
    horizon: float | None = None
    states_forced: int | None = None
    states_beyond: int | None = None
    outputs_changed: str = ""
    beyond: tuple[int, ...] = ()
    """The states that are beyond the threshold, by their place in the bank."""


def incomparable(reason: str) -> Judgement:
    """Nothing can be said.

    Limits: neither that the two are the same nor that they differ.
    """
    return Judgement(verdict=Verdict.INCOMPARABLE, paper_verdict=Verdict.INCOMPARABLE, reason=reason)


def judge(
    evidence: Sequence[Evidence], reads: Sequence[str], states_forced: int, sources: Sequence[str] = ()
) -> Judgement:
    """Judge a pair by the outputs that ``reads`` names; what moved in the others is told in the reason.

    ``sources`` says of each forced state where it comes from.

    Limits: a verdict of what was forced and recorded. ``identical`` claims no more than its coverage, and of two
    releases that differ it does not say which is right.

    >>> judge([Evidence(output="reward", same_bits=True)], ["reward"], 512).verdict
    <Verdict.IDENTICAL: 'identical'>
    """
    moved = [each for each in evidence if each.output in reads and not each.same_bits]
    unread = [each for each in evidence if each.output not in reads and not each.same_bits]
    beyond = _union([each for each in moved if each.output != "reset"])
    changed = [each for each in moved if each.changed]
    verdict = _rule(moved, changed)
    horizons = [each.horizon for each in moved if each.horizon is not None]
    stepped = [each for each in moved if each.output not in ("reset", "spaces")]
    widest = max(stepped, key=lambda each: _size(each.first_step), default=None)
    return Judgement(
        verdict=verdict,
        paper_verdict=_paper_rule(moved, horizons),
        reason="; ".join(_reasons(verdict, moved, changed, unread, _where(beyond, states_forced, sources))),
        first_step=max((_size(each.first_step) for each in stepped), default=0.0),
        first_step_ulps=widest.first_step_ulps if widest is not None else 0.0,
        first_step_ratio=max((each.ratio for each in stepped), default=0.0),
        horizon=max((_size(each.horizon) for each in horizons), default=0.0),
        states_forced=states_forced,
        states_beyond=len(beyond),
        outputs_changed=", ".join(each.output for each in changed),
        beyond=beyond,
    )


def _rule(moved: Sequence[Evidence], changed: Sequence[Evidence]) -> Verdict:
    if not moved:
        return Verdict.IDENTICAL
    if changed:
        return Verdict.CHANGED
    if any(each.grains >= THRESHOLD for each in moved):
        return Verdict.AMPLIFIED
    return Verdict.ROUNDING


def _paper_rule(moved: Sequence[Evidence], horizons: Sequence[Separation]) -> Verdict:
    """The paper's: what the matrix reads of trajectories, against an absolute number."""
    if any(each.interface for each in moved if each.output not in ("reset", "spaces")):
        return Verdict.CHANGED
    if all(each.same_bits for each in horizons):
        return Verdict.IDENTICAL
    if not all(_size(each.first_step) < FLOAT_NOISE for each in horizons):
        return Verdict.CHANGED
    return Verdict.ROUNDING if all(_size(each.horizon) < FLOAT_NOISE for each in horizons) else Verdict.AMPLIFIED


def _size(separation: float) -> float:
    """What is not a number is as far as can be."""
    return math.inf if math.isnan(separation) else separation


def _union(evidence: Sequence[Evidence]) -> tuple[int, ...]:
    """States that are beyond the threshold in any of the outputs."""
    masks = [each.reading.beyond for each in evidence if each.reading is not None]
    return tuple(np.flatnonzero(np.any(masks, axis=0)).tolist()) if masks else ()


def _where(beyond: Sequence[int], states_forced: int, sources: Sequence[str]) -> str:
    """How many states, and where they come from."""
    counted = Counter(sources[state] for state in beyond) if sources else {}
    told = ", ".join(f"{count} {source}" for source, count in counted.items())
    return f"{len(beyond)} of {states_forced} states" + (f" ({told})" if told else "")


def _reasons(
    verdict: Verdict,
    moved: Sequence[Evidence],
    changed: Sequence[Evidence],
    unread: Sequence[Evidence],
    where: str,
) -> list[str]:
    parts = [each.interface for each in changed if each.interface]
    if verdict is Verdict.CHANGED:
        parts += _changes(changed, where)
    elif verdict is Verdict.AMPLIFIED:
        widest = max(moved, key=lambda each: each.grains)
        noise = "rounding" if any(each.ratio for each in moved) else "no difference"
        apart = widest.horizon.horizon if widest.horizon is not None else 0.0
        parts.append(f"{noise} after one step, {widest.output} apart by {apart:.2e} over the horizon")
    elif verdict is Verdict.ROUNDING and all(each.first_step == 0 and not each.grains for each in moved):
        parts.append("only the sign of zero, the payload of a not-a-number, or a nudged copy differs")
    largest = max((each.ratio for each in moved), default=0.0)
    if BORDERLINE_FROM <= largest < BORDERLINE_BELOW:
        parts.append(f"a ratio of {largest:.0f} lies between rounding and a change: look at it")
    if unread:
        told = ", ".join(f"{each.output} by {each.first_step:.2e} after one step" for each in unread)
        parts.append(f"not read by this matrix, but apart: {told}")
    return parts


def _changes(changed: Sequence[Evidence], where: str) -> list[str]:
    parts = []
    stepped = [each for each in changed if each.reading is not None and each.ratio >= THRESHOLD]
    steps = [each for each in stepped if each.output != "reset"]
    if steps:
        named = ", ".join(each.output for each in steps) + (" only" if len(changed) == 1 else "")
        widest = max(steps, key=lambda each: each.ratio)
        apart = max(each.reading.beyond_separation for each in steps if each.reading is not None)
        parts.append(
            f"{named} beyond the yardstick in {where}, ratio up to {widest.ratio:.1e}, apart by up to {apart:.2e}"
        )
        relative = max(each.reading.relative for each in steps if each.reading is not None)
        if _LEAST_SINGLE < relative <= _SINGLE and all(each.ratio < math.inf for each in steps):
            parts.append("as far apart as rounding an input or intermediate to single precision would put them")
    for each in stepped:
        if each.output == "reset" and each.reading is not None:
            only = " only" if len(changed) == 1 else ""
            count = int(each.reading.beyond.sum())
            parts.append(
                f"reset{only}: {count} of {len(each.reading.ratios)} seeds start elsewhere, ratio up to "
                f"{each.ratio:.1e}, apart by up to {each.reading.beyond_separation:.2e}"
            )
    return parts
