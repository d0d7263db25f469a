"""How large dictionaries and ideals are, and how much of them deflation takes out (appendices B, C and I)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from sympy.polys.rings import PolyElement, PolyRing

from analysis.algebra import nullspaces
from analysis.algebra.ideals import Decision, Ideal, as_floats, equality
from analysis.algebra.polynomials import coefficient_vector, monomials, polynomial_ring
from analysis.paper.experiment import Figure, Floats, Rule
from analysis.paper.laws import ACROBOT, REACHER, parameterised, unit_norms

SIZES = {
    4: "5, 15, 35, 70",
    6: "7, 28, 84, 210",
    8: "9, 45, 165, 495",
    11: "12, 78, 364, 1365",
    17: "18, 171, 1140, 5985",
}
"""Monomials in so many variables, up to the degrees 1 to 4."""

MULTIPLES = {2: 1, 3: 5, 4: 15}
"""Of a quadratic law in four variables, by the degree they go up to."""

_same = partial(Figure, rule=Rule.SAME)


def sizes() -> list[Figure]:
    """How many monomials dictionaries have, by variables and degree.

    Limits: counting, which no data can contradict; it checks the enumeration of monomials and nothing else.
    """
    figures = [
        _same(
            name=f"dictionary of {variables} variables, degrees 1 to 4",
            paper=paper,
            measured=", ".join(str(len(monomials(variables, degree))) for degree in (1, 2, 3, 4)),
            where="table dict",
        )
        for variables, paper in SIZES.items()
    ]
    passive, joined = len(monomials(6, 3)), len(monomials(6, 3)) + len(monomials(7, 3))
    figures.append(_same(name="dictionary without action", paper=84, measured=passive, where="appendix B-C"))
    figures.append(_same(name="dictionary of the balance", paper=204, measured=joined, where="appendix B-C"))
    return figures


def multiples(generators: Sequence[PolyElement], degree: int) -> Floats:
    """Products of the generators with monomials, up to a degree: a row of coefficients each.

    Limits: multiples only, so that it may miss elements of the ideal in which higher terms cancel.
    """
    ring = generators[0].ring
    exponents = monomials(ring.ngens, degree)
    rows = [
        coefficient_vector(each * ring.from_dict({power: ring.domain.one}), exponents)
        for each in generators
        for power in monomials(ring.ngens, degree - max(sum(term) for term in each.monoms()))
    ]
    return np.array(rows)


def _normal_form(ideal: Ideal, degree: int) -> Floats:
    return as_floats(ideal.normal_form_matrix(monomials(ideal.ring.ngens, degree)))


def one_law() -> list[Figure]:
    """What deflating one quadratic law takes out, by projection and by normal form.

    Limits: one law of one shape. How much projection leaves elsewhere depends on the laws.
    """
    ring = polynomial_ring(("x", "y", "z", "w"))
    law = ring.gens[0] ** 2 + ring.gens[1] ** 2 - 1
    figures = []
    for degree, paper in MULTIPLES.items():
        present, projected, reduced = _removed([law], ring, degree)
        told = partial(_same, where="table lin-vs-gb")
        figures += [
            told(name=f"multiples present, degree {degree}", paper=paper, measured=present),
            told(name=f"projection removes, degree {degree}", paper=1, measured=projected),
            told(name=f"normal form removes, degree {degree}", paper=paper, measured=reduced),
        ]
    return figures


def _removed(generators: Sequence[PolyElement], ring: PolyRing, degree: int) -> tuple[int, int, int]:
    """Directions that are there; that projecting the generators out removes; that the normal form removes."""
    ideal, exponents = Ideal.of(generators, ring), monomials(ring.ngens, degree)
    present = nullspaces.spanned(multiples(generators, degree))
    projected = nullspaces.projected(present, [coefficient_vector(each, exponents) for each in generators])
    reduced = nullspaces.reduced(present, _normal_form(ideal, degree))
    return ideal.filtered_dimension(degree), len(present) - len(projected), len(present) - len(reduced)


def acrobot() -> list[Figure]:
    """The trivial directions of Acrobot's dictionary, with and without the energy.

    Limits: the declared laws, not recovered ones.
    """
    laws, told = ACROBOT.generators[:2], partial(_same, where="appendix I-E")
    energy = coefficient_vector(parameterised("acrobot").polynomial, monomials(6, 3))
    joined = nullspaces.spanned(np.vstack([multiples(laws, 3), energy]))
    present, projected, reduced = _removed(laws, ACROBOT.ring, 3)
    deflated = nullspaces.reduced(joined, _normal_form(unit_norms(), 3))
    return [
        told(name="Acrobot: trivial directions", paper=14, measured=present),
        told(name="Acrobot: with the energy", paper=15, measured=len(joined)),
        told(name="Acrobot: left after deflation", paper=1, measured=len(deflated)),
        told(name="Acrobot: left after sequential projection", paper=13, measured=present - projected),
        told(name="Acrobot: removed by the normal form", paper=14, measured=reduced),
    ]


def orthogonal_laws() -> list[Figure]:
    """Two laws without a common term: projection takes one direction for each.

    Limits: the best case of projection; it is not typical.
    """
    ring = polynomial_ring(("x", "y", "z", "w"))
    x, y, z, w = ring.gens
    present, projected, reduced = _removed([x * y, z * w], ring, 3)
    told = partial(_same, where="appendix I-E")
    return [
        told(name="orthogonal laws: directions", paper=10, measured=present),
        told(name="orthogonal laws: left after projection", paper=8, measured=present - projected),
        told(name="orthogonal laws: removed by the normal form", paper=10, measured=reduced),
    ]


def bases() -> list[Figure]:
    """Reduced bases are unique and not minimal.

    Limits: examples: the statement itself is a theorem and is not tested by them.
    """
    ring = polynomial_ring(("x", "y", "z"))
    x, y, z = ring.gens
    cubic = Ideal.of([y - x**2, z - x**3], ring).basis
    expected = {x**2 - y, x * y - z, y**2 - x * z}
    follows = equality(cubic[:2], cubic) is Decision.EQUAL
    reacher = Ideal.of(REACHER.generators, REACHER.ring).basis
    return [
        _same(name="twisted cubic: elements of its basis", paper=3, measured=len(cubic), where="appendix I-D"),
        _same(
            name="twisted cubic: the printed basis",
            paper="yes",
            measured=_told(set(cubic) == expected),
            where="appendix I-D",
        ),
        _same(
            name="twisted cubic: the third follows from two", paper="yes", measured=_told(follows), where="appendix I-D"
        ),
        _same(name="elements of the basis of Reacher's five laws", paper=10, measured=len(reacher), where="appendix D"),
    ]


def wide_design() -> list[Figure]:
    """A design of three rows and ten columns has directions that no singular value reports.

    Limits: it is about linear algebra, and not about any system.
    """
    design = np.random.default_rng(0).normal(size=(3, 10))
    found = nullspaces.nullspace(design, 1e-8)
    vanishes = bool(np.max(np.abs(design @ found.T)) < 1e-12)
    return [
        _same(name="nullspace of a 3 × 10 design", paper=7, measured=len(found), where="appendix I"),
        _same(name="that nullspace vanishes on the design", paper="yes", measured=_told(vanishes), where="appendix I"),
    ]


def _told(answer: bool) -> str:
    return "yes" if answer else "no"
