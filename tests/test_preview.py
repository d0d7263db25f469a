"""What a plan looks at, and what it leaves alone: no code of a release is run for it, whatever a matrix allows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from audit.asked import matrix_file
from audit.confining import confinement
from audit.failures import Failure
from audit.installing import listing, locks, venvs
from audit.installing.locks import Release
from audit.installing.venvs import Recipe
from audit.verbs import preview
from tests import wheels
from tests.conftest import write_matrix
from tests.source_distributions import write_sdist

ENVIRONMENT = {"id": "CartPole-v1", "start": {"low": [-0.05] * 4, "high": [0.05] * 4}}


def planned(folder: Path, row: dict[str, Any]) -> tuple[Release | Failure, list[preview.PlannedRelease]]:
    """What becomes of the one release when it is resolved, and what was planned before that and is planned after."""
    file = matrix_file.read(write_matrix(folder / "planned.yaml", [row], [ENVIRONMENT]))
    before = preview.plan(file, folder / "none.duckdb")
    found = locks.resolve(listing.expand(file)[0])
    if isinstance(found, Release):
        assert venvs.ensure(Recipe.of(found), found.request.id) is None
    return found, [*before, *preview.plan(file, folder / "none.duckdb")]


@pytest.mark.parametrize("source", [True, ["tinysource"]])
def test_versions_are_listed_without_building_any(sources: Path, tmp_path: Path, source: object) -> None:
    write_sdist(sources, "raise SystemExit('it was built')")
    found, rows = planned(tmp_path, {"package": "tinysource", "versions": ">=1", "source": source})
    assert isinstance(found, Failure), "what is resolved is built"
    assert "it was built" in f"{found.reason} {found.stderr_tail}"
    assert [each.release for each in rows] == ["tinysource-1.0"] * 2


def test_no_virtualenv_is_started(sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheels.write(sources, "tinysource", "1.0", {"tinysource.py": ""}, ())
    started: list[tuple[Any, ...]] = []
    start = confinement.start

    def counted(*given: Any, **more: Any) -> Any:
        started.append(given)
        return start(*given, **more)

    monkeypatch.setattr(confinement, "start", counted)
    found, rows = planned(tmp_path, {"id": "one", "requires": ["tinysource==1.0"]})
    assert isinstance(found, Release)
    assert [each.built for each in rows] == [False, True]
    assert len(started) == 1, "where it was built"
