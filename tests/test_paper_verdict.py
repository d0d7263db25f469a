"""The paper's absolute rule beside the yardstick: where the two differ, both ways, and where arrays lead."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from analysis import yardstick
from analysis.separation import Separation, separation
from analysis.verdicts import FLOAT_NOISE, Evidence, Judgement, Verdict, judge
from analysis.yardstick import Forced, Reading
from audit.asked.matrix import OUTPUTS

BELOW = math.nextafter(FLOAT_NOISE, 0)


def both_rules(older: NDArray[Any], newer: NDArray[Any]) -> Judgement:
    """Trajectories of one step, which are the forced states too."""
    one, other = (
        Forced.of(each, np.concatenate([each + sign * np.spacing(each) for sign in (-1.0, 1.0)]))
        for each in (older, newer)
    )
    read = yardstick.read(one, other)
    evidence = Evidence(output="state", same_bits=False, reading=read, horizon=separation("state", older, newer))
    return judge([evidence], OUTPUTS, len(older))


def drawn(low: float, high: float) -> NDArray[np.float64]:
    return np.random.default_rng(0).uniform(low, high, (8, 1, 4))


def test_large_values_are_changed_for_the_paper_and_rounding_by_the_yardstick() -> None:
    found = both_rules(drawn(1e3, 2e3), drawn(1e3, 2e3) + 1e-12)
    assert (found.verdict, found.paper_verdict) == (Verdict.ROUNDING, Verdict.CHANGED)


def test_small_values_are_rounding_for_the_paper_and_changed_by_the_yardstick() -> None:
    found = both_rules(drawn(1e-9, 2e-9), drawn(1e-9, 2e-9) + 1e-14)
    assert (found.verdict, found.paper_verdict) == (Verdict.CHANGED, Verdict.ROUNDING)
    assert found.states_beyond == 8


def test_of_values_of_order_one_both_say_the_same() -> None:
    values = drawn(0.5, 1)
    for newer, verdict in (
        (values + 1e-15, Verdict.ROUNDING),
        (values * (1 + 1e-9), Verdict.CHANGED),
        (values + np.nan, Verdict.CHANGED),
    ):
        found = both_rules(values, newer)
        assert found.verdict is found.paper_verdict is verdict


@pytest.mark.parametrize(
    ("first", "horizon", "expected"),
    [
        (0.0, 0.0, Verdict.ROUNDING),
        (2.2e-16, 9.1e-15, Verdict.ROUNDING),
        (BELOW, BELOW, Verdict.ROUNDING),
        (0.0, FLOAT_NOISE, Verdict.AMPLIFIED),
        (BELOW, FLOAT_NOISE, Verdict.AMPLIFIED),
        (0.0, 10.0, Verdict.AMPLIFIED),
        (BELOW, math.inf, Verdict.AMPLIFIED),
        (FLOAT_NOISE, FLOAT_NOISE, Verdict.CHANGED),
        (math.nextafter(FLOAT_NOISE, 1), 1.0, Verdict.CHANGED),
        (math.inf, math.inf, Verdict.CHANGED),
        (math.nan, math.nan, Verdict.CHANGED),
        (0.0, math.nan, Verdict.AMPLIFIED),
    ],
)
def test_the_papers_rule_at_and_around_its_threshold(first: float, horizon: float, expected: Verdict) -> None:
    assert FLOAT_NOISE == 1e-13
    apart = Separation(
        output="observation",
        same_bits=False,
        first_step=first,
        first_step_ulps=None,
        horizon=horizon,
        horizon_ulps=None,
    )
    found = judge([Evidence(output="observation", same_bits=False, horizon=apart)], OUTPUTS, 5)
    assert found.paper_verdict is expected


def forced_only(apart: float) -> Evidence:
    read = Reading(
        ratios=np.array([1e9]), separation=apart, ulps=None, beyond_separation=0.25, relative=1.0, state=0, entry=0
    )
    return Evidence(output="state", same_bits=False, reading=read)


def test_the_paper_does_not_see_what_only_forced_steps_show() -> None:
    found = judge([forced_only(0.5)], OUTPUTS, 1)
    assert (found.verdict, found.paper_verdict) == (Verdict.CHANGED, Verdict.IDENTICAL)


def test_separation_and_ulps_are_of_the_same_step() -> None:
    found = judge([forced_only(0.5)], OUTPUTS, 1)
    assert found.first_step == 0.5
    assert found.first_step_ulps != 0.0
