"""Independence: laws that only repeat others are told by the rank of their gradients."""

from __future__ import annotations

import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sympy.polys.rings import PolyElement

from analysis.algebra import independence
from analysis.algebra.independence import Sufficiency
from analysis.algebra.polynomials import polynomial_ring
from analysis.paper.systems import AcrobotRun, drawn

UNHURRIED = settings(deadline=None, max_examples=30)
ACROBOT = polynomial_ring(("c1", "s1", "c2", "s2", "w1", "w2"))
C1, S1, C2, S2, W1, W2 = ACROBOT.gens
NORMS = [C1**2 + S1**2 - 1, C2**2 + S2**2 - 1]
KINETIC = (7 * W1**2 + 2 * C2 * W1**2 + 5 * W1 * W2 + 2 * C2 * W1 * W2) / 4 + 5 * W2**2 / 8
ENERGY = KINETIC + (S1 * S2 * 49 - C1 * 147 - C1 * C2 * 49) / 10

KEPLER = polynomial_ring(("x", "y", "u", "v"))
X, Y, U, V = KEPLER.gens
MOMENTUM, OSCILLATOR = X * V - Y * U, X**2 + Y**2 + U**2 + V**2
"""Two that an isotropic oscillator conserves."""

Floats = NDArray[np.float64]
POINTS: Floats = np.random.default_rng(0).normal(size=(20, 4))


def test_a_square_and_a_multiple_of_the_energy_say_nothing_of_their_own() -> None:
    states = drawn(AcrobotRun(dt=0.01, trajectories=1, steps=50))[0]
    assert independence.independent([ENERGY, ENERGY**2, 3 * ENERGY + 7], states) == (0,)
    assert independence.independent([*NORMS, ENERGY, ENERGY**2, ENERGY * NORMS[0] + ENERGY], states) == (0, 1, 2)


def test_which_laws_are_kept_depends_on_the_order_and_how_many_does_not() -> None:
    together = MOMENTUM + OSCILLATOR
    assert independence.independent([MOMENTUM, OSCILLATOR, together], POINTS) == (0, 1)
    assert independence.independent([together, MOMENTUM, OSCILLATOR], POINTS) == (0, 1)
    assert independence.independent([OSCILLATOR**2, MOMENTUM * OSCILLATOR, MOMENTUM], POINTS) == (0, 1)
    assert independence.jacobian_rank([MOMENTUM, OSCILLATOR, together], POINTS) == 2


@UNHURRIED
@given(st.permutations([MOMENTUM, OSCILLATOR, MOMENTUM * OSCILLATOR, OSCILLATOR**3, MOMENTUM**2 - OSCILLATOR]))
def test_any_order_keeps_as_many(laws: list[PolyElement]) -> None:
    kept = independence.independent(laws, POINTS)
    assert len(kept) == 2
    assert independence.jacobian_rank([laws[place] for place in kept], POINTS) == 2


@pytest.mark.parametrize("exponent", [-30, -9, 9, 30])
def test_the_unit_in_which_a_law_is_written_does_not_matter(exponent: int) -> None:
    unit = sympy.QQ(10) ** exponent
    assert independence.independent([MOMENTUM * unit, OSCILLATOR, OSCILLATOR**2 * unit], POINTS) == (0, 1)


def test_the_rank_is_that_of_generic_points_though_it_drops_on_special_ones() -> None:
    origin = np.zeros((1, 4))
    assert independence.jacobian_rank([OSCILLATOR, MOMENTUM], origin) == 0
    assert independence.jacobian_rank([OSCILLATOR, MOMENTUM], np.vstack([origin, POINTS])) == 2


def test_no_laws_and_constants_have_no_rank() -> None:
    assert independence.jacobian_rank([], POINTS) == 0
    assert independence.jacobian_rank([KEPLER.one], POINTS) == 0
    assert independence.independent([KEPLER.one, MOMENTUM], POINTS) == (1,)


def test_acrobots_laws_are_sufficient_at_one_energy_and_only_necessary_without_it() -> None:
    states = drawn(AcrobotRun(dt=0.01, trajectories=1, steps=50))[0]
    whole = independence.sufficiency([*NORMS, ENERGY], states, trajectory_dimension=3)
    assert (whole.answer, whole.rank, whole.needed) == (Sufficiency.SUFFICIENT, 3, 3)
    without = independence.sufficiency(NORMS, states, trajectory_dimension=3)
    assert (without.answer, without.rank, without.needed) == (Sufficiency.NECESSARY, 2, 3)
    spread = independence.sufficiency([*NORMS, ENERGY], states, trajectory_dimension=4)
    assert (spread.answer, spread.rank, spread.needed) == (Sufficiency.TOO_MANY, 3, 2)
