"""Pairs of a run, read at a cost that grows with its releases: ten thousand releases have fifty million pairs.

What is told of pairs one by one is told of neighbours, or of the pairs with the one release that a matrix compares
with. What is counted over all of them is counted by behaviours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from analysis.verdicts import Verdict
from audit.storage.records import Table
from audit.storage.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """Some pairs as a part of SQL, with what it needs."""

    sql: str
    parameters: tuple[str, ...]

    def query(self, store: Store, sql: str, parameters: Sequence[str] = ()) -> Table:
        """A query on ``pair``, which stands for these; its own parameters come after."""
        return store.query(f"WITH pair AS ({self.sql}) {sql}", [*self.parameters, *parameters])


def told(store: Store, run_id: str) -> Pairs:
    """Neighbours; every pair where the matrix compares with one release only."""
    ((against,),) = store.query("SELECT against FROM internal.runs WHERE run_id = ?", [run_id]).rows
    if against is None:
        return neighbours(run_id)
    one = "SELECT * FROM pairs_history WHERE run_id = ? AND"
    return Pairs(sql=f"{one} older = ? UNION ALL {one} newer = ?", parameters=(run_id, against, run_id, against))


def neighbours(run_id: str) -> Pairs:
    """Those that follow each other: found by their places, whatever the number of pairs."""
    return Pairs(sql="SELECT * FROM pairs_history WHERE run_id = ? AND adjacent", parameters=(run_id,))


def one(run_id: str, environment: str, older: str, newer: str) -> Pairs:
    """A single one."""
    where = "run_id = ? AND environment = ? AND older = ? AND newer = ?"
    return Pairs(sql=f"SELECT * FROM pairs_history WHERE {where}", parameters=(run_id, environment, older, newer))


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """How many pairs of a run have each verdict."""

    verdicts: dict[str, int]
    changed_in: frozenset[str]
    """Environments in which a pair changed."""
    silent: int
    """Called identical, though their behaviours differ: in an output that the verdict does not read."""


def counts(store: Store, run_id: str) -> Counts:
    """Count all pairs of a run."""
    ((pairing,),) = store.query("SELECT pairing FROM internal.runs WHERE run_id = ?", [run_id]).rows
    if pairing == "all":
        rows = store.query(_BY_BEHAVIOURS, [run_id, run_id]).rows
    else:
        counted = (
            "SELECT environment, verdict, older_behaviour IS DISTINCT FROM newer_behaviour, count(*) FROM pair"
            " GROUP BY ALL"
        )
        rows = told(store, run_id).query(store, counted).rows
    verdicts: dict[str, int] = {}
    for _, verdict, _, count in rows:
        verdicts[verdict] = verdicts.get(verdict, 0) + int(count)
    silent = sum(int(count) for _, verdict, differ, count in rows if verdict == Verdict.IDENTICAL and differ)
    changed_in = frozenset(environment for environment, verdict, _, _ in rows if verdict == Verdict.CHANGED)
    return Counts(verdicts=verdicts, changed_in=changed_in, silent=silent)


# Cells of an environment that show one behaviour, or that lack one for the same reason, are alike to every other cell.
_BY_BEHAVIOURS = """
WITH alike AS (
    SELECT
        environment, behaviour,
        CASE WHEN behaviour IS NOT NULL THEN '' WHEN status IN ('nondeterministic', 'incomparable') THEN status
             ELSE 'unavailable' END AS lacking,
        count(*) AS cells
    FROM internal.run_cells WHERE run_id = ?
    GROUP BY ALL
),
counted AS (
    SELECT environment, CASE WHEN lacking = '' THEN 'identical' ELSE lacking END AS verdict, false AS differ,
        cells * (cells - 1) // 2 AS pairs
    FROM alike
    UNION ALL
    SELECT
        one.environment,
        CASE WHEN 'nondeterministic' IN (one.lacking, other.lacking) THEN 'nondeterministic'
             WHEN 'incomparable' IN (one.lacking, other.lacking) THEN 'incomparable'
             WHEN 'unavailable' IN (one.lacking, other.lacking) THEN 'unavailable'
             ELSE comparison.verdict END,
        one.behaviour IS DISTINCT FROM other.behaviour, one.cells * other.cells
    FROM alike AS one
    JOIN alike AS other
        ON other.environment = one.environment
        AND (one.lacking, coalesce(one.behaviour, '')) < (other.lacking, coalesce(other.behaviour, ''))
    LEFT JOIN internal.comparisons AS comparison
        ON comparison.first = least(one.behaviour, other.behaviour)
        AND comparison.second = greatest(one.behaviour, other.behaviour)
        AND comparison.reads = (SELECT reads FROM internal.runs WHERE run_id = ?)
)
SELECT environment, verdict, differ, sum(pairs) FROM counted WHERE pairs > 0 GROUP BY ALL
"""
