"""The drawing stage: layouts to stimuli. The bank of each environment is made on its baseline, once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from audit.asked.matrix_file import MatrixFile
from audit.asked.stimulus_spec import BankSpec
from audit.failures import Failure, Status
from audit.planning import asking, banks, probing
from audit.planning.asking import Answers, Question
from audit.planning.banks import BankRequest
from audit.planning.plan import Cell
from audit.planning.probing import KnownLayout
from audit.processes.answers import CellAnswer
from audit.stimuli import starts, stimulus
from audit.stimuli.bank import Bank, Coverage
from audit.stimuli.starts import Undrawable
from audit.stimuli.stimulus import Batch, Stimulus
from audit.storage.store import Store
from audit.tools import Tools

BASELINES_TRIED = 3
"""Releases that are asked for a bank before an environment is given up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnEnvironment:
    """Everything that is known of one environment before it is dumped."""

    known: KnownLayout
    horizon: Batch | None
    """``None`` for a table."""
    forced: Batch | None
    """``None`` where states cannot be imposed, or need not be."""
    source: NDArray[np.uint8]
    """Where each forced state comes from: its place in ``bank.SOURCES``."""
    stimulus: Stimulus
    coverage: Coverage | None
    baseline: str
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stimuli:
    """By environment: what was drawn, and why nothing could be."""

    drawn: Mapping[str, DrawnEnvironment]
    undrawable: Mapping[str, Failure]
    """Of each of its cells; the machine's fault where that was the reason."""
    failures: tuple[Failure, ...] = ()
    """Of processes that were to make a bank."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sketch:
    """An environment whose trajectories are drawn and whose bank is not made yet."""

    known: KnownLayout
    spec: BankSpec
    horizon: Batch
    request: BankRequest | None
    """``None`` where no release has to be asked."""


def draw(file: MatrixFile, cells: Sequence[Cell], known: Mapping[str, KnownLayout], tools: Tools) -> Stimuli:
    """Draw the stimulus of every environment whose layout is known."""
    sketches, tables, reasons = _sketch(file, known)
    question = _question(sketches, tools.store)
    banks = asking.ask(_queues(file, cells, sketches), question, tools)
    return _stimuli(file, sketches, tables, reasons, banks)


def extended(drawn: DrawnEnvironment, more: Batch, spec: BankSpec) -> DrawnEnvironment:
    """With forced states besides its own, where they fit."""
    own = drawn.forced
    if own is None or drawn.horizon is None or own.starts.shape[1:] != more.starts.shape[1:]:
        return drawn
    if (own.actions.shape[1:], own.actions.dtype) != (more.actions.shape[1:], more.actions.dtype):
        return drawn
    forced = Batch(
        starts=np.concatenate([own.starts, more.starts]), actions=np.concatenate([own.actions, more.actions])
    )
    batches = {"horizon": drawn.horizon, "forced": forced, "nudged": stimulus.nudged(forced, spec.nudges, spec.seed)}
    source = np.concatenate([drawn.source, np.zeros(len(more.starts), dtype=np.uint8)])
    return replace(drawn, forced=forced, source=source, stimulus=stimulus.assemble(batches, source=source))


def known_stimuli(file: MatrixFile, cells: Sequence[Cell], store: Store) -> Stimuli:
    """What can be drawn without asking a release."""
    known = probing.known_layouts(cells, file.matrix.baseline, store)
    sketches, tables, reasons = _sketch(file, known)
    banks = asking.known(_queues(file, cells, sketches), _question(sketches, store))
    return _stimuli(file, sketches, tables, reasons, banks)


def _sketch(
    file: MatrixFile, known: Mapping[str, KnownLayout]
) -> tuple[dict[str, _Sketch], dict[str, KnownLayout], dict[str, str]]:
    sketches: dict[str, _Sketch] = {}
    tables: dict[str, KnownLayout] = {}
    reasons: dict[str, str] = {}
    for title, each in known.items():
        if each.layout.evidence == "table":
            tables[title] = each
            continue
        row = each.cell.environment
        spec = row.bank or file.matrix.bank
        try:
            horizon = starts.horizon(file.matrix.stimulus, row, each.layout)
            asked = None
            if each.layout.evidence == "forced" and (spec.states or spec.file):
                asked = banks.request(spec, horizon, each.layout, file.path.parent)
        except Undrawable as error:
            reasons[title] = str(error)
            continue
        sketches[title] = _Sketch(known=each, spec=spec, horizon=horizon, request=asked)
    return sketches, tables, reasons


def _queues(file: MatrixFile, cells: Sequence[Cell], sketches: Mapping[str, _Sketch]) -> dict[str, list[Cell]]:
    """Whom to ask for each bank: the release that told the layout, then the next."""
    waiting = probing.queues(cells, file.matrix.baseline)
    asked = {title: each.known.cell for title, each in sketches.items() if each.request is not None}
    return {
        title: [cell, *(other for other in waiting[title] if other.release.id != cell.release.id)][:BASELINES_TRIED]
        for title, cell in asked.items()
    }


def _question(sketches: Mapping[str, _Sketch], store: Store) -> Question[Bank]:
    def asked(cell: Cell) -> BankRequest:
        found = sketches[cell.environment.title].request
        assert found is not None
        return found

    def recall(cell: Cell) -> Bank | Failure | None:
        request = asked(cell)
        known = store.bank(cell.bank_key(request.payload))
        if known is None or isinstance(known, Bank):
            return known
        if known[0] is Status.DAMAGED:  # from an earlier checkout, which kept what has to be counted
            return None
        return _no_bank(cell, *known)

    def keep(cell: Cell, answer: CellAnswer) -> Failure | None:
        request = asked(cell)
        made: Bank | tuple[Status, str] = answer.status, answer.reason
        if answer.status is Status.OK:
            try:
                made = banks.of_answer(answer, request, sketches[cell.environment.title].known.layout)
            except Undrawable as error:
                return _no_bank(cell, Status.DAMAGED, str(error))
        store.put_bank(cell.bank_key(request.payload), made)
        return None

    return Question(
        stage="filling banks",
        asked=lambda cell: cell.asked("bank", asked(cell).payload),
        recall=recall,
        keep=keep,
        key=lambda cell: cell.bank_key(asked(cell).payload),
        together=False,
    )


def _stimuli(
    file: MatrixFile,
    sketches: Mapping[str, _Sketch],
    tables: Mapping[str, KnownLayout],
    reasons: Mapping[str, str],
    banks: Answers[Bank],
) -> Stimuli:
    seed = file.matrix.stimulus.seed
    undrawable = {title: _undrawable(title, Status.UNDRAWABLE, reason) for title, reason in reasons.items()}
    drawn: dict[str, DrawnEnvironment] = {}
    for title, known in tables.items():
        drawn[title] = DrawnEnvironment(
            known=known,
            horizon=None,
            forced=None,
            source=np.empty(0, dtype=np.uint8),
            stimulus=stimulus.assemble({}, rows=known.layout.rows),
            coverage=None,
            baseline=known.cell.release.id,
            seed=seed,
        )
    for title, sketch in sketches.items():
        if sketch.request is not None and title not in banks.told:
            undrawable[title] = _without_bank(title, banks.failures.get(title, ()))
            continue
        drawn[title] = _drawn(sketch, banks.told.get(title), banks.by.get(title), seed)
    mishaps = tuple(each for failures in banks.failures.values() for each in failures)
    return Stimuli(drawn=drawn, undrawable=undrawable, failures=mishaps)


def _no_bank(cell: Cell, status: Status, reason: str) -> Failure:
    return Failure(subject=cell.identifier, stage="bank", status=status, reason=reason)


def _undrawable(title: str, status: Status, reason: str) -> Failure:
    return Failure(subject=title, stage="draw", status=status, reason=reason)


def _without_bank(title: str, failures: Sequence[Failure]) -> Failure:
    """Why an environment has no bank. Where the machine failed at a release, that one might have made it."""
    machine = [each for each in failures if each.is_infrastructure]
    first = next(iter([*machine, *failures]), None)
    told = first.reason if first is not None else "no release could be asked"
    status = first.status if first is not None and machine else Status.UNDRAWABLE
    return _undrawable(title, status, f"its bank of states could not be made: {told}")


def _drawn(sketch: _Sketch, made: Bank | None, by: Cell | None, seed: int) -> DrawnEnvironment:
    layout = sketch.known.layout
    batches = {"horizon": sketch.horizon}
    forced, source = None, None
    if layout.evidence == "forced":
        made = made or banks.of_starts(sketch.horizon, layout)
        forced, source = made.batch, made.source
        batches |= {"forced": forced, "nudged": stimulus.nudged(forced, sketch.spec.nudges, sketch.spec.seed)}
    return DrawnEnvironment(
        known=sketch.known,
        horizon=sketch.horizon,
        forced=forced,
        source=np.empty(0, dtype=np.uint8) if source is None else source,
        stimulus=stimulus.assemble(batches, source=source),
        coverage=made.coverage if made is not None else None,
        baseline=(by or sketch.known.cell).release.id,
        seed=seed,
    )
