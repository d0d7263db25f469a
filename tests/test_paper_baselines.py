"""The baselines: that they fire on what differs, hold their level on what does not, and know what they cannot test."""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from analysis.paper import baselines
from analysis.paper.baselines import (
    Arm,
    BaselineUnavailable,
    Floats,
    Outcome,
    discriminator_test,
    kernel_test,
    ks_by_column,
    ks_test,
    paired_difference_test,
)
from analysis.paper.catalogue import CATALOGUE, Fault, arms, healthy_pair

FAULTS = {fault.name: fault for fault in CATALOGUE}
TWO_SAMPLE: list[Callable[[Arm, Arm], Outcome]] = [
    lambda one, other: kernel_test(one, other, permutations=500),
    ks_test,
    discriminator_test,
]


def normal(seed: int, rows: int = 300, shift: float = 0.0) -> Floats:
    return np.random.default_rng(seed).normal(shift, 1.0, (rows, 4))


@pytest.mark.parametrize("test", TWO_SAMPLE)
def test_a_shifted_sample_is_told(test: Callable[[Arm, Arm], Outcome]) -> None:
    assert test(normal(0), normal(1, shift=0.7)).p < 0.003


@pytest.mark.parametrize("test", TWO_SAMPLE[:2])
def test_equal_samples_are_told_as_rarely_as_the_level_says(test: Callable[[Arm, Arm], Outcome]) -> None:
    fired = [test(normal(2 * seed, 60), normal(2 * seed + 1, 60)).p < 0.1 for seed in range(100)]
    assert sum(fired) <= 20  # of a hundred at a level of a tenth: exceeded once in two thousand times


def test_the_discriminator_holds_its_level() -> None:
    fired = [discriminator_test(normal(2 * seed), normal(2 * seed + 1)).p < 0.1 for seed in range(12)]
    assert sum(fired) <= 4


@pytest.mark.parametrize("test", TWO_SAMPLE)
def test_trajectories_are_pooled(test: Callable[[Arm, Arm], Outcome]) -> None:
    one, other = normal(0), normal(1, shift=0.2)
    assert test([one[:100], one[100:]], other.reshape(3, 100, 4)) == test(one, other)


# Kernel


def test_the_discrepancy_is_the_unbiased_one() -> None:
    one, other = normal(0, 30), normal(1, 40, shift=1.0)
    rows, labels = baselines._pooled(one, other, 2000, np.random.default_rng(0))
    kernel = baselines._kernel(rows, np.random.default_rng(0)).astype(np.float64)
    within, beyond, between = kernel[:30, :30], kernel[30:, 30:], kernel[:30, 30:]
    expected = within.sum() / (30 * 29) + beyond.sum() / (40 * 39) - 2 * between.mean()
    assert kernel_test(one, other, permutations=1).statistic == pytest.approx(expected, rel=1e-5)
    assert labels.sum() == 40


def test_the_bandwidth_is_the_median_squared_distance() -> None:
    rows = np.repeat([[0.0], [2.0]], [10, 10], axis=0)
    kernel = baselines._kernel(rows, np.random.default_rng(0))
    assert kernel[0, 19] == pytest.approx(np.exp(-1.0))
    assert kernel[0, 0] == 0.0


def test_the_smallest_p_is_set_by_the_permutations() -> None:
    assert kernel_test(normal(0), normal(1, shift=3.0), permutations=2499).p == 1 / 2500


def test_a_subsample_is_drawn_from_long_arms_only() -> None:
    long, short = normal(0, 500), normal(1, 100, shift=0.3)
    chosen = long[np.random.default_rng(0).choice(500, 200, replace=False)]
    result = stats.ks_2samp(chosen[:, 0], short[:, 0], method="asymp")
    first = ks_by_column(long, short, subsample=200)[0]
    assert first == Outcome(statistic=result.statistic, p=min(1.0, 4 * result.pvalue))


