"""From what was measured to the verdict, its reason, and what the paper's rule would have said."""

from __future__ import annotations

import math
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analysis.separation import Separation, separation
from analysis.verdicts import Evidence, Judgement, Verdict, incomparable, judge
from analysis.yardstick import BORDERLINE_BELOW, BORDERLINE_FROM, THRESHOLD, Reading
from audit.asked.matrix import OUTPUTS, Output

UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
STATES = 5
STEPS: tuple[Output, ...] = ("state", "observation", "reward", "terminated", "truncated")
BELOW, ABOVE = math.nextafter(THRESHOLD, 0), math.nextafter(THRESHOLD, math.inf)
RATIOS = st.floats(min_value=0, allow_nan=False)


def reading(*ratios: float, relative: float = 1.0, apart: float = 0.5) -> Reading:
    padded = np.array([*ratios, *[0.0] * (STATES - len(ratios))])
    return Reading(
        ratios=padded,
        separation=apart,
        ulps=None,
        beyond_separation=apart,
        relative=relative,
        state=int(padded.argmax()),
        entry=0,
    )


def trajectories(output: str, first: float, horizon: float, grains: float = 0.0) -> Separation:
    ulps = first / 2**-52 if math.isfinite(first) else None
    return Separation(
        output=output,
        same_bits=False,
        first_step=first,
        first_step_ulps=ulps,
        horizon=horizon,
        horizon_ulps=None,
        horizon_grains=grains,
    )


def moved(output: str, *ratios: float, horizon: Separation | None = None, **more: Any) -> Evidence:
    read = reading(*ratios, **more) if ratios else None
    return Evidence(output=output, same_bits=False, reading=read, horizon=horizon)


def still(output: str) -> Evidence:
    return Evidence(output=output, same_bits=True)


def judged(*evidence: Evidence, reads: Any = OUTPUTS) -> Judgement:
    named = {each.output for each in evidence}
    return judge([*evidence, *(still(output) for output in OUTPUTS if output not in named)], reads, STATES)


# The rule


@pytest.mark.parametrize(
    ("ratio", "horizon", "expected"),
    [
        (0.0, 0.0, Verdict.ROUNDING),
        (0.5, BELOW, Verdict.ROUNDING),
        (BELOW, BELOW, Verdict.ROUNDING),
        (0.0, THRESHOLD, Verdict.AMPLIFIED),
        (BELOW, ABOVE, Verdict.AMPLIFIED),
        (BELOW, math.inf, Verdict.AMPLIFIED),
        (THRESHOLD, 0.0, Verdict.CHANGED),
        (ABOVE, ABOVE, Verdict.CHANGED),
        (math.inf, math.inf, Verdict.CHANGED),
    ],
)
@pytest.mark.parametrize("output", STEPS)
def test_the_rule_at_and_around_its_threshold(output: str, ratio: float, horizon: float, expected: Verdict) -> None:
    found = judged(moved(output, ratio, horizon=trajectories(output, 0.0, 0.0, horizon)))
    assert found.verdict is expected
    assert found.first_step_ratio == ratio
    assert found.outputs_changed == (output if expected is Verdict.CHANGED else "")
    assert found.states_beyond == (1 if expected is Verdict.CHANGED else 0)
    assert found.states_forced == STATES


def test_the_same_bits_are_identical_and_need_no_reason() -> None:
    found = judged()
    assert (found.verdict, found.paper_verdict, found.reason) == (Verdict.IDENTICAL, Verdict.IDENTICAL, "")
    assert (found.first_step, found.first_step_ulps, found.horizon) == (0.0, 0.0, 0.0)
    assert (found.first_step_ratio, found.states_beyond, found.outputs_changed) == (0.0, 0, "")


def test_incomparable_says_why_and_claims_nothing() -> None:
    found = incomparable("because")
    assert (found.verdict, found.paper_verdict, found.reason) == (
        Verdict.INCOMPARABLE,
        Verdict.INCOMPARABLE,
        "because",
    )
    assert found.first_step is found.first_step_ratio is found.states_forced is found.states_beyond is None


