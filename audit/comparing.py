"""Compare what releases did: one comparison per pair of distinct behaviours, however many releases show them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations

from analysis.separation import Separation, separation
from analysis.verdicts import Judgement, Verdict, judge
from audit.matrix import OUTPUTS
from audit.records import RunCell
from audit.store import Store

Pair = tuple[str, str]


def wanted(cells: Iterable[RunCell], pairing: str, against: str | None) -> set[Pair]:
    """The pairs of behaviours that the matrix's pairs need, the lesser digest first, each behaviour with itself too."""
    by_environment: dict[str, list[RunCell]] = {}
    for cell in cells:
        if cell.behaviour is not None:
            by_environment.setdefault(cell.environment, []).append(cell)
    pairs: set[Pair] = set()
    for group in by_environment.values():
        behaviours = {cell.behaviour for cell in group if cell.behaviour is not None}
        pairs |= {(behaviour, behaviour) for behaviour in behaviours}
        if pairing == "against":
            fixed = {cell.behaviour for cell in group if cell.release == against and cell.behaviour is not None}
            pairs |= {_ordered(one, other) for one in fixed for other in behaviours}
        else:
            pairs |= {_ordered(one, other) for one, other in combinations(behaviours, 2)}
    return pairs


def compare(store: Store, pair: Pair, reads: Sequence[str]) -> None:
    """Compare two behaviours and keep the judgement."""
    judgement, separations = _judged(store, pair, reads)
    store.put_comparison(*pair, ",".join(reads), judgement, separations)


def _judged(store: Store, pair: Pair, reads: Sequence[str]) -> tuple[Judgement, list[Separation]]:
    if store.cpu_of(pair[0]) != store.cpu_of(pair[1]):
        return _incomparable("the dumps were made on CPUs with different instruction sets"), []
    first, second = (store.outputs(behaviour) for behaviour in pair)
    if first["imposed"].digest != second["imposed"].digest:
        return _incomparable("the states that were imposed read back differently"), []
    separations = []
    for output in OUTPUTS:
        if first[output].digest == second[output].digest:
            separations.append(Separation.none(output))
        else:
            one, other = (store.arrays.get(outputs[output].digest) for outputs in (first, second))
            separations.append(separation(output, one, other))
    return judge(separations, reads), separations


def _incomparable(reason: str) -> Judgement:
    return Judgement(verdict=Verdict.INCOMPARABLE, reason=reason, first_step=None, first_step_ulps=None, horizon=None)


def _ordered(one: str, other: str) -> Pair:
    return (one, other) if one <= other else (other, one)
