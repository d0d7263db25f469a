"""Support search: laws among few variables are found one after the other, each once, and none where there is none."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sympy.polys.rings import PolyElement

from analysis.algebra import support
from analysis.algebra.ideals import Decision, Ideal, equality
from analysis.algebra.polynomials import polynomial_ring
from analysis.paper.systems import reacher_samples

UNHURRIED = settings(deadline=None, max_examples=10)
REACHER = polynomial_ring(("c1", "c2", "s1", "s2", "tx", "ty", "w1", "w2", "dx", "dy", "dz"))
PLANE = polynomial_ring(("x", "y", "z"))
X, Y, Z = PLANE.gens

Floats = NDArray[np.float64]


def circle(seed: int, radius: float = 1.0, count: int = 40) -> Floats:
    angle = np.random.default_rng(seed).uniform(0, 2 * np.pi, count)
    return radius * np.column_stack([np.cos(angle), np.sin(angle)])


def poses(scale: float, seed: int = 0) -> list[Floats]:
    """Four trajectories of sixty poses of Reacher, lengths in units of ``scale`` metres."""
    return np.array_split(reacher_samples(count=240, scale=scale, seed=seed)[0], 4)


def found(trajectories: Sequence[Floats], *, arity: int, degree: int) -> list[PolyElement]:
    """Each with 1 before its leading term."""
    laws = support.vanishing_laws(trajectories, PLANE, arity=arity, degree=degree)
    return [law.polynomial.monic() for law in laws]


def with_height(samples: Floats, height: float | Floats) -> Floats:
    return np.column_stack([samples, np.broadcast_to(height, len(samples))])


# What is there


def test_a_circle_and_a_height_of_zero_are_found() -> None:
    trajectories = [with_height(circle(seed), 0.0) for seed in range(4)]
    laws = support.vanishing_laws(trajectories, PLANE, arity=3, degree=2)
    assert [law.polynomial.monic() for law in laws] == [Z, X**2 + Y**2 - 1]
    assert [law.variables for law in laws] == [("z",), ("x", "y")]
    assert all(law.gap < 1e-9 for law in laws)


def test_an_ellipse_and_a_constant_height_are_found() -> None:
    trajectories = [with_height(circle(seed) * [2, 1], 0.75) for seed in range(4)]
    assert found(trajectories, arity=3, degree=2) == [Z - sympy.QQ(3, 4), X**2 + 4 * Y**2 - 4]


def test_reachers_five_laws_are_found_in_units_of_its_first_link() -> None:
    laws = support.vanishing_laws(poses(0.1), REACHER, arity=6, degree=2)
    c1, c2, s1, s2, tx, ty, _, _, dx, dy, dz = REACHER.gens
    link = sympy.QQ(11, 10)
    expected = [
        dz,
        c1**2 + s1**2 - 1,
        c2**2 + s2**2 - 1,
        dx + tx - c1 - (c1 * c2 - s1 * s2) * link,
        dy + ty - s1 - (s1 * c2 + c1 * s2) * link,
    ]
    assert [law.polynomial.monic() for law in laws] == [law.monic() for law in expected]
    assert [len(law.variables) for law in laws] == [1, 2, 2, 6, 6]
    assert equality([law.polynomial for law in laws], expected) is Decision.EQUAL


def test_in_metres_only_those_without_a_length_are_found() -> None:
    laws = support.vanishing_laws(poses(1.0), REACHER, arity=3, degree=2)
    assert [law.variables for law in laws] == [("dz",), ("c1", "s1"), ("c2", "s2")]


# What is found once


def test_what_is_known_and_its_multiples_are_not_found_again() -> None:
    trajectories = [with_height(circle(seed), 0.0) for seed in range(4)]
    known = [X**2 + Y**2 - 1, Z]
    assert support.vanishing_laws(trajectories, PLANE, arity=3, degree=3, known=known) == []
    assert len(found(trajectories, arity=3, degree=3)) == 2


def test_what_follows_from_two_laws_by_way_of_a_third_variable_is_not_found_again() -> None:
    same = [np.repeat(circle(seed)[:, :1], 3, axis=1) * [1, 2, 4] for seed in range(4)]
    laws = found(same, arity=3, degree=2)
    assert laws == [X - Y / 2, X - Z / 4]
    assert Ideal.of(laws, PLANE).contains(Y - Z / 2)


@UNHURRIED
@given(st.integers(0, 10**6), st.sampled_from([0.25, 0.5, 2.0, 3.0]))
def test_no_law_follows_from_those_found_before(seed: int, radius: float) -> None:
    trajectories = [with_height(circle(seed + each, radius), circle(seed + each, radius)[:, 0]) for each in range(4)]
    laws = found(trajectories, arity=3, degree=2)
    assert len(laws) == 2
    for place in range(len(laws)):
        assert not Ideal.of(laws[:place], PLANE).contains(laws[place])


# What is not there


@UNHURRIED
@given(st.integers(0, 10**6))
def test_nothing_is_found_in_random_numbers(seed: int) -> None:
    trajectories = list(np.random.default_rng(seed).normal(size=(4, 30, 3)))
    assert support.vanishing_laws(trajectories, PLANE, arity=3, degree=2) == []


@pytest.mark.parametrize("alone", [False, True])
def test_what_holds_in_the_first_half_only_is_not_found(alone: bool) -> None:
    halves = [with_height(circle(0), 0.0), with_height(circle(1), 0.5)]
    trajectories = [np.vstack(halves)] if alone else halves
    assert found(trajectories, arity=3, degree=2) == [X**2 + Y**2 - 1]


def test_a_law_with_noise_on_it_is_not_found() -> None:
    noise = np.random.default_rng(9).normal(0, 1e-6, (4, 40, 2))
    trajectories = [with_height(circle(seed) + noise[seed], 0.0) for seed in range(4)]
    assert found(trajectories, arity=3, degree=2) == [Z]


def test_a_law_with_coefficients_that_are_no_small_fractions_is_not_found() -> None:
    trajectories = [with_height(circle(seed) * [np.pi, 1], 0.0) for seed in range(4)]
    assert found(trajectories, arity=3, degree=2) == [Z]
