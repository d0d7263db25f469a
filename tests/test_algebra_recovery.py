"""Recovery: a law that is in the data is found whatever the units, and none is found where there is none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from analysis.algebra import dictionaries, recovery
from analysis.algebra.dictionaries import Family, OrthogonalDictionary
from analysis.algebra.errors import BadData
from analysis.algebra.ideals import Ideal, as_floats
from analysis.algebra.polynomials import coefficient_vector, monomials, polynomial_ring
from analysis.algebra.recovery import GAP, Recovered
from analysis.paper.systems import AcrobotParameters, AcrobotRun, drawn

UNHURRIED = settings(deadline=None, max_examples=20)
ACROBOT = polynomial_ring(("c1", "s1", "c2", "s2", "w1", "w2"))
C1, S1, C2, S2, W1, W2 = ACROBOT.gens
UNIT_NORMS = Ideal.of([C1**2 + S1**2 - 1, C2**2 + S2**2 - 1], ACROBOT)
KINETIC = (7 * W1**2 + 2 * C2 * W1**2 + 5 * W1 * W2 + 2 * C2 * W1 * W2) / 4 + 5 * W2**2 / 8
ENERGY = KINETIC + (S1 * S2 * 49 - C1 * 147 - C1 * C2 * 49) / 10

PENDULUM = polynomial_ring(("c", "s", "w"))
UNIT_NORM = Ideal.of([PENDULUM.gens[0] ** 2 + PENDULUM.gens[1] ** 2 - 1], PENDULUM)
CIRCLE = polynomial_ring(("x", "y"))
UNITS = (0.01, 1.0, 100.0)
"""Of a velocity."""

Floats = NDArray[np.float64]


def acrobot(unit: float = 1.0, dt: float = 0.01, steps: int = 400) -> list[Floats]:
    return [each * [1, 1, 1, 1, 1, unit] for each in drawn(AcrobotRun(dt=dt, steps=steps))]


def pendulum(unit: float = 1.0, dt: float = 0.02, steps: int = 300) -> Floats:
    """(cosine, sine, velocity) at one energy, by Runge and Kutta's rule."""
    state, rows = np.array([1.0, 0.5]), []
    for _ in range(steps):
        rows.append([np.cos(state[0]), np.sin(state[0]), state[1] * unit])
        slopes = [slope(state)]
        for part in (dt / 2, dt / 2, dt):
            slopes.append(slope(state + part * slopes[-1]))
        state = state + dt / 6 * (slopes[0] + 2 * slopes[1] + 2 * slopes[2] + slopes[3])
    return np.array(rows)


def slope(state: Floats) -> Floats:
    return np.array([state[1], -9.8 * np.sin(state[0])])


def circle(count: int = 100, seed: int = 0, radius: float = 1.0) -> Floats:
    angle = np.random.default_rng(seed).uniform(0, 2 * np.pi, count)
    return radius * np.column_stack([np.cos(angle), np.sin(angle)])


def alignment(found: Recovered, law: Floats) -> float:
    return float(abs(found.coefficients @ law) / np.linalg.norm(law) / np.linalg.norm(found.coefficients))


def unorthonormal_gap(design: Floats, basis: NDArray[np.floating[Any]]) -> float:
    """What the gap would be if a basis were carried to columns of length one and left as it came out."""
    lengths = np.linalg.norm(design, axis=0)
    singular = np.linalg.svd((design / lengths) @ (basis * lengths).T, compute_uv=False)
    return float(singular[-1] / singular[-2])


# A law that is there


def test_acrobots_energy_is_recovered() -> None:
    found = recovery.conserved(acrobot(dt=0.005), UNIT_NORMS, 3, lag=50)
    assert found.decisive()
    assert found.gap < 1e-5
    assert alignment(found, coefficient_vector(ENERGY, found.exponents)) > 1 - 1e-6
    assert np.linalg.norm(found.coefficients) == pytest.approx(1)
    assert (0,) * 6 not in found.exponents


def test_without_dividing_out_what_is_known_nothing_is_identified() -> None:
    found = recovery.conserved(acrobot(), Ideal.of([], ACROBOT), 3, lag=50)
    assert not found.decisive()
    assert found.following < 1e-12
    assert alignment(found, coefficient_vector(ENERGY, found.exponents)) < 1e-3


