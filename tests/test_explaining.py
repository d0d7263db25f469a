"""Explanations of an audit that were not all made: by who is interrupted, of who does not answer, by workers lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pytest

from audit import pipeline
from audit.asked import matrix_file
from audit.cluster.jobs import Job, Outcome
from audit.explanations import explaining, showing
from audit.explanations.explaining import Explanation
from audit.explanations.session import Inline, Quiet
from audit.failures import MOST_RUNS, Status
from audit.pipeline import AuditResult
from audit.processes.dumper_process import DumpJob
from audit.storage.records import Examination
from audit.storage.store import Store
from audit.tools import Tools
from tests import recorded_behaviours, tinysim
from tests.conftest import SPRING, Finished, Program, release, rows, write_matrix
from tests.planned_cells import planned
from tests.tinysim import Plant

FEW: dict[str, Any] = {
    "bank": {"states": 24, "budget": 200},
    "stimulus": {"seed": 7, "trajectories": 1, "steps": 20, "actions": "uniform"},
}
_CHANGED = {"damping = 0.3": "damping = 0.3 * (1 + 1e-6)"}
_LAST = 'gymnasium.register("tinysim/Chaos-v0", entry_point=Chaos)\n'
_ASKED = """{last}
from dumper import stages


def record(world, given):
    {does}


