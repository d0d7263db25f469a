"""The verdict on a pair of releases: one pure function of what was measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from analysis.separation import Separation

FLOAT_NOISE = 1e-13
"""First-step separations below this are float noise, by the paper's rule (section VII-D).

Measured there: the largest first-step separation between releases with unchanged dynamics is 2.2e-16, three orders
below. The number is absolute, so it holds for observations of order one, as in the eleven environments it was set on.
"""


RULE = "first-step-1"
"""Name of the rule below. Verdicts are kept with it, and judged anew where it has another name."""


class Verdict(StrEnum):
    """What a pair of releases is to each other on one environment."""

    IDENTICAL = "identical"
    ROUNDING = "rounding"
    AMPLIFIED = "amplified"
    CHANGED = "changed"
    INCOMPARABLE = "incomparable"
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """A verdict, the separations it was read from, and the reason in words."""

    verdict: Verdict
    reason: str
    first_step: float | None
    """``None`` where nothing was compared."""
    first_step_ulps: float | None
    horizon: float | None


def judge(separations: Sequence[Separation], reads: Sequence[str]) -> Judgement:
    """Judge a pair by the outputs that ``reads`` names; what moved in the others is told in the reason.

    >>> judge([Separation.none("reward")], ["reward"]).verdict
    <Verdict.IDENTICAL: 'identical'>
    """
    read = [each for each in separations if each.output in reads]
    moved = [each for each in read if not each.same_bits]
    unread = [each for each in separations if each.output not in reads and not each.same_bits]
    widest = max(moved, key=lambda each: _size(each.first_step), default=None)
    first = _size(widest.first_step) if widest else 0.0
    horizon = max((_size(each.horizon) for each in moved), default=0.0)
    verdict = _rule(bool(moved), any(each.interface for each in moved), first, horizon)
    return Judgement(
        verdict=verdict,
        reason=_reason(verdict, moved, unread),
        first_step=first,
        first_step_ulps=widest.first_step_ulps if widest else 0.0,
        horizon=horizon,
    )


def _size(separation: float) -> float:
    """What is not a number is as far as can be."""
    return math.inf if math.isnan(separation) else separation


def _rule(moved: bool, interface: bool, first: float, horizon: float) -> Verdict:
    if not moved:
        return Verdict.IDENTICAL
    if interface or not first < FLOAT_NOISE:
        return Verdict.CHANGED
    return Verdict.ROUNDING if horizon < FLOAT_NOISE else Verdict.AMPLIFIED


def _reason(verdict: Verdict, moved: list[Separation], unread: list[Separation]) -> str:
    parts = [each.interface for each in moved if each.interface]
    if verdict is Verdict.CHANGED:
        beyond = [each for each in moved if not each.interface and not each.first_step < FLOAT_NOISE]
        parts += [f"{each.output} apart by {each.first_step:.2e} after one step" for each in beyond]
    elif verdict is Verdict.AMPLIFIED:
        widest = max(moved, key=lambda each: each.horizon)
        noise = "float noise" if any(each.first_step for each in moved) else "no difference"
        parts.append(f"{noise} after one step, {widest.output} apart by {widest.horizon:.2e} over the horizon")
    elif verdict is Verdict.ROUNDING and all(each.horizon == 0 for each in moved):
        parts.append("only the sign of zero, or the payload of a not-a-number, differs")
    if unread:
        told = ", ".join(f"{each.output} by {each.horizon:.2e}" for each in unread)
        parts.append(f"not read by this matrix, but apart: {told}")
    return "; ".join(parts)
