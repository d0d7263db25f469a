"""The laws stage: every changed pair whose environment has laws is held against them.

Both releases are run once more, undriven and from states that excite the laws, as shipped and, where a set says how,
with the integrator's own error resolved. Then: which law does one break that the other keeps, and which constant of the
specification does each of them speak of.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from analysis.algebra import diagnosis, screening
from analysis.algebra.attribution import Attribution
from analysis.algebra.errors import BadData
from analysis.algebra.screening import Screen
from analysis.verdicts import Verdict
from audit.comparisons import comparing
from audit.digests import digest
from audit.dumps import dumping
from audit.failures import Failure, Status
from audit.laws.reference_file import ReferenceFile, Setting
from audit.planning.drawing import DrawnEnvironment
from audit.planning.plan import Cell, Recording
from audit.stimuli import starts, stimulus
from audit.stimuli.starts import Undrawable
from audit.storage.records import AttributionRecord, RunCell, RunRecord, ScreeningRecord
from audit.storage.store import Store
from audit.tools import Tools

Floats = NDArray[np.float64]

RULE = "laws-4"
"""Changes when screening or attribution would come to another answer on the same data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionedBehaviour:
    """A behaviour that stands in a changed pair, and a cell that shows it."""

    cell: Cell
    behaviour: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _LawQuestion:
    """One behaviour under one setting of one reference set."""

    of: QuestionedBehaviour
    laws: ReferenceFile
    setting: Setting
    recording: Recording

    @property
    def is_last(self) -> bool:
        """Whether it is the setting in which constants are read."""
        return self.setting == self.laws.settings[-1]


def diagnose(
    rows: Sequence[RunCell],
    cells: Sequence[Cell],
    run: RunRecord,
    drawn: Mapping[str, DrawnEnvironment],
    references: Sequence[ReferenceFile],
    tools: Tools,
) -> tuple[Failure, ...]:
    """Hold every changed pair against the laws of its environment; keep what comes of it. Return what failed."""
    pairs = _changed(rows, cells, run, tools.store)
    tools.store.laws.hold(run.run_id, [each.digest for each in references])
    unheld: list[Failure] = []
    asked = list(_asked(pairs, drawn, references, unheld))
    if not asked:
        return tuple(_once_each(unheld))
    dumps = dumping.dump(list({each.recording.identifier: each.recording for each in asked}.values()), {}, tools)
    recorded = {
        each.recording.identifier: found.record.behaviour
        for each in asked
        if (found := dumps.dumped.get(each.recording.identifier)) is not None and found.record.behaviour is not None
    }
    for each in asked:
        found = dumps.dumped.get(each.recording.identifier)
        if found is not None and found.record.behaviour is None and found.record.status is not Status.RAISED:
            unheld.append(
                _unheld(each.of, each.laws, f"{found.record.status} at {each.setting.name}: {found.record.reason}")
            )
    unheld += _screen(pairs, asked, recorded, tools)
    _attribute(asked, recorded, tools)
    return (*dumps.failures, *_once_each(unheld))


def _once_each(unheld: Sequence[Failure]) -> list[Failure]:
    """One failure a cell, with all reasons."""
    reasons: dict[str, dict[str, None]] = {}
    for each in unheld:
        reasons.setdefault(each.subject, {})[each.reason] = None
    return [
        Failure(subject=subject, stage="laws", status=Status.UNHELD, reason="; ".join(told))
        for subject, told in reasons.items()
    ]


def _unheld(of: QuestionedBehaviour, laws: ReferenceFile, reason: str) -> Failure:
    """A release that could not be held against laws that are there: a person has to know."""
    return Failure(subject=of.cell.identifier, stage="laws", status=Status.UNHELD, reason=f"{laws.laws.name}: {reason}")


def _changed(
    rows: Sequence[RunCell], cells: Sequence[Cell], run: RunRecord, store: Store
) -> list[tuple[QuestionedBehaviour, QuestionedBehaviour]]:
    of = {cell.identifier: cell for cell in cells}
    showing: dict[str, QuestionedBehaviour] = {}
    for row in rows:
        if row.behaviour is not None:
            showing.setdefault(row.behaviour, QuestionedBehaviour(cell=of[row.identifier], behaviour=row.behaviour))
    verdicts = store.comparisons.verdicts(run.reads)
    wanted = comparing.wanted(rows, run.pairing, run.against)
    return [(showing[one], showing[other]) for one, other in wanted if verdicts.get((one, other)) == Verdict.CHANGED]


def _asked(
    pairs: Iterable[tuple[QuestionedBehaviour, QuestionedBehaviour]],
    drawn: Mapping[str, DrawnEnvironment],
    references: Sequence[ReferenceFile],
    unheld: list[Failure],
) -> Iterable[_LawQuestion]:
    for questioned in {each.behaviour: each for pair in pairs for each in pair}.values():
        row = questioned.cell.environment
        known = drawn[row.title].known.layout
        if known.evidence != "forced":
            continue
        for laws in references:
            if not laws.speaks_of(row):
                continue
            coast = row.coast if laws.row.coast is None else laws.row.coast
            undriven = row.model_copy(update={"start": None, "steps": None, "trajectories": None, "coast": coast})
            for setting in laws.settings:
                try:
                    batch = starts.horizon(laws.stimulus(setting), undriven, known)
                except Undrawable as error:
                    unheld.append(_unheld(questioned, laws, str(error)))
                    continue
                given = stimulus.assemble({"horizon": batch}, resets=0)
                yield _LawQuestion(
                    of=questioned,
                    laws=laws,
                    setting=setting,
                    recording=Recording(
                        cell=questioned.cell.edited(setting.edits),
                        stimulus=given,
                        purpose=f"undriven {setting.name} {given.digest[:8]}",
                    ),
                )


