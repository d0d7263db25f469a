"""What a run came to, read from the store: verdicts along each environment's releases, changes, what is missing."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from analysis.verdicts import Verdict
from audit.comparisons import run_pairs
from audit.explanations import short_lines
from audit.explanations.short_lines import ShortLine
from audit.laws import law_lines
from audit.reports.lacking_cells import LACKING
from audit.storage.store import Store

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
    laws: str = ""
    """What the laws of the environment say of it; empty where it has none, or nothing changed."""
    explained: str = ""
    """Where in the step it begins, and which constants differ; empty where nobody looked."""
    open: bool = False
    """Whether several things differ that may have brought it, and nobody has searched among them."""

    @property
    def boundary(self) -> Boundary:
        """The two releases."""
        return self.older, self.newer


@dataclass(frozen=True, slots=True, kw_only=True)
class Exercised:
    """What the states of an environment cover, and what its controls showed."""

    environment: str
    coverage: str
    reproduced: str
    planted: str
    constant: str
    planted_ratio: float | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """A release or a cell that could not be audited."""

    subject: str
    environment: str = ""
    """Empty where it is a release."""
    status: str
    reason: str
    broke: bool = False
    """Whether an older release of the same series could run it, and this one fails at it."""


@dataclass(frozen=True, kw_only=True)
class Summary:
    """All that is printed at the end."""

    matrix: str
    pairing: str
    """``all``, ``adjacent`` or ``against`` one release."""
    counts: dict[str, int]
    changed_in: frozenset[str]
    """Environments in which a pair changed, whether of neighbours or not."""
    environments: tuple[str, ...]
    neighbours: tuple[PairLine, ...]
    missing: tuple[Missing, ...]
    silent_differences: int
    """Pairs called identical that differ in an output which the matrix's verdict does not read."""
    exercised: tuple[Exercised, ...]
    unexplained: tuple[PairLine, ...]
    """Amplified pairs whose growth no twin explains."""

    @cached_property
    def verdicts(self) -> dict[tuple[str, Boundary], str]:
        """The verdicts on neighbours, by environment and boundary."""
        return {(line.environment, line.boundary): line.verdict for line in self.neighbours}

    @property
    def broken(self) -> tuple[Missing, ...]:
        """Cells that a release has but cannot run, though an older one can: as bad as a change."""
        return tuple(each for each in self.missing if each.broke)

    @property
    def changed(self) -> tuple[PairLine, ...]:
        """Neighbours between which something changed."""
        return tuple(line for line in self.neighbours if line.verdict == Verdict.CHANGED)

    @property
    def urgent_first(self) -> tuple[PairLine, ...]:
        """The same, the newest boundary first: that is the one somebody is about to install.

        Where all are held against one release there is no newest, and they stay as the matrix lists them.
        """
        if self.pairing == "against":
            return self.changed
        places = {line.boundary: place for place, line in enumerate(self.neighbours)}
        return tuple(sorted(self.changed, key=lambda line: -places[line.boundary]))

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
            if any(self.verdict(environment, boundary) != Verdict.IDENTICAL for environment in group.environments)
        )

    def verdict(self, environment: str, boundary: Boundary) -> str:
        """The verdict on a pair of neighbours."""
        return self.verdicts[environment, boundary]


def summarise(store: Store, run_id: str) -> Summary:
    """Read a finished run."""
    matrix, pairing = store.query("SELECT matrix, pairing FROM internal.runs WHERE run_id = ?", [run_id]).rows[0]
    environments = store.query(
        "SELECT environment FROM internal.run_cells WHERE run_id = ? GROUP BY ALL ORDER BY min(rowid)", [run_id]
    )
    counts = run_pairs.counts(store, run_id)
    return Summary(
        matrix=matrix,
        pairing=pairing,
        counts=counts.verdicts,
        changed_in=counts.changed_in,
        environments=tuple(row[0] for row in environments.rows),
        neighbours=_neighbours(store, run_id),
        missing=(*_missing_releases(store, run_id), *_missing_cells(store, run_id)),
        silent_differences=counts.silent,
        exercised=_exercised(store, run_id),
        unexplained=_unexplained(store, run_id, every=pairing == "all"),
    )


