"""What an undisturbed audit says, and a scene in which one is disturbed."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from audit.explanations import showing
from tests.conftest import CHAOS, SPRING, Finished, Program, pairs, release, rows, write_matrix
from tests.faults import misbehaving

SMALL: dict[str, Any] = {
    "bank": {"states": 24, "budget": 200},
    "stimulus": {"seed": 7, "trajectories": 2, "steps": 40, "actions": "uniform"},
}
STEADY = ("1.0", "1.7", "1.3")
"""A baseline, one whose rounding is amplified, one changed."""
NAMES = {f"tinysim-{version}" for version in STEADY}

_DONE = re.compile(r"^dumping \d+/\d+  (tinysim-\S+/\w+)  ", re.M)


_SHARING = ("test_core.py", "test_packages.py", "test_nodes.py")
"""Files whose tests read one audit together: they stay on one worker, all others go wherever one is free."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.faults)


class _Spread(LoadScopeScheduling):  # type: ignore[misc]  # xdist brings no types
    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return file if Path(file).name in _SHARING else nodeid


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> _Spread:
    """Which tests stay together. xdist's own groups are marks, which pytest 9.2 no longer lets it read."""
    return _Spread(config, log)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """All that the latest audit of a matrix says of the steady releases, and what it left beside its store."""

    pairs: list[tuple[Any, ...]]
    failures: list[tuple[Any, ...]]
    """Of all releases."""
    environments: list[tuple[Any, ...]]
    """With what the controls came to."""
    certificates: list[tuple[Any, ...]]
    explanations: list[tuple[Any, ...]]
    constants: list[tuple[Any, ...]]
    stages: list[tuple[Any, ...]]
    reproducers: dict[str, str]
    """Texts by the names of their files."""

    @classmethod
    def of(cls, database: Path, matrix: str) -> Result:
        return cls(
            pairs=steady(pairs(database, matrix)),
            failures=_view(database, "failures", matrix),
            environments=_view(database, "environments", matrix),
            certificates=steady(_view(database, "certificates", matrix)),
            explanations=steady(_view(database, "explanations", matrix)),
            constants=steady(_view(database, "constant_differences", matrix)),
            stages=steady(_view(database, "stage_differences", matrix)),
            reproducers=_reproducers(database.parent / showing.FOLDER),
        )


def _view(database: Path, name: str, matrix: str) -> list[tuple[Any, ...]]:
    return rows(database, f"SELECT * FROM {name} WHERE matrix = ? ORDER BY ALL", matrix)


def _reproducers(folder: Path) -> dict[str, str]:
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        _, older, newer = name.parts[0].split("__")
        if path.is_file() and {older, newer.rpartition("-")[0]} <= NAMES:
            found[str(name)] = path.read_text(encoding="utf-8")
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """An audit of the steady releases on two environments, in a folder of its own, to be disturbed."""

    program: Program
    matrix: Path
    undisturbed: Result
    failing: str = ""
    """What fails by its own doing, however often it is run."""

    @property
    def folder(self) -> Path:
        return self.program.folder

    @property
    def database(self) -> Path:
        return self.folder / "results" / "audit.duckdb"

    def run(self, *arguments: str | Path, **environment: str) -> Finished:
        return self.program("run", self.matrix, "--db", self.database, *arguments, **environment)

    def stored(self) -> dict[str, str]:
        """Behaviours by the keys of their cells."""
        if not self.database.is_file():
            return {}
        sql = "SELECT cell_key, behaviour FROM internal.dumps WHERE behaviour IS NOT NULL"
        return dict(rows(self.database, sql))

    def made_good(self, disturbed: Finished | None = None, **environment: str) -> Finished:
        """Run it again: nothing that was stored is lost or made anew, and the result is the undisturbed one."""
        before = self.stored()
        told = _dumped(disturbed) if disturbed is not None else set()
        again = self.run(**environment)
        assert told & _dumped(again) == set(), "what was told as dumped is stored, and not dumped again"
        assert again.code == 0, again.stdout + again.stderr
        assert before.items() <= self.stored().items()
        assert self.result() == self.undisturbed
        assert "Traceback" not in again.stdout + again.stderr
        return again

    def result(self) -> Result:
        found = Result.of(self.database, self.matrix.stem)
        # A run that lacked a release had other neighbours, and their scripts stay.
        scripts = {name: text for name, text in found.reproducers.items() if name in self.undisturbed.reproducers}
        failures = [row for row in found.failures if row[1] != self.failing]
        return replace(found, failures=failures, reproducers=scripts)


def _dumped(finished: Finished) -> set[str]:
    """Cells that a run told as dumped; second looks and failures have other words behind their names."""
    return set(_DONE.findall(finished.stdout))


def steady(found: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """The pairs of steady releases, without their place among the others."""
    return [row for row in found if row[2] in NAMES and row[3] in NAMES]


@pytest.fixture(scope="session")
def faulty_wheels(wheelhouse: Path) -> Path:
    """The wheelhouse, with the misbehaving versions too."""
    misbehaving.build(wheelhouse)
    return wheelhouse


@pytest.fixture(scope="session")
def finished_results(
    environment: Mapping[str, str], faulty_wheels: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The folder of an audit that nobody disturbed."""
    program = Program(folder=tmp_path_factory.mktemp("undisturbed"), environment=environment)
    matrix = write_matrix(program.folder / "steady.yaml", list(map(release, STEADY)), [SPRING, CHAOS], **SMALL)
    finished = program("run", matrix, "--db", "results/audit.duckdb")
    assert finished.code == 0, finished.stdout + finished.stderr
    return program.folder / "results"


@pytest.fixture(scope="session")
def undisturbed(finished_results: Path) -> Result:
    found = Result.of(finished_results / "audit.duckdb", "steady")
    assert [row[5] for row in found.pairs].count("changed") == 2
    assert not found.failures
    assert found.certificates
    assert found.constants
    assert found.stages
    assert {Path(name).name for name in found.reproducers} >= {"reproduce.py", "ISSUE.md", "case.json"}
    return found


@pytest.fixture
def scene(release_audit: Program, undisturbed: Result, shared_cache: Path) -> Scene:
    matrix = write_matrix(release_audit.folder / "steady.yaml", list(map(release, STEADY)), [SPRING, CHAOS], **SMALL)
    return Scene(program=release_audit, matrix=matrix, undisturbed=undisturbed)


@pytest.fixture
def audited(scene: Scene, finished_results: Path) -> Scene:
    """The scene after its audit."""
    shutil.copytree(finished_results, scene.database.parent)
    assert scene.result() == scene.undisturbed
    return scene


@pytest.fixture
def own_venvs(scene: Scene, shared_cache: Path) -> str:
    """A cache of virtualenvs that the test may spoil, filled from the shared one."""
    place = scene.folder / "cache"
    shutil.copytree(shared_cache, place, symlinks=True, ignore=shutil.ignore_patterns("work"))
    return str(place)
