"""Expressions as people write them: polynomials in named variables, and variables in the columns of a dump.

They are read as Python's syntax and built up again from a few allowed parts, so that nothing in them is ever run.
A decimal number is the rational that it spells: ``0.11`` is 11/100.
"""

from __future__ import annotations

import ast
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

import numpy as np
import sympy
from numpy.typing import NDArray

from analysis.algebra.errors import BadData, BadLaw

Floats = NDArray[np.float64]

LARGEST_POWER = 12
"""A higher one is a slip of the pen: the highest in a known law of a simulator is 4."""

LARGEST_EXPRESSION = 500
"""Parts of an expression: it is read by recursion. The longest law, Acrobot's energy with all constants, has 91."""

LARGEST_DEGREE = 64
"""Of a polynomial, numbers counted like variables: a power of a power of a sum would take hours to multiply out."""

MOST_TERMS = 10_000
"""Of a polynomial, multiplied out and before any are taken together. The longest law has some forty."""

LONGEST_NUMBER = 400
"""Characters: the longest double written out in full has some 330 before or after its point."""

_NOT_ZERO = frozenset("123456789")
_FUNCTIONS: dict[str, Callable[[Floats], Floats]] = {"sin": np.sin, "cos": np.cos, "sqrt": np.sqrt, "abs": np.abs}


def polynomial(text: str, variables: Sequence[str], parameters: Sequence[str] = ()) -> sympy.Poly:
    """The polynomial in ``variables`` that ``text`` spells; its coefficients may hold ``parameters``.

    Limits: it reads a law, and does not ask whether anything obeys it.

    >>> polynomial("0.5*w**2 + g*c", ["c", "w"], ["g"])
    Poly(g*c + 1/2*w**2, c, w, domain='QQ[g]')
    """
    if not variables:
        raise BadLaw(f"{text!r} is a law of no variables")
    names = {name: sympy.Symbol(name) for name in (*variables, *parameters)}
    node = parsed(text)
    degree, terms = _size(node)
    if degree > LARGEST_DEGREE or terms > MOST_TERMS:
        raise BadLaw(f"{text[:60]!r} has more than {MOST_TERMS} terms, or a degree above {LARGEST_DEGREE}")
    expression = _symbolic(node, text, names)
    symbols = [names[name] for name in variables]
    try:
        found = sympy.Poly(expression, *symbols, domain=_domain(parameters))
    except sympy.PolynomialError:
        raise BadLaw(f"{text!r} is not a polynomial in {', '.join(variables)}") from None
    if found.is_zero:
        raise BadLaw(f"{text!r} is zero whatever the data are")
    return found


def column(text: str, columns: Mapping[str, Floats]) -> Floats:
    """What ``text`` comes to on columns of data: ``cos(state[0])``, one number per row.

    Limits: what is not a number comes out as it is; the caller refuses it.

    >>> column("2*state[1]", {"state": np.array([[1.0, 2.0], [3.0, 4.0]])})
    array([4., 8.])
    """
    rows = len(next(iter(columns.values()), ()))
    with np.errstate(all="ignore"):  # what comes of it is refused as not-a-number
        return np.broadcast_to(_numeric(parsed(text), text, columns), (rows,)).astype(np.float64)


def _domain(parameters: Sequence[str]) -> sympy.Domain:
    return sympy.QQ[tuple(sympy.Symbol(name) for name in parameters)] if parameters else sympy.QQ


def parsed(text: str) -> ast.expr:
    """Its syntax, of which nothing is ever run.

    Limits: it refuses what is too long and what is no Python. Names that do not exist are found when the tree is read.
    """
    try:
        body = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        raise BadLaw(f"{text!r} is not an expression; powers are written like c1**2") from None
    except (RecursionError, MemoryError):  # the parser's own limits
        body = None
    if body is None or sum(isinstance(node, ast.expr) for node in ast.walk(body)) > LARGEST_EXPRESSION:
        raise BadLaw(f"{text[:20]!r}… has more than {LARGEST_EXPRESSION} parts")
    return body


def _size(node: ast.expr) -> tuple[int, int]:
    """At most how high its degree is and how many terms it has, multiplied out: told before it is done."""
    match node:
        case ast.UnaryOp(operand=operand):
            return _size(operand)
        case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=int() as power)) if (
            0 <= power <= LARGEST_POWER
        ):
            degree, terms = _size(left)
            return degree * power, math.comb(terms + power - 1, power) if terms <= MOST_TERMS else terms
        case ast.BinOp(left=left, op=operator, right=right):
            (degree, terms), (other_degree, other_terms) = _size(left), _size(right)
            if isinstance(operator, ast.Add | ast.Sub):
                return max(degree, other_degree), terms + other_terms
            return degree + other_degree, terms * other_terms
    return 1, 1


