from __future__ import annotations

import math
from typing import get_args

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analysis.separation import Separation, separation
from analysis.verdicts import FLOAT_NOISE, Verdict, judge
from audit.matrix import OUTPUTS, Output

UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
BELOW = math.nextafter(FLOAT_NOISE, 0)
ABOVE = math.nextafter(FLOAT_NOISE, 1)
DISTANCES = st.floats(min_value=0, allow_nan=False)


def apart(output: str, first: float, horizon: float | None = None, interface: str = "") -> Separation:
    return Separation(
        output=output,
        same_bits=False,
        first_step=first,
        first_step_ulps=first / 2**-52 if math.isfinite(first) else None,
        horizon=first if horizon is None else horizon,
        horizon_ulps=None,
        interface=interface,
    )


def test_the_paper_calls_a_first_step_below_1e_13_float_noise() -> None:
    assert FLOAT_NOISE == 1e-13


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
        (ABOVE, ABOVE, Verdict.CHANGED),
        (1.0, 1.0, Verdict.CHANGED),
        (math.inf, math.inf, Verdict.CHANGED),
        (math.nan, math.nan, Verdict.CHANGED),
        (0.0, math.nan, Verdict.AMPLIFIED),
    ],
)
def test_the_rule_at_and_around_its_threshold(first: float, horizon: float, expected: Verdict) -> None:
    assert judge([apart("observation", first, horizon)], OUTPUTS).verdict is expected


def test_the_same_bits_are_identical_and_need_no_reason() -> None:
    found = judge([Separation.none(output) for output in OUTPUTS], OUTPUTS)
    assert (found.verdict, found.reason) == (Verdict.IDENTICAL, "")
    assert (found.first_step, found.first_step_ulps, found.horizon) == (0.0, 0.0, 0.0)


@UNHURRIED
@given(st.lists(st.tuples(st.sampled_from(OUTPUTS), DISTANCES, DISTANCES), unique_by=lambda each: each[0]))
def test_one_pair_beyond_the_noise_decides_whatever_the_others_are(drawn: list[tuple[Output, float, float]]) -> None:
    separations = [apart(output, first, max(first, later)) for output, first, later in drawn]
    found = judge(separations, OUTPUTS)
    firsts, horizons = [each.first_step for each in separations], [each.horizon for each in separations]
    assert (found.verdict is Verdict.CHANGED) == any(first >= FLOAT_NOISE for first in firsts)
    assert (found.verdict is Verdict.IDENTICAL) == (not separations)
    assert found.first_step == max(firsts, default=0.0)
    assert found.horizon == max(horizons, default=0.0)


@UNHURRIED
@given(st.permutations([apart("state", 1e-16), apart("reward", 3e-14, 1e-3), Separation.none("observation")]))
def test_the_order_of_outputs_does_not_matter(separations: list[Separation]) -> None:
    found = judge(separations, OUTPUTS)
    assert found.verdict is Verdict.AMPLIFIED
    assert (found.first_step, found.horizon) == (3e-14, 1e-3)
    assert found.first_step_ulps == 3e-14 / 2**-52


@pytest.mark.parametrize("position", [0, 1])
def test_a_separation_that_is_not_a_number_is_changed_wherever_it_stands(position: int) -> None:
    separations = [apart("state", 1e-16)]
    separations.insert(position, apart("reward", math.nan))
    found = judge(separations, OUTPUTS)
    assert found.verdict is Verdict.CHANGED
    assert "reward" in found.reason


def test_an_interface_change_is_changed_however_close_the_values() -> None:
    found = judge([apart("observation", 0.0, interface="observation has dtypes float32 and float64")], OUTPUTS)
    assert found.verdict is Verdict.CHANGED
    assert found.reason == "observation has dtypes float32 and float64"


def test_outputs_that_are_not_read_do_not_judge_but_are_told() -> None:
    separations = [Separation.none("observation"), apart("state", 0.5, 2.0), Separation.none("reward")]
    found = judge(separations, ["observation"])
    assert found.verdict is Verdict.IDENTICAL
    assert (found.first_step, found.horizon) == (0.0, 0.0)
    assert found.reason == "not read by this matrix, but apart: state by 2.00e+00"


def test_every_unread_output_is_told_beside_the_verdict_of_those_read() -> None:
    separations = [apart("observation", 0.25), apart("state", 0.5, 2.0), apart("reward", 1.0, math.inf)]
    found = judge(separations, ["observation"])
    assert found.verdict is Verdict.CHANGED
    assert found.first_step == 0.25
    assert found.reason == (
        "observation apart by 2.50e-01 after one step; "
        "not read by this matrix, but apart: state by 2.00e+00, reward by inf"
    )


def test_an_unread_change_of_interface_says_what_it_is() -> None:
    found = judge([apart("state", 0.0, interface="state has dtypes float32 and float64")], ["observation"])
    assert found.verdict is Verdict.IDENTICAL
    assert "state" in found.reason


def test_the_reason_of_changed_names_each_output_beyond_the_noise_and_no_other() -> None:
    separations = [apart("state", 1e-3), apart("observation", 1e-15, 5.0), apart("reward", 2e-3)]
    assert judge(separations, OUTPUTS).reason == (
        "state apart by 1.00e-03 after one step; reward apart by 2.00e-03 after one step"
    )


def test_the_reason_of_amplified_names_the_output_that_went_furthest() -> None:
    separations = [apart("state", 1e-16, 4.55e-2), apart("observation", 1e-15, 10.0)]
    assert judge(separations, OUTPUTS).reason == (
        "float noise after one step, observation apart by 1.00e+01 over the horizon"
    )


def test_rounding_needs_no_reason_unless_only_the_sign_of_zero_moved() -> None:
    assert judge([apart("state", 1e-16)], OUTPUTS).reason == ""
    assert judge([apart("state", 0.0)], OUTPUTS).reason == (
        "only the sign of zero, or the payload of a not-a-number, differs"
    )


def test_from_arrays_to_verdict() -> None:
    older = np.zeros((2, 3, 2))
    assert judge([separation("state", older, older.copy())], OUTPUTS).verdict is Verdict.IDENTICAL
    assert judge([separation("state", older, -older)], OUTPUTS).verdict is Verdict.ROUNDING
    assert judge([separation("state", older, older + 1e-14)], OUTPUTS).verdict is Verdict.ROUNDING
    assert judge([separation("state", older, older + np.nan)], OUTPUTS).verdict is Verdict.CHANGED


def test_every_verdict_has_its_word() -> None:
    words = {"identical", "rounding", "amplified", "changed", "incomparable", "unavailable"}
    assert {str(verdict) for verdict in Verdict} == words
    assert set(OUTPUTS) == set(get_args(Output))
