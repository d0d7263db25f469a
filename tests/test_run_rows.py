"""What a run says of cells that have no dump, where several things failed."""

from __future__ import annotations

from pathlib import Path

import pytest

from audit import pipeline
from audit.failures import Failure, Status
from audit.pipeline import Planned
from audit.planning.drawing import Stimuli
from audit.planning.probing import Layouts
from audit.planning.releasing import ResolvedReleases
from audit.storage.store import Store
from audit.tools import Tools
from tests import written_matrices
from tests.planned_cells import batch, drawn, planned
from tests.silent import Silent
from tests.stored_runs import RUN


@pytest.mark.parametrize("drawable", [True, False])
def test_a_cell_has_no_dump_for_what_failed_last(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, drawable: bool
) -> None:
    """``a`` died of the probe and ``b`` told; then neither could be had, which is the machine's doing."""
    unbuilt = {
        name: Failure(subject=name, stage="build", status=Status.UNREACHABLE, reason="no index") for name in ("a", "b")
    }
    monkeypatch.setattr("audit.planning.building.build", lambda *_: unbuilt)
    cells = (planned("a"), planned("b", position=1))
    died = Failure(subject="a/E", stage="probe", status=Status.CRASHED, reason="it died")
    requests = tuple(cell.release.request for cell in cells)
    stimulus = {"E": drawn(cells[1], batch(2, 3), batch(4, 1))} if drawable else {}
    found = pipeline.record(
        Planned(
            file=written_matrices.read(tmp_path, written_matrices.SMALLEST.replace("CartPole-v1", "E")),
            run=RUN,
            releases=ResolvedReleases(requests=requests, resolved={}, unresolved=()),
            cells=cells,
            layouts=Layouts(known={}, failures=(died,), unbuilt={}),
            stimuli=Stimuli(drawn=stimulus, undrawable={}),
        ),
        Tools(store=store, runner=Silent(), reporter=Silent(), timeout=1.0),
    )
    assert died in found.failures
    assert found.rows[0].status == ("unreachable" if drawable else "crashed")
