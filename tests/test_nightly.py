"""Nights over an index that publishes version after version: what is new, what is told, what is dumped, exit codes."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import rows
from tests.package_index import PackageIndex, serving
from tests.simulated_nights import Nights, day, made

pytestmark = pytest.mark.timeout(900)  # the fixture is nine runs of the program, for whichever test comes first


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PackageIndex]:
    with serving(PackageIndex(folder=tmp_path_factory.mktemp("index"))) as served:
        served.publish_dependency("1.0", day(0))
        served.publish("1.0", "1.0", day(0))
        yield served


def after_the_first(nights: Nights, folder: Path, environment: Mapping[str, str], versions: str, **more: Any) -> Nights:
    """Other nights on a copy of the store as the first one left it."""
    shutil.copytree(nights.program.folder / "after the first night", folder / "results")
    return made(folder, nights.index, environment, versions, **more)


WAIVER = {
    "environment": "Spr*", "older": "tinysim-2.2", "newer": "tinysim-2.3", "reason": "rewards are to scale now",
    "who": "ada", "until": str(day(30)),
}  # fmt: skip
UNUSED = {**WAIVER, "newer": "tinysim-9.9"}
EXPIRED = {**WAIVER, "older": "tinysim-2.1", "newer": "tinysim-2.2", "until": str(day(-1))}


@pytest.fixture(scope="module")
def nights(index: PackageIndex, environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Nights:
    """The first night and all that may come after it; on the third the index is away."""
    folder = tmp_path_factory.mktemp("nights")
    (folder / "waivers.yaml").write_text(json.dumps({"waivers": [WAIVER, UNUSED, EXPIRED]}))
    nights = made(folder, index, environment)
    nights.night(1)
    shutil.copytree(nights.database.parent, folder / "after the first night")
    nights.night(2)
    nights.publish("2.1", "1.1", 3)
    nights.night(3, UV_INDEX="http://127.0.0.1:9/simple", UV_HTTP_RETRIES="0")
    nights.night(4)
    nights.publish("2.2", "1.3", 5)
    nights.night(5, "--junit=night.xml")
    nights.night(6)
    nights.publish("2.3", "1.4", 7)
    nights.night(7)
    index.publish_uninstallable("2.4", day(7))
    nights.night(8)
    nights.publish("2.5", "1.5", 9)
    index.yank("2.5", "wrong (very) file, sorry")
    index.yank("2.3", "")
    nights.night(9)
    nights.night(10)
    return nights


def test_the_first_night_records_the_matrix_without_alarm(nights: Nights) -> None:
    done = nights.results[1]
    assert done.code == 0, done.stdout
    assert "The first night: 1 release is recorded as it is, without alarm" in done.stdout
    assert nights.record(1)["first"]
    assert nights.dumped(1) == ["tinysim-1.0"]


def test_a_night_without_news_runs_nothing(nights: Nights) -> None:
    done = nights.results[2]
    assert done.code == 0
    assert "Nothing new" in done.stdout
    record = nights.record(2)
    assert (record["exit_code"], record["first"], record["run_id"], record["news"]) == (0, False, None, [])


def test_without_an_index_a_night_is_not_complete_and_nothing_is_lost(nights: Nights) -> None:
    away = nights.results[3]
    assert away.code == 3
    assert "the package index cannot be reached" in away.stdout
    assert "cannot be reached" in nights.told[3]
    assert nights.record(3)["exit_code"] == 3


def test_a_release_that_changes_nothing_is_news_without_alarm(nights: Nights) -> None:
    done = nights.results[4]
    assert done.code == 0
    assert "Nothing changed" in done.stdout
    assert nights.record(4)["news"] == ["tinysim 2.1"]
    assert nights.dumped(4) == ["tinysim-2.1"]
    assert "tinysim 2.1" in nights.told[4]


def test_a_change_is_alarming_once(nights: Nights) -> None:
    done, again = nights.results[5], nights.results[6]
    assert done.code == 1
    assert "Spring: tinysim-2.1 → tinysim-2.2: changed: state, observation, reward beyond the yardstick" in done.stdout
    assert nights.dumped(5) == ["tinysim-2.2"]
    assert nights.changes(5) == [("tinysim-2.1", "tinysim-2.2", "changed", "new")]
    assert "1 new change" in nights.told[5]
    assert '<failure message="changed: state' in (nights.program.folder / "night.xml").read_text()
    assert again.code == 0
    assert "Nothing new" in again.stdout
    assert nights.record(6)["run_id"] is None


def test_an_accepted_change_is_told_and_not_alarming(nights: Nights) -> None:
    done = nights.results[7]
    assert done.code == 0
    assert "1 change accepted" in done.stdout
    assert f"rewards are to scale now (ada, until {day(30)})" in done.stdout
    assert nights.dumped(7) == ["tinysim-2.3"]
    assert ("tinysim-2.2", "tinysim-2.3", "changed", "waived") in nights.changes(7)
    assert ("tinysim-2.1", "tinysim-2.2", "changed", "known") in nights.changes(7)
    record = nights.record(7)
    assert (record["new_changes"], record["waived_changes"], record["known_changes"]) == (0, 1, 1)


def test_expired_and_unused_waivers_are_told(nights: Nights) -> None:
    told = nights.results[7].stdout
    assert f"the waiver for Spr*: tinysim-2.1 → tinysim-2.2 expired on {day(-1)}" in told
    assert "the waiver for Spr*: tinysim-2.2 → tinysim-9.9 is not used" in told


def test_a_release_that_does_not_build_is_told_and_not_alarming(nights: Nights) -> None:
    done = nights.results[8]
    assert done.code == 0
    assert "1 could not be audited" in done.stdout
    assert "tinysim-2.4: unbuilt: " in done.stdout
    assert nights.dumped(8) == []
    assert nights.record(8)["not_audited"] == 1


def test_yanked_releases_are_told_once_and_not_audited(nights: Nights) -> None:
    done, later = nights.results[9], nights.results[10]
    assert done.code == 0
    assert "tinysim 2.5 has been yanked (wrong (very) file, sorry): it is not audited" in done.stdout
    assert "tinysim 2.3 has been yanked since: its results stay" in done.stdout
    assert "yanked" in nights.told[9]
    assert nights.dumped(9) == []
    assert later.code == 0
    assert "yanked" not in later.stdout
    assert rows(nights.database, "SELECT count(*) FROM dumps WHERE release = 'tinysim-2.3'") == [(1,)]


def test_every_night_is_kept(nights: Nights) -> None:
    found = rows(nights.database, "SELECT night, exit_code FROM nights ORDER BY started")
    assert found == [(str(day(number)), code) for number, code in enumerate([0, 0, 3, 0, 1, 0, 0, 0, 0, 0], 1)]


def test_a_new_version_of_a_dependency_is_news(nights: Nights, environment: dict[str, str], tmp_path: Path) -> None:
    index = nights.index
    nights = after_the_first(nights, tmp_path, environment, "==1.0", nightly={"also": ["dependencies"]})
    assert "Nothing new" in nights.night(19).stdout
    index.publish_dependency("2.0", day(20), "SCALE = 1.0 + 1e-9\n")
    done = nights.night(21)
    assert done.code == 1, done.stdout
    assert nights.record(21)["news"] == ["tinydep 1.0 → 2.0 under tinysim-1.0"]
    assert nights.changes(21) == [("tinysim-1.0", f"tinysim-1.0@{day(21)}", "changed", "new")]
    assert nights.dumped(21) == [f"tinysim-1.0@{day(21)}"]
    assert "Nothing new" in nights.night(22).stdout


def test_an_interrupted_night_is_made_up_for_and_a_second_one_is_refused_meanwhile(
    nights: Nights, environment: dict[str, str], tmp_path: Path
) -> None:
    nights = after_the_first(nights, tmp_path, environment, ">=1,!=2.1,<2.3")
    with nights.program.started(*nights.arguments(6)) as started:
        started.wait_for("resolving")
        program = started.program
        os.kill(program, signal.SIGSTOP)
        refused = nights.program(*nights.arguments(6))
        os.kill(program, signal.SIGCONT)
        started.process.send_signal(signal.SIGTERM)
        assert started.finish().code == 130
    assert refused.code == 3
    assert f"another nightly audit works on results/audit.duckdb, process {program}" in refused.sentence
    assert rows(nights.database, "SELECT finished FROM nights WHERE night = ?", str(day(6))) == [(None,)]
    done = nights.night(7)
    assert done.code == 1, done.stdout
    assert nights.record(7)["news"] == ["tinysim 2.2"]
    assert nights.changes(7) == [("tinysim-1.0", "tinysim-2.2", "changed", "new")]
