"""Coordinate lifting: variables that make a law polynomial bring relations of their own.

In angles a kinetic energy is transcendental, in their cosines and sines it is a polynomial. What is adjoined that way
is tied together whatever the physics: c² + s² = 1. These relations are divided out before a law is sought.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from analysis.algebra import expressions
from analysis.algebra.errors import BadLaw


def relations(variables: Mapping[str, str]) -> list[str]:
    """What holds among variables because of how they are defined, as polynomials that vanish.

    A cosine and a sine of the same argument, and a root of a polynomial in other variables.

    Limits: it knows these two forms. Others, such as the length of a quaternion, it does not find; the user gives them.

    >>> relations({"c": "cos(state[0])", "s": "sin(state[0])", "w": "state[1]"})
    ['c**2 + s**2 - 1']
    >>> relations({"x": "state[0]", "y": "state[1]", "r": "sqrt(state[0]**2 + state[1]**2)"})
    ['r**2 - (x ** 2 + y ** 2)']
    """
    parsed = {name: expressions.parsed(text) for name, text in variables.items()}
    cosines, sines = _by_argument(parsed, "cos"), _by_argument(parsed, "sin")
    found = [f"{cosines[each]}**2 + {sines[each]}**2 - 1" for each in cosines if each in sines]
    roots = {
        name: node.args[0] for name, node in parsed.items() if _is_call(node, "sqrt") and isinstance(node, ast.Call)
    }
    for name, radicand in roots.items():
        others = {ast.dump(node): other for other, node in parsed.items() if other != name}
        relation = f"{name}**2 - ({ast.unparse(_Named(others).visit(radicand))})"
        try:
            expressions.polynomial(relation, tuple(variables))
        except BadLaw:
            continue  # a root of something else
        found.append(relation)
    return found


def _by_argument(parsed: Mapping[str, ast.expr], function: str) -> dict[str, str]:
    """Names of the variables that are this function of something, by that something."""
    return {
        ast.dump(node.args[0]): name
        for name, node in parsed.items()
        if isinstance(node, ast.Call) and _is_call(node, function)
    }


def _is_call(node: ast.expr, function: str) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) == function and len(node.args) == 1


class _Named(ast.NodeTransformer):
    """Puts the name of a variable where its expression stands."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names

    def visit(self, node: ast.AST) -> ast.AST:
        name = self._names.get(ast.dump(node))
        if name is None and isinstance(node, ast.Name):  # a column, which a variable may have the name of
            return ast.Constant(value=None)
        return ast.Name(id=name) if name is not None else self.generic_visit(node)
