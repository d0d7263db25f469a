"""The law of a driven, damped system: what its energy gains in a step is the work done on it.

    E(s') − E(s) = Δt · (u·ω − b·ω²), up to how the integral of power over the step is approximated.

The difference on the left is exact, the right side is a quadrature. The rectangle rule is off by the first order of
the step, which is where the damping is sought; the trapezoid is off by the second, and is what makes it recoverable.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from sympy.polys.rings import PolyElement

from analysis.algebra import dictionaries, recovery
from analysis.algebra.errors import BadData
from analysis.algebra.ideals import Ideal
from analysis.algebra.polynomials import Exponents, coefficient_vector, monomial_values, monomials
from analysis.algebra.recovery import Recovered

Floats = NDArray[np.float64]
Quadrature = Literal["trapezoid", "rectangle"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Transitions:
    """Steps of a driven system: where it was, what was done to it, where it came to."""

    before: Floats
    action: Floats
    after: Floats
    time_step: float
    powered: tuple[int, ...]
    """Columns that, with the action, make up the power: the velocities."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Balance:
    """The relation that varies least: terms of the energy, then terms of the power."""

    recovered: Recovered
    energy_terms: Exponents
    power_terms: Exponents

    @property
    def energy(self) -> Floats:
        """Coefficients of the energy's terms."""
        return self.recovered.coefficients[: len(self.energy_terms)]

    @property
    def power(self) -> Floats:
        """Coefficients of the power's terms, in the velocities and then the action."""
        return self.recovered.coefficients[len(self.energy_terms) :]


def recover(
    transitions: Transitions, known: Ideal, degree: int = 3, power_degree: int = 2, quadrature: Quadrature = "trapezoid"
) -> Balance:
    """The balance that fits all steps best, modulo what is known. It is told neither the energy nor the damping.

    Limits: it carries the quadrature's own error and finds no law below that; whether what it found is one, the gap
    says.
    """
    values, energy_terms, power_terms = dictionary(transitions, known, degree, power_degree, quadrature)
    found = recovery.least_varying(values, (*energy_terms, *power_terms))
    return Balance(recovered=found, energy_terms=energy_terms, power_terms=power_terms)


def dictionary(
    transitions: Transitions, known: Ideal, degree: int, power_degree: int, quadrature: Quadrature
) -> tuple[Floats, Exponents, Exponents]:
    """What every term of the energy gains in a step, and the work of every term of the power; then those terms.

    Limits: candidates only; a term that is in neither list cannot be found, and the quadrature is as coarse as the
    step.
    """
    if not len(transitions.before) == len(transitions.action) == len(transitions.after):
        raise BadData("a balance needs as many actions and next states as states")
    dictionaries.checked([transitions.before, transitions.after], known.ring.ngens)
    dictionaries.checked([transitions.action.reshape(len(transitions.action), -1)], 1)
    energy_terms = known.standard_monomials(degree, lowest=1)
    power_terms = monomials(len(transitions.powered) + 1, power_degree, lowest=1)
    gained = monomial_values(transitions.after, energy_terms) - monomial_values(transitions.before, energy_terms)
    work = _power(transitions, transitions.before, power_terms)
    if quadrature == "trapezoid":
        work = (work + _power(transitions, transitions.after, power_terms)) / 2
    return np.hstack([gained, transitions.time_step * work]), energy_terms, power_terms


@dataclass(frozen=True, slots=True, kw_only=True)
class Damping:
    """Viscous damping of each powered velocity, and how well the whole relation is explained by it."""

    coefficients: tuple[float, ...]
    residual: float


def damping(balance: Balance, energy: PolyElement, driven: int) -> Damping:
    """Read the damping off a balance, the known energy and the work u·ω of the ``driven`` velocity fixing its scale.

    Limits: it does not decide whether the energy is right, which is taken as known; where it is wrong the residual is
    large.
    """
    specified = coefficient_vector(energy, balance.energy_terms)
    count = len(balance.power_terms[0]) - 1
    work = _place(balance.power_terms, {driven: 1, count: 1})
    scale = (balance.energy @ specified - balance.power[work]) / (specified @ specified + 1.0)
    squares = [_place(balance.power_terms, {velocity: 2}) for velocity in range(count)]
    explained = np.concatenate([scale * specified, np.zeros(len(balance.power_terms))])
    explained[len(specified) + work] = -scale
    for square in squares:
        explained[len(specified) + square] = balance.power[square]
    residual = np.linalg.norm(balance.recovered.coefficients - explained) / np.linalg.norm(explained)
    return Damping(
        coefficients=tuple(float(balance.power[square] / scale) for square in squares), residual=float(residual)
    )


def _power(transitions: Transitions, states: Floats, terms: Exponents) -> Floats:
    return monomial_values(np.column_stack([states[:, transitions.powered], transitions.action]), terms)


def _place(terms: Exponents, powers: dict[int, int]) -> int:
    return terms.index(tuple(powers.get(variable, 0) for variable in range(len(terms[0]))))