def test_arms_without_any_spread_are_not_told_apart_from_themselves() -> None:
    assert kernel_test(np.ones((50, 2)), np.ones((50, 2)), permutations=100).p == 1.0
    assert ks_test(np.ones((50, 2)), np.ones((50, 2))) == Outcome(statistic=0.0, p=1.0)


# Kolmogorov–Smirnov


def test_columns_constant_in_both_arms_are_not_of_the_family() -> None:
    one, other = normal(0), normal(1, shift=0.2)
    one[:, 1], other[:, 1] = 0.0, 1e-3
    found = ks_by_column(one, other)
    assert found[1] is None
    raw = stats.ks_2samp(one[:, 0], other[:, 0], method="asymp").pvalue
    assert found[0] is not None
    assert found[0].p == pytest.approx(3 * raw)


def test_a_column_constant_in_one_arm_is_tested() -> None:
    one, other = normal(0), normal(1)
    other[:, 2] = 5.0
    assert ks_test(one, other).statistic == 1.0


def test_the_column_that_moved_is_named() -> None:
    one, other = normal(0), normal(1)
    other[:, 3] += 1.0
    assert [each is not None and each.p < 0.01 for each in ks_by_column(one, other)] == [False, False, False, True]


# Discriminator


def test_the_discriminator_is_near_chance_on_identical_arms() -> None:
    reference, test = arms(FAULTS["none_acrobot"], paired=True, noise=0.0)
    found = discriminator_test(reference, test)
    assert found.statistic == pytest.approx(0.5, abs=0.03)
    assert found.p > 0.01


def test_the_discriminator_finds_a_wrong_mass() -> None:
    found = discriminator_test(*arms(FAULTS["acrobot_m2_1.3"], paired=True, noise=0.0), subsample=1500)
    assert found.statistic > 0.8
    assert found.p < 1e-12


def test_a_missing_package_is_said_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.neural_network", None)
    with pytest.raises(BaselineUnavailable, match=r"needs scikit-learn.*\.$"):
        discriminator_test(normal(0), normal(1))


# Paired differences


def of_fault(name: str, noise: float) -> Outcome:
    fault = FAULTS[name]
    return paired_difference_test(
        *arms(fault, paired=True, noise=noise), *healthy_pair(fault, paired=True, noise=noise)
    )


@pytest.mark.parametrize("noise", [0.0, 1e-3])
@pytest.mark.parametrize("fault", CATALOGUE, ids=lambda fault: fault.name)
def test_paired_differences_tell_every_fault_and_no_control(fault: Fault, noise: float) -> None:
    assert (of_fault(fault.name, noise).p < 0.01) == (fault.category != "control")


@pytest.mark.parametrize(("name", "ratio"), [("reacher_dz_offset", 1.23), ("acrobot_obs_swap", 782)])
def test_ratios_of_paired_differences_are_the_papers(name: str, ratio: float) -> None:
    assert of_fault(name, 1e-3).statistic == pytest.approx(ratio, rel=5e-3)
    assert of_fault(name, 0.0).statistic == np.inf


def test_paired_differences_below_the_floor_are_not_ranked() -> None:
    rows = normal(0, 320)
    assert paired_difference_test(rows, rows + 1e-6, rows, rows).p < 1e-9
    assert paired_difference_test(rows, rows + 1e-9, rows, rows) == Outcome(statistic=1.0, p=1.0)


def test_columns_that_never_differ_are_not_of_the_family() -> None:
    rows, shifted = normal(0, 320), normal(0, 320)
    shifted[:, 0] += normal(1, 320)[:, 0]
    alone = paired_difference_test(rows[:, :1], shifted[:, :1], rows[:, :1], rows[:, :1])
    assert paired_difference_test(rows, shifted, rows, rows) == alone


def test_rows_that_fill_no_block_are_cut() -> None:
    rows, spoilt = normal(0, 330), normal(0, 330)
    spoilt[320:] += 1.0
    assert paired_difference_test(rows, spoilt, rows, rows).p == 1.0
