"""Releases and cells of a run as the page has them: behaviours numbered, neighbours in order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from analysis.report.model import Missing, Release
from analysis.verdicts import SIGNS, Verdict
from audit.failures import Status
from audit.storage.store import Store

_SHOWN = {Status.NONDETERMINISTIC: Verdict.NONDETERMINISTIC, Status.INCOMPARABLE: Verdict.INCOMPARABLE}
"""The verdict on any pair of a cell without a behaviour, by its status; on others it is that there is none."""


@dataclass(frozen=True, slots=True)
class Run:
    """The latest finished audit of a matrix."""

    run_id: str
    matrix: str
    finished: Any
    cpu: str
    libc: str
    reads: str
    pairing: str
    against: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """The releases of a run on one environment, with behaviours numbered in order of appearance."""

    environment: str
    releases: tuple[Release, ...]
    cells: tuple[int, ...]
    """Behaviour by release; below 0 where there is none, as on the page."""
    behaviours: tuple[str, ...]
    missing: tuple[Missing, ...]
    neighbours: tuple[tuple[int, int], ...]
    """Releases with behaviours, by place, the older first."""

    @property
    def near(self) -> frozenset[tuple[int, int]]:
        """Pairs of behaviours, the lesser first, that neighbours show."""
        return frozenset(
            (min(ends), max(ends))
            for older, newer in self.neighbours
            for ends in [(self.cells[older], self.cells[newer])]
        )


def releases(store: Store, run_id: str) -> tuple[tuple[Release, ...], dict[str, int]]:
    """Releases in order, and the number of each lock."""
    rows = store.query(
        "SELECT release, series, requires, lock_digest,"
        " CASE WHEN status = 'ready' THEN '' ELSE status || ': ' || reason END"
        " FROM internal.run_releases WHERE run_id = ? ORDER BY position",
        [run_id],
    ).rows
    locks = {digest: place for place, digest in enumerate(dict.fromkeys(row[3] for row in rows if row[3] is not None))}
    releases = tuple(
        Release(name=name, series=series, requires=requires, lock=locks.get(lock, -1), reason=reason)
        for name, series, requires, lock, reason in rows
    )
    return releases, locks


def grids(store: Store, run: Run, releases: tuple[Release, ...]) -> Iterator[Grid]:
    """The environments of a run, in their order."""
    rows = store.query(
        "SELECT environment, release, status, reason, behaviour FROM internal.run_cells WHERE run_id = ?"
        " ORDER BY min(rowid) OVER (PARTITION BY environment), position",
        [run.run_id],
    ).rows
    neighbours = _neighbours(store, run)
    for environment, cells in groupby(rows, key=lambda row: str(row[0])):
        found = {row[1]: row[2:] for row in cells}
        yield _grid(environment, releases, found, neighbours.get(environment, ()))


def _grid(
    environment: str,
    releases: tuple[Release, ...],
    found: Mapping[str, tuple[Any, ...]],
    neighbours: Sequence[tuple[str, str]],
) -> Grid:
    places = {release.name: place for place, release in enumerate(releases)}
    behaviours: dict[str, int] = {}
    missing: dict[Missing, int] = {}
    cells = []
    for release in releases:
        status, reason, behaviour = found.get(release.name, (Status.UNAVAILABLE, "not asked for", None))
        if behaviour is not None:
            cells.append(behaviours.setdefault(behaviour, len(behaviours)))
        else:
            verdict = _SHOWN.get(status, Verdict.UNAVAILABLE)
            why = Missing(verdict=SIGNS[verdict], status=status, reason=reason)
            cells.append(-1 - missing.setdefault(why, len(missing)))
    return Grid(
        environment=environment,
        releases=releases,
        cells=tuple(cells),
        behaviours=tuple(behaviours),
        missing=tuple(missing),
        neighbours=tuple((places[older], places[newer]) for older, newer in neighbours),
    )


def _neighbours(store: Store, run: Run) -> dict[str, list[tuple[str, str]]]:
    """By environment, neighbours that both have it, the older first; all pairs with one release, where it is that."""
    rows = (
        store.query(_AGAINST, [run.run_id, run.against])
        if run.pairing == "against"
        else store.query(_ADJACENT, [run.run_id])
    )
    found: dict[str, list[tuple[str, str]]] = {}
    for environment, older, newer in rows.rows:
        found.setdefault(environment, []).append((older, newer))
    return found


_ADJACENT = """
    SELECT environment, older, newer FROM neighbours
    WHERE run_id = ? AND older_behaviour IS NOT NULL AND newer_behaviour IS NOT NULL"""
_AGAINST = """
    WITH cells AS (FROM internal.run_cells WHERE run_id = ? AND behaviour IS NOT NULL)
    SELECT
        environment,
        CASE WHEN one.position < other.position THEN one.release ELSE other.release END,
        CASE WHEN one.position < other.position THEN other.release ELSE one.release END
    FROM cells AS one JOIN cells AS other USING (environment)
    WHERE one.release = ? AND other.release <> one.release"""
