"""What a run leaves in the store: what was asked and where, every release, every cell with or without a dump."""

from __future__ import annotations

import json
import platform
import socket
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace

from audit import __version__, machine
from audit.asked import releases
from audit.asked.matrix import Against, Matrix
from audit.asked.matrix_file import MatrixFile
from audit.asked.releases import ReleaseRequest
from audit.comparisons import comparing
from audit.comparisons.controls import Control
from audit.dumps.dumping import Dumped
from audit.failures import Failure, Status
from audit.installing import uv
from audit.installing.locks import Release
from audit.planning.drawing import DrawnEnvironment, Stimuli
from audit.planning.plan import Cell
from audit.storage.records import RunCell, RunEnvironment, RunRecord, RunRelease, now


def begun(file: MatrixFile) -> RunRecord:
    """A run that begins now, here."""
    matrix, here = file.matrix, machine.here()
    against = matrix.pairs.against if isinstance(matrix.pairs, Against) else None
    return RunRecord(
        run_id=uuid.uuid4().hex,
        matrix=matrix.name,
        matrix_text=file.text,
        pairing="against" if against else str(matrix.pairs),
        against=against,
        reads=comparing.reads_of(matrix),
        started=now(),
        harness_version=__version__,
        python_version=platform.python_version(),
        uv_version=uv.version(),
        host=socket.gethostname(),
        cpu_model=here.model,
        cpu_flags=" ".join(here.flags),
        libc=here.libc,
        machine=here.digest,
    )


def release_rows(
    requests: Sequence[ReleaseRequest], resolved: Mapping[str, Release], failures: Sequence[Failure]
) -> list[RunRelease]:
    """Every release of the matrix, also those that did not resolve or build."""
    failed = {each.subject: each for each in failures}
    rows = []
    for position, request in enumerate(requests):
        release, failure = resolved.get(request.id), failed.get(request.id)
        rows.append(
            RunRelease(
                release=request.id,
                position=position,
                series=request.series,
                requires=request.text,
                python=release.interpreter.version if release else request.python,
                lock_digest=release.lock.digest if release else None,
                status=failure.status if failure else Status.READY,
                reason=failure.reason if failure else "",
            )
        )
    return rows


def undrawable(cells: Sequence[Cell], stimuli: Stimuli) -> list[Failure]:
    """The cells whose environment has no stimulus because none could be drawn."""
    return [
        replace(stimuli.undrawable[cell.environment.title], subject=cell.identifier)
        for cell in cells
        if cell.environment.title in stimuli.undrawable
    ]


def cell_rows(
    matrix: Matrix, requests: Sequence[ReleaseRequest], dumps: Mapping[str, Dumped], failures: Sequence[Failure]
) -> list[RunCell]:
    """Every cell of the matrix, also those that have no dump, with the reason why."""
    positions = {request.id: position for position, request in enumerate(requests)}
    failed = {each.subject: each for each in failures}
    rows = []
    for environment in matrix.environments:
        for request in releases.selected(requests, environment.releases):
            name = f"{request.id}/{environment.title}"
            dumped = dumps.get(name)
            without = failed.get(name) or failed.get(request.id) or _NOBODY_TOLD
            rows.append(
                RunCell(
                    environment=environment.title,
                    release=request.id,
                    position=positions[request.id],
                    cell_key=dumped.key if dumped else None,
                    status=dumped.record.status if dumped else without.status,
                    reason=dumped.record.reason if dumped else without.reason,
                    behaviour=dumped.record.behaviour if dumped else None,
                    reused=dumped.reused if dumped else False,
                )
            )
    return rows


def environment_rows(drawn: Mapping[str, DrawnEnvironment], held: Mapping[str, Control]) -> list[RunEnvironment]:
    """What was exercised of every environment, and what its controls showed."""
    rows = []
    for title, each in drawn.items():
        control = held.get(title, _NO_CONTROL)
        count, _ = each.stimulus.batches.get("forced", (0, 0))
        features = each.coverage.features if each.coverage is not None else None
        rows.append(
            RunEnvironment(
                environment=title,
                baseline=each.baseline,
                evidence=each.known.layout.evidence,
                states=count,
                coverage=_coverage(each),
                features=json.dumps(features) if features is not None else None,
                reproduced=control.reproduced,
                planted=control.planted,
                constant=control.constant,
                planted_ratio=control.ratio,
                reason=control.reason,
            )
        )
    return rows


def _coverage(drawn: DrawnEnvironment) -> str:
    if drawn.coverage is not None:
        return drawn.coverage.text
    if drawn.known.layout.evidence == "table":
        return f"all {drawn.known.layout.rows} transitions"
    trajectories, steps = drawn.stimulus.batches["horizon"]
    return f"replayed from {trajectories} seeds, {steps} steps each: its state cannot be imposed"


_NO_CONTROL = Control(reason="the baseline is not among the cells")

_NOBODY_TOLD = Failure(
    subject="",
    stage="probe",
    status=Status.UNAVAILABLE,
    reason="no release of the matrix could say what its states look like",
)
