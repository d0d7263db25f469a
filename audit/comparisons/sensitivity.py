"""How small a change would have been seen: one constant of the baseline moved by ever less, on the same states."""

from __future__ import annotations

from dataclasses import dataclass

from analysis.yardstick import THRESHOLD
from audit.asked import attachments
from audit.asked.matrix_file import MatrixFile
from audit.comparisons import controls
from audit.dumps import dumping
from audit.planning import assigning, drawing, plan, probing, releasing
from audit.planning.plan import Recording
from audit.storage.records import SensitivityRecord, now
from audit.tools import Tools

MAGNITUDES = tuple(10.0**-power for power in range(12, 0, -1))
"""By which a constant is moved, relatively."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """What was found of one environment."""

    environment: str
    constant: str
    ratios: tuple[float | None, ...]
    """For each magnitude; ``None`` where it could not be run."""
    reason: str

    @property
    def seen_from(self) -> str:
        """In words: the smallest magnitude, or that there is none, or nothing where nothing could be planted."""
        if all(ratio is None for ratio in self.ratios):
            return ""
        return f"{self.smallest:.0e}" if self.smallest is not None else "never"

    @property
    def smallest(self) -> float | None:
        """The smallest magnitude from which on every larger one is seen."""
        found = None
        for magnitude, ratio in zip(reversed(MAGNITUDES), reversed(self.ratios), strict=True):
            if ratio is None or ratio < THRESHOLD:
                break
            found = magnitude
        return found


def measure(file: MatrixFile, tools: Tools) -> list[Sensitivity]:
    """Plant faults of every magnitude in the baseline of every environment that can be forced."""
    requests = releasing.expand(file, tools.reporter)
    resolved, _ = releasing.resolve(requests, tools.reporter)
    cells = plan.cells(file.matrix, requests, resolved, attachments.read(file))
    layouts = probing.probe(cells, file.matrix.baseline, tools)
    drawn = drawing.draw(file, cells, layouts.known, tools).drawn
    baselines = controls.baselines(assigning.assign(cells, drawn, tools), drawn)
    forced = {title: batch for title in baselines if (batch := drawn[title].forced) is not None}
    bases = {title: Recording(cell=baselines[title], stimulus=drawn[title].stimulus) for title in forced}
    planted = {
        title: [controls.planted(baselines[title], forced[title], magnitude) for magnitude in MAGNITUDES]
        for title in forced
    }
    every = [*bases.values(), *(each for group in planted.values() for each in group)]
    dumps = dumping.dump(every, layouts.unbuilt, tools)
    tools.runner.finish()
    return [_measured(file.matrix.name, bases[title], planted[title], dumps, tools) for title in forced]


def _measured(
    matrix: str, base: Recording, planted: list[Recording], dumps: dumping.Dumps, tools: Tools
) -> Sensitivity:
    store = tools.store
    whole = dumps.dumped.get(base.identifier)
    ratios: list[float | None] = []
    constant, reason = "", ""
    records = []
    for magnitude, recording in zip(MAGNITUDES, planted, strict=True):
        found = dumps.dumped.get(recording.identifier)
        if whole is None or whole.record.behaviour is None or found is None or found.record.behaviour is None:
            ratios.append(None)
            reason = found.record.reason if found is not None else "the baseline could not be dumped"
            continue
        reading = controls.planted_reading(whole.record.behaviour, found.record.behaviour, store)
        if reading is None:
            ratios.append(None)
            reason = controls.OTHER_SHAPE
            continue
        constant = str(store.description(found.key).get("planted", ""))
        ratios.append(reading.ratio)
        records.append(
            SensitivityRecord(
                matrix=matrix,
                environment=base.cell.environment.title,
                release=base.cell.release.id,
                constant=constant,
                relative=magnitude,
                ratio=reading.ratio,
                states_beyond=reading.beyond,
                states=reading.states,
                detected=reading.ratio >= THRESHOLD,
                measured=now(),
            )
        )
    store.comparisons.put_sensitivity(records)
    return Sensitivity(environment=base.cell.environment.title, constant=constant, ratios=tuple(ratios), reason=reason)
