"""Lists of the page: what was exercised, what failed, what nights met, what is installed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from analysis.report.model import Blame, Failures, Night, NightChange, Release, Span
from audit.reports.lacking_cells import LACKING
from audit.storage.records import PlantedFault, Repeated
from audit.storage.store import Store

MOST_SUBJECTS = 60
"""Cells that are listed under one reason; the store has the others."""

MOST_NIGHTS = 400
"""More than a year."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Controls:
    """What was exercised of an environment, and what its controls showed."""

    evidence: str
    coverage: str
    said: str
    blind: bool


_AGAIN: Mapping[str, str] = {Repeated.YES: "reproduces itself", Repeated.NO: "does not reproduce itself"}


def environments(store: Store, run_id: str) -> dict[str, Controls]:
    """By name."""
    rows = store.query(
        "SELECT environment, evidence, coverage, baseline, reproduced, planted, constant, planted_ratio, reason"
        " FROM internal.run_environments WHERE run_id = ?",
        [run_id],
    ).rows
    return {
        name: Controls(evidence=evidence, coverage=coverage, said=_said(*rest), blind=rest[2] == PlantedFault.MISSED)
        for name, evidence, coverage, *rest in rows
    }


def _said(baseline: str | None, reproduced: str, planted: str, constant: str, ratio: float | None, reason: str) -> str:
    """The controls in words."""
    again = _AGAIN.get(reproduced, "")
    parts = [f"{baseline} {again}"] if baseline and again else []
    if planted != PlantedFault.UNKNOWN:
        size = f" (ratio {ratio:.1e})" if ratio is not None else ""
        parts.append(f"a planted fault in {constant} was {planted}{size}")
    return "; ".join(filter(None, [*parts, reason]))


def safe_ranges(store: Store, matrix: str, releases: Sequence[Release]) -> dict[tuple[str, str], tuple[Span, ...]]:
    """Ranges of releases that are comparable pair by pair, by environment and by what is comparable."""
    places = {release.name: place for place, release in enumerate(releases)}
    found: dict[tuple[str, str], tuple[Span, ...]] = {}
    for environment, comparable, series, first, last, count in store.query(
        "SELECT environment, comparable, series, first, last, releases FROM safe_ranges WHERE matrix = ?"
        " ORDER BY environment, comparable, series, first_position",
        [matrix],
    ).rows:
        span = Span(series=series, first=places[first], last=places[last], count=count)
        found[environment, comparable] = (*found.get((environment, comparable), ()), span)
    return found


def failures(store: Store, run_id: str) -> tuple[Failures, ...]:
    """What could not be done, together where the reason is the same; what broke first."""
    rows = store.query(
        f"""
        WITH listed AS (
            SELECT * FROM internal.run_releases WHERE run_id = $1
        ), cells AS (
            {LACKING}
        ), kept AS (
            SELECT subject, stage, status, reason, stderr_tail FROM internal.failures WHERE run_id = $1
        ), told AS (
            FROM kept
            UNION ALL  -- what was known from an earlier run is told without its output
            SELECT subject, 'dump', status, reason, '' FROM cells ANTI JOIN kept USING (subject)
            UNION ALL
            SELECT release, 'install', status, reason, '' FROM listed ANTI JOIN kept ON kept.subject = release
            WHERE status <> 'ready'
        )
        SELECT stage, told.status, told.reason, list(subject ORDER BY subject)[:{MOST_SUBJECTS}],
            greatest(0, count(*) - {MOST_SUBJECTS}), count(*) FILTER (coalesce(broke, false)) AS broken,
            arg_min(stderr_tail, subject)
        FROM told LEFT JOIN cells USING (subject)
        GROUP BY stage, told.status, told.reason
        ORDER BY broken DESC, count(*) DESC, stage, told.status, told.reason
        """,
        [run_id],
    ).rows
    return tuple(
        Failures(
            stage=stage,
            status=status,
            reason=reason,
            subjects=tuple(subjects),
            more=more,
            broke=broke,
            tail=tail or "",
        )
        for stage, status, reason, subjects, more, broke, tail in rows
    )


def nights(store: Store, matrix: str) -> tuple[Night, ...]:
    """The nights of a matrix, the latest first, with the changes that each met."""
    changes: dict[str, list[NightChange]] = {}
    for night, *rest in store.query(
        "SELECT night, environment, older, newer, standing, reason, waiver FROM night_changes WHERE matrix = ?"
        " ORDER BY environment, older, newer",
        [matrix],
    ).rows:
        environment, older, newer, standing, reason, waiver = rest
        changes.setdefault(night, []).append(
            NightChange(
                environment=environment, older=older, newer=newer, standing=standing, reason=reason, waiver=waiver or ""
            )
        )
    rows = store.query(
        "SELECT night, exit_code, news, summary, new_changes, waived_changes, known_changes, not_audited FROM nights"
        f" WHERE matrix = ? ORDER BY started DESC LIMIT {MOST_NIGHTS}",
        [matrix],
    ).rows
    return tuple(
        Night(
            night=night,
            exit_code=exit_code,
            news=tuple(news),
            summary=summary,
            new=new,
            waived=waived,
            known=known,
            not_audited=not_audited,
            changes=tuple(changes.get(night, ())),
        )
        for night, exit_code, news, summary, new, waived, known, not_audited in rows
    )


def packages(store: Store, locks: Mapping[str, int]) -> tuple[dict[str, str], ...]:
    """The distributions of each lock, in the order of their numbers."""
    found: list[dict[str, str]] = [{} for _ in locks]
    for digest, package, version in store.query(
        "SELECT lock_digest, package, version FROM internal.lock_packages"
        " WHERE lock_digest IN (SELECT unnest(?::VARCHAR[])) ORDER BY ALL",
        [list(locks)],
    ).rows:
        found[locks[digest]][package] = version
    return tuple(found)


def blames(store: Store, run_id: str, releases: Sequence[Release]) -> tuple[Blame, ...]:
    """What searches for the distribution came to, between releases of this run."""
    places = {release.name: place for place, release in enumerate(releases)}
    rows = store.query(
        "SELECT environment, older, newer, blamed FROM internal.run_blames WHERE run_id = ? ORDER BY ALL", [run_id]
    ).rows
    return tuple(
        Blame(environment=environment, older=places[older], newer=places[newer], blamed=tuple(blamed))
        for environment, older, newer, blamed in rows
    )
