"""Numerical nullspaces, and two ways to take what is known out of them.

This is how laws were sought before: decide by a tolerance how many directions vanish, then discard the trivial ones.
It is kept because the paper's tables measure it. :mod:`analysis.algebra.recovery` is what the audit uses.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

KEPT = 1e-8
"""Directions below this fraction of the largest are what rounding left of one that was taken out."""


def nullspace(design: Floats, tolerance: float) -> Floats:
    """Orthonormal directions, in the coordinates of the columns, along which the design is below ``tolerance``.

    Columns are scaled to length one for the decision, and directions scaled back. A design with more columns than rows
    has directions that no singular value reports; they count.

    Limits: how many directions it finds is decided by the tolerance, and not by the data; none of them need be a law.
    """
    lengths = np.linalg.norm(design, axis=0)
    lengths[lengths == 0] = 1.0
    wide = design.shape[0] < design.shape[1]
    _, singular, vectors = np.linalg.svd(design / lengths, full_matrices=wide)
    vanishing = int(np.sum(singular <= tolerance * singular[0])) + design.shape[1] - len(singular)
    if vanishing == 0:
        return np.zeros((0, design.shape[1]))
    return np.linalg.qr((vectors[-vanishing:] / lengths).T)[0].T


def reduced(directions: Floats, normal_form: Floats) -> Floats:
    """What is left after reducing every direction to its normal form: the whole ideal is gone, multiples and all.

    Limits: it takes out what follows from the known laws. What stays may be rounding.
    """
    return spanned(directions @ normal_form.T)


def projected(directions: Floats, known: Sequence[Floats]) -> Floats:
    """What is left after projecting known directions out, one after the other.

    Limits: it takes out one direction a generator at best, and none where an earlier projection has moved it.
    """
    for vector in known:
        unit = vector / np.linalg.norm(vector)
        directions = spanned(directions - np.outer(directions @ unit, unit))
    return directions


def spanned(rows: Floats) -> Floats:
    """Orthonormal directions of what rows span, all but rounding.

    Limits: directions below ``KEPT`` are dropped as rounding, whatever they were.
    """
    if not len(rows):
        return rows
    _, singular, vectors = np.linalg.svd(rows, full_matrices=False)
    return vectors[: int(np.sum(singular > KEPT * max(1.0, singular[0])))]
