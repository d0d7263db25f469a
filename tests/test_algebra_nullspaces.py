"""Nullspaces: what the older way finds, and how much of the trivial part each way of deflating takes out."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from sympy.polys.rings import PolyElement, PolyRing

from analysis.algebra import nullspaces
from analysis.algebra.ideals import Ideal, as_floats
from analysis.algebra.polynomials import coefficient_vector, monomial_values, monomials, polynomial_ring
from analysis.paper.systems import AcrobotRun

FOUR = polynomial_ring(("x", "y", "z", "w"))
X, Y, Z, W = FOUR.gens
ACROBOT = polynomial_ring(("c1", "s1", "c2", "s2", "w1", "w2"))
C1, S1, C2, S2, W1, W2 = ACROBOT.gens
UNIT_NORMS = (C1**2 + S1**2 - 1, C2**2 + S2**2 - 1)
KINETIC = (7 * W1**2 + 2 * C2 * W1**2 + 5 * W1 * W2 + 2 * C2 * W1 * W2) / 4 + 5 * W2**2 / 8
ENERGY = KINETIC + (S1 * S2 * 49 - C1 * 147 - C1 * C2 * 49) / 10

Floats = NDArray[np.float64]


def drawn(*shape: int) -> Floats:
    return np.random.default_rng(0).normal(size=shape)


def trivial(generators: tuple[PolyElement, ...], degree: int) -> Floats:
    """An orthonormal basis of all that follows from quadratic generators up to a degree."""
    ring: PolyRing = generators[0].ring
    multiples = [
        generator * ring.from_dict({exponent: ring.domain.one})
        for generator in generators
        for exponent in monomials(ring.ngens, degree - 2)
    ]
    exponents = monomials(ring.ngens, degree)
    return np.linalg.qr(np.array([coefficient_vector(each, exponents) for each in multiples]).T)[0].T


def reduced(directions: Floats, generators: tuple[PolyElement, ...], degree: int) -> Floats:
    ring = generators[0].ring
    matrix = Ideal.of(generators, ring).normal_form_matrix(monomials(ring.ngens, degree))
    return nullspaces.reduced(directions, as_floats(matrix))


def projected(directions: Floats, generators: tuple[PolyElement, ...], degree: int) -> Floats:
    exponents = monomials(generators[0].ring.ngens, degree)
    return nullspaces.projected(directions, [coefficient_vector(each, exponents) for each in generators])


# The nullspace


def test_three_samples_of_ten_terms_leave_seven_directions() -> None:
    design = drawn(3, 10)
    found = nullspaces.nullspace(design, 1e-10)
    assert found.shape == (7, 10)
    assert np.abs(design @ found.T).max() < 1e-13
    np.testing.assert_allclose(found @ found.T, np.eye(7), atol=1e-13)


@pytest.mark.parametrize("rank", [0, 1, 4, 6])
def test_a_nullspace_is_as_large_as_the_rank_leaves_room_for(rank: int) -> None:
    design = drawn(50, rank) @ drawn(rank, 6) * [1, 10, 100, 1e-3, 1, 1]
    found = nullspaces.nullspace(design, 1e-10)
    assert found.shape == (6 - rank, 6)
    assert np.abs(design @ found.T).max(initial=0) < 1e-11


def test_directions_are_in_the_coordinates_of_the_columns_and_not_of_the_scaled_ones() -> None:
    column = drawn(20, 1)
    design = np.hstack([column, 1000 * column, drawn(20, 1) + 1])
    (direction,) = nullspaces.nullspace(design, 1e-10)
    assert direction[0] / direction[1] == pytest.approx(-1000)
    assert direction[2] == pytest.approx(0, abs=1e-12)


def test_a_hundred_thousand_samples_need_no_square_matrix_of_them() -> None:
    assert nullspaces.nullspace(drawn(100_000, 3), 1e-10).shape == (0, 3)


# Taking out what is known


@pytest.mark.parametrize(("degree", "multiples"), [(2, 1), (3, 5), (4, 15)])
def test_projection_takes_out_one_direction_and_the_normal_form_the_whole_piece(degree: int, multiples: int) -> None:
    generator = X**2 + Y**2 - 1
    directions = trivial((generator,), degree)
    assert len(directions) == multiples == math.comb(4 + degree - 2, degree - 2)
    assert len(projected(directions, (generator,), degree)) == multiples - 1
    assert len(reduced(directions, (generator,), degree)) == 0


def test_two_generators_with_a_common_constant_lose_one_direction_between_them() -> None:
    directions = trivial(UNIT_NORMS, 3)
    assert len(directions) == 14
    assert len(projected(directions, UNIT_NORMS[:1], 3)) == 13
    assert len(projected(directions, UNIT_NORMS, 3)) == 13
    assert len(reduced(directions, UNIT_NORMS, 3)) == 0


def test_two_generators_at_right_angles_lose_one_direction_each() -> None:
    generators = (X * Y, Z * W)
    directions = trivial(generators, 3)
    assert len(directions) == 10
    assert len(projected(directions, generators, 3)) == 8
    assert len(reduced(directions, generators, 3)) == 0


def test_nothing_can_be_taken_out_of_nothing() -> None:
    nothing = np.zeros((0, 15))
    assert len(reduced(nothing, (X * Y,), 2)) == len(projected(nothing, (X * Y,), 2)) == 0


def test_what_does_not_follow_is_left() -> None:
    energy = coefficient_vector(ENERGY, monomials(6, 3))
    directions = np.linalg.qr(np.vstack([trivial(UNIT_NORMS, 3), energy]).T)[0].T
    (left,) = reduced(directions, UNIT_NORMS, 3)
    assert abs(left @ energy) / np.linalg.norm(energy) == pytest.approx(1, abs=1e-12)


# On data: Acrobot at one energy


@pytest.mark.parametrize(("dt", "raw", "survivors"), [(0.01, 15, 1), (0.1, 14, 0)])
def test_the_energy_is_what_the_normal_form_leaves_where_the_tolerance_is_above_the_drift(
    dt: float, raw: int, survivors: int
) -> None:
    (trajectory,) = AcrobotRun(dt=dt, trajectories=1, steps=round(40 / dt)).arms([3])[0]
    directions = nullspaces.nullspace(monomial_values(trajectory, monomials(6, 3)), 1e-6)
    assert len(directions) == raw
    assert len(projected(directions, UNIT_NORMS, 3)) == raw - 1
    left = reduced(directions, UNIT_NORMS, 3)
    assert len(left) == survivors
    for each in left:  # the energy, but for a constant that makes it vanish
        energy = coefficient_vector(ENERGY, monomials(6, 3))[1:]
        assert abs(each[1:] @ energy) / np.linalg.norm(energy) / np.linalg.norm(each[1:]) > 1 - 1e-6