@UNHURRIED
@given(st.lists(st.tuples(st.sampled_from(STEPS), RATIOS, RATIOS), unique_by=lambda each: each[0]))
def test_one_output_beyond_the_threshold_decides_whatever_the_others_are(
    drawn: list[tuple[Output, float, float]],
) -> None:
    found = judged(
        *(moved(output, ratio, horizon=trajectories(output, 0.0, 0.0, later)) for output, ratio, later in drawn)
    )
    beyond = {output for output, ratio, _ in drawn if ratio >= THRESHOLD}
    assert (found.verdict is Verdict.CHANGED) == bool(beyond)
    assert (found.verdict is Verdict.IDENTICAL) == (not drawn)
    assert set(filter(None, found.outputs_changed.split(", "))) == beyond
    assert found.first_step_ratio == max((ratio for _, ratio, _ in drawn), default=0.0)


@UNHURRIED
@given(st.permutations([moved("state", 2e4), moved("reward", 3.0), moved("observation", 7e8), moved("reset", 9e3)]))
def test_the_order_of_outputs_does_not_matter_but_in_how_they_are_listed(evidence: list[Evidence]) -> None:
    found = judge(evidence, OUTPUTS, STATES)
    assert found.verdict is Verdict.CHANGED
    assert set(found.outputs_changed.split(", ")) == {"state", "observation", "reset"}
    assert (found.first_step_ratio, found.states_beyond) == (7e8, 1)


def test_states_beyond_are_counted_once_whichever_outputs_they_moved() -> None:
    found = judged(moved("state", 1e9, 1e9, 0, 0, 1.0), moved("reward", 0, 1e9, 1e9))
    assert found.states_beyond == 3
    assert "beyond the yardstick in 3 of 5 states" in found.reason
    assert found.reason.startswith("state, reward beyond")
    assert "only" not in found.reason


def test_the_reason_says_where_the_states_beyond_come_from() -> None:
    sources = ["given", "visited", "visited", "in range", "sought"]
    found = judge([moved("state", 0, 1e9, 1e9, 0, 1e9)], OUTPUTS, STATES, sources)
    assert found.beyond == (1, 2, 4)
    assert "in 3 of 5 states (2 visited, 1 sought)" in found.reason


def test_seeds_that_start_elsewhere_are_not_counted_among_the_forced_states() -> None:
    found = judged(moved("reset", 1e9, 1e9), moved("state", 1e9))
    assert found.states_beyond == 1
    assert "reset: 2 of 5 seeds start elsewhere" in found.reason


# The reason


@pytest.mark.parametrize("output", STEPS)
def test_an_output_that_moved_alone_is_said_to(output: str) -> None:
    reason = judged(moved(output, 1e7, 2e7)).reason
    assert (
        reason == f"{output} only beyond the yardstick in 2 of 5 states, ratio up to 2.0e+07, apart by up to 5.00e-01"
    )


def test_a_reset_alone() -> None:
    found = judged(moved("reset", 1e9, 1e9, 1e9))
    assert (found.verdict, found.outputs_changed) == (Verdict.CHANGED, "reset")
    assert found.reason == "reset only: 3 of 5 seeds start elsewhere, ratio up to 1.0e+09, apart by up to 5.00e-01"
    assert found.states_beyond == 0


def test_spaces_alone() -> None:
    told = "spaces: the action space's high differ"
    found = judged(Evidence(output="spaces", same_bits=False, interface=told))
    assert (found.verdict, found.outputs_changed, found.reason) == (Verdict.CHANGED, "spaces", told)
    assert found.paper_verdict is Verdict.IDENTICAL, "it looked at trajectories"
    assert found.states_beyond == 0


def test_an_interface_change_is_changed_however_close_the_values() -> None:
    told = "observation has dtypes float32 and float64"
    found = judged(Evidence(output="observation", same_bits=False, reading=reading(0.5), interface=told))
    assert (found.verdict, found.paper_verdict) == (Verdict.CHANGED, Verdict.CHANGED)
    assert found.reason == told
    assert found.outputs_changed == "observation"