def _screen(
    pairs: Sequence[tuple[QuestionedBehaviour, QuestionedBehaviour]],
    asked: Sequence[_LawQuestion],
    recorded: Mapping[str, str],
    tools: Tools,
) -> list[Failure]:
    """Each of a pair against the other, in both directions: the older may be the one that is wrong."""
    there = tools.store.laws.screened()
    by = {(each.of.behaviour, each.laws.laws.name, each.setting.name): each for each in asked}
    waiting: list[tuple[_LawQuestion, _LawQuestion, str]] = []
    for reference, tested in (order for pair in pairs for order in permutations(pair)):
        for (behaviour, laws, setting), one in by.items():
            other = by.get((tested.behaviour, laws, setting))
            names = one.recording.identifier, other.recording.identifier if other is not None else ""
            if behaviour == reference.behaviour and other is not None and all(name in recorded for name in names):
                both = reference.behaviour, tested.behaviour  # which another stimulus has others of
                key = digest(RULE, one.laws.digest, setting, *both, *(recorded[name] for name in names))
                if key not in there:
                    waiting.append((one, other, key))
    unheld: list[Failure] = []
    if waiting:
        with tools.reporter.stage("screening", len(waiting)) as done:
            for one, other, key in waiting:
                unheld += _screen_one(one, other, key, recorded, tools.store)
                done(f"{other.recording.cell.identifier}: {one.laws.laws.name}")
    return unheld


def _screen_one(
    one: _LawQuestion, other: _LawQuestion, key: str, recorded: Mapping[str, str], store: Store
) -> list[Failure]:
    """Keep what comes of it. A release without the columns that the laws speak of cannot be held against them."""
    samples = []
    for each in (one, other):
        try:
            samples.append(_samples(each, recorded, store))
        except BadData as error:
            return [_unheld(each.of, each.laws, str(error))]
    store.laws.put_screenings(_screenings(one, other, screening.screen(one.laws.laws, *samples), key))
    return []


def _screenings(one: _LawQuestion, other: _LawQuestion, found: Screen, key: str) -> list[ScreeningRecord]:
    return [
        ScreeningRecord(
            reference_behaviour=one.of.behaviour,
            tested_behaviour=other.of.behaviour,
            laws=one.laws.laws.name,
            laws_digest=one.laws.digest,
            setting=one.setting.name,
            law=each.law,
            reference_residual=each.reference,
            tested_residual=each.tested,
            ratio=each.ratio,
            p=each.p,
            broken=each.broken,
            attainable=found.attainable,
            key=key,
        )
        for each in found.laws
    ]


def _attribute(asked: Sequence[_LawQuestion], recorded: Mapping[str, str], tools: Tools) -> None:
    there = tools.store.laws.attributed()
    waiting = []
    for each in asked:
        behaviour = recorded.get(each.recording.identifier)
        key = digest(RULE, each.laws.digest, each.setting.name, str(behaviour), each.of.behaviour)
        if each.is_last and behaviour is not None and key not in there and each.laws.row.parameters:
            waiting.append((each, key))
    if waiting:
        with tools.reporter.stage("attributing", len(waiting)) as done:
            for each, key in waiting:
                _attribute_one(each, key, recorded, tools.store)
                done(f"{each.recording.cell.identifier}: {each.laws.laws.name}")


def _attribute_one(each: _LawQuestion, key: str, recorded: Mapping[str, str], store: Store) -> None:
    try:
        found = diagnosis.diagnose(each.laws.laws, _samples(each, recorded, store))
    except BadData:
        return
    store.laws.put_attributions([_attribution(each, law, key) for law in found.attributions])


def _attribution(each: _LawQuestion, found: Attribution, key: str) -> AttributionRecord:
    first = found.explanations[0] if found.explanations else None
    values = first.values if first is not None else ()
    return AttributionRecord(
        behaviour=each.of.behaviour,
        laws=each.laws.laws.name,
        laws_digest=each.laws.digest,
        setting=each.setting.name,
        law=found.law,
        verdict=str(found.verdict),
        explanation=found.told if found.explanations else "",
        parameters=[value.parameter for value in values],
        fitted=[value.fitted for value in values],
        specified=[value.specified for value in values],
        residual=first.residual if first is not None else None,
        gap=found.gap,
        reason=found.reason,
        key=key,
    )


def _samples(each: _LawQuestion, recorded: Mapping[str, str], store: Store) -> list[Floats]:
    """The variables of the laws along every trajectory; single steps are poses, and are taken together."""
    outputs = store.outputs(recorded[each.recording.identifier])
    state, observation = (store.arrays.get(outputs[f"horizon.{name}"].digest) for name in ("state", "observation"))
    if each.setting.steps == 1:
        state, observation = (values.swapaxes(0, 1) for values in (state, observation))
    return [
        each.laws.laws.samples({"state": one, "observation": other.reshape(len(other), -1).astype(np.float64)})
        for one, other in zip(state, observation, strict=True)
    ]
