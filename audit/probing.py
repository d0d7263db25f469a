"""The probing stage: for each environment, ask the first release that has it what its states and actions look like."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from audit import building, dumper_process, plan
from audit.dumper_process import CellOutcome, DumpJob
from audit.failures import Failure
from audit.layout import Layout
from audit.matrix import EnvironmentRow
from audit.plan import Cell
from audit.records import ProbeRecord
from audit.store import Store
from audit.tools import Tools, at_once

PROBES_AT_ONCE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownLayout:
    """An environment whose layout some release told."""

    environment: EnvironmentRow
    layout: Layout


@dataclass(frozen=True, slots=True, kw_only=True)
class Layouts:
    """What the stage came to."""

    known: Mapping[str, KnownLayout]
    failures: tuple[Failure, ...]
    """Of environments that no release could tell about."""
    unbuilt: Mapping[str, Failure]
    """Releases that were to be asked and could not be built."""


@dataclass(slots=True, kw_only=True)
class _Search:
    """One environment's way through its releases, oldest first, to the first that can tell."""

    waiting: list[Cell]
    found: KnownLayout | None = None
    failures: list[Failure] = field(default_factory=list)

    def advance(self, store: Store, unbuilt: Collection[str]) -> Cell | None:
        """Use what is known; return the release to be asked next, if one has to be."""
        while self.waiting and self.found is None:
            cell = self.waiting[0]
            known = store.probe(cell.probe_key)
            if known is None and cell.release.id not in unbuilt:
                return cell
            self.waiting.pop(0)
            if known is not None and known.layout is not None:
                self.found = KnownLayout(environment=cell.environment, layout=Layout.from_json(known.layout))
            elif known is not None:
                self.failures.append(
                    Failure(subject=cell.identifier, stage="probe", status=known.status, reason=known.reason)
                )
        return None


def known_layouts(cells: Sequence[Cell], store: Store) -> dict[str, KnownLayout]:
    """The layouts that can be told without asking a release."""
    searches = _searches(cells)
    for search in searches.values():
        search.advance(store, ())
    return {title: search.found for title, search in searches.items() if search.found is not None}


def probe(cells: Sequence[Cell], tools: Tools) -> Layouts:
    """Find every environment's layout."""
    searches = _searches(cells)
    unbuilt: dict[str, Failure] = {}
    while True:
        steps = (search.advance(tools.store, unbuilt) for search in searches.values())
        asked = [cell for cell in steps if cell is not None]
        if not asked:
            break
        unbuilt |= building.build([cell.release for cell in asked], tools.reporter)
        _ask([cell for cell in asked if cell.release.id not in unbuilt], searches, tools)
    return Layouts(
        known={title: search.found for title, search in searches.items() if search.found is not None},
        failures=tuple(each for search in searches.values() if search.found is None for each in search.failures),
        unbuilt=unbuilt,
    )


def _searches(cells: Sequence[Cell]) -> dict[str, _Search]:
    searches: dict[str, _Search] = {}
    for cell in cells:
        searches.setdefault(cell.environment.title, _Search(waiting=[])).waiting.append(cell)
    return searches


def _ask(asked: Sequence[Cell], searches: Mapping[str, _Search], tools: Tools) -> None:
    """Run one round of probes. Answers go into the store; a release whose process failed is passed over.

    A probe is a fraction of a second for one release per environment, so it is run here. What follows it is not, so the
    workers can start meanwhile.
    """
    if not asked:
        return
    tools.runner.prepare()
    by_name = {cell.identifier: cell for cell in asked}
    with tools.reporter.stage("probing", len(asked)) as done:
        for _, outcomes in at_once(_run, plan.jobs("probe", asked, {}, tools.timeout), PROBES_AT_ONCE):
            for outcome in outcomes:
                cell = by_name[outcome.identifier]
                if isinstance(outcome.result, Failure):
                    search = searches[cell.environment.title]
                    search.failures.append(outcome.result)
                    search.waiting.pop(0)
                else:
                    tools.store.put_probe(cell.probe_key, ProbeRecord.of(outcome.result))
                done(cell.identifier)


def _run(job: DumpJob) -> list[CellOutcome]:
    return list(dumper_process.run(job))
