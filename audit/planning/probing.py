"""The probing stage: for each environment, ask the first release that has it what its states and actions look like."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from audit.failures import Failure
from audit.planning import asking
from audit.planning.asking import Answers, Question
from audit.planning.plan import Cell
from audit.processes.answers import CellAnswer
from audit.stimuli.layout import Layout
from audit.storage.records import ProbeRecord
from audit.storage.store import Store
from audit.tools import Tools


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownLayout:
    """An environment whose layout some release told."""

    cell: Cell
    """The release that told it, which is the environment's baseline."""
    layout: Layout


@dataclass(frozen=True, slots=True, kw_only=True)
class Layouts:
    """What the stage came to."""

    known: Mapping[str, KnownLayout]
    failures: tuple[Failure, ...]
    """Of environments that no release could tell about, and of processes that failed before another release told."""
    unbuilt: Mapping[str, Failure]
    """Releases that were to be asked and could not be built."""


def known_layouts(cells: Sequence[Cell], baseline: str | None, store: Store) -> dict[str, KnownLayout]:
    """The layouts that can be told without asking a release."""
    return _known(asking.known(queues(cells, baseline), _question(store)))


def probe(cells: Sequence[Cell], baseline: str | None, tools: Tools) -> Layouts:
    """Find every environment's layout."""
    answers = asking.ask(queues(cells, baseline), _question(tools.store), tools)
    return Layouts(
        known=_known(answers),
        failures=tuple(each for failures in answers.failures.values() for each in failures),
        unbuilt=answers.unbuilt,
    )


def queues(cells: Sequence[Cell], baseline: str | None) -> dict[str, list[Cell]]:
    """Whom to ask about each environment: the release that is to be the baseline, then the oldest."""
    waiting: dict[str, list[Cell]] = {}
    for cell in sorted(cells, key=lambda cell: cell.release.id != baseline):
        waiting.setdefault(cell.environment.title, []).append(cell)
    return waiting


def _known(answers: Answers[Layout]) -> dict[str, KnownLayout]:
    return {title: KnownLayout(cell=answers.by[title], layout=layout) for title, layout in answers.told.items()}


def _question(store: Store) -> Question[Layout]:
    def recall(cell: Cell) -> Layout | Failure | None:
        known = store.probe(cell.probe_key)
        if known is None:
            return None
        if known.layout is None:
            return Failure(subject=cell.identifier, stage="probe", status=known.status, reason=known.reason)
        return Layout.from_json(known.layout)

    def keep(cell: Cell, answer: CellAnswer) -> Failure | None:
        store.put_probe(cell.probe_key, ProbeRecord.of(answer))
        return None

    return Question(
        stage="probing",
        asked=lambda cell: cell.asked("probe"),
        recall=recall,
        keep=keep,
        key=lambda cell: cell.probe_key,
        together=True,
    )