def test_a_longer_lag_makes_the_same_noise_smaller() -> None:
    noisy = drawn(AcrobotRun(dt=0.005, steps=400, noise=1e-7))
    gaps = [recovery.conserved(noisy, UNIT_NORMS, 3, lag).gap for lag in (1, 50)]
    assert gaps[1] < gaps[0] / 5


@pytest.mark.parametrize("radius", [0.001, 1.0, 1000.0])
def test_a_vanishing_law_keeps_its_constant(radius: float) -> None:
    found = recovery.vanishing(circle(radius=radius), Ideal.of([], CIRCLE), 2)
    law = found.coefficients / found.coefficients[found.exponents.index((2, 0))]
    x, y = CIRCLE.gens
    expected = coefficient_vector(x**2 + y**2, found.exponents)
    expected[found.exponents.index((0, 0))] = -(radius**2)
    np.testing.assert_allclose(law, expected, atol=1e-9 * max(1, radius**2))
    assert found.gap < 1e-12


@pytest.mark.parametrize("family", get_args(Family))
@pytest.mark.parametrize("unit", [1e-5, 1.0, 1e5])
def test_an_orthogonal_dictionary_finds_the_same_law(family: Family, unit: float) -> None:
    samples = pendulum(unit)
    plain = recovery.vanishing(samples, UNIT_NORM, 2)
    orthogonal = recovery.vanishing_in_orthogonal(samples, UNIT_NORM, 2, family)
    law = dict(zip(plain.exponents, plain.coefficients.tolist(), strict=True))
    assert plain.decisive()
    assert orthogonal.decisive()
    assert alignment(orthogonal, np.array([law.get(each, 0.0) for each in orthogonal.exponents])) > 1 - 1e-9


# A law that is not there


@pytest.mark.parametrize(
    "parameters", [AcrobotParameters(coriolis=False), AcrobotParameters(b1=0.1, b2=0.1)], ids=["nips", "damped"]
)
def test_a_system_that_conserves_nothing_is_refused(parameters: AcrobotParameters) -> None:
    found = recovery.conserved(drawn(AcrobotRun(parameters=parameters, dt=0.005)), UNIT_NORMS, 3, lag=50)
    assert found.gap > 3 * GAP
    assert not found.decisive()


@UNHURRIED
@given(st.integers(0, 10**6))
def test_random_numbers_have_no_law(seed: int) -> None:
    samples = np.random.default_rng(seed).normal(size=(400, 3))
    assert not recovery.vanishing(samples, Ideal.of([], PENDULUM), 2).decisive()
    assert not recovery.conserved([samples], Ideal.of([], PENDULUM), 2).decisive()


@UNHURRIED
@given(st.integers(0, 10**6))
def test_two_laws_at_once_are_no_one_law(seed: int) -> None:
    torus = np.hstack([circle(60, seed), circle(60, seed + 1)])
    ring = polynomial_ring(("x", "y", "z", "w"))
    assert not recovery.vanishing(torus, Ideal.of([], ring), 2).decisive()


def test_a_velocity_and_its_square_that_are_both_constant_are_no_one_law() -> None:
    angles = [rate * np.arange(50) for rate in (0.1, 0.2, 0.3)]
    spinning = [np.column_stack([np.cos(each), np.sin(each), np.full(50, each[1])]) for each in angles]
    assert not recovery.conserved(spinning, UNIT_NORM, 2).decisive()
    assert not recovery.least_varying(np.zeros((10, 3)), monomials(1, 2)).decisive()


def test_too_few_samples_are_refused_because_any_would_have_a_law() -> None:
    with pytest.raises(BadData, match="5 samples are too few for 6 terms"):
        recovery.vanishing(circle(5), Ideal.of([], CIRCLE), 2)
    with pytest.raises(BadData, match="1 samples of 5 terms"):
        recovery.conserved([circle(2)], Ideal.of([], CIRCLE), 2)
    with pytest.raises(BadData, match="nothing to tell a law from"):
        recovery.vanishing(circle(9), Ideal.of(CIRCLE.gens, CIRCLE), 2)


def test_what_is_not_a_number_is_refused_before_anything_is_computed() -> None:
    samples = circle()
    samples[7] = np.nan
    for seek in (recovery.vanishing, recovery.vanishing_in_orthogonal):
        with pytest.raises(BadData, match="not a number at sample 7"):
            seek(samples, Ideal.of([], CIRCLE), 2)
    with pytest.raises(BadData, match="trajectory 1 is not a number at sample 7"):
        recovery.conserved([circle(), samples], Ideal.of([], CIRCLE), 2)


