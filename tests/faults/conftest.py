"""What an undisturbed audit says, and a scene in which one is disturbed."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import CHAOS, SPRING, Finished, Program, dumpers, pairs, release, rows, write_matrix
from tests.faults import misbehaving

SMALL: dict[str, Any] = {
    "bank": {"states": 24, "budget": 200},
    "stimulus": {"seed": 7, "trajectories": 2, "steps": 40, "actions": "uniform"},
}
STEADY = ("1.0", "1.2", "1.3")
"""A baseline, one apart by rounding, one changed."""

_DONE = re.compile(r"^dumping \d+/\d+  (tinysim-\S+/\w+)  ", re.M)


_SHARED = {"day", "faulty", "nodes"}
"""Audits that the tests of a file read together: these tests stay on one worker, all others go wherever one is free."""


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.faults)
            for audit in _SHARED & set(getattr(item, "fixturenames", ())):
                item.add_marker(pytest.mark.xdist_group(audit))


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """An audit of three steady releases on two environments, in a folder of its own, to be disturbed."""

    program: Program
    matrix: Path
    undisturbed: list[tuple[Any, ...]]

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

    def result(self) -> list[tuple[Any, ...]]:
        return steady(pairs(self.database, self.matrix.stem))


def _dumped(finished: Finished) -> set[str]:
    """Cells that a run told as dumped; second looks and failures have other words behind their names."""
    return set(_DONE.findall(finished.stdout))


def steady(found: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """The pairs of steady releases, without their place among the others."""
    names = {f"tinysim-{version}" for version in STEADY}
    return [row for row in found if row[2] in names and row[3] in names]


@pytest.fixture(scope="session")
def faulty_wheels(wheelhouse: Path) -> Path:
    """The wheelhouse, with the misbehaving versions too."""
    misbehaving.build(wheelhouse)
    return wheelhouse


@pytest.fixture(scope="session")
def undisturbed(
    environment: Mapping[str, str], faulty_wheels: Path, tmp_path_factory: pytest.TempPathFactory
) -> list[tuple[Any, ...]]:
    program = Program(folder=tmp_path_factory.mktemp("undisturbed"), environment=environment)
    matrix = write_matrix(program.folder / "steady.yaml", list(map(release, STEADY)), [SPRING, CHAOS], **SMALL)
    finished = program("run", matrix, "--db", "results/audit.duckdb")
    assert finished.code == 0, finished.stdout + finished.stderr
    found = pairs(program.folder / "results/audit.duckdb", "steady")
    assert [row[5] for row in found].count("changed") == 2
    return found


@pytest.fixture
def scene(release_audit: Program, undisturbed: list[tuple[Any, ...]], shared_cache: Path) -> Scene:
    matrix = write_matrix(release_audit.folder / "steady.yaml", list(map(release, STEADY)), [SPRING, CHAOS], **SMALL)
    return Scene(program=release_audit, matrix=matrix, undisturbed=undisturbed)


@pytest.fixture
def nothing_left(shared_cache: Path) -> None:
    """No dumper is left when the test begins."""
    assert dumpers(shared_cache) == []


@pytest.fixture
def own_venvs(scene: Scene, shared_cache: Path) -> str:
    """A cache of virtualenvs that the test may spoil, filled from the shared one."""
    place = scene.folder / "cache"
    shutil.copytree(shared_cache, place, symlinks=True, ignore=shutil.ignore_patterns("work"))
    return str(place)
