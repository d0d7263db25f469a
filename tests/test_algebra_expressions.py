"""Expressions: what people write becomes an exact polynomial or a column, or is refused in one sentence."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from analysis.algebra import expressions
from analysis.algebra.errors import BadData, BadLaw
from analysis.algebra.expressions import LARGEST_EXPRESSION, LARGEST_POWER

UNHURRIED = settings(deadline=None, max_examples=100)
DECIMALS = st.decimals(min_value=-1000, max_value=1000, allow_nan=False, places=25).filter(bool)

Floats = NDArray[np.float64]
COLUMNS: dict[str, Floats] = {
    "state": np.array([[1.0, -2.0], [3.0, 4.0], [5.0, 0.0]]),
    "time": np.array([0.0, 0.1, 0.2]),
    "height": np.array([[7.0], [8.0], [9.0]]),
}


def read(text: str, *variables: str, parameters: tuple[str, ...] = ()) -> sympy.Poly:
    return expressions.polynomial(text, variables or ("x", "y"), parameters)


def coefficient(text: str) -> Fraction:
    """Of x."""
    found = read(text).coeff_monomial(sympy.Symbol("x"))
    return Fraction(int(found.p), int(found.q))


def one_sentence(message: str) -> bool:
    return "\n" not in message and 10 < len(message) < 200 and not message.endswith(".")


# Exact numbers


@pytest.mark.parametrize(
    ("text", "exact"),
    [
        ("0.11*x", Fraction(11, 100)),
        ("x*1e-3", Fraction(1, 1000)),
        ("x/3", Fraction(1, 3)),
        ("-2.5*x/0.5", Fraction(-5)),
        ("1_000.5*x", Fraction(2001, 2)),
        ("0.1*x + 0.2*x - 0.3*x + x", Fraction(1)),
        ("1.000000000001*x", 1 + Fraction(1, 10**12)),
    ],
)
def test_a_decimal_is_the_rational_that_it_spells(text: str, exact: Fraction) -> None:
    assert coefficient(text) == exact


@UNHURRIED
@given(DECIMALS)
def test_no_digit_is_lost_however_many_there_are(number: Decimal) -> None:
    assert coefficient(f"{number:f}*x") == Fraction(f"{number:f}")


def test_a_polynomial_is_expanded_and_its_constants_stay_open() -> None:
    found = read("(x + y)**2/2 - g*x", parameters=("g",))
    x, y, g = sympy.symbols("x y g")
    assert found.as_expr() == sympy.expand((x + y) ** 2 / 2 - g * x)
    assert found.gens == (x, y)
    assert found.total_degree() == 2


def test_names_that_sympy_knows_are_only_names() -> None:
    assert read("E + I*pi", "E", "I", "pi").total_degree() == 2


def test_a_law_that_cancels_to_zero_is_refused() -> None:
    for text in ("0", "x - x", "(x + 1)**2 - x**2 - 2*x - 1"):
        with pytest.raises(BadLaw, match="is zero whatever the data are"):
            read(text)


# Refusals


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("z**2 + x", "names z, and there are only x, y"),
        ("sin(x)", "is not a polynomial: sin(x) is none"),
        ("x/y", "it divides by y"),
        ("x/(y + 1)", "it divides by y + 1"),
        ("x/0", "it divides by 0"),
        ("x**-1", "is not a polynomial"),
        ("x**y", "is not a polynomial"),
        ("x**0.5", "is not a polynomial"),
        ("x**True", "is not a polynomial"),
        (f"x**{LARGEST_POWER + 1}", f"must be from 0 to {LARGEST_POWER}"),
        ("x**999999999999", f"must be from 0 to {LARGEST_POWER}"),
        ("1e400*x", "too large"),
        ("1j*x", "is not a polynomial: 1j is none"),
        ("True*x", "is not a polynomial: True is none"),
        ("x.real", "is not a polynomial: x.real is none"),
        ("x == y", "is not a polynomial"),
        ("x if y else x", "is not a polynomial"),
        ("(lambda: x)()", "is not a polynomial"),
        ("x^2", "is not a polynomial"),
        ("x y", "is not an expression"),
        ("x +", "is not an expression"),
        ("", "is not an expression"),
        ("x = y", "is not an expression"),
        ("x; y", "is not an expression"),
        ("x\0", "is not an expression"),
    ],
)
def test_what_is_no_polynomial_is_refused_in_one_sentence(text: str, told: str) -> None:
    with pytest.raises(BadLaw, match=re.escape(told)) as refusal:
        read(text)
    assert one_sentence(str(refusal.value))
    assert repr(text) in str(refusal.value)


@pytest.mark.parametrize(
    "text", ["+".join(["x"] * 3000), "-" * 100_000 + "x", "(" * 5000 + "x" + ")" * 5000, "1" + "0" * 400 + "*x"]
)
def test_what_is_absurdly_long_is_refused_like_anything_else(text: str) -> None:
    with pytest.raises(BadLaw):
        read(text)
    with pytest.raises(BadLaw):
        expressions.column(text, {"x": np.ones(3)})


def test_a_long_law_is_read() -> None:
    terms = LARGEST_EXPRESSION // 2
    assert coefficient("+".join(["x"] * terms)) == terms


def test_a_law_of_no_variables_is_refused() -> None:
    with pytest.raises(BadLaw, match="no variables"):
        expressions.polynomial("1", ())


@pytest.mark.parametrize(
    "call", ["__import__('pathlib').Path({0!r}).touch()", "open({0!r}, 'w')", "[open({0!r}, 'w')][0]"]
)
def test_nothing_in_an_expression_is_ever_run(call: str, tmp_path: Path) -> None:
    made = tmp_path / "made"
    with pytest.raises(BadLaw):
        read(call.format(str(made)))
    with pytest.raises(BadLaw):
        expressions.column(call.format(str(made)), COLUMNS)
    assert not made.exists()


@UNHURRIED
@given(st.text(alphabet="xy0123456789.+-*/()[] ,'_e", max_size=20))
def test_any_text_is_a_polynomial_or_is_refused(text: str) -> None:
    try:
        found = read(text)
    except BadLaw:
        return
    assert not found.is_zero


# Columns


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("state[0]", [1, 3, 5]),
        ("state[1]", [-2, 4, 0]),
        ("time", [0, 0.1, 0.2]),
        ("time[0]", [0, 0.1, 0.2]),
        ("height", [7, 8, 9]),
        ("2", [2, 2, 2]),
        ("-state[0]**2 + height/2", [2.5, -5, -20.5]),
        ("abs(state[1])", [2, 4, 0]),
        ("cos(state[0])", np.cos([1, 3, 5])),
        ("sin(state[0] + state[1])", np.sin([-1, 7, 5])),
        ("sqrt(height + 0.5*state[1])", np.sqrt([6, 10, 9])),
    ],
)
def test_a_variable_is_an_expression_of_columns(text: str, values: list[float]) -> None:
    found = expressions.column(text, COLUMNS)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, values, rtol=1e-15)


def test_columns_of_single_precision_are_computed_with_in_double() -> None:
    angle: dict[str, Any] = {"angle": np.linspace(0, 6, 100, dtype=np.float32)}
    cosine, sine = expressions.column("cos(angle)", angle), expressions.column("sin(angle)", angle)
    assert np.abs(cosine**2 + sine**2 - 1).max() < 1e-15


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("speed[0]", "needs speed, and the trajectories have only state, time, height"),
        ("speed", "needs speed, and the trajectories have only state, time, height"),
        ("state[2]", "needs entry 2 of state, which has 2"),
        ("time[1]", "needs entry 1 of time, which has 1"),
        ("state", "needs one entry of state, such as state[0]: it has 2"),
    ],
)
def test_a_column_that_is_not_there_is_the_datas_fault(text: str, told: str) -> None:
    with pytest.raises(BadData, match=re.escape(told)) as refusal:
        expressions.column(text, COLUMNS)
    assert one_sentence(str(refusal.value))


@pytest.mark.parametrize("text", ["state[-1]", "state[0][0]", "state['a']", "log(time)", "cos(time, time)", "time.T"])
def test_what_is_no_expression_of_columns_is_the_users_fault(text: str) -> None:
    with pytest.raises(BadLaw, match="it may hold numbers"):
        expressions.column(text, COLUMNS)


@pytest.mark.parametrize("text", ["1/state[1]", "sqrt(state[1])", "height**2000", "state[1]**-1", "cos(height**2000)"])
def test_a_number_that_is_none_is_returned_without_a_warning_for_the_caller_to_refuse(text: str) -> None:
    assert not np.isfinite(expressions.column(text, COLUMNS)).all()
