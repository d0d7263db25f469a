"""Screening with coefficients that are a little wrong (first half of the paper's table approx)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from analysis.algebra import screening
from analysis.paper import catalogue
from analysis.paper.catalogue import CATALOGUE, Fault
from analysis.paper.experiment import Figure, Rule
from analysis.paper.laws import SETS
from analysis.paper.perturbation import DECADES, PATTERNS, largest_deviation, perturbed
from analysis.paper.scores import Broken, Score, scored

Key = tuple[int, int]
"""Of a set: its decade and its pattern of signs."""

EXACT: Key = (0, 0)
"""The set that is not perturbed."""

TABLE = {
    (0,): ("15", "15", 0.0),
    (12, 10, 8, 6, 5, 4): ("14–15", "14–15", 9.8e-5),
    (3,): ("13–14", "13–14", 9.8e-4),
    (2,): ("9–13", "9–13", 9.9e-3),
    (1,): ("4–8", "3–5", 1.0e-1),
}
"""By decades: the range of faults detected, of faults localised, the largest deviation."""

SIGNS = (
    "signs are drawn in the order of terms, and the paper's order is not known; over forty patterns 14–15"
    " are detected at 1e-4, 8–15 at 1e-2 and 4–15 at 1e-1"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Screened:
    """A part: one fault, screened with every set."""

    fault: Fault
    paired: bool


PARTS = tuple(Screened(fault=fault, paired=paired) for paired in (False, True) for fault in CATALOGUE)


def broken(part: Screened) -> dict[Key, Broken]:
    """What each set finds broken.

    Limits: both arms are drawn without noise, so that nothing is said of noisy data.
    """
    reference, test = catalogue.arms(part.fault, paired=part.paired, noise=0.0)
    sets = {EXACT: SETS[part.fault.system]}
    for decade in DECADES:
        sets |= {(decade, sign): perturbed(part.fault.system, decade, sign) for sign in range(PATTERNS)}
    return {key: screening.screen(laws, reference, test).broken for key, laws in sets.items()}


def figures(results: Sequence[Mapping[Key, Broken]]) -> list[Figure]:
    """What sets with wrong coefficients detect and localise, by how wrong they are.

    Limits: five patterns of signs stand for all; a worse one may exist.
    """
    scores = {
        (*key, paired): scored(
            (part.fault, found[key]) for part, found in zip(PARTS, results, strict=True) if part.paired is paired
        )
        for key in results[0]
        for paired in (False, True)
    }
    found = [figure for decades in TABLE for figure in _row(decades, scores)]
    alarms, controls = sum(each.alarms for each in scores.values()), 2 * len(scores)
    name = "false alarms of all sets"
    found.append(
        Figure(name=name, paper="0/184", measured=f"{alarms}/{controls}", rule=Rule.SAME, where="table approx (a)")
    )
    return found


def _row(decades: tuple[int, ...], scores: Mapping[tuple[int, int, bool], Score]) -> list[Figure]:
    detected, localised, deviation = TABLE[decades]
    own = [score for (decade, *_), score in scores.items() if decade in decades]
    told = partial(Figure, exact=decades == (0,), where="table approx (a)")
    of = f"coefficients off by {_told(decades)}"
    ranges = (
        ("detected", detected, _range(each.detected for each in own)),
        ("localised", localised, _range(each.localised for each in own)),
    )
    found = [
        told(name=f"{what}, {of}", paper=paper, measured=measured, rule=Rule.SAME).explained(SIGNS)
        for what, paper, measured in ranges
    ]
    if deviation:
        measured = largest_deviation(min(decades))
        found.append(told(name=f"deviation, {of}", paper=deviation, measured=measured))
    return found


def _told(decades: Sequence[int]) -> str:
    if decades == (0,):
        return "nothing"
    return f"1e-{decades[0]}" if len(decades) == 1 else f"1e-{decades[0]} to 1e-{decades[-1]}"


def _range(counts: Iterable[int]) -> str:
    every = sorted(set(counts))
    return str(every[0]) if len(every) == 1 else f"{every[0]}–{every[-1]}"
