"""``explain`` on planted changes: the constant, the order of an observation, or the variable, and the package."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests import tinychain
from tests.conftest import rows
from tests.tinychain import Desk


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory, shared_cache: Path) -> Desk:
    return tinychain.desk(tmp_path_factory.mktemp("explained"), shared_cache)


def explained(desk: Desk, name: str, older: str, newer: str, *options: str) -> dict[str, Any]:
    done = desk.search("explain", name, older, newer, "--json", "-", *options)
    assert done.code == 0, done.stderr
    return dict(json.loads(done.stdout))


def test_a_changed_constant_is_named_with_the_digits_that_tell_it_apart(desk: Desk) -> None:
    found = explained(desk, "Damped", "tinychain==0.12", "tinychain==0.13")
    assert "attribute.damping: 0.3 → 0.3000003" in found["constants"]
    assert (found["stage"], found["fields"]) == ("Chain.solve", "following#1")
    assert found["packages"] == ["tinychain 0.12 → 0.13"]


def test_a_changed_tolerance_of_a_solver_is_named(desk: Desk) -> None:
    found = explained(desk, "Solved", "tinychain==0.19", "tinychain==0.22")
    assert "attribute.tolerance: 1e-13 → 1e-06" in found["constants"]
    assert found["packages"] == ["tinychain 0.19 → 0.22"]


def test_a_reordered_observation_is_an_interface_change(desk: Desk) -> None:
    found = explained(desk, "Seen", "tinychain==0.30", "tinychain==0.31")
    assert found["interface"] == "the observation's entries 0, 1 are at 1, 0"


def test_a_dtype_narrowed_in_a_dependency_is_seen_in_the_variable_it_reaches(desk: Desk) -> None:
    found = explained(desk, "Narrow", "tinymath==1.2", "tinymath==1.3", "--with", "tinychain==0.12")
    assert (found["stage"], found["fields"]) == ("Narrow.pull", "return")
    assert found["packages"] == ["tinymath 1.2 → 1.3"]
    assert found["constants"] == []


def test_the_dependency_is_blamed_where_the_user_upgraded_another(desk: Desk) -> None:
    older = "tinychain==0.12 tinymath==1.2"
    found = explained(desk, "Narrow", older, "tinychain==0.36")
    assert found["packages"] == ["tinymath 1.2 → 1.5"]


def test_what_was_taken_back_is_nothing_to_explain(desk: Desk) -> None:
    done = desk.search("explain", "Pushed", "tinychain==0.27", "tinychain==0.30")
    assert done.code == 2
    assert "there is nothing to explain" in done.stderr


def test_of_rounding_no_reason_is_announced_that_nobody_has(desk: Desk) -> None:
    done = desk.search("explain", "Seen", "tinychain==0.16", "tinychain==0.18")
    assert done.code == 2
    assert done.sentence.endswith("tinychain-0.16 and tinychain-0.18 are rounding")


def test_everything_is_in_the_store(desk: Desk) -> None:
    explained(desk, "Damped", "tinychain==0.12", "tinychain==0.13")
    found = rows(desk.database, "SELECT field FROM internal.constant_differences WHERE kind = 'changed'")
    assert ("attribute.damping",) in found
    assert rows(desk.database, "SELECT count(*) > 0 FROM internal.stage_differences") == [(True,)]
