"""What the page shows, read from the store: matrices, releases, environments with behaviours and verdicts.

Nothing here grows with releases squared: cells are read once, verdicts per pair of behaviours, neighbours in order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

from analysis.report.model import NOT_COMPARED, Details, Environment, Matrix, MatrixDetails, Page, Span
from analysis.verdicts import SIGNS, Verdict
from analysis.yardstick import THRESHOLD
from audit import __version__
from audit.errors import UsageError
from audit.explanations.adhoc import DIFF
from audit.reports import report_grid, report_lists, report_pairs
from audit.reports.report_grid import Grid, Run
from audit.reports.report_lists import Controls
from audit.storage.store import Store


def collect(store: Store, names: Sequence[str] = ()) -> Page:
    """The latest finished audit of every matrix, or of those named, the last one finished first.

    What was only compared once stands behind matrices, and what could not be dumped at all behind everything.

    Raises:
        UsageError: where there is none of that name, or none at all.
    """
    found = store.query(
        "SELECT run_id, matrix, finished, cpu_model, libc, reads, pairing, against FROM internal.latest_runs"
        " ORDER BY finished DESC, matrix"
    ).rows
    known = {row[1] for row in found}
    unknown = [name for name in names if name not in known]
    if unknown:
        listed = ", ".join(sorted(known)) or "none"
        raise UsageError(f"no finished audit of {', '.join(unknown)} in {store.path}; there is {listed}")
    if not found:
        raise UsageError(f"{store.path} has no finished audit yet: run one first")
    collected = [_matrix(store, Run(*row)) for row in found if not names or row[1] in names]
    collected.sort(key=lambda each: (not _was_dumped(each[0]), each[0].name.startswith(DIFF)))
    return Page(
        version=__version__,
        threshold=THRESHOLD,
        matrices=tuple(matrix for matrix, _ in collected),
        details=tuple(details for _, details in collected),
    )


def _was_dumped(matrix: Matrix) -> bool:
    return any(environment.behaviours for environment in matrix.environments)


def _matrix(store: Store, run: Run) -> tuple[Matrix, MatrixDetails]:
    releases, locks = report_grid.releases(store, run.run_id)
    grids = list(report_grid.grids(store, run, releases))
    told = report_lists.environments(store, run.run_id)
    spans = report_lists.safe_ranges(store, run.matrix, releases)
    collected = [_environment(store, run, grid, told.get(grid.environment), spans) for grid in grids]
    matrix = Matrix(
        name=run.matrix,
        run=run.run_id,
        finished=f"{run.finished:%Y-%m-%d %H:%M} UTC",
        machine=f"{run.cpu}, {run.libc}",
        reads=run.reads,
        releases=releases,
        environments=tuple(environment for environment, _ in collected),
        failures=report_lists.failures(store, run.run_id),
        nights=report_lists.nights(store, run.matrix),
    )
    details = MatrixDetails(
        locks=report_lists.packages(store, locks),
        blames=report_lists.blames(store, run.run_id, releases),
        environments=tuple(details for _, details in collected),
    )
    return matrix, details


def _environment(
    store: Store, run: Run, grid: Grid, told: Controls | None, spans: Mapping[tuple[str, str], tuple[Span, ...]]
) -> tuple[Environment, Details]:
    found = report_pairs.read(store, run, grid)

    def sign(one: int, other: int) -> str:
        if one == other:
            return SIGNS[Verdict.IDENTICAL]
        return found.signs.get((min(one, other), max(one, other)), NOT_COMPARED)

    neighbours = ((older, newer, sign(grid.cells[older], grid.cells[newer])) for older, newer in grid.neighbours)
    environment = Environment(
        name=grid.environment,
        evidence=told.evidence if told else "forced",
        coverage=told.coverage if told else "",
        controls=told.said if told else "",
        blind=told is not None and told.blind,
        cells=tuple((cell, len(list(same))) for cell, same in groupby(grid.cells)),
        behaviours=len(grid.behaviours),
        missing=grid.missing,
        verdicts="".join(sign(one, other) for one in range(len(grid.behaviours)) for other in range(one)),
        null_ratios=found.null_ratios,
        neighbours=tuple(sorted(each for each in neighbours if each[2] != SIGNS[Verdict.IDENTICAL])),
        trajectories=spans.get((grid.environment, "trajectories"), ()),
        steps=spans.get((grid.environment, "steps"), ()),
    )
    return environment, found.details
