"""A reference set: the laws that a system obeys when it is what its specification says.

Variables are expressions of a dump's columns, laws are polynomials in them, and the constants of the specification
stand in the laws by name. A law either *vanishes* in every state, or is *conserved* along a trajectory that nothing
drives.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from keyword import iskeyword

import numpy as np
import sympy
from numpy.typing import NDArray
from sympy.polys.rings import PolyElement, PolyRing

from analysis.algebra import expressions, lifting, polynomials
from analysis.algebra.errors import BadData, BadLaw
from analysis.algebra.polynomials import Compiled

Floats = NDArray[np.float64]


class Kind(StrEnum):
    """How a law holds."""

    VANISHES = "vanishes"
    CONSERVED = "conserved"


@dataclass(frozen=True)
class Law:
    """One polynomial, as specified and with the constants of the specification left open."""

    name: str
    kind: Kind
    template: sympy.Poly
    """In the variables of the set, its coefficients polynomials in the parameters."""
    polynomial: PolyElement
    """At the specified values."""

    @cached_property
    def uses(self) -> tuple[int, ...]:
        """Places of the variables that occur in it."""
        return tuple(sorted(polynomials.used(self.template.monoms())))

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """Names of the constants that it depends on."""
        found = {symbol for coefficient in self.template.coeffs() for symbol in sympy.sympify(coefficient).free_symbols}
        return tuple(sorted(str(symbol) for symbol in found))

    @property
    def degree(self) -> int:
        """Its total degree."""
        return int(self.template.total_degree())


@dataclass(frozen=True)
class ReferenceSet:
    """Laws in one set of variables, with the specified values of their constants."""

    name: str
    variables: tuple[tuple[str, str], ...]
    """Each with the expression of columns that it stands for."""
    parameters: Mapping[str, Fraction]
    laws: tuple[Law, ...]
    relations: tuple[PolyElement, ...] = ()
    """What holds among the variables because of how they are defined."""
    lag: int = 1
    """Samples between the two states whose difference a conserved quantity is recovered from."""

    @classmethod
    def of(
        cls,
        name: str,
        *,
        variables: Mapping[str, str],
        laws: Mapping[str, tuple[Kind, str]],
        parameters: Mapping[str, Fraction] | None = None,
        relations: Sequence[str] = (),
        lag: int = 1,
    ) -> ReferenceSet:
        """Read the laws from text. Relations that follow from the variables' definitions are found by themselves.

        Limits: it does not ask whether the laws are true of anything, nor whether they contradict each other.

        Raises:
            BadLaw: where one is no polynomial in these variables and parameters.
        """
        if not laws:
            raise BadLaw(f"{name} has no laws")
        given = dict(parameters or {})
        _no_clash(variables, given)
        made = tuple(_law(each, kind, text, tuple(variables), given) for each, (kind, text) in laws.items())
        held = [expressions.polynomial(text, tuple(variables)) for text in (*lifting.relations(variables), *relations)]
        return cls(name, tuple(variables.items()), given, made, tuple(map(polynomials.exact, held)), lag)

    @property
    def names(self) -> tuple[str, ...]:
        """Of the variables."""
        return tuple(name for name, _ in self.variables)

    @property
    def ring(self) -> PolyRing:
        """The polynomials in its variables."""
        return polynomials.polynomial_ring(self.names)

    @cached_property
    def compiled(self) -> Compiled:
        """All laws, ready to be evaluated on samples."""
        return Compiled.of(law.polynomial for law in self.laws)

    @property
    def generators(self) -> tuple[PolyElement, ...]:
        """All laws at the specified values."""
        return tuple(law.polynomial for law in self.laws)

    def at(self, values: Mapping[str, Fraction]) -> tuple[PolyElement, ...]:
        """The laws with some constants set otherwise: what another specification would say.

        Limits: it sets constants in the laws. A system with such constants may break other laws as well, which nobody
        wrote down.
        """
        unknown = sorted(set(values) - set(self.parameters))
        if unknown:
            raise BadLaw(f"{', '.join(unknown)} is no parameter; there are {', '.join(self.parameters) or 'none'}")
        chosen = {**self.parameters, **values}
        return tuple(_specified(law.template, chosen) for law in self.laws)

    def identities(self, law: Law) -> list[PolyElement]:
        """What holds among the variables of a law whatever the constants are: it is divided out before recovering.

        Limits: those among the variables of the law only; what follows from several laws through other variables is not
        found.
        """
        free = (each.polynomial for each in self.laws if each.kind is Kind.VANISHES and not each.parameters)
        return [each for each in (*self.relations, *free) if polynomials.used(each.monoms()) <= set(law.uses)]

    def samples(self, columns: Mapping[str, Floats]) -> Floats:
        """Its variables on the rows of a trajectory: samples × variables.

        Limits: it evaluates what the set says, and cannot see that a column holds another quantity.

        Raises:
            BadData: where a column is missing or a variable is not a number.
        """
        found = np.stack([expressions.column(text, columns) for _, text in self.variables], axis=1)
        for (name, text), values in zip(self.variables, found.T, strict=True):
            if not np.isfinite(values).all():
                row = int(np.flatnonzero(~np.isfinite(values))[0])
                raise BadData(f"{name} = {text} is not a number at sample {row}")
        return found


def _no_clash(variables: Mapping[str, str], parameters: Mapping[str, Fraction]) -> None:
    unspeakable = [name for name in (*variables, *parameters) if not name.isidentifier() or iskeyword(name)]
    if unspeakable:
        raise BadLaw(f"{unspeakable[0]!r} cannot stand in a law: a name has letters, digits and _")
    both = sorted(set(variables) & set(parameters))
    if both:
        raise BadLaw(f"{', '.join(both)} cannot be a variable and a parameter")


def _law(name: str, kind: Kind, text: str, variables: Sequence[str], parameters: Mapping[str, Fraction]) -> Law:
    try:
        template = expressions.polynomial(text, variables, tuple(parameters))
    except BadLaw as error:
        raise BadLaw(f"{name}: {error}") from None
    if template.total_degree() < 1:
        raise BadLaw(f"{name}: {text!r} has none of the variables {', '.join(variables)} in it")
    specified = _specified(template, parameters)
    if not polynomials.used(specified.monoms()):
        raise BadLaw(f"{name}: {text!r} says nothing at the specified values")
    if any(abs(coefficient) > int(sys.float_info.max) for coefficient in specified.coeffs()):
        raise BadLaw(f"{name}: {text!r} has a coefficient that is too large to compute with")
    return Law(name, kind, template, specified)


def _specified(template: sympy.Poly, values: Mapping[str, Fraction]) -> PolyElement:
    chosen = {sympy.Symbol(name): sympy.Rational(value.numerator, value.denominator) for name, value in values.items()}
    coefficients = {
        power: sympy.sympify(coefficient).subs(chosen)
        for power, coefficient in zip(template.monoms(), template.coeffs(), strict=True)
    }
    ring = polynomials.polynomial_ring(tuple(str(symbol) for symbol in template.gens))
    return ring.from_dict({power: sympy.QQ.from_sympy(value) for power, value in coefficients.items() if value != 0})