def _exercised(store: Store, run_id: str) -> tuple[Exercised, ...]:
    columns = list(Exercised.__dataclass_fields__)
    found = store.query(
        f"SELECT {', '.join(columns)} FROM internal.run_environments WHERE run_id = ? ORDER BY rowid", [run_id]
    )
    return tuple(Exercised(**dict(zip(columns, row, strict=True))) for row in found.rows)


def _unexplained(store: Store, run_id: str, *, every: bool) -> tuple[PairLine, ...]:
    """Pairs that are told of; where ``every`` pair is compared also two releases for all with the same behaviours."""
    found = run_pairs.told(store, run_id).query(
        store,
        f"""
        , unexplained AS (
            SELECT each.first, each.second, each.reason FROM internal.certificates AS each
            JOIN internal.comparisons AS judged USING (first, second, reads)
            JOIN internal.runs AS run USING (reads)
            WHERE run.run_id = ? AND judged.verdict = 'amplified' AND each.certificate = 'unexplained'
        ),
        shown AS (
            SELECT pair.environment, older, newer, older_position, newer_position, first, second, unexplained.reason
            FROM pair JOIN unexplained ON first = least(older_behaviour, newer_behaviour)
                AND second = greatest(older_behaviour, newer_behaviour)
        ),
        first_cells AS (
            SELECT environment, behaviour, arg_min(release, position) AS release, min(position) AS position
            FROM internal.run_cells WHERE run_id = ? AND behaviour IS NOT NULL GROUP BY ALL
        ),
        others AS (
            SELECT
                one.environment, arg_min(each.release, each.position) AS older,
                arg_max(each.release, each.position) AS newer, min(each.position) AS older_position,
                max(each.position) AS newer_position, first, second, any_value(unexplained.reason) AS reason
            FROM unexplained
            JOIN first_cells AS one ON one.behaviour = first
            JOIN first_cells AS other ON other.behaviour = second AND other.environment = one.environment
            JOIN first_cells AS each
                ON each.environment = one.environment AND each.behaviour IN (one.behaviour, other.behaviour)
            ANTI JOIN shown USING (first, second)
            WHERE {every}
            GROUP BY one.environment, first, second
        )
        SELECT environment, older, newer, reason FROM (
            SELECT *, true AS told FROM shown UNION ALL SELECT *, false AS told FROM others
        ) ORDER BY told DESC, environment, older_position, newer_position
        """,
        [run_id, run_id],
    )
    return tuple(
        PairLine(environment=environment, older=older, newer=newer, verdict="amplified", reason=reason)
        for environment, older, newer, reason in found.rows
    )


def _neighbours(store: Store, run_id: str) -> tuple[PairLine, ...]:
    """Neighbouring pairs; every pair where the matrix compares with one release only."""
    found = run_pairs.told(store, run_id).query(
        store,
        "SELECT environment, older, newer, verdict, reason FROM pair"
        " ORDER BY older_position, newer_position, environment",
    )
    laws, explained = law_lines.lines(store, run_id), short_lines.of_run(store, run_id)
    nothing = ShortLine(told="", open=False)
    return tuple(
        PairLine(
            environment=environment,
            older=older,
            newer=newer,
            verdict=verdict,
            reason=reason,
            laws=laws.get((environment, older, newer), ""),
            explained=explained.get((environment, older, newer), nothing).told,
            open=explained.get((environment, older, newer), nothing).open,
        )
        for environment, older, newer, verdict, reason in found.rows
    )


def _missing_releases(store: Store, run_id: str) -> list[Missing]:
    found = store.query(
        "SELECT release, status, reason FROM internal.run_releases"
        " WHERE run_id = ? AND status <> 'ready' ORDER BY position",
        [run_id],
    )
    return [Missing(subject=release, status=status, reason=reason) for release, status, reason in found.rows]


def _missing_cells(store: Store, run_id: str) -> list[Missing]:
    """Cells without a dump, of releases that could be installed."""
    found = store.query(
        f"SELECT subject, environment, status, reason, broke FROM ({LACKING}) ORDER BY environment, position", [run_id]
    )
    return [
        Missing(subject=subject, environment=environment, status=status, reason=reason, broke=broke)
        for subject, environment, status, reason, broke in found.rows
    ]
