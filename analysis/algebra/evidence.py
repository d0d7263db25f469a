"""How data see a polynomial: how much it varies on them, beside the polynomial that varies least.

Two laws with nearly the same coefficients may be told apart by data, and two with different ones may not be: recovered
coefficients are exact along some directions and vague along others, by as much as the data vary along them. So whether
data speak against a law is asked of the data, and not of the distance between vectors of coefficients.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from analysis.algebra.recovery import ROUNDING

Floats = NDArray[np.float64]

FOLDS = 8
"""Parts of the data that are held out in turn. Fewer leave too little to find a law in: with two, what is held out
varies a hundred times more than with eight (Acrobot, 8 trajectories)."""


@dataclass(frozen=True)
class Evidence:
    """A dictionary evaluated on data, reduced to what decides how much any polynomial in it varies there."""

    factors: tuple[Floats, ...]
    """Of each part of the data: its design, columns scaled, is this times something orthonormal."""
    lengths: Floats
    """Of the columns."""

    @classmethod
    def of(cls, parts: Sequence[Floats]) -> Evidence:
        """From designs over one dictionary, a part for each trajectory. A lone one is cut in two.

        Limits: it does not decide that the parts are independent of each other; cut from one trajectory they are not.
        """
        whole = np.vstack(parts)
        lengths = np.linalg.norm(whole, axis=0)
        lengths[lengths == 0] = 1.0
        cut = parts if len(parts) > 1 else np.array_split(whole, 2)
        groups = np.array_split(np.arange(len(cut)), min(FOLDS, len(cut)))
        designs = (np.vstack([cut[place] for place in group]) / lengths for group in groups)
        return cls(tuple(map(_triangle, designs)), lengths)

    def variation(self, coefficients: Floats) -> Floats:
        """A vector whose length is how much the polynomial varies on the data, beside the size of its own terms.

        Limits: it says nothing of states that the data have not got.
        """
        scaled = coefficients * self.lengths
        size = float(np.linalg.norm(scaled))
        return np.asarray(self._whole @ (scaled / size), dtype=np.float64) if size > 0 else np.ones(len(self._whole))

    def least_of(self, terms: NDArray[np.bool_]) -> tuple[float, Floats]:
        """What the polynomial in some of the terms that varies least leaves, and its coefficients over all of them.

        Limits: coefficients of any size, whether or not some constants would give them.
        """
        _, singular, directions = np.linalg.svd(self._whole[:, terms], full_matrices=False)
        coefficients = np.zeros(len(terms))
        coefficients[terms] = directions[-1] / self.lengths[terms]
        return float(singular[-1]), coefficients

    @cached_property
    def least(self) -> float:
        """What the polynomial that varies least leaves, never zero. It is fitted to the data, and the truth is not."""
        singular = np.linalg.svd(self._whole, compute_uv=False)
        return float(max(singular[-1], ROUNDING * singular[0]))

    @cached_property
    def held_out(self) -> float:
        """What polynomials that vary least on all parts but one leave on that one.

        How well a law that was read off these data holds on others like them. No bound on how well the truth does.
        """
        squares = 0.0
        for place, held in enumerate(self.factors):
            rest = np.vstack([factor for other, factor in enumerate(self.factors) if other != place])
            direction = np.linalg.svd(rest, full_matrices=len(rest) < rest.shape[1])[2][-1]
            squares += float(np.sum((held @ direction) ** 2))
        return float(np.sqrt(squares))

    @cached_property
    def _whole(self) -> Floats:
        return _triangle(np.vstack(self.factors))


def _triangle(design: Floats) -> Floats:
    return np.asarray(np.linalg.qr(design)[1], dtype=np.float64)