stages.record = record
"""
RAISES, HANGS = "5.0", "5.1"
"""Versions that do so where the stages of their steps are looked into, and only there."""


class Losing(Inline):
    """Loses whoever looks into stages, as a node is lost."""

    def run(self, jobs: Sequence[Job[Outcome]]) -> Iterator[Outcome]:
        for job in jobs:
            examines = isinstance(job, DumpJob) and {each.task for each in job.cells} & {"anatomy", "stages"}
            yield from job.lost("the node went away") if examines else job.run()


Audits = Callable[..., AuditResult]


@pytest.fixture
def audit(environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Audits:
    """Audits of 1.0, 1.3 and 1.5 in this process, each on a store of its name."""
    for name in ("UV_FIND_LINKS", "RELEASE_AUDIT_CACHE"):
        monkeypatch.setenv(name, environment[name])
    path = write_matrix(tmp_path / "m.yaml", list(map(release, ("1.0", "1.3", "1.5"))), [SPRING], **FEW)

    def run(name: str, runner: Inline) -> AuditResult:
        with Store(tmp_path / name / "audit.duckdb") as store:
            tools = Tools(store=store, runner=runner, reporter=Quiet(), timeout=60.0)
            return pipeline.audit(matrix_file.read(path), tools, laws=False)

    return run


def _scripts(folder: Path) -> dict[str, str]:
    found = sorted((folder / showing.FOLDER).rglob("*.*"))
    return {str(path.relative_to(folder)): path.read_text(encoding="utf-8") for path in found if path.is_file()}


def _explained(folder: Path) -> list[tuple[Any, ...]]:
    return rows(folder / "audit.duckdb", "SELECT * FROM explanations ORDER BY ALL")


def test_who_is_interrupted_before_a_script_is_written_has_all_of_them_the_next_time(
    audit: Audits, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    audit("whole", Inline())

    def interrupted(*_: object) -> str:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(showing, "reproduce", interrupted)
        with pytest.raises(KeyboardInterrupt):
            audit("broken", Inline())
    assert audit("broken", Inline()).exit_code == 0
    assert _scripts(tmp_path / "broken") == _scripts(tmp_path / "whole")
    assert _explained(tmp_path / "broken") == _explained(tmp_path / "whole")
    assert len([name for name in _scripts(tmp_path / "whole") if name.endswith("reproduce.py")]) == 2


def test_an_explanation_that_the_machine_lost_makes_the_audit_incomplete_until_it_is_made_good(
    audit: Audits, tmp_path: Path
) -> None:
    lost = audit("lost", Losing())
    database = tmp_path / "lost" / "audit.duckdb"
    assert lost.exit_code == 3
    assert rows(database, "SELECT exit_code FROM internal.runs") == [(3,)]
    failed = rows(database, "SELECT subject, stage, status, reason FROM failures ORDER BY ALL")
    assert {each[1:] for each in failed} == {
        (stage, "worker-lost", "the node went away") for stage in ("anatomy", "stages")
    }
    assert all("worker-lost: the node went away" in reason for *_, reason in _explained(tmp_path / "lost"))
    assert audit("lost", Inline()).exit_code == 0
    assert rows(database, "SELECT count(*) FROM failures") == [(0,)]
    audit("whole", Inline())
    assert _explained(tmp_path / "lost") == _explained(tmp_path / "whole")
    assert _scripts(tmp_path / "lost") == _scripts(tmp_path / "whole")


def _audited(program: Program, folder: Path, version: str, does: str) -> tuple[Path, Callable[[], Finished]]:
    """An audit of a release that does this where its stages are looked into."""
    replaced = {**_CHANGED, _LAST: _ASKED.format(last=_LAST, does=does)}
    (folder / "wheels").mkdir()
    tinysim.write_plant(folder / "wheels", Plant(version=version, what=does, replaced=replaced))
    matrix = write_matrix(program.folder / "m.yaml", [release("1.0"), release(version)], [SPRING], **FEW)
    sources = f"{program.environment['UV_FIND_LINKS']},{folder / 'wheels'}"
    database = program.folder / "audit.duckdb"

    def run() -> Finished:
        finished = program("run", matrix, "--db", database, "--timeout", "4", UV_FIND_LINKS=sources)
        assert finished.code == 0, finished.stdout + finished.stderr
        return finished

    return database, run


def test_a_release_that_raises_where_it_is_looked_into_is_told_and_not_asked_again(
    release_audit: Program, tmp_path: Path
) -> None:
    database, run = _audited(release_audit, tmp_path, RAISES, "raise RuntimeError('not to be looked into')")
    assert "examining" in run().stdout
    ((reason,),) = rows(database, "SELECT reason FROM explanations")
    assert reason.startswith(f"tinysim-{RAISES}/Spring (stages ")
    assert "): raised: RuntimeError: not to be looked into" in reason
    assert "examining" not in run().stdout


def test_a_release_that_hangs_where_it_is_looked_into_is_told_and_given_up(
    release_audit: Program, tmp_path: Path
) -> None:
    database, run = _audited(release_audit, tmp_path, HANGS, "import time; time.sleep(3600)")
    assert "): timeout" in run().stdout
    ((reason,),) = rows(database, "SELECT reason FROM explanations")
    assert "): timeout: no answer within 4 s" in reason
    assert rows(database, "SELECT DISTINCT runs FROM internal.attempts") == [(1,)]
    with duckdb.connect(str(database)) as connection:
        connection.execute("UPDATE internal.attempts SET runs = ?", [MOST_RUNS])
    assert "examining" not in run().stdout
    ((reason,),) = rows(database, "SELECT reason FROM explanations")
    assert f"; so it did in {MOST_RUNS} runs, and is not tried again" in reason


def test_of_tables_of_other_transitions_no_entry_is_said_to_be_lost(store: Store) -> None:
    """Nor do they have to have any."""
    full = recorded_behaviours.table()
    empty = {name: array[:0] if name.startswith("forced.") else array for name, array in full.items()}
    recorded_behaviours.keep(store, "full", full)
    recorded_behaviours.keep(store, "empty", empty)
    recorded_behaviours.keep(store, "otherwise", {**empty, "spaces": recorded_behaviours.text(b"{}")})
    tools = Tools(store=store, runner=Inline(), reporter=Quiet(), timeout=1.0)
    found: list[Explanation] = []
    for behaviours in (("full", "empty"), ("empty", "otherwise")):
        pair = explaining.pair(store, planned("a"), planned("b"), behaviours, ())
        for each in pair.questions:
            answer = Examination(status=Status.UNAVAILABLE, reason="a table has no constants", meta={}, arrays={})
            store.explanations.put_examination(each.key, answer)
        assert explaining.explain([pair], tools, found.append) == ()
    assert [each.record.interface for each in found] == ["", ""]
