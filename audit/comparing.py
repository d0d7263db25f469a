"""Compare what releases did: one comparison per pair of distinct behaviours, however many releases show them.

Releases that show the same behaviour are identical without a comparison.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import combinations

from analysis.separation import Separation, separation
from analysis.verdicts import RULE, Judgement, Verdict, judge
from audit.matrix import OUTPUTS
from audit.records import RunCell
from audit.store import Store

Pair = tuple[str, str]
"""Two behaviours, the lesser digest first."""


def wanted(cells: Iterable[RunCell], pairing: str, against: str | None) -> dict[Pair, str]:
    """The pairs of behaviours that the matrix's pairs need, each with an example of who shows it."""
    by_environment: dict[str, list[RunCell]] = {}
    for cell in cells:
        if cell.behaviour is not None:
            by_environment.setdefault(cell.environment, []).append(cell)
    pairs: dict[Pair, str] = {}
    for environment, group in by_environment.items():
        first_to_show: dict[str, str] = {}
        for cell in group:
            first_to_show.setdefault(str(cell.behaviour), cell.release)
        fixed = {cell.behaviour for cell in group if cell.release == against}
        for one, other in combinations(first_to_show, 2):
            if pairing != "against" or fixed & {one, other}:
                example = f"{environment}: {first_to_show[one]} and {first_to_show[other]}"
                pairs[(one, other) if one < other else (other, one)] = example
    return pairs


def reads(outputs: Sequence[str]) -> str:
    """How verdicts are read, as it is stored with them: where the rule or the outputs are others, so are verdicts."""
    return f"{RULE}:{','.join(outputs)}"


def compare(store: Store, pair: Pair, outputs: Sequence[str]) -> None:
    """Compare two behaviours, read the verdict from ``outputs``, keep both."""
    judgement, separations = _judged(store, pair, outputs)
    store.put_comparison(*pair, reads(outputs), judgement, separations)


def _judged(store: Store, pair: Pair, outputs: Sequence[str]) -> tuple[Judgement, list[Separation]]:
    if store.machine_of(pair[0]) != store.machine_of(pair[1]):
        return _incomparable("the dumps were made on machines of different kinds"), []
    first, second = (store.outputs(behaviour) for behaviour in pair)
    if first["imposed"].digest != second["imposed"].digest:
        return _incomparable("the states that were imposed read back differently"), []
    separations = []
    for output in OUTPUTS:
        if first[output].digest == second[output].digest:
            separations.append(Separation.none(output))
        else:
            one, other = (store.arrays.get(each[output].digest) for each in (first, second))
            separations.append(separation(output, one, other))
    if first["structure"].digest != second["structure"].digest:
        separations = [_restructured(each) if each.output == "observation" else each for each in separations]
    return judge(separations, outputs), separations


def _restructured(found: Separation) -> Separation:
    """Equal numbers under other names or dtypes are another interface."""
    return replace(found, same_bits=False, interface=found.interface or "observation has another structure")


def _incomparable(reason: str) -> Judgement:
    return Judgement(verdict=Verdict.INCOMPARABLE, reason=reason, first_step=None, first_step_ulps=None, horizon=None)
