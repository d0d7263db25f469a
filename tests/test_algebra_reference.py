"""Reference sets: what is no set of laws is refused by name, and a set knows its laws at any constants."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import sympy

from analysis.algebra import lifting
from analysis.algebra.errors import BadData, BadLaw
from analysis.algebra.reference import Kind, ReferenceSet

PENDULUM = ReferenceSet.of(
    "pendulum",
    variables={"c": "cos(state[0])", "s": "sin(state[0])", "w": "state[1]", "z": "height"},
    parameters={"l": Fraction(2), "g": Fraction(49, 5)},
    laws={
        "plane": (Kind.VANISHES, "z"),
        "energy": (Kind.CONSERVED, "l*w**2/2 - g*c"),
        "length": (Kind.VANISHES, "l**2*(c**2 + s**2) - 4"),
    },
)
C, S, W, Z = PENDULUM.ring.gens
STATES = np.array([[0.1, 1.0], [0.2, 2.0], [0.3, 3.0]])


def made(**changed: Any) -> ReferenceSet:
    whole: dict[str, Any] = {
        "variables": {"x": "state[0]", "y": "state[1]"},
        "laws": {"first": (Kind.VANISHES, "x - y")},
        "parameters": {"k": Fraction(1)},
    }
    return ReferenceSet.of("small", **{**whole, **changed})


# What is refused


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"parameters": {"x": Fraction(1), "y": Fraction(2)}}, "x, y cannot be a variable and a parameter"),
        ({"laws": {"first": (Kind.VANISHES, "x - q")}}, "first: 'x - q' names q, and there are only x, y, k"),
        ({"laws": {"odd": (Kind.CONSERVED, "k**2 - 1")}}, "odd: 'k**2 - 1' has none of the variables x, y in it"),
        ({"laws": {"odd": (Kind.CONSERVED, "sin(x)")}}, "odd: 'sin(x)' is not a polynomial"),
        ({"laws": {"odd": (Kind.CONSERVED, "x - x")}}, "odd: 'x - x' is zero"),
        ({"laws": {"odd": (Kind.CONSERVED, "(k - 1)*x")}}, "odd: '(k - 1)*x' says nothing at the specified values"),
        ({"laws": {"odd": (Kind.CONSERVED, "x/k")}}, "odd: 'x/k' is not a polynomial: it divides by k"),
        ({"laws": {}}, "small has no laws"),
        ({"variables": {"x": "state[0", "y": "state[1]"}}, "'state[0' is not an expression"),
        ({"relations": ["x**2 - q"]}, "'x**2 - q' names q, and there are only x, y"),
    ],
)
def test_a_bad_set_is_refused_in_one_sentence(changed: dict[str, Any], told: str) -> None:
    with pytest.raises(BadLaw, match=re.escape(told)) as refusal:
        made(**changed)
    assert "\n" not in str(refusal.value)


# What a set knows


def test_a_law_knows_its_variables_constants_and_degree() -> None:
    plane, energy, length = PENDULUM.laws
    assert (plane.uses, energy.uses, length.uses) == ((3,), (0, 2), (0, 1))
    assert (plane.parameters, energy.parameters, length.parameters) == ((), ("g", "l"), ("l",))
    assert (plane.degree, energy.degree, length.degree) == (1, 2, 2)
    assert PENDULUM.names == ("c", "s", "w", "z")


def test_laws_are_exact_at_the_specified_values() -> None:
    assert PENDULUM.generators == (Z, W**2 - C * sympy.QQ(49, 5), 4 * C**2 + 4 * S**2 - 4)
    values, _ = PENDULUM.compiled.on(np.array([1.0, 0.0, 2.0, 0.5]))
    np.testing.assert_allclose(values, [0.5, 4 - 9.8, 0.0])


def test_laws_at_other_constants_leave_the_rest_as_specified() -> None:
    assert PENDULUM.at({}) == PENDULUM.generators
    assert PENDULUM.at({"g": Fraction(981, 100)})[1] == W**2 - C * sympy.QQ(981, 100)
    assert PENDULUM.at({"l": Fraction(0)})[1:] == (-C * sympy.QQ(49, 5), PENDULUM.ring(-4))
    assert PENDULUM.at({"l": Fraction(1), "g": Fraction(1)})[1] == W**2 / 2 - C


def test_a_constant_that_is_not_there_is_refused() -> None:
    with pytest.raises(BadLaw, match="m, q is no parameter; there are l, g"):
        PENDULUM.at({"q": Fraction(1), "m": Fraction(1), "g": Fraction(1)})


def test_identities_are_what_holds_among_a_laws_variables_whatever_the_constants() -> None:
    plane, energy, length = PENDULUM.laws
    assert PENDULUM.relations == (C**2 + S**2 - 1,)
    assert PENDULUM.identities(length) == [C**2 + S**2 - 1]
    assert PENDULUM.identities(energy) == []  # the sine is none of its variables
    assert PENDULUM.identities(plane) == [Z]
    quaternion = made(relations=["x**2 + y**2 - 1"], laws={"turn": (Kind.CONSERVED, "k*x*y")})
    x, y = quaternion.ring.gens
    assert quaternion.identities(quaternion.laws[0]) == [x**2 + y**2 - 1]


# Samples


def test_samples_are_the_variables_on_every_row() -> None:
    found = PENDULUM.samples({"state": STATES, "height": np.zeros(3)})
    angle, velocity = STATES.T
    np.testing.assert_array_equal(found, np.column_stack([np.cos(angle), np.sin(angle), velocity, np.zeros(3)]))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_variable_that_is_not_a_number_is_named_with_its_sample(value: float) -> None:
    broken = STATES.copy()
    broken[2, 1] = value
    with pytest.raises(BadData, match=re.escape("w = state[1] is not a number at sample 2")):
        PENDULUM.samples({"state": broken, "height": np.zeros(3)})
    roots = made(variables={"x": "sqrt(state[0] - 0.15)", "y": "1/state[1]"})
    with pytest.raises(BadData, match=re.escape("x = sqrt(state[0] - 0.15) is not a number at sample 0")):
        roots.samples({"state": STATES})


def test_a_column_that_is_missing_is_named() -> None:
    with pytest.raises(BadData, match="'height' needs height, and the trajectories have only state"):
        PENDULUM.samples({"state": STATES})


# Relations that variables bring with them


@pytest.mark.parametrize(
    ("variables", "relations"),
    [
        ({"c": "cos(a[0])", "s": "sin( a[0] )", "d": "cos(a[1])"}, ["c**2 + s**2 - 1"]),
        ({"c": "cos(2*a[0] + a[1])", "s": "sin(2*a[0] + a[1])"}, ["c**2 + s**2 - 1"]),
        ({"r": "sqrt(a[0]**2 + 3)", "x": "a[0]"}, ["r**2 - (x ** 2 + 3)"]),
        ({"r": "sqrt(a[0] / a[1])", "x": "a[0]", "y": "a[1]"}, []),
        ({"r": "sqrt(a[0])"}, []),
        ({"r": "sqrt(height)"}, []),
        ({"r": "sqrt(y)", "y": "2*y"}, []),  # of the column, not of the variable
        ({"r": "sqrt(y)", "y": "y"}, ["r**2 - (y)"]),
        ({"c": "cos()", "r": "sqrt()"}, []),
    ],
)
def test_only_what_follows_from_the_definitions_is_a_relation(variables: dict[str, str], relations: list[str]) -> None:
    assert lifting.relations(variables) == relations
