"""Cells of a run without a dump, of releases that could be installed, and which of them broke: as a part of SQL."""

from __future__ import annotations

from audit.failures import BREAKAGE

_BREAKAGE = ", ".join(f"'{status}'" for status in sorted(BREAKAGE))

LACKING = f"""
    SELECT
        cell.release || '/' || cell.environment AS subject, cell.environment, cell.position, cell.status, cell.reason,
        cell.status IN ({_BREAKAGE}) AND coalesce(first.position < cell.position, false) AS broke
    FROM internal.ranked_cells AS cell
    JOIN internal.run_releases AS listed ON listed.run_id = cell.run_id AND listed.release = cell.release
    LEFT JOIN (
        SELECT run_id, environment, series, min(position) AS position FROM internal.ranked_cells
        WHERE dumped GROUP BY ALL
    ) AS first ON (first.run_id, first.environment, first.series) = (cell.run_id, cell.environment, cell.series)
    WHERE cell.run_id = $1 AND NOT cell.dumped AND listed.status = 'ready'
"""
"""``$1`` is the run. A cell broke if its release fails at it, though an older one of its series could run it."""
