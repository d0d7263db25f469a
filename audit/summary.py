"""What a run came to, read from the store: verdicts along each environment's releases, changes, what is missing."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from audit.store import Store

Boundary = tuple[str, str]
"""Two neighbouring releases, the older first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Environments that have the same neighbours."""

    boundaries: tuple[Boundary, ...]
    environments: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PairLine:
    """One pair, as the summary tells of it."""

    environment: str
    older: str
    newer: str
    verdict: str
    reason: str

    @property
    def boundary(self) -> Boundary:
        """The two releases."""
        return self.older, self.newer


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """A release or a cell that could not be audited."""

    subject: str
    status: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Summary:
    """All that is printed at the end."""

    matrix: str
    counts: dict[str, int]
    environments: tuple[str, ...]
    neighbours: tuple[PairLine, ...]
    missing: tuple[Missing, ...]
    silent_differences: int
    """Pairs called identical that differ in an output which the matrix's verdict does not read."""

    @cached_property
    def verdicts(self) -> dict[tuple[str, Boundary], str]:
        """The verdicts on neighbours, by environment and boundary."""
        return {(line.environment, line.boundary): line.verdict for line in self.neighbours}

    @property
    def changed(self) -> tuple[PairLine, ...]:
        """Neighbours between which something changed."""
        return tuple(line for line in self.neighbours if line.verdict == "changed")

    @property
    def groups(self) -> tuple[Group, ...]:
        """Environments that have the same neighbours, together: one table each."""
        by_environment: dict[str, list[Boundary]] = {environment: [] for environment in self.environments}
        for line in self.neighbours:
            by_environment[line.environment].append(line.boundary)
        grouped: dict[tuple[Boundary, ...], list[str]] = {}
        for environment, boundaries in by_environment.items():
            grouped.setdefault(tuple(boundaries), []).append(environment)
        return tuple(
            Group(boundaries=boundaries, environments=tuple(names))
            for boundaries, names in grouped.items()
            if boundaries
        )

    def eventful(self, group: Group) -> tuple[Boundary, ...]:
        """The boundaries of a group at which not all of its environments are identical."""
        return tuple(
            boundary
            for boundary in group.boundaries
            if any(self.verdict(environment, boundary) != "identical" for environment in group.environments)
        )

    def verdict(self, environment: str, boundary: Boundary) -> str:
        """The verdict on a pair of neighbours."""
        return self.verdicts[environment, boundary]


def summarise(store: Store, run_id: str) -> Summary:
    """Read a finished run."""
    counts = store.query("SELECT verdict, count(*) FROM pairs_history WHERE run_id = ? GROUP BY ALL", [run_id])
    neighbours = store.query(
        "SELECT environment, older, newer, verdict, reason FROM pairs_history WHERE run_id = ? AND adjacent"
        " ORDER BY older_position, newer_position",
        [run_id],
    )
    cells = store.query(
        "SELECT environment, release, status, reason FROM internal.run_cells"
        " WHERE run_id = ? AND behaviour IS NULL ORDER BY environment, position",
        [run_id],
    )
    releases = store.query(
        "SELECT release, status, reason FROM internal.run_releases"
        " WHERE run_id = ? AND status <> 'ready' ORDER BY position",
        [run_id],
    )
    environments = store.query(
        "SELECT environment FROM internal.run_cells WHERE run_id = ? GROUP BY ALL ORDER BY min(rowid)", [run_id]
    )
    silent = store.query(
        "SELECT count(*) FROM pairs_history WHERE run_id = ? AND verdict = 'identical'"
        " AND older_behaviour <> newer_behaviour",
        [run_id],
    )
    matrix = store.query("SELECT matrix FROM internal.runs WHERE run_id = ?", [run_id])
    broken = {row[0] for row in releases.rows}
    missing = [Missing(subject=row[0], status=row[1], reason=row[2]) for row in releases.rows]
    missing += [
        Missing(subject=f"{release}/{environment}", status=status, reason=reason)
        for environment, release, status, reason in cells.rows
        if release not in broken
    ]
    return Summary(
        matrix=matrix.rows[0][0],
        counts=dict(counts.rows),
        environments=tuple(row[0] for row in environments.rows),
        neighbours=tuple(
            PairLine(environment=row[0], older=row[1], newer=row[2], verdict=row[3], reason=row[4])
            for row in neighbours.rows
        ),
        missing=tuple(missing),
        silent_differences=int(silent.rows[0][0]),
    )
