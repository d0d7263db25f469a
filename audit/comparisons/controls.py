"""Controls: does a release reproduce itself, and would a fault have been seen?

*Again*: a sample of what a release was given is given to it once more, in another process. One that answers otherwise
does not reproduce itself, and nothing can be compared with it. Releases that show the same behaviour have reproduced
each other, so only the baseline and lone suspects are asked again. *Planted*: the baseline is stepped with one of its
constants moved. Where that does not come out as changed, the audit is blind there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from analysis import yardstick
from analysis.growth import UNEXPLAINED
from analysis.verdicts import Verdict
from analysis.yardstick import THRESHOLD, Forced
from audit.comparisons import comparing
from audit.comparisons.comparing import Pair
from audit.dumps.dumping import Dumped
from audit.failures import Status
from audit.planning.drawing import DrawnEnvironment
from audit.planning.plan import Cell, Recording
from audit.processes.dumper_request import Plant
from audit.stimuli import stimulus
from audit.stimuli.stimulus import Batch
from audit.storage.records import PlantedFault, Repeated, RunCell, StoredArray
from audit.storage.store import Store

PLANTED = 1e-6
"""By which the control moves a constant, relatively."""

AGAIN, PLANT = "again", "planted"

OTHER_SHAPE = "with a fault planted, the release records another shape than without"

_FORCED_AGAIN = 64
_TRAJECTORIES_AGAIN = 1

_STANDS_OUT = frozenset({Verdict.CHANGED, UNEXPLAINED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """What the controls of an environment came to."""

    reproduced: Repeated = Repeated.UNKNOWN
    planted: PlantedFault = PlantedFault.UNKNOWN
    constant: str = ""
    ratio: float | None = None
    reason: str = ""

    @property
    def blind(self) -> bool:
        """Whether a fault that was there has not been seen."""
        return self.planted is PlantedFault.MISSED


def baselines(cells: Sequence[Cell], drawn: Mapping[str, DrawnEnvironment]) -> dict[str, Cell]:
    """The cell of each environment on which its controls are run."""
    return {
        cell.environment.title: cell
        for cell in cells
        if cell.environment.title in drawn and drawn[cell.environment.title].baseline == cell.release.id
    }


def recordings(cells: Mapping[str, Cell], drawn: Mapping[str, DrawnEnvironment]) -> list[Recording]:
    """A planted fault for each baseline whose states can be forced."""
    forced = ((cell, drawn[title].forced) for title, cell in cells.items())
    return [planted(cell, batch, PLANTED) for cell, batch in forced if batch is not None]


def again(cell: Cell, drawn: DrawnEnvironment) -> Recording:
    """A sample of everything, for another process of the same release."""
    batches: dict[str, Batch] = {}
    if drawn.horizon is not None:
        batches["horizon"] = drawn.horizon.chosen(slice(0, _TRAJECTORIES_AGAIN))
    if drawn.forced is not None:
        batches["forced"] = drawn.forced.chosen(_sample(len(drawn.forced.starts)))
    return Recording(
        cell=cell, stimulus=stimulus.assemble(batches, rows=drawn.known.layout.rows), purpose=AGAIN, apart=True
    )


def planted(cell: Cell, forced: Batch, relative: float, constant: str | None = None) -> Recording:
    """The forced steps alone, with a constant moved."""
    return Recording(
        cell=cell,
        stimulus=stimulus.assemble({"forced": forced}, resets=0),
        purpose=f"{PLANT} {relative:g}",
        plant=Plant(factor=1.0 + relative, name=constant),
    )


def _sample(count: int) -> NDArray[np.int64]:
    return np.unique(np.linspace(0, count - 1, min(count, _FORCED_AGAIN)).astype(np.int64))


def suspects(cells: Sequence[RunCell], verdicts: Mapping[Pair, str], baselines: Mapping[str, str]) -> list[RunCell]:
    """Cells whose behaviour no other release shows, and that are a baseline or stand in a pair that stands out.

    Two releases that show one behaviour have reproduced each other.
    """
    shown = Counter((cell.environment, cell.behaviour) for cell in cells)
    standing_out = {behaviour for pair, verdict in verdicts.items() if verdict in _STANDS_OUT for behaviour in pair}
    return [
        cell
        for cell in cells
        if cell.behaviour is not None
        and shown[cell.environment, cell.behaviour] == 1
        and (cell.behaviour in standing_out or baselines[cell.environment] == cell.release)
    ]


def difference(first: str, second: str, drawn: DrawnEnvironment, store: Store) -> str:
    """What differs between a behaviour and its sample, ``second``; empty where the release reproduced itself."""
    whole, sample = store.outputs(first), store.outputs(second)
    for name, array in sorted(sample.items()):
        if not _same(whole[name], array, name, drawn, store):
            return name
    return ""


def _same(whole: StoredArray, sample: StoredArray, name: str, drawn: DrawnEnvironment, store: Store) -> bool:
    batch = name.partition(".")[0]
    rows: NDArray[np.int64] | slice = slice(None)
    if batch == "horizon":
        rows = slice(0, _TRAJECTORIES_AGAIN)
    elif batch == "forced" and drawn.forced is not None:
        rows = _sample(len(drawn.forced.starts))
    one, other = store.arrays.get(whole.digest)[rows], store.arrays.get(sample.digest)
    return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()


def evaluate(
    cells: Mapping[str, Cell],
    drawn: Mapping[str, DrawnEnvironment],
    rows: Sequence[RunCell],
    dumped: Mapping[str, Dumped],
    store: Store,
) -> dict[str, Control]:
    """Read the controls of every environment from the dumps of its baseline."""
    return {title: _evaluate(cell, drawn[title], rows, dumped, store) for title, cell in cells.items()}


def _evaluate(
    cell: Cell, drawn: DrawnEnvironment, rows: Sequence[RunCell], dumped: Mapping[str, Dumped], store: Store
) -> Control:
    base = dumped.get(cell.identifier)
    if base is None or base.record.behaviour is None:
        return Control(reason="the baseline has no dump")
    reproduced, reason = Repeated.YES, ""
    if not any(row.behaviour == base.record.behaviour and row.identifier != cell.identifier for row in rows):
        again_dumped = dumped.get(again(cell, drawn).identifier)
        reproduced, reason = _reproduced(base.record.behaviour, again_dumped, drawn, store)
    if drawn.forced is None:
        return Control(reproduced=reproduced, reason=reason or "nothing can be planted in this kind of environment")
    found = dumped.get(planted(cell, drawn.forced, PLANTED).identifier)
    if found is None or found.record.behaviour is None:
        told = found.record.reason if found is not None else "the control could not be run"
        return Control(reproduced=reproduced, reason="; ".join(filter(None, (reason, f"nothing planted: {told}"))))
    reading = planted_reading(base.record.behaviour, found.record.behaviour, store)
    if reading is None:
        return Control(reproduced=reproduced, reason="; ".join(filter(None, (reason, OTHER_SHAPE))))
    return Control(
        reproduced=reproduced,
        planted=PlantedFault.SEEN if reading.ratio >= THRESHOLD else PlantedFault.MISSED,
        constant=str(store.description(found.key).get("planted", "")),
        ratio=reading.ratio,
        reason=reason,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PlantedReading:
    """How a planted fault shows on the forced states."""

    ratio: float
    beyond: int
    states: int


def planted_reading(base: str, moved: str, store: Store) -> PlantedReading | None:
    """Read a behaviour against one of the same release with a fault planted, over all outputs of a step.

    Nothing where the release records another shape this time: then it is not the planted fault that would be seen.
    """
    whole, other = store.outputs(base), store.outputs(moved)
    names = [f"forced.{output}" for output in comparing.STEP_OUTPUTS]
    if any(whole[name].shape != other[name].shape for name in names):
        return None
    ratios = np.zeros(whole["forced.reward"].shape[0])
    for output in comparing.STEP_OUTPUTS:
        name = f"forced.{output}"
        if whole[name].digest != other[name].digest:
            value, copies, planted_value = (
                store.arrays.get(digest)
                for digest in (whole[name].digest, whole[f"nudged.{output}"].digest, other[name].digest)
            )
            reading = yardstick.read(Forced.of(value, copies), Forced.of(planted_value))
            ratios = np.maximum(ratios, reading.ratios)
    return PlantedReading(
        ratio=float(ratios.max(initial=0.0)), beyond=int((ratios >= THRESHOLD).sum()), states=len(ratios)
    )


def _reproduced(behaviour: str, found: Dumped | None, drawn: DrawnEnvironment, store: Store) -> tuple[Repeated, str]:
    if found is not None and found.record.status is Status.NONDETERMINISTIC:
        return Repeated.NO, found.record.reason
    if found is None or found.record.behaviour is None:
        return Repeated.UNKNOWN, "it could not be run again"
    differs = difference(behaviour, found.record.behaviour, drawn, store)
    if not differs:
        return Repeated.YES, ""
    return Repeated.NO, f"{differs} differs between two processes of this release"


def void(
    rows: Sequence[RunCell],
    suspects: Mapping[str, Recording],
    dumped: Mapping[str, Dumped],
    drawn: Mapping[str, DrawnEnvironment],
    store: Store,
) -> list[RunCell]:
    """The cells, without the behaviours of those among ``suspects`` (by cell) that did not reproduce themselves."""
    voided: dict[str, str] = {}
    for row in rows:
        sample = suspects.get(row.identifier)
        if sample is None:
            continue
        reproduced, reason = _reproduced(
            str(row.behaviour), dumped.get(sample.identifier), drawn[row.environment], store
        )
        if reproduced is Repeated.NO:
            voided[row.identifier] = reason
    return [
        replace(row, status=Status.NONDETERMINISTIC, reason=voided[row.identifier], behaviour=None)
        if row.identifier in voided
        else row
        for row in rows
    ]
