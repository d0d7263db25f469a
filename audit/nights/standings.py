"""What a run's changes stand for: which are new, which are known, which are accepted, and what could not be looked at.

A change is one between neighbours: a release and the one before it in its series, or the same requirements in two
series. A release is held against the baseline too, because small steps may add up: where it differs from the baseline,
its predecessor did not, and nothing changed between the two, that is a change as well.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile

from analysis.verdicts import Verdict
from audit.comparisons import comparing
from audit.failures import BREAKAGE, INFRASTRUCTURE, Status
from audit.nights.waivers import Boundary, Waivers
from audit.reports.summaries.value import NotAudited
from audit.storage.records import Finding, NightChange, Standing
from audit.storage.store import Store

_TOLD_AS = {
    **dict.fromkeys(BREAKAGE, Finding.BROKEN),
    Status.INCOMPARABLE: Finding.INCOMPARABLE,
    Status.NONDETERMINISTIC: Finding.NONDETERMINISTIC,
}
"""What is said of a cell without a behaviour, by its status, where the release before it had one. Such a release has
the environment, and does worse than change it; one that has it no longer is told among what could not be audited."""

_DIFFERENT = {Verdict.CHANGED: Finding.CHANGED, Verdict.INCOMPARABLE: Finding.INCOMPARABLE}
"""What is said of two behaviours, by those verdicts on them that are told. Releases that do not read back the same
states are not the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFindings:
    """What a run met."""

    changes: tuple[NightChange, ...]
    not_audited: tuple[NotAudited, ...]

    def of(self, standing: Standing) -> tuple[NightChange, ...]:
        """The changes of one standing."""
        return tuple(each for each in self.changes if each.standing == standing)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked of a run."""

    run_id: str
    outputs: tuple[str, ...]
    """What verdicts read."""
    due: Collection[str] | None = None
    """Releases whose changes may be new; nothing for all of them."""
    reported: Collection[Boundary]
    waivers: Waivers
    nightly: bool = False
    """Whether releases are held against predecessor and baseline, whatever pairs the matrix has."""
    packages: Mapping[str, str] = field(default_factory=dict)
    """The package that a release is a version of, where nights watch it."""

    def may_be_new(self, release: str) -> bool:
        """Whether a change that comes with a release may be new."""
        return self.due is None or release in self.due


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cell:
    environment: str
    release: str
    series: str
    requires: str
    behaviour: str | None
    status: Status
    reason: str
    ready: bool
    """Whether the release could be installed."""
    package: str
    """That it is a version of; empty where it is written out."""

    @property
    def told_as(self) -> Finding | None:
        """What is wrong with it where it has no behaviour; nothing where nothing is, or it lacks the environment."""
        return _TOLD_AS.get(self.status) if self.behaviour is None else None


def meet(store: Store, question: Question) -> RunFindings:
    """Read a finished run: changes of due releases that have not been reported are new, unless they are accepted."""
    cells = _cells(store, question)
    judged = _Verdicts(store, question)
    changes = tuple(
        _standing(change, question) for group in cells.values() for change in _changes(group, judged, question)
    )
    return RunFindings(changes=changes, not_audited=(*_uninstalled(store, question), *_not_run(cells, question)))


def met_before(store: Store, matrix: str, run_id: str) -> set[Boundary]:
    """What earlier runs of a matrix met."""
    found = store.query(
        "SELECT DISTINCT environment, older, newer FROM pairs_history"
        " WHERE matrix = ? AND run_id <> ?"
        " AND verdict IN ('changed', 'incomparable', 'nondeterministic', 'unavailable')",
        [matrix, run_id],
    )
    return {(environment, older, newer) for environment, older, newer in found.rows}


def as_known(met: RunFindings) -> RunFindings:
    """The same, with nothing of it new: what a matrix is before anything happens to it."""
    return replace(met, changes=tuple(replace(each, standing=Standing.KNOWN) for each in met.changes))


def _standing(change: NightChange, question: Question) -> NightChange:
    boundary = (change.environment, change.older, change.newer)
    waiver = question.waivers.accepting(boundary)
    told = waiver.told if waiver is not None else None
    if not question.may_be_new(change.newer) or change.standing is Standing.KNOWN or boundary in question.reported:
        return replace(change, standing=Standing.KNOWN, waiver=told)
    return replace(change, standing=Standing.NEW if waiver is None else Standing.WAIVED, waiver=told)


def _cells(store: Store, question: Question) -> dict[str, list[_Cell]]:
    found = store.query(
        "SELECT cell.environment, cell.release, cell.series, cell.requires, cell.behaviour, cell.status, cell.reason,"
        " listed.status = 'ready' AS ready FROM internal.ranked_cells AS cell"
        " JOIN internal.run_releases AS listed USING (run_id, release)"
        " WHERE run_id = ? ORDER BY cell.environment, cell.position",
        [question.run_id],
    )
    grouped: dict[str, list[_Cell]] = {}
    for row in found.rows:
        values = dict(zip(found.columns, row, strict=True))
        values["status"] = Status(values["status"])
        cell = _Cell(**values, package=question.packages.get(values["release"], ""))
        grouped.setdefault(cell.environment, []).append(cell)
    return grouped


def _changes(group: Sequence[_Cell], judged: _Verdicts, question: Question) -> Iterator[NightChange]:
    """All changes on one environment, in the order of the newer release."""
    for place, cell in enumerate(group):
        earlier = group[:place]
        before = _predecessor(earlier, cell)
        if question.nightly and any(each.status in INFRASTRUCTURE for each in _since(before, cell, earlier)):
            continue  # the machine failed at the release before: what is between the two is seen on another night
        found = [
            replace(change, standing=Standing.KNOWN)
            if question.nightly and _is_old(older, cell, earlier, judged)
            else change
            for older in judged.beside(earlier, cell, before)
            if (change := judged.change(older, cell))
        ]
        yield from found
        if judged.knows_baseline and not found and question.may_be_new(cell.release):
            drifted = _drifted(group, cell, before, judged)
            if drifted is not None and (question.nightly or drifted.standing is Standing.NEW):
                yield drifted


def _is_old(older: _Cell, cell: _Cell, earlier: Sequence[_Cell], judged: _Verdicts) -> bool:
    """Whether a difference came with an earlier release: the same was wrong before, or the two series differed."""
    before = _predecessor(earlier, cell)
    if cell.told_as:
        return any(each.told_as == cell.told_as for each in _since(before, cell, earlier))
    if older.series == cell.series or before is None:
        return False
    across = _predecessor(earlier[: earlier.index(older)], older)
    return across is not None and judged.change(across, before) is not None


def _since(before: _Cell | None, cell: _Cell, earlier: Sequence[_Cell]) -> list[_Cell]:
    """Releases of the same series between the predecessor and a cell: none of them shows anything."""
    between = takewhile(lambda each: each is not before, reversed(earlier))
    return [each for each in between if each.series == cell.series and each.behaviour is None]


def _drifted(group: Sequence[_Cell], cell: _Cell, before: _Cell | None, judged: _Verdicts) -> NightChange | None:
    """A difference from the baseline that no step between neighbours shows; known where the predecessor had it."""
    baseline = judged.baseline(group)
    if baseline is None or baseline is before or baseline is cell:
        return None
    change = judged.change(baseline, cell)
    if change is None:
        return None
    differed = before is not None and judged.change(baseline, before) is not None
    return replace(change, standing=Standing.KNOWN if differed else Standing.NEW)


def _predecessor(earlier: Sequence[_Cell], cell: _Cell) -> _Cell | None:
    """The release before it in its series that has the environment.

    Where versions of several packages are watched above one release, they follow each other in its series, and each
    is held against the version before of its own package, or the release that all of them are above.
    """
    own = (each for each in _backwards(earlier, cell) if not cell.package or each.package in ("", cell.package))
    return next(own, None) or next(_backwards(earlier, cell), None)


def _backwards(earlier: Sequence[_Cell], cell: _Cell) -> Iterator[_Cell]:
    return (each for each in reversed(earlier) if each.series == cell.series and each.behaviour is not None)


class _Verdicts:
    """Verdicts on any two cells of a run; what the matrix's pairs left out is judged when it is asked for."""

    def __init__(self, store: Store, question: Question) -> None:
        self._store = store
        self._question = question
        ((reads, against, pairing),) = store.query(
            "SELECT reads, against, pairing FROM internal.runs WHERE run_id = ?", [question.run_id]
        ).rows
        self._reads: str = reads
        self._against: str | None = None if question.nightly else against
        self.knows_baseline: bool = question.nightly or pairing == "all"
        found = store.query(
            "SELECT environment, baseline FROM internal.run_environments WHERE run_id = ?", [question.run_id]
        )
        self._baselines = dict(found.rows)
        self._verdicts = self._read()

    def baseline(self, group: Sequence[_Cell]) -> _Cell | None:
        """The cell of the environment's baseline."""
        return next((cell for cell in group if cell.release == self._baselines.get(cell.environment)), None)

    def beside(self, earlier: Sequence[_Cell], cell: _Cell, before: _Cell | None) -> list[_Cell]:
        """The older cells that a cell is held against."""
        if self._against is not None:
            return [each for each in earlier if each.release == self._against]
        if before is None:
            return self._across(earlier, cell)
        if before.requires == cell.requires:
            return [before]  # a later resolution: what lies between the series came with the one before
        return [before, *self._across(earlier, cell)]

    @staticmethod
    def _across(earlier: Sequence[_Cell], cell: _Cell) -> list[_Cell]:
        """The same requirements in other series."""
        return [each for each in earlier if each.series != cell.series and each.requires == cell.requires]

    def change(self, older: _Cell, newer: _Cell) -> NightChange | None:
        """What changed or broke between two cells; nothing where nothing did."""
        if older.behaviour is None or older.behaviour == newer.behaviour:
            return None
        if newer.behaviour is None:
            return _told(older, newer, newer.told_as, newer.reason) if newer.told_as else None
        pair = comparing.ordered(older.behaviour, newer.behaviour)
        if pair not in self._verdicts:
            comparing.compare(self._store, [pair], self._question.outputs, self._reads)
            self._verdicts = self._read()
        verdict, reason = self._verdicts[pair]
        return _told(older, newer, _DIFFERENT[verdict], reason) if verdict in _DIFFERENT else None

    def _read(self) -> dict[tuple[str, str], tuple[Verdict, str]]:
        found = self._store.query(
            "SELECT first, second, verdict, reason FROM internal.comparisons WHERE reads = ?", [self._reads]
        )
        return {(first, second): (Verdict(verdict), reason) for first, second, verdict, reason in found.rows}


