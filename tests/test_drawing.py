"""Drawing stimuli: what becomes of an environment for which no release makes a bank."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from audit.asked.matrix_file import MatrixFile
from audit.failures import MOST_RUNS, Failure, Status
from audit.installing.locks import Release
from audit.planning import drawing
from audit.planning.drawing import Stimuli
from audit.planning.probing import KnownLayout
from audit.processes.answers import CellAnswer
from audit.processes.dumper_process import CellOutcome, DumpJob
from audit.storage.store import Store
from audit.tools import Reporter, Tools
from tests import written_matrices
from tests.planned_cells import LAYOUT, came_to, planned
from tests.silent import Silent


@pytest.fixture
def file(tmp_path: Path) -> MatrixFile:
    text = written_matrices.SMALLEST.replace("CartPole-v1", "E\n    start: {low: [0, 0], high: [1, 1]}")
    return written_matrices.read(tmp_path, text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Banks:
    """What came of asking for banks, and who was asked."""

    stimuli: Stimuli
    asked: list[str]


def drawn(
    file: MatrixFile,
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
    says: dict[str, Status | CellAnswer],
    *,
    again: bool = False,
) -> Banks:
    """The stimuli, where each release answers, or its process fails, in its own way when it is asked for a bank."""
    asked: list[str] = []

    def build(releases: Sequence[Release], reporter: Reporter) -> dict[str, Failure]:
        return {}

    def run(job: DumpJob) -> Iterator[CellOutcome]:
        for cell in job.cells:
            asked.append(job.release)
            said = says[job.release]
            if isinstance(said, CellAnswer):
                yield came_to(job, cell, said)
                continue
            name, reason = f"{job.release}/{cell.label}", f"{job.release} failed"
            yield came_to(job, cell, Failure(subject=name, stage="bank", status=said, reason=reason))

    monkeypatch.setattr("audit.planning.building.build", build)
    monkeypatch.setattr("audit.processes.dumper_process.run", run)
    cells = [planned(name) for name in says]
    tools = Tools(store=store, runner=Silent(), reporter=Silent(), timeout=1.0, again=again)
    stimuli = drawing.draw(file, cells, {"E": KnownLayout(cell=cells[0], layout=LAYOUT)}, tools)
    return Banks(stimuli=stimuli, asked=asked)


def test_where_releases_cannot_make_a_bank_none_can_be_drawn(
    file: MatrixFile, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = drawn(file, store, monkeypatch, {"a": Status.CRASHED, "b": Status.TIMEOUT}).stimuli
    assert found.undrawable["E"].status is Status.UNDRAWABLE
    assert found.undrawable["E"].reason == "its bank of states could not be made: a failed"
    assert [(each.subject, each.status) for each in found.failures] == [("a/E", "crashed"), ("b/E", "timeout")]


def test_where_the_machine_failed_that_is_the_machines_fault(
    file: MatrixFile, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the audit is complete, and what is new that night is never looked at again."""
    found = drawn(file, store, monkeypatch, {"a": Status.CRASHED, "b": Status.DISK_FULL}).stimuli
    assert found.undrawable["E"].is_infrastructure
    assert found.undrawable["E"].reason == "its bank of states could not be made: b failed"


def bank_of(entries: int) -> CellAnswer:
    """A bank of one state of so many entries."""
    arrays: dict[str, NDArray[Any]] = {
        "states": np.zeros((1, entries)), "kept": np.zeros(1, np.int64), "source": np.zeros(1, np.uint8),
        "acting": np.zeros((1, 0), np.bool_),
    }  # fmt: skip
    return CellAnswer(status=Status.OK, reason="", meta={"features": []}, arrays=arrays)


def test_a_bank_of_other_states_is_asked_for_again_a_few_times(
    file: MatrixFile, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    says: dict[str, Status | CellAnswer] = {"a": bank_of(LAYOUT.state_size + 1), "b": bank_of(LAYOUT.state_size)}
    told = "the bank holds other states than were asked for"
    for asked in (["a", "b"], *[["a"]] * (MOST_RUNS - 1), []):
        came = drawn(file, store, monkeypatch, says)
        assert came.asked == asked
        assert came.stimuli.drawn["E"].baseline == "b"
        (failure,) = came.stimuli.failures
        assert (failure.subject, failure.stage, failure.status) == ("a/E", "bank", "damaged")
        assert failure.reason.startswith(told)
    says["a"] = bank_of(LAYOUT.state_size)
    came = drawn(file, store, monkeypatch, says, again=True)
    assert (came.asked, came.stimuli.drawn["E"].baseline, came.stimuli.failures) == (["a"], "a", ())


def test_a_bank_that_an_earlier_checkout_kept_as_damaged_is_asked_for_again(
    file: MatrixFile, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    says: dict[str, Status | CellAnswer] = {"a": bank_of(LAYOUT.state_size)}
    drawn(file, store, monkeypatch, says)
    assert drawn(file, store, monkeypatch, says).asked == []
    store.query("UPDATE internal.banks SET status = 'damaged', reason = 'other states', file = NULL")
    assert drawn(file, store, monkeypatch, says).asked == ["a"]