def test_an_interface_change_that_cannot_be_subtracted_is_infinitely_far() -> None:
    apart = separation("observation", np.ones((2, 3, 2)), np.ones((2, 3, 5)))
    found = judged(Evidence(output="observation", same_bits=False, horizon=apart, interface=apart.interface))
    assert (found.first_step, found.horizon) == (math.inf, math.inf)


def test_a_change_no_larger_than_single_precision_says_so_and_is_changed_all_the_same() -> None:
    remark = "as far apart as rounding an input or intermediate to single precision would put them"
    small, large = judged(moved("state", 1e8, relative=6e-8)), judged(moved("state", 1e8, relative=1e-6))
    assert small.verdict is large.verdict is Verdict.CHANGED
    assert remark in small.reason
    assert remark not in large.reason
    both = judged(moved("state", 1e8, relative=6e-8), moved("reward", 1e9, relative=1e-3))
    assert remark not in both.reason
    flag = judged(moved("state", 1e8, relative=6e-8), moved("terminated", math.inf, relative=0.0))
    assert remark not in flag.reason


@pytest.mark.parametrize(
    ("ratio", "between"),
    [
        (BORDERLINE_FROM / 2, False),
        (BORDERLINE_FROM, True),
        (BELOW, True),
        (ABOVE, True),
        (BORDERLINE_BELOW / 2, True),
        (BORDERLINE_BELOW, False),
    ],
)
def test_a_ratio_between_rounding_and_a_change_is_pointed_out(ratio: float, between: bool) -> None:
    assert ("lies between rounding and a change" in judged(moved("state", ratio)).reason) == between


def test_the_reason_of_amplified_names_the_output_that_went_furthest() -> None:
    evidence = [
        moved("state", 0.5, horizon=trajectories("state", 1e-16, 4.55e-2, 1e9)),
        moved("observation", horizon=trajectories("observation", 0.0, 10.0, 1e11)),
    ]
    found = judged(*evidence)
    assert found.reason == "rounding after one step, observation apart by 1.00e+01 over the horizon"
    assert found.horizon == 10.0
    told = judged(evidence[1]).reason
    assert told == "no difference after one step, observation apart by 1.00e+01 over the horizon"


def test_rounding_needs_no_reason_unless_no_number_moved() -> None:
    assert judged(moved("state", 0.5)).reason == ""
    assert judged(moved("state", 0.0, apart=0.0)).reason.startswith("only the sign of zero")
    assert judged(moved("state")).reason.startswith("only the sign of zero")


def test_outputs_that_are_not_read_do_not_judge_but_are_told() -> None:
    found = judged(moved("state", 1e9), reads=["observation"])
    assert found.verdict is found.paper_verdict is Verdict.IDENTICAL
    assert (found.first_step, found.first_step_ratio, found.states_beyond) == (0.0, 0.0, 0)
    assert found.reason == "not read by this matrix, but apart: state by 5.00e-01 after one step"


def test_every_unread_output_is_told_beside_the_verdict_of_those_read() -> None:
    evidence = [
        moved("observation", 1e9, apart=0.25), moved("state", 1e9), moved("reward", math.inf, apart=math.inf),
    ]  # fmt: skip
    found = judged(*evidence, reads=["observation"])
    assert found.verdict is Verdict.CHANGED
    assert (found.first_step, found.outputs_changed) == (0.25, "observation")
    assert found.reason.startswith("observation only beyond")
    assert found.reason.endswith("not read by this matrix, but apart: state by 5.00e-01 after one step, "
                                 "reward by inf after one step")  # fmt: skip


def test_an_unread_change_of_interface_says_what_it_is() -> None:
    told = "state has dtypes float32 and float64"
    found = judged(Evidence(output="state", same_bits=False, interface=told), reads=["observation"])
    assert found.verdict is Verdict.IDENTICAL
    assert "state" in found.reason


def test_every_verdict_has_its_word() -> None:
    words = {"identical", "rounding", "amplified", "changed", "incomparable", "unavailable", "nondeterministic"}
    assert {str(verdict) for verdict in Verdict} == words
    assert set(OUTPUTS) == set(get_args(Output))
