"""What an audit would do, found out without doing any of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from audit import pipeline
from audit.asked import attachments, releases
from audit.asked.matrix_file import MatrixFile
from audit.dumps import dumping
from audit.installing import listing, locks, venvs
from audit.installing.locks import Release
from audit.installing.venvs import Recipe
from audit.planning import drawing
from audit.planning import plan as planning
from audit.planning.plan import Cell
from audit.storage.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRelease:
    """What is there of a release, and what is not."""

    release: str
    python: str
    locked: bool
    built: bool
    dumped: int
    missing: int

    def shown(self) -> tuple[str, ...]:
        """As cells of a table."""
        lock = "known" if self.locked else "to resolve"
        venv = "built" if self.built else "to build"
        return self.release, self.python, lock, venv, str(self.dumped), str(self.missing)


def plan(file: MatrixFile, database: Path) -> list[PlannedRelease]:
    """Look at the matrix, the caches and the store. Generated rows ask the index for versions, nothing else does.

    No code of a release is run: versions are listed without building any, and of a virtualenv only its recipe is read.
    """
    pipeline.own_laws(file)  # a mistake in them would end the audit
    requests = listing.expand(file)
    known = {request.id: found for request in requests if (found := locks.remembered(request)) is not None}
    cells = planning.cells(file.matrix, requests, known, attachments.read(file))
    dumped = _dumped(file, cells, database)
    rows = []
    for request in requests:
        release: Release | None = known.get(request.id)
        wanted = [each for each in file.matrix.environments if releases.selected([request], each.releases)]
        there = sum(f"{request.id}/{each.title}" in dumped for each in wanted)
        rows.append(
            PlannedRelease(
                release=request.id,
                python=release.interpreter.version if release else request.python,
                locked=release is not None,
                built=release is not None and venvs.finished(Recipe.of(release)),
                dumped=there,
                missing=len(wanted) - there,
            )
        )
    return rows


def _dumped(file: MatrixFile, cells: Sequence[Cell], database: Path) -> set[str]:
    if not database.is_file():
        return set()
    with Store(database, read_only=True) as store:
        drawn = drawing.known_stimuli(file, cells, store).drawn
        recordings = planning.recordings(cells, {title: each.stimulus for title, each in drawn.items()})
        return set(dumping.known(recordings, store))
