"""Algebraically equal code with reordered floating-point operations is rounding, 500 times out of 500."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from analysis import yardstick
from analysis.yardstick import THRESHOLD, Forced
from audit.stimuli import stimulus
from audit.stimuli.stimulus import Batch

Floats = NDArray[np.float64]
Step = Callable[[Floats], Floats]

NULLS = 500
STATES = 32
NUDGES = 4
LARGEST_RATE = 0.01
"""Of wrong alarms, at the upper end of the interval: 500 nulls without one give 0.0076."""


def wilson_upper(hits: int, trials: int, z: float = 1.96) -> float:
    """The upper end of Wilson's 95 % interval for a rate."""
    rate = hits / trials
    centre = rate + z**2 / (2 * trials)
    spread = z * math.sqrt(rate * (1 - rate) / trials + z**2 / (4 * trials**2))
    return (centre + spread) / (1 + z**2 / trials)


def summed(x: Floats, weights: Floats, order: NDArray[np.int64]) -> Floats:
    """A sum of products, one by one in that order."""
    total = np.zeros(len(x))
    for entry in order:
        total = total + weights[entry] * x[:, entry]
    return total


def step(weights: Floats, order: NDArray[np.int64], *, factored: bool) -> Step:
    """One step of a made-up simulator, with sums that cancel, a product, a quotient and an angle."""

    def advance(x: Floats) -> Floats:
        force = summed(x, weights, order)
        first, second = x[:, 0], x[:, 1]
        if factored:
            energy = (first - second) * (first + second)  # cancels where the two are close
            reach = first * (second + force)
            moved = x[:, 2] + 0.01 * force / 3.0
        else:
            energy = first * first - second * second
            reach = first * second + first * force
            moved = x[:, 2] + force / 3.0 * 0.01
        return np.stack([force, energy, reach, moved, np.sin(force), np.sqrt(1.0 + energy**2)], axis=1)

    return advance


def forced(advance: Step, states: Floats, seed: int) -> Forced:
    copies = stimulus.nudged(Batch(starts=states, actions=np.zeros((len(states), 1))), NUDGES, seed).starts
    return Forced.of(advance(states), advance(copies))


def null(seed: int, factor: float = 1.0) -> float:
    """The ratio of one step against its reordered self; with a factor, against one whose weights were moved."""
    generator = np.random.default_rng(seed)
    entries = int(generator.integers(3, 12))
    states = generator.normal(size=(STATES, entries)) * 10.0 ** generator.uniform(-3, 1, entries)
    states[: STATES // 4, 1] = states[: STATES // 4, 0] * (1 + generator.normal(size=STATES // 4) * 1e-8)
    states[generator.random(states.shape) < 0.1] = 0.0
    weights = generator.normal(size=entries)
    weights[-1] = -weights[:-1].sum()
    older = step(weights, np.arange(entries), factored=False)
    newer = step(weights * factor, generator.permutation(entries), factored=True)
    return yardstick.read(forced(older, states, seed), forced(newer, states, seed)).ratio


def test_reordered_code_never_comes_out_as_changed() -> None:
    ratios = np.array([null(seed) for seed in range(NULLS)])
    assert (ratios > 0).mean() > 0.9, "the two are not the same bits"
    assert not (ratios >= THRESHOLD).any(), f"up to {ratios.max():.1f}"
    assert wilson_upper(int((ratios >= THRESHOLD).sum()), NULLS) < LARGEST_RATE


def test_the_same_code_with_its_weights_moved_by_1e_9_does() -> None:
    ratios = np.array([null(seed, 1 + 1e-9) for seed in range(50)])
    assert (ratios >= THRESHOLD).all(), f"down to {ratios.min():.1f}"


@pytest.mark.parametrize(("hits", "expected"), [(0, 0.00762), (5, 0.0232), (500, 1.0)])
def test_the_interval_is_wilsons(hits: int, expected: float) -> None:
    assert wilson_upper(hits, NULLS) == pytest.approx(expected, rel=0.01)
