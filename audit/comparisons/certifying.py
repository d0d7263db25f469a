"""The certifying stage: did the dynamics make a difference out of rounding, or did something else?

A pair that is the same at every forced step but separates over the horizon is held against a release's own twins:
trajectories of the same release, started one unit in the last place away. Behaviours that agree at every forced step
share their dynamics, so one release speaks for all of a group.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis import growth
from analysis.growth import UNEXPLAINED, Certificate, Growth
from analysis.verdicts import Verdict
from audit.asked.matrix import Matrix
from audit.comparisons import comparing
from audit.comparisons.comparing import Pair
from audit.planning.drawing import DrawnEnvironment
from audit.planning.plan import Cell, Recording
from audit.stimuli import stimulus
from audit.storage.records import CertificateRecord, RunCell
from audit.storage.store import Store

TWINS = 4
"""Twins of every trajectory."""

_NO_TWIN = "there is no twin to hold it against"
_OTHER_TWIN = "the twins have recordings of another shape than the release they are of"
_NO_CURVE = "what the verdict reads separates, though the state does not: no dynamics did that"

_CURVES_OF = ("state", "observation")
"""Outputs whose separation is followed: the first of them that the verdict reads."""

_AGREE = frozenset({Verdict.ROUNDING, Verdict.AMPLIFIED, Verdict.IDENTICAL})
Curves = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Amplified:
    """A pair whose growth is to be explained, and who speaks for its dynamics."""

    pair: Pair
    environment: str
    speaker: RunCell


def wanted(cells: Sequence[RunCell], pairs: Collection[Pair], verdicts: Mapping[Pair, str]) -> list[Amplified]:
    """The amplified pairs, each with the oldest release that agrees with it at every forced step."""
    found = []
    for environment, unordered in _groups(cells, verdicts):
        group = sorted(unordered, key=lambda cell: cell.position)
        shown = {str(cell.behaviour) for cell in group}
        found += [
            Amplified(pair=pair, environment=environment, speaker=group[0])
            for pair in sorted(pairs)
            if verdicts.get(pair) == "amplified" and shown >= set(pair)
        ]
    return found


def _groups(cells: Sequence[RunCell], verdicts: Mapping[Pair, str]) -> list[tuple[str, list[RunCell]]]:
    """Cells of an environment whose behaviours agree at every forced step, directly or through others."""
    shown: dict[str, dict[str, list[RunCell]]] = {}
    for cell in cells:
        if cell.behaviour is not None:
            shown.setdefault(cell.environment, {}).setdefault(cell.behaviour, []).append(cell)
    return [
        (environment, [cell for behaviour in group for cell in by_behaviour[behaviour]])
        for environment, by_behaviour in shown.items()
        for group in _agreeing(list(by_behaviour), verdicts)
    ]


def _agreeing(behaviours: Sequence[str], verdicts: Mapping[Pair, str]) -> list[list[str]]:
    found: list[list[str]] = []
    for behaviour in behaviours:
        joined = [group for group in found if any(_agree(behaviour, other, verdicts) for other in group)]
        rest = [group for group in found if group not in joined]
        found = [*rest, [*(other for group in joined for other in group), behaviour]]
    return found


def _agree(one: str, other: str, verdicts: Mapping[Pair, str]) -> bool:
    return verdicts.get(comparing.ordered(one, other)) in _AGREE


def twins(cell: Cell, drawn: DrawnEnvironment) -> Recording | None:
    """The twins of a release; none where its state cannot be imposed."""
    if drawn.horizon is None or drawn.forced is None:
        return None
    batch = stimulus.twins(drawn.horizon, TWINS, drawn.seed)
    return Recording(cell=cell, stimulus=stimulus.assemble({"horizon": batch}, resets=0), purpose="twins")


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """A pair whose growth was held against twins, trajectory by trajectory."""

    pair: Pair
    environment: str
    cross: Curves
    twins: Sequence[Curves]
    floor: float
    record: CertificateRecord
    complete: bool
    """Whether the twins were run, where there can be some."""

    @property
    def holds(self) -> bool:
        """Whether the twins explain it."""
        return self.record.certificate != UNEXPLAINED


def certify(
    each: Amplified, twin_behaviour: str | None, reads: str, matrix: Matrix, store: Store, *, complete: bool = True
) -> Explained:
    """Hold a pair's growth against the twins of the one that speaks for it."""
    recorded = store.outputs(each.pair[0])
    able = [name for name in _CURVES_OF if 0 not in recorded[f"horizon.{name}"].shape] or ["reward"]
    output = next((name for name in able if name in matrix.outputs), able[0])
    first, second = (_recording(store, behaviour, output) for behaviour in each.pair)
    cross, floor = growth.curves(first, second), growth.last_place(first)
    beside: list[Curves] = []
    found, lacking = None, _NO_TWIN
    if twin_behaviour is not None and cross.any():
        own, moved = (_recording(store, name, output) for name in (str(each.speaker.behaviour), twin_behaviour))
        if own.shape[1:] == moved.shape[1:]:
            beside = [growth.curves(own, part) for part in np.split(moved, TWINS)]
            found = growth.certify(cross, beside, floor, matrix.growth_window)
        else:
            lacking = _OTHER_TWIN
    return Explained(
        pair=each.pair,
        environment=each.environment,
        cross=cross,
        twins=beside,
        floor=floor,
        record=_record(each.pair, reads, cross, beside, found, lacking),
        complete=complete,
    )


def _recording(store: Store, behaviour: str, output: str) -> NDArray[Any]:
    found: NDArray[Any] = store.arrays.get(store.outputs(behaviour)[f"horizon.{output}"].digest)
    return found


def _record(
    pair: Pair,
    reads: str,
    cross: Curves,
    beside: Sequence[Curves],
    found: Certificate | None,
    lacking: str = _NO_TWIN,
) -> CertificateRecord:
    rates = [each.steps_per_decade for each in found.twins if isinstance(each, Growth)] if found is not None else []
    return CertificateRecord(
        first=pair[0],
        second=pair[1],
        reads=reads,
        certificate=found.status if found is not None else UNEXPLAINED,
        reason=found.reason if found is not None else lacking if cross.any() else _NO_CURVE,
        steps_per_decade=found.steps_per_decade if found is not None else None,
        twin_slowest=max(rates, default=None),
        twin_fastest=min(rates, default=None),
        curve=cross.max(axis=0).tolist(),
        twin_curves=[each.max(axis=0).tolist() for each in beside],
    )