def _symbolic(node: ast.expr, text: str, names: Mapping[str, sympy.Symbol]) -> sympy.Expr:
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return _rational(value, node, text)
        case ast.Name(id=name) if name in names:
            return names[name]
        case ast.Name(id=name):
            raise BadLaw(f"{text!r} names {name}, and there are only {', '.join(names)}")
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_symbolic(operand, text, names)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _symbolic(left, text, names) + _symbolic(right, text, names)
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            return _symbolic(left, text, names) - _symbolic(right, text, names)
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return _symbolic(left, text, names) * _symbolic(right, text, names)
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            divisor = _symbolic(right, text, names)
            if not divisor.is_Rational or divisor.is_zero:
                raise BadLaw(f"{text!r} is not a polynomial: it divides by {ast.unparse(right)}")
            return _symbolic(left, text, names) / divisor
        case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=int() as power)) if type(power) is int:
            if not 0 <= power <= LARGEST_POWER:
                raise BadLaw(f"{text!r} has the power {power}, which must be from 0 to {LARGEST_POWER}")
            return _symbolic(left, text, names) ** power
    raise BadLaw(f"{text!r} is not a polynomial: {ast.unparse(node)} is none")


def _rational(value: float, node: ast.expr, text: str) -> sympy.Rational:
    """From what is written: a float would keep seventeen digits of it."""
    _finite(value, text)
    written = ast.get_source_segment(text.strip(), node) if isinstance(value, float) else None
    if written is not None and (len(written) > LONGEST_NUMBER or (not value and set(_mantissa(written)) & _NOT_ZERO)):
        raise BadLaw(f"{text[:60]!r} has a number that is too long or too small")
    exact = Fraction(written or value)
    return sympy.Rational(exact.numerator, exact.denominator)


def _mantissa(written: str) -> str:
    return written.lower().partition("e")[0]


def _finite(value: float, text: str) -> float:
    if not abs(value) <= sys.float_info.max:
        raise BadLaw(f"{text!r} has a number that is too large")
    return float(value)


def _numeric(node: ast.expr, text: str, columns: Mapping[str, Floats]) -> Floats:
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return np.float64(_finite(value, text))  # type: ignore[return-value]
        case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=int() as index)):
            return _entry(name, index, text, columns)
        case ast.Name(id=name):
            return _whole(name, text, columns)
        case ast.Call(func=ast.Name(id=name), args=[argument], keywords=[]) if name in _FUNCTIONS:
            return _FUNCTIONS[name](_numeric(argument, text, columns))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_numeric(operand, text, columns)
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _OPERATORS:
            first, second = _numeric(left, text, columns), _numeric(right, text, columns)
            return _OPERATORS[type(operator)](first, second)
    told = ", ".join(_FUNCTIONS)
    raise BadLaw(f"{text!r} is no expression of columns; it may hold numbers, + - * / **, {told} and state[0]")


_OPERATORS: dict[type[ast.operator], Callable[[Floats, Floats], Floats]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
    ast.Pow: np.power,
}


def _entry(name: str, index: int, text: str, columns: Mapping[str, Floats]) -> Floats:
    if name not in columns:
        raise BadData(f"{text!r} needs {name}, and the trajectories have only {', '.join(columns) or 'nothing'}")
    values = columns[name]
    width = values.shape[1] if values.ndim > 1 else 1
    if not 0 <= index < width:
        raise BadData(f"{text!r} needs entry {index} of {name}, which has {width}")
    return (values[:, index] if values.ndim > 1 else values).astype(np.float64)


def _whole(name: str, text: str, columns: Mapping[str, Floats]) -> Floats:
    if name in columns and (columns[name].ndim == 1 or columns[name].shape[1] == 1):
        return columns[name].reshape(len(columns[name])).astype(np.float64)
    if name in columns:
        raise BadData(f"{text!r} needs one entry of {name}, such as {name}[0]: it has {columns[name].shape[1]}")
    raise BadData(f"{text!r} needs {name}, and the trajectories have only {', '.join(columns) or 'nothing'}")
