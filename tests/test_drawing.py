"""Drawing stimuli: what becomes of an environment for which no release makes a bank."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from audit.asked.matrix_file import MatrixFile
from audit.failures import Failure, Status
from audit.installing.locks import Release
from audit.planning import drawing
from audit.planning.drawing import Stimuli
from audit.planning.probing import KnownLayout
from audit.processes.dumper_process import CellOutcome, DumpJob
from audit.storage.store import Store
from audit.tools import Reporter, Tools
from tests import written_matrices
from tests.planned_cells import LAYOUT, came_to, planned
from tests.test_asking import Silent


@pytest.fixture
def file(tmp_path: Path) -> MatrixFile:
    text = written_matrices.SMALLEST.replace("CartPole-v1", "E\n    start: {low: [0, 0], high: [1, 1]}")
    return written_matrices.read(tmp_path, text)


def drawn(file: MatrixFile, store: Store, monkeypatch: pytest.MonkeyPatch, fails: dict[str, Status]) -> Stimuli:
    """The stimuli, where each release's process fails in its own way when it is asked for a bank."""

    def build(releases: Sequence[Release], reporter: Reporter) -> dict[str, Failure]:
        return {}

    def run(job: DumpJob) -> Iterator[CellOutcome]:
        for cell in job.cells:
            name, status = f"{job.release}/{cell.label}", fails[job.release]
            result = Failure(subject=name, stage="bank", status=status, reason=f"{job.release} failed")
            yield came_to(job, cell, result)

    monkeypatch.setattr("audit.planning.building.build", build)
    monkeypatch.setattr("audit.processes.dumper_process.run", run)
    cells = [planned(name) for name in fails]
    tools = Tools(store=store, runner=Silent(), reporter=Silent(), timeout=1.0)
    return drawing.draw(file, cells, {"E": KnownLayout(cell=cells[0], layout=LAYOUT)}, tools)


def test_where_releases_cannot_make_a_bank_none_can_be_drawn(
    file: MatrixFile, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = drawn(file, store, monkeypatch, {"a": Status.CRASHED, "b": Status.TIMEOUT})
    assert found.undrawable["E"].status is Status.UNDRAWABLE
    assert found.undrawable["E"].reason == "its bank of states could not be made: a failed"
    assert [(each.subject, each.status) for each in found.failures] == [("a/E", "crashed"), ("b/E", "timeout")]


def test_where_the_machine_failed_that_is_the_machines_fault(
    file: MatrixFile, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the audit is complete, and what is new that night is never looked at again."""
    found = drawn(file, store, monkeypatch, {"a": Status.CRASHED, "b": Status.DISK_FULL})
    assert found.undrawable["E"].is_infrastructure
    assert found.undrawable["E"].reason == "its bank of states could not be made: b failed"