def _told(older: _Cell, newer: _Cell, verdict: Finding, reason: str) -> NightChange:
    return NightChange(
        environment=newer.environment,
        older=older.release,
        newer=newer.release,
        verdict=verdict,
        standing=Standing.NEW,
        reason=reason,
    )


def _uninstalled(store: Store, question: Question) -> list[NotAudited]:
    """Releases that could not be resolved or built."""
    found = store.query(
        "SELECT release, status, reason FROM internal.run_releases"
        " WHERE run_id = ? AND status <> 'ready' ORDER BY position",
        [question.run_id],
    )
    return [
        NotAudited(subject=release, status=status, reason=reason)
        for release, status, reason in found.rows
        if question.may_be_new(release)
    ]


def _not_run(cells: Mapping[str, Sequence[_Cell]], question: Question) -> list[NotAudited]:
    """Cells of releases that could be installed, but for those that are told as a change."""
    found = []
    for group in cells.values():
        for place, cell in enumerate(group):
            told = cell.told_as and _predecessor(group[:place], cell) is not None
            if cell.behaviour is None and cell.ready and not told and question.may_be_new(cell.release):
                subject = f"{cell.release}/{cell.environment}"
                found.append(NotAudited(subject=subject, status=cell.status, reason=cell.reason))
    return found
