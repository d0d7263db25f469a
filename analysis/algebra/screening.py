"""Screening: which law of a reference set does a system break that another one keeps?

Each law's residual on the system under test is held against the residuals of the reference system, which say how much
resampling alone moves it. A fixed threshold would not do: noise lifts both. It names a law, not its cause, and it sees
only what the laws speak of: a system that keeps them all may still be another one. A law of a single term says nothing
where noise has lifted it off zero, because beside its only term its residual is 1 whatever its size.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from analysis.algebra import dictionaries
from analysis.algebra.errors import BadData
from analysis.algebra.reference import Kind, ReferenceSet

Floats = NDArray[np.float64]

ALPHA = 0.01
"""The level of the whole set: a false alarm in a hundred comparisons of equal systems, at most."""

FLOOR = 1e-8
"""Residuals that are all below this, in the law's own units, are not compared: a rank test has no scale and would tell
two systems apart by their seventeenth digit. Observations of MuJoCo that are read in the middle of a step leave 1e-8. A
true violation below it is not seen."""

SINGLE_FLOOR = 4 * float(np.finfo(np.float32).eps)
"""The same beside the size of the law's terms, where the samples of either side are numbers of single precision: a term
of degree four is rounded four times."""

BLOCKS = 32
"""Of all trajectories of a system together, where blocks are the unit."""

CHUNKS = 8
"""Into which each side is cut where both are a single array of samples, trajectories are the unit and no law is
conserved. Along one trajectory what drifts is not drawn anew from chunk to chunk, so there it is one unit."""

SHORTEST = 0.5
"""Of the usual length: shorter trajectories are left out where a law is conserved, because all are cut to the shortest
that stays."""

_MOST_SPLITS = 200_000
"""Splits that are enumerated; eight trajectories against eight have 12,870. Beyond it they are drawn."""
_DRAWN_SPLITS = 20_000
_AT_ONCE = 2_000_000
"""Entries of splits that are held in memory: 16 MB. A thousand against a thousand would take 760."""
_ROUNDING = 1e-12
"""Relative: sums that differ by less are ties."""


class Unit(StrEnum):
    """What counts as one independent observation."""

    TRAJECTORY = "trajectory"
    """Tested by the exact permutation null: it holds its level."""
    BLOCK = "block"
    """Stretches of trajectories, tested by ranks. Blocks of one trajectory are not independent, so it alarms falsely
    up to ten times as often as it says (measured by ``release-audit reproduce calibration``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LawScreen:
    """What one law showed."""

    law: str
    reference: float
    """Median residual of the reference system, beside the size of the law's terms."""
    tested: float
    ratio: float
    """Tested over reference: the size of the effect, which p is not."""
    p: float
    """Corrected for the number of laws."""
    broken: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """What all laws of a set showed."""

    laws: tuple[LawScreen, ...]
    unit: Unit
    attainable: float
    """The smallest corrected p that so few units can give. Where it is not below the level nothing can be found."""
    is_drawn: bool = False
    """Whether p comes of splits that were drawn, because there are too many to enumerate."""
    left_out: int = 0
    """Trajectories of both sides that were too short to be held against the others."""

    @property
    def broken(self) -> tuple[str, ...]:
        """Names of the broken laws."""
        return tuple(each.law for each in self.laws if each.broken)


def screen(
    laws: ReferenceSet,
    reference: Sequence[Floats],
    tested: Sequence[Floats],
    *,
    unit: Unit = Unit.TRAJECTORY,
    alpha: float = ALPHA,
    floor: float = FLOOR,
) -> Screen:
    """Hold the residuals of ``tested`` trajectories against those of ``reference`` ones, law by law, one-sided.

    Limits: it names laws that are broken, not why; and a law that is not broken may be so by less than so few
    trajectories show.

    Raises:
        BadData: where trajectories are missing, too short or not numbers.
    """
    for side in (reference, tested):
        dictionaries.checked(side, len(laws.variables))
    kept = _of_usual_length(reference, tested) if _conserved(laws).any() else (reference, tested)
    one, other = _compared(laws, *kept, unit)
    is_single = any(_is_single(side) for side in kept)
    raw = p_values(other, one, unit, floor, SINGLE_FLOOR if is_single else 0.0)
    p = np.minimum(1.0, raw * len(laws.laws))
    medians = np.median(one.relative, axis=0), np.median(other.relative, axis=0)
    return Screen(
        laws=tuple(
            LawScreen(
                law=law.name,
                reference=float(medians[0][place]),
                tested=float(medians[1][place]),
                ratio=_ratio(medians[1][place], medians[0][place]),
                p=float(p[place]),
                broken=bool(p[place] < alpha),
            )
            for place, law in enumerate(laws.laws)
        ),
        unit=unit,
        attainable=min(1.0, len(laws.laws) * _attainable(len(one.relative), len(other.relative), unit)),
        is_drawn=unit is Unit.TRAJECTORY and _are_drawn(len(other.relative), len(one.relative)),
        left_out=len(reference) + len(tested) - sum(map(len, kept)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Residuals:
    """Of every law on every unit: units × laws."""

    relative: Floats
    """Beside the size of the law's own terms: comparable between laws of any degree."""
    absolute: Floats
    """In the law's own units: what the floor is held against."""


def residuals(laws: ReferenceSet, trajectories: Sequence[Floats], unit: Unit = Unit.TRAJECTORY) -> Residuals:
    """How far every law is from holding on every unit: from zero, or from constant along it.

    Limits: it does not decide how much is too much: noise and the integrator's own error leave some in a healthy
    system.
    """
    return _of_units(laws, _units(trajectories, unit))


def _of_units(laws: ReferenceSet, units: Sequence[Floats]) -> Residuals:
    """Units of one length are evaluated together."""
    if not units:
        raise BadData("there is not a single unit to test")
    lengths = sorted({len(unit) for unit in units})
    batches = [np.stack([unit for unit in units if len(unit) == length]) for length in lengths]
    parts = [batch_residuals(laws, batch) for batch in batches]
    return Residuals(
        relative=np.concatenate([part.relative for part in parts]),
        absolute=np.concatenate([part.absolute for part in parts]),
    )


def batch_residuals(laws: ReferenceSet, units: Floats) -> Residuals:
    """The same of units of one length, all at once: (…, samples, variables) to (…, laws).

    Limits: units must be independent for a test of them to mean what it says, and nothing here can see that they are.
    """
    values, scales = laws.compiled.on(units)
    centred = values - np.where(_conserved(laws), values.mean(axis=-2, keepdims=True), 0.0)
    absolute = np.sqrt(np.mean(centred**2, axis=-2))
    scale = np.sqrt(np.mean(scales**2, axis=-2))
    return Residuals(relative=np.divide(absolute, scale, out=absolute.copy(), where=scale > 0), absolute=absolute)


def p_values(
    tested: Residuals, reference: Residuals, unit: Unit, floor: float = FLOOR, relative_floor: float = 0.0
) -> Floats:
    """For each law, how likely residuals as large as the tested ones are if both systems are the same; uncorrected.

    Limits: p is no size of an effect and no probability that the systems are the same. It is not corrected for the
    number of laws.
    """
    test = _permutation if unit is Unit.TRAJECTORY else _ranks
    p = test(tested.relative, reference.relative)
    absolute, relative = (
        np.maximum(one.max(axis=0), other.max(axis=0))
        for one, other in ((tested.absolute, reference.absolute), (tested.relative, reference.relative))
    )
    below = ((absolute <= floor) & (floor > 0)) | ((relative <= relative_floor) & (relative_floor > 0))
    return np.where(below, 1.0, p)


def _permutation(tested: Floats, reference: Floats) -> Floats:
    """The exact null of the difference of means: of all ways to split the units, how many differ as much.

    ``scipy.stats.permutation_test`` gives the same numbers (a test holds them together) and enumerates the splits one
    by one in Python, which takes 0.2 s a law; here it is one product of matrices.
    """
    pooled = np.concatenate([tested, reference])
    observed = tested.sum(axis=0)
    drawn = int(_are_drawn(len(tested), len(reference)))  # counted as a split of its own, so that no p is zero
    as_large, count = np.full(observed.shape, drawn), drawn
    for splits in _drawn_splits(len(pooled), len(tested)) if drawn else [_all_splits(len(pooled), len(tested))]:
        as_large += np.sum(splits @ pooled >= observed - _ROUNDING * np.abs(observed), axis=0)
        count += len(splits)
    return np.asarray(as_large / count, dtype=np.float64)


def _are_drawn(tested: int, reference: int) -> bool:
    return math.comb(tested + reference, tested) > _MOST_SPLITS


@cache
def _all_splits(total: int, chosen: int) -> Floats:
    """All ways to choose units, a row of zeros and ones each."""
    places = np.array(list(combinations(range(total), chosen)))
    rows = np.zeros((len(places), total))
    np.put_along_axis(rows, places, 1.0, axis=1)
    return rows


def _drawn_splits(total: int, chosen: int) -> Iterator[Floats]:
    """Some ways, the same in every call, a few at once."""
    generator = np.random.default_rng(0)
    first = (np.arange(total) < chosen).astype(np.float64)
    size = max(1, _AT_ONCE // total)
    for start in range(0, _DRAWN_SPLITS, size):
        yield generator.permuted(np.tile(first, (min(size, _DRAWN_SPLITS - start), 1)), axis=1)


def _ranks(tested: Floats, reference: Floats) -> Floats:
    """The asymptotic form also where scipy would choose the exact one: it sets the smallest p there is."""
    with np.errstate(invalid="ignore"):  # all units alike: no ranks, and no difference
        p = stats.mannwhitneyu(tested, reference, alternative="greater", method="asymptotic", axis=0).pvalue
    return np.nan_to_num(np.asarray(p, dtype=np.float64), nan=1.0)


def _attainable(reference: int, tested: int, unit: Unit) -> float:
    if unit is Unit.TRAJECTORY:
        drawn = _are_drawn(tested, reference)
        return 1 / (_DRAWN_SPLITS + 1) if drawn else 1 / math.comb(reference + tested, tested)
    apart = np.arange(reference + tested, dtype=np.float64)[:, None]  # no ties: they would make p smaller still
    return float(_ranks(apart[reference:], apart[:reference])[0])


def _ratio(tested: float, reference: float) -> float:
    if reference > 0:
        return float(tested / reference)
    return math.inf if tested > 0 else 1.0


def _conserved(laws: ReferenceSet) -> NDArray[np.bool_]:
    return np.array([law.kind is Kind.CONSERVED for law in laws.laws])


def _is_single(trajectories: Sequence[Floats]) -> bool:
    """Whether every number is one of single precision, whatever type it has by now."""
    return all(np.array_equal(each, each.astype(np.float32)) for each in trajectories)


def _of_usual_length(
    reference: Sequence[Floats], tested: Sequence[Floats]
) -> tuple[Sequence[Floats], Sequence[Floats]]:
    """Without those by which all others would be cut to next to nothing; at least half of each side stays."""
    usual = min(float(np.median([len(each) for each in side])) for side in (reference, tested))
    one, other = ([each for each in side if len(each) >= SHORTEST * usual] for side in (reference, tested))
    return one, other


def _compared(
    laws: ReferenceSet, reference: Sequence[Floats], tested: Sequence[Floats], unit: Unit
) -> tuple[Residuals, Residuals]:
    """Of both sides. What is conserved drifts further the longer it is watched: there all units have one length.

    A lone trajectory beside several is one of them: its parts are not what whole ones are.
    """
    conserved = _conserved(laws)
    whole = unit is Unit.TRAJECTORY and (bool(conserved.any()) or len(reference) > 1 or len(tested) > 1)
    one, other = (list(side) if whole else _units(side, unit) for side in (reference, tested))
    lengths = {len(each) for each in (*one, *other)}
    if not conserved.any() or len(lengths) == 1:
        return _of_units(laws, one), _of_units(laws, other)
    first, second = (
        _merged(conserved, _of_units(laws, [each[: min(lengths)] for each in side]), _of_units(laws, side))
        for side in (one, other)
    )
    return first, second


def _merged(chosen: NDArray[np.bool_], these: Residuals, others: Residuals) -> Residuals:
    """These of the chosen laws, the others of the rest."""
    return Residuals(
        relative=np.where(chosen, these.relative, others.relative),
        absolute=np.where(chosen, these.absolute, others.absolute),
    )


def _units(trajectories: Sequence[Floats], unit: Unit) -> list[Floats]:
    if unit is Unit.TRAJECTORY and len(trajectories) > 1:
        return list(trajectories)
    per = CHUNKS if unit is Unit.TRAJECTORY else max(1, BLOCKS // len(trajectories))
    return [chunk for each in trajectories for chunk in _chunks(each, per)]


def _chunks(trajectory: Floats, count: int) -> list[Floats]:
    size = max(2, len(trajectory) // count)
    return [trajectory[start : start + size] for start in range(0, len(trajectory) - size + 1, size)][:count]
