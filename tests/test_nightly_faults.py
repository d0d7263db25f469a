"""Nights on which releases do worse than change, or nothing can be seen: each is told, once where it can be.

All cases share three nights: the first, one on which everything appears, and one on which it stays or is mended.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests import tinysim
from tests.conftest import PINS, SPRING, rows, write_matrix
from tests.package_index import PackageIndex, serving
from tests.simulated_nights import Nights, day, program_with

pytestmark = pytest.mark.timeout(600)  # the fixture is three runs of the program, for whichever test comes first

SMALL = {
    "stimulus": {"seed": 7, "trajectories": 2, "steps": 20, "actions": "uniform"},
    "bank": {"states": 32, "nudges": 2, "budget": 200},
    "exclude-newer": str(day(0)),
}
LARGER_STATE = {
    "self.state = np.array([1.0, 0.0])": "self.state = np.array([1.0, 0.0, 0.0])",
    "position, velocity = self.state\n": "position, velocity, _ = self.state\n",
    "self.state = np.array([position, velocity])": "self.state = np.array([position, velocity, 0.0])",
    "return self.state.copy()\n\n\n": "return self.state[:2].copy()\n\n\n",
}


def matrix(folder: Path, name: str, major: int, pins: str = "tinydep==1.0", **spring: Any) -> Path:
    row = {"package": "tinysim", "versions": f"=={major}.*", "pins": [*PINS, pins]}
    return write_matrix(folder / f"{name}.yaml", [row], [{**SPRING, **spring}], **SMALL)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PackageIndex]:
    with serving(PackageIndex(folder=tmp_path_factory.mktemp("index"))) as served:
        served.publish_dependency("1.0", day(0))
        for version in ("10.0", "11.0", "12.0", "13.0", "15.0"):
            served.publish(version, "1.0", day(0))
        served.publish("14.0", "1.33", day(0))
        yield served


@pytest.fixture(scope="module")
def nights(index: PackageIndex, environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Nights:
    folder = tmp_path_factory.mktemp("nights")
    matrices = (
        matrix(folder, "larger", 10),
        matrix(folder, "unsteady", 11),
        matrix(folder, "waiting", 12, pins="tinydep<4"),
        matrix(folder, "unbuilt", 15, pins="tinydep<4"),
        matrix(folder, "empty", 13, id="tinysim:tinysim/Nowhere-v0"),
        matrix(folder, "blind", 14),
    )
    nights = Nights(program=program_with(index, folder, environment), index=index, matrices=matrices)
    nights.night(1)
    index.publish_planted("10.1", LARGER_STATE, day(1))
    nights.publish("11.1", "1.30", 2)
    tinysim.write_version(index.folder, "12.1", "1.3", ("gymnasium", "tinydep==3.0"))
    index.uploaded["tinysim-12.1-py3-none-any.whl"] = day(1)
    index.publish_uninstallable("15.1", day(1))
    nights.night(2, "--json=/dev/full")
    index.publish_planted("10.2", LARGER_STATE, day(2))
    index.publish_dependency("3.0", day(2))
    lose_the_python(nights.database, "blind")
    nights.night(3, UV_PYTHON_DOWNLOADS="never")
    return nights


def lose_the_python(database: Path, matrix: str) -> None:
    """What was audited with a Python that this machine has no longer."""
    with duckdb.connect(str(database)) as store:
        store.execute(
            """UPDATE internal.watched_releases SET request = replace(request, '"python": "3.11"', '"python": "3.99"')
            WHERE matrix = ?""",
            [matrix],
        )


def code(nights: Nights, number: int, name: str) -> int:
    return int(nights.record(number, name)["exit_code"])


def test_a_state_of_another_size_is_told_once(nights: Nights) -> None:
    assert nights.changes(2, "larger") == [("tinysim-10.0", "tinysim-10.1", "incomparable", "new")]
    assert code(nights, 2, "larger") == 1
    assert nights.record(3, "larger")["news"] == ["tinysim 10.2"]
    assert ("tinysim-10.0", "tinysim-10.2", "incomparable", "known") in nights.changes(3, "larger")
    assert code(nights, 3, "larger") == 0


def test_a_release_that_does_not_reproduce_itself_is_told_once(nights: Nights) -> None:
    assert nights.changes(2, "unsteady") == [("tinysim-11.0", "tinysim-11.1", "nondeterministic", "new")]
    assert code(nights, 2, "unsteady") == 1
    assert nights.record(3, "unsteady")["run_id"] is None


def test_a_release_that_resolves_later_is_audited_then(nights: Nights) -> None:
    first = nights.record(2, "waiting")
    assert (first["exit_code"], first["not_audited"]) == (0, 1)
    assert "tinysim-12.1: unresolved: " in first["summary"]
    assert nights.record(3, "waiting")["news"] == ["tinysim 12.1"]
    assert nights.changes(3, "waiting") == [("tinysim-12.0", "tinysim-12.1", "changed", "new")]
    assert code(nights, 3, "waiting") == 1


def test_a_release_that_does_not_build_again_is_not_told_again(nights: Nights) -> None:
    """With another lock it is tried; that it failed has been told."""
    assert "tinysim-15.1: unbuilt: " in nights.record(2, "unbuilt")["summary"]
    again = nights.record(3, "unbuilt")
    assert again["run_id"] is not None
    assert (again["exit_code"], again["news"], again["not_audited"]) == (0, [], 0)
    assert "## unbuilt" not in nights.told[3]


def test_nights_that_can_see_nothing_go_on_saying_so(nights: Nights) -> None:
    for number in (1, 2, 3):
        record = nights.record(number, "empty")
        assert record["exit_code"] == 3
        assert record["summary"].startswith(f"empty, night of {day(number)}: Nothing could be audited: no release")
    assert [code(nights, number, "blind") for number in (1, 2)] == [3, 3]
    assert "Blind on Spring" in nights.record(2, "blind")["summary"]


def test_a_python_that_is_gone_is_a_failure_of_the_machine(nights: Nights) -> None:
    record = nights.record(3, "blind")
    assert record["exit_code"] == 3
    assert "Not complete: tinysim-14.0: no Python 3.99 is installed" in record["summary"]
    failed = "SELECT status FROM internal.run_releases WHERE run_id = ?"
    assert rows(nights.database, failed, record["run_id"]) == [("no-python",)]
    assert "Traceback" not in nights.results[3].stderr


def test_a_change_is_told_although_its_summary_cannot_be_written(nights: Nights) -> None:
    done = nights.results[2]
    assert done.code == 1
    assert "the summary --json /dev/full could not be written: No space left on device" in done.stderr
    assert "## larger" in nights.told[2]
    refused = nights.program(*nights.arguments(4), f"--json={nights.program.folder}")
    assert (refused.code, "is a directory" in refused.sentence) == (2, True)


def test_a_night_to_come_is_refused(nights: Nights) -> None:
    refused = nights.program(*nights.arguments(10**6))
    assert (refused.code, "is still to come" in refused.sentence) == (2, True)
