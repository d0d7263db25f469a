"""Find a law in data: the direction of a dictionary that varies least, once everything already known is divided out.

No dimension of a nullspace is estimated and nothing is compared with a number that carries units. What decides is the
gap: how much less the best direction varies than the next one. A system that conserves nothing has no gap, and is
refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.algebra import dictionaries
from analysis.algebra.dictionaries import Family, OrthogonalDictionary
from analysis.algebra.errors import BadData
from analysis.algebra.ideals import Ideal, as_floats
from analysis.algebra.polynomials import Exponents, monomial_values

Floats = NDArray[np.float64]

GAP = 0.1
"""A direction is a law where it varies this much less than the next. The paper's value; its appendix E measures it: a
true law of clean data lies at 1e-7, one that noise has washed out at 0.3, a system without one at 0.4 to 0.9."""

ROUNDING = 1e-15
"""Singular values below this fraction of the largest are rounding, and none of them is smaller than another. Two exact
laws leave 1e-16 each, but in one case of two hundred ten times less of one than of the other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """The direction that varies least, and how far the next one is. It carries an arbitrary scale."""

    exponents: Exponents
    coefficients: Floats
    """Over those monomials; of length one as a vector."""
    smallest: float
    following: float

    @property
    def gap(self) -> float:
        """The smallest singular value over the next: 0 for a perfect law, 1 where nothing stands out."""
        return self.smallest / self.following if self.following > 0 else 1.0

    def decisive(self, gap: float = GAP) -> bool:
        """Whether it is a law.

        Limits: that one direction stands out, not that it is physics: a relation that holds by chance in few data does
        too.
        """
        return self.gap < gap


def conserved(trajectories: Sequence[Floats], known: Ideal, degree: int, lag: int = 1) -> Recovered:
    """The polynomial that changes least along trajectories, modulo what is ``known`` and modulo constants.

    Limits: it does not decide that the quantity is energy, nor that it is the only one.
    """
    variables = known.ring.ngens
    dictionaries.checked(trajectories, variables)
    exponents = known.standard_monomials(degree, lowest=1)
    return least_varying(dictionaries.differences(trajectories, exponents, lag), exponents)


def vanishing(samples: Floats, known: Ideal, degree: int) -> Recovered:
    """The polynomial that is nearest to zero on all samples, modulo what is ``known``. Its constant term counts.

    Limits: it does not decide that it vanishes where there are no samples: on few poses a chance relation does too.
    """
    dictionaries.checked([samples], known.ring.ngens)
    exponents = known.standard_monomials(degree)
    return least_varying(monomial_values(samples, exponents), exponents)


def vanishing_in_orthogonal(samples: Floats, known: Ideal, degree: int, family: Family = "legendre") -> Recovered:
    """The same, found in an orthogonal dictionary and converted back exactly: for data of badly mixed scale.

    Limits: better conditioned, and no better informed: a law that the samples do not determine is not found here
    either.
    """
    dictionaries.checked([samples], known.ring.ngens)
    dictionary = OrthogonalDictionary.standardising(samples, degree, family)
    to_monomials = as_floats(dictionary.to_monomials())
    standard = [known.is_standard(exponent) for exponent in dictionary.exponents]
    basis: Floats = (
        np.linalg.inv(to_monomials).astype(np.float64)[:, standard].T
    )  # the quotient, in the coordinates of this dictionary
    found = least_varying(dictionary.on(samples), dictionary.exponents, basis)
    coefficients = to_monomials @ found.coefficients
    return Recovered(
        exponents=dictionary.exponents,
        coefficients=coefficients / np.linalg.norm(coefficients),
        smallest=found.smallest,
        following=found.following,
    )


def least_varying(design: Floats, exponents: Exponents, basis: Floats | None = None) -> Recovered:
    """The right singular vector of the smallest singular value of ``design`` restricted to the rows of ``basis``.

    Columns are scaled to length one first, so that one gap means the same in any units. A basis scaled along with them
    is orthonormal no longer, and is made so again: otherwise the gap would be that of another map and move with the
    units. Without a basis all columns count.

    Limits: there always is such a direction. That it means something is for the gap to say.
    """
    lengths = np.linalg.norm(design, axis=0)
    lengths[lengths == 0] = 1.0
    rows = np.eye(design.shape[1]) if basis is None else basis
    if len(rows) < 2 or len(design) < 2:
        raise BadData(f"{len(design)} samples of {len(rows)} terms: there is nothing to tell a law from")
    if len(design) < len(rows):
        raise BadData(f"{len(design)} samples are too few for {len(rows)} terms: any data would have a law")
    orthonormal = rows if basis is None else np.linalg.qr((rows * lengths).T)[0].T
    _, singular, vectors = np.linalg.svd((design / lengths) @ orthonormal.T, full_matrices=False)
    direction = vectors[-1] @ orthonormal / lengths
    above = np.maximum(singular, ROUNDING * singular[0])
    return Recovered(
        exponents=exponents,
        coefficients=direction / np.linalg.norm(direction),
        smallest=float(above[-1]),
        following=float(above[-2]),
    )


def holds_elsewhere(found: Recovered, trajectories: Sequence[Floats], *, conserves: bool, most: float = 1e-6) -> bool:
    """Whether a law found in some trajectories holds in others: what correlates by chance in one does not.

    ``most`` is the largest residual beside the size of the law's own terms. Rounding leaves 1e-16; a chance relation
    between two variables 0.1 (the paper's stress test).

    Limits: it refutes a law or fails to; on trajectories too like the first it proves little.
    """
    return all(_held_out_residual(found, trajectory, conserves=conserves) <= most for trajectory in trajectories)


def _held_out_residual(found: Recovered, trajectory: Floats, *, conserves: bool) -> float:
    """How far a law is from holding on one trajectory, beside the size of its terms there."""
    columns = monomial_values(trajectory, found.exponents)
    values = columns @ found.coefficients
    scale = float(np.sqrt(np.mean((np.abs(columns) @ np.abs(found.coefficients)) ** 2)))
    residual = float(np.std(values) if conserves else np.sqrt(np.mean(values**2)))
    return residual / scale if scale > 0 else residual