# Units


def same_to_seven_digits(gaps: Sequence[float]) -> bool:
    return max(gaps) / min(gaps) - 1 < 5e-7


def test_the_unit_of_a_velocity_does_not_move_the_gap() -> None:
    assert same_to_seven_digits([recovery.conserved(acrobot(unit), UNIT_NORMS, 3, 50).gap for unit in UNITS])


def test_a_basis_that_is_carried_along_must_be_made_orthonormal_again() -> None:
    exponents = monomials(6, 3, lowest=1)
    standard = np.eye(len(exponents))[[UNIT_NORMS.is_standard(each) for each in exponents]]
    turned = np.linalg.qr(np.random.default_rng(0).normal(size=(len(standard),) * 2))[0] @ standard
    designs = [dictionaries.differences(acrobot(unit), exponents, 50) for unit in UNITS]
    gaps = [recovery.least_varying(design, exponents, each).gap for design in designs for each in (standard, turned)]
    assert same_to_seven_digits(gaps)
    left = [unorthonormal_gap(design, turned) for design in designs]
    assert max(left) > 10 * min(left)


def test_the_same_holds_of_an_orthogonal_dictionary() -> None:
    gaps, left = [], []
    for unit in UNITS:
        samples = pendulum(unit)
        gaps.append(recovery.vanishing_in_orthogonal(samples, UNIT_NORM, 2).gap)
        dictionary = OrthogonalDictionary.standardising(samples, 2)
        standard = [UNIT_NORM.is_standard(each) for each in dictionary.exponents]
        quotient = np.linalg.inv(as_floats(dictionary.to_monomials()))[:, standard].T
        left.append(unorthonormal_gap(dictionary.on(samples), quotient))
    assert same_to_seven_digits(gaps)
    assert max(left) > 10 * min(left)


@UNHURRIED
@given(st.integers(0, 10**6))
def test_any_basis_of_the_same_polynomials_gives_the_same_law(seed: int) -> None:
    rng = np.random.default_rng(seed)
    design = rng.normal(size=(50, 6)) @ np.diag([1, 1, 1, 1, 1, 1e-3]) @ rng.normal(size=(6, 6))
    basis, mixing = rng.normal(size=(4, 6)), np.eye(4) + rng.uniform(-0.2, 0.2, (4, 4))
    one = recovery.least_varying(design, monomials(2, 2), basis)
    other = recovery.least_varying(design, monomials(2, 2), mixing @ basis)
    assert other.gap == pytest.approx(one.gap, rel=1e-6)
    assert alignment(one, other.coefficients) == pytest.approx(1)


# Other trajectories


def with_third(samples: Floats, slope_of_third: float, noise: float, seed: int) -> Floats:
    third = slope_of_third * samples[:, :1] + np.random.default_rng(seed).normal(0, noise, (len(samples), 1))
    return np.hstack([samples, third])


@pytest.mark.parametrize(("elsewhere", "noise"), [(2.0, 1e-3), (3.0, 0.0)])
def test_what_correlates_in_one_trajectory_does_not_hold_in_another(elsewhere: float, noise: float) -> None:
    plane = polynomial_ring(("x", "y", "z"))
    known = Ideal.of([plane.gens[0] ** 2 + plane.gens[1] ** 2 - 1], plane)
    found = recovery.vanishing(with_third(circle(), 2.0, noise, 0), known, 1)
    assert found.decisive()
    assert not recovery.holds_elsewhere(found, [with_third(circle(seed=1), elsewhere, noise, 1)], conserves=False)


def test_a_true_law_holds_in_other_trajectories() -> None:
    found = recovery.vanishing(circle(), Ideal.of([], CIRCLE), 2)
    assert recovery.holds_elsewhere(found, [circle(seed=1), circle(seed=2)], conserves=False)
    assert not recovery.holds_elsewhere(found, [circle(seed=1), circle(seed=2, radius=1.01)], conserves=False)
    assert recovery.holds_elsewhere(found, [circle(seed=2, radius=1.01)], conserves=True)  # constant, though not zero


def test_a_trajectory_that_is_not_a_number_bears_nothing_out() -> None:
    found = recovery.vanishing(circle(), Ideal.of([], CIRCLE), 2)
    assert not recovery.holds_elsewhere(found, [np.full((5, 2), np.nan)], conserves=False)
