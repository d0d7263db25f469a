"""Which laws say something of their own, and whether together they say everything: both by the rank of a Jacobian.

Conserved quantities are no ideal: where E is conserved so is E², and no Gröbner basis removes it. Their gradients are
parallel, though. A subset that is independent is not canonical: it depends on the order in which laws are looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray
from sympy.polys.rings import PolyElement

from analysis.algebra.polynomials import Compiled

Floats = NDArray[np.float64]

RANK_TOLERANCE = 1e-8
"""Singular values below this fraction of the largest are rounding."""


class Sufficiency(StrEnum):
    """What a residual of zero says about a transition."""

    SUFFICIENT = "locally sufficient"
    NECESSARY = "necessary only"
    TOO_MANY = "more laws than the data have room for"


@dataclass(frozen=True, slots=True, kw_only=True)
class SufficiencyReport:
    """The answer with the numbers that it rests on."""

    answer: Sufficiency
    rank: int
    needed: int


def jacobian_rank(laws: Sequence[PolyElement], points: Floats) -> int:
    """The rank at a generic point: the largest over those given, because it drops on special ones.

    Limits: numerical, at the points given. It counts the laws given, not those that the system has.
    """
    if not laws:
        return 0
    singular = np.linalg.svd(_gradients(laws, points), compute_uv=False)
    return int(np.max(np.sum(singular > RANK_TOLERANCE * singular[:, :1], axis=1)))


def independent(laws: Sequence[PolyElement], points: Floats) -> tuple[int, ...]:
    """Places of laws that each raise the rank of those before.

    Limits: a certificate that none is redundant, no canonical choice: in another order others are kept.
    """
    kept: list[int] = []
    for place in range(len(laws)):
        chosen = [laws[each] for each in (*kept, place)]
        if jacobian_rank(chosen, points) > len(kept):
            kept.append(place)
    return tuple(kept)


def sufficiency(laws: Sequence[PolyElement], points: Floats, trajectory_dimension: int) -> SufficiencyReport:
    """Whether states that satisfy the laws are just those that the system visits, near the points that were looked at.

    ``trajectory_dimension`` is that of the set of states visited; it belongs to the sampling as much as to the system.

    Limits: local evidence near the points, no proof; and sufficient laws may still be the wrong ones.
    """
    rank = jacobian_rank(laws, points)
    needed = points.shape[1] - trajectory_dimension
    if rank == needed:
        answer = Sufficiency.SUFFICIENT
    else:
        answer = Sufficiency.NECESSARY if rank < needed else Sufficiency.TOO_MANY
    return SufficiencyReport(answer=answer, rank=rank, needed=needed)


def _gradients(laws: Sequence[PolyElement], points: Floats) -> Floats:
    """Points × laws × variables, each law's beside the size of its terms: a law may be written in any unit."""
    derivatives = [law.diff(variable) for law in laws for variable in law.ring.gens]
    shape = (len(points), len(laws), points.shape[1])
    values, scales = (each.reshape(shape) for each in Compiled.of(derivatives).on(points))
    sizes = np.linalg.norm(scales, axis=2, keepdims=True)
    return np.asarray(values / np.where(sizes > 0, sizes, 1.0), dtype=np.float64)
