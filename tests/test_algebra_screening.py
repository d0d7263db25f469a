"""Screening: a broken law is named at its level, and nothing is named between systems that are the same."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from analysis.algebra import screening
from analysis.algebra.errors import BadData
from analysis.algebra.reference import Kind, ReferenceSet
from analysis.algebra.screening import ALPHA, BLOCKS, CHUNKS, FLOOR, Residuals, Unit

UNHURRIED = settings(deadline=None, max_examples=30)
CIRCLE = ReferenceSet.of(
    "circle",
    variables={"x": "o[0]", "y": "o[1]", "z": "o[2]"},
    laws={
        "norm": (Kind.VANISHES, "x**2 + y**2 - 1"),
        "height": (Kind.VANISHES, "z"),
        "radius": (Kind.CONSERVED, "x**2 + y**2"),
    },
)
SMALLEST = 1 / math.comb(16, 8)
SMALLEST_OF_BLOCKS = 3.26e-12

Floats = NDArray[np.float64]


def orbits(count: int = 8, radius: float = 1.0, leak: float = 0.0, noise: float = 0.0, seed: int = 0) -> list[Floats]:
    """Trajectories on a circle, of fifty samples each, with noise in its plane and a leak out of it."""
    rng = np.random.default_rng(seed)
    angle = rng.uniform(0, 2 * np.pi, (count, 1)) + np.linspace(0, 3, 50)
    plane = np.stack([radius * np.cos(angle), radius * np.sin(angle), np.full_like(angle, leak)], axis=-1)
    plane[..., :2] += rng.normal(0, noise, (count, 50, 2))
    return list(plane)


def of(values: Floats) -> Residuals:
    """Of one law."""
    return Residuals(relative=values[:, None], absolute=values[:, None])


def p_value(tested: Floats, reference: Floats, unit: Unit = Unit.TRAJECTORY) -> float:
    return float(screening.p_values(of(tested), of(reference), unit)[0])


def drawn(count: int, seed: int = 0, scale: float = 1.0) -> Floats:
    return scale * np.random.default_rng(seed).uniform(1, 2, count)


# The permutation test


@UNHURRIED
@given(st.integers(2, 5), st.integers(2, 5), st.integers(0, 10**6), st.floats(0.5, 2), st.booleans())
def test_p_is_that_of_scipys_exact_permutation_test(one: int, other: int, seed: int, scale: float, ties: bool) -> None:
    tested, reference = drawn(one, seed, scale), drawn(other, seed + 1)
    if ties:
        tested, reference = np.round(tested, 1), np.round(reference, 1)
    exact = stats.permutation_test(
        (tested, reference),
        lambda a, b, axis: np.mean(a, axis=axis) - np.mean(b, axis=axis),
        vectorized=True,
        n_resamples=np.inf,
        alternative="greater",
    )
    assert p_value(tested, reference) == pytest.approx(exact.pvalue, rel=1e-12)


def test_the_smallest_p_of_eight_against_eight_is_one_split_in_all() -> None:
    assert p_value(drawn(8, scale=3), drawn(8)) == SMALLEST
    assert p_value(drawn(8), drawn(8, scale=3)) == 1
    assert p_value(np.ones(8), np.ones(8)) == 1


def test_many_units_are_split_at_random_and_no_p_is_zero() -> None:
    p = p_value(drawn(40, scale=3), drawn(40))
    assert p == 1 / (screening._DRAWN_SPLITS + 1)
    assert p_value(drawn(40, seed=1), drawn(40, seed=2)) > ALPHA
    assert p_value(drawn(40, scale=3), drawn(40)) == p


def test_splits_of_many_trajectories_do_not_fill_the_memory() -> None:
    tracemalloc.start()
    try:
        assert p_value(drawn(1000, seed=1), drawn(1000, seed=2)) > ALPHA
        assert tracemalloc.get_traced_memory()[1] < 100e6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("units", [2, 8, 9, 10, 11, 30])
def test_what_is_attainable_is_attained(units: int) -> None:
    found = screening.screen(CIRCLE, orbits(units, noise=1e-4), orbits(units, radius=1.1, noise=1e-4, seed=1))
    splits = math.comb(2 * units, units) if units <= 10 else screening._DRAWN_SPLITS + 1
    assert found.laws[0].p == pytest.approx(found.attainable) == pytest.approx(min(1.0, 3 / splits))


# Ranks of blocks


def test_the_smallest_p_of_blocks_is_that_of_the_paper() -> None:
    assert p_value(drawn(BLOCKS, scale=3), drawn(BLOCKS), Unit.BLOCK) == pytest.approx(SMALLEST_OF_BLOCKS, rel=2e-3)
    found = screening.screen(CIRCLE, orbits(noise=1e-4), orbits(radius=1.1, noise=1e-4, seed=1), unit=Unit.BLOCK)
    assert found.attainable == found.laws[0].p == pytest.approx(3 * SMALLEST_OF_BLOCKS, rel=2e-3)
    assert found.unit is Unit.BLOCK


def test_blocks_that_are_all_alike_are_no_difference() -> None:
    assert p_value(np.ones(BLOCKS), np.ones(BLOCKS), Unit.BLOCK) == 1


# Which law


@pytest.mark.parametrize("unit", Unit)
def test_the_law_that_broke_is_named_and_no_other(unit: Unit) -> None:
    clean = orbits(noise=1e-6)
    assert screening.screen(CIRCLE, clean, orbits(noise=1e-6, seed=1), unit=unit).broken == ()
    assert screening.screen(CIRCLE, clean, orbits(noise=1e-6, leak=1e-3, seed=1), unit=unit).broken == ("height",)
    wider = screening.screen(CIRCLE, clean, orbits(noise=1e-6, radius=1.01, seed=1), unit=unit)
    assert wider.broken == ("norm",)  # the radius is another, and constant all the same
    if unit is Unit.TRAJECTORY:
        assert wider.laws[0].p == 3 * SMALLEST
    assert wider.laws[0].ratio > 1000
    assert wider.laws[2].p > ALPHA


def test_only_residuals_that_are_larger_count() -> None:
    assert screening.screen(CIRCLE, orbits(noise=1e-3), orbits(noise=1e-6, seed=1)).broken == ()


def test_a_conserved_law_is_held_against_its_mean_and_a_vanishing_one_against_zero() -> None:
    found = screening.residuals(CIRCLE, orbits(radius=2.0))
    np.testing.assert_allclose(found.absolute, [[3.0, 0.0, 0.0]] * 8, atol=1e-14)
    np.testing.assert_allclose(found.relative, [[3 / 5, 0.0, 0.0]] * 8, atol=1e-14)
    drifting = [each * np.linspace(1, 2, 50)[:, None] for each in orbits()]
    spread = np.std(np.linspace(1, 2, 50) ** 2)
    np.testing.assert_allclose(screening.residuals(CIRCLE, drifting).absolute[:, 2], spread, rtol=1e-12)


def test_a_batch_of_any_shape_has_the_residuals_of_each_unit() -> None:
    units = np.array(orbits(6, noise=1e-3))
    apart = screening.residuals(CIRCLE, list(units))
    together = screening.batch_residuals(CIRCLE, units.reshape(2, 3, 50, 3))
    np.testing.assert_allclose(together.relative.reshape(6, 3), apart.relative, rtol=1e-12)


# The floor


@pytest.mark.parametrize("unit", Unit)
@pytest.mark.parametrize(
    ("leak", "broken"), [(1e-30, ()), (0.99 * FLOOR, ()), (1.01 * FLOOR, ("height",)), (1e-3, ("height",))]
)
def test_the_floor_is_absolute(unit: Unit, leak: float, broken: tuple[str, ...]) -> None:
    found = screening.screen(CIRCLE, orbits(), orbits(leak=leak, seed=1), unit=unit)
    assert found.broken == broken
    assert found.laws[1].tested == 1.0  # beside its only term, whatever its size
    assert found.laws[1].ratio == math.inf


def test_without_a_floor_a_leak_of_any_size_is_seen() -> None:
    assert screening.screen(CIRCLE, orbits(), orbits(leak=1e-30, seed=1), floor=0).broken == ("height",)


def test_the_ratio_of_nothing_to_nothing_is_one() -> None:
    found = screening.screen(CIRCLE, orbits(), orbits(seed=1))
    assert found.laws[1].ratio == 1
    assert (found.laws[1].reference, found.laws[1].tested, found.laws[1].p) == (0, 0, 1)


def test_a_law_of_one_term_says_nothing_under_noise() -> None:
    """Beside its only term a residual is 1 on both sides, whatever its size: as in the paper."""
    reference, tested = (np.random.default_rng(seed).normal(0, 1e-6, (8, 50, 3)) for seed in range(2))
    assert screening.screen(CIRCLE, list(reference), list(tested + np.array([0, 0, 1e-3]))).broken == ()


# Units of all lengths


def test_trajectories_may_have_different_lengths() -> None:
    ragged = [each[: 50 - 5 * place] for place, each in enumerate(orbits(noise=1e-6))]
    assert screening.residuals(CIRCLE, ragged).relative.shape == (8, 3)
    assert screening.screen(CIRCLE, ragged, orbits(5, leak=1e-3, noise=1e-6, seed=1)).broken == ("height",)


@pytest.mark.parametrize("samples", [16, 23, 47, 100, 400, 4001])
def test_a_single_array_is_cut_into_eight(samples: int) -> None:
    whole = np.concatenate(orbits(100))[:samples]
    assert len(screening.residuals(CIRCLE, [whole]).relative) == CHUNKS
    first = screening.batch_residuals(CIRCLE, whole[: max(2, samples // CHUNKS)]).relative
    np.testing.assert_allclose(screening.residuals(CIRCLE, [whole]).relative[0], first)


@pytest.mark.parametrize(("trajectories", "blocks"), [(1, 32), (2, 32), (5, 30), (8, 32), (32, 32), (40, 40)])
def test_blocks_of_all_trajectories_together_are_thirty_two(trajectories: int, blocks: int) -> None:
    given_ones = [np.concatenate(orbits(4))] * trajectories
    assert len(screening.residuals(CIRCLE, given_ones, Unit.BLOCK).relative) == blocks


@pytest.mark.parametrize("cut", [1, 8])
def test_the_same_drift_seen_for_longer_is_no_difference(cut: int) -> None:
    growing = [np.concatenate(orbits(8, seed=seed)) * np.linspace(1, 1.01, 400)[:, None] for seed in range(16)]
    shorter = growing[:1] if cut == 1 else [each[:50] for each in growing[:8]]
    assert "radius" not in screening.screen(CIRCLE, shorter, growing[8:]).broken


def test_data_that_nothing_can_be_said_of_are_refused() -> None:
    broken = orbits()
    broken[3][7] = np.nan
    for reference, tested in ((orbits(), broken), (broken, orbits()), ([], orbits()), (orbits(), [])):
        with pytest.raises(BadData, match="trajector"):
            screening.screen(CIRCLE, reference, tested)


# Nulls


def test_systems_that_are_the_same_are_told_apart_as_rarely_as_the_level_says() -> None:
    pairs = 200
    alarms = sum(
        bool(screening.screen(CIRCLE, orbits(noise=1e-3, seed=2 * pair), orbits(noise=1e-3, seed=2 * pair + 1)).broken)
        for pair in range(pairs)
    )
    assert alarms <= stats.binom.ppf(0.999, pairs, ALPHA)


def test_p_is_spread_evenly_between_systems_that_are_the_same() -> None:
    values = [p_value(drawn(6, seed), drawn(6, seed + 10_000)) for seed in range(500)]
    for level in (0.01, 0.05, 0.2, 0.5):
        assert abs(sum(p <= level for p in values) - 500 * level) <= 4 * math.sqrt(500 * level * (1 - level))


def drifting(seed: int, drift: float, noise: float = 0.0) -> list[Floats]:
    """Eight circles that widen, each at its own pace."""
    paces = np.random.default_rng(100 + seed).uniform(0.5, 1.5, (8, 1)) * drift
    wider = 1 + paces * np.linspace(0, 1, 50)
    return [
        each * np.array([[1, 1, 1]]) * factor[:, None]
        for each, factor in zip(orbits(noise=noise, seed=seed), wider, strict=True)
    ]


def test_one_trajectory_of_each_shows_nothing_of_what_is_conserved() -> None:
    """Its parts are not drawn anew: a healthy pair of other drifts would be told apart by them."""
    found = screening.screen(CIRCLE, drifting(0, 1e-6)[:1], drifting(1, 1e-3)[:1])
    assert (found.broken, found.attainable) == ((), 1.0)


def test_single_precision_is_no_difference_from_double() -> None:
    single = [each.astype(np.float32).astype(np.float64) for each in orbits(seed=1)]
    assert screening.residuals(CIRCLE, single).absolute.max() > FLOOR
    assert screening.screen(CIRCLE, orbits(), single).broken == ()
    wider = [each.astype(np.float32).astype(np.float64) for each in orbits(radius=1 + 1e-5, seed=1)]
    assert screening.screen(CIRCLE, orbits(), wider).broken == ("norm",)


def test_a_short_episode_does_not_hide_a_drift() -> None:
    healthy, faulty = drifting(0, 1e-4, noise=1e-5), drifting(1, 1e-2, noise=1e-5)
    assert "radius" in screening.screen(CIRCLE, healthy, faulty).broken
    found = screening.screen(CIRCLE, [healthy[0][:3], *healthy[1:]], [faulty[0][:2], *faulty[1:]])
    assert "radius" in found.broken
    assert found.left_out == 2


def test_what_vanishes_is_held_against_whole_trajectories() -> None:
    half = [each[:30] if place % 2 else each for place, each in enumerate(orbits(noise=1e-4))]
    late = [each + np.where(np.arange(50)[:, None] > 40, [0, 0, 1e-3], 0) for each in orbits(noise=1e-4, seed=1)]
    assert screening.screen(CIRCLE, half, late).broken == ("height",)
