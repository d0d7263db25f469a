"""Nights that are not like others: small steps that add up, releases written out, pre-releases, dependencies, edits of
a matrix, an index that tells no times, interruptions, hooks that fail. Several matrices share a night where they can.
"""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from audit.nights import hook
from tests.conftest import PINS, SPRING, Finished, dumpers, rows, wait_until, write_matrix
from tests.package_index import PackageIndex, serving
from tests.simulated_nights import HOOK, Nights, day, program_with

pytestmark = pytest.mark.timeout(600)  # the fixture is five runs of the program, for whichever test comes first

SMALL = {
    "stimulus": {"seed": 7, "trajectories": 2, "steps": 20, "actions": "uniform"},
    "bank": {"states": 32, "nudges": 2, "budget": 200},
    "exclude-newer": str(day(0)),
}
CALM = [*PINS, "tinydep==1.0"]
FAILING_HOOK = f"{HOOK}; echo sent; exit 4"


def damping(factor: str) -> dict[str, str]:
    return {"damping = 0.3": f"damping = 0.3 * (1 + {factor})"}


SLOW = ">=3,<5,!=3.1,!=3.2,!=3.3,!=3.4"
UNUSED = {"environment": "*", "older": "a", "newer": "b", "reason": "r", "who": "ada", "until": str(day(30))}
SLOW_AND_CHANGED = {"import tinydep\n": "import time, tinydep\n\ntime.sleep(2)\n", **damping("1e-6")}


def matrix(folder: Path, name: str, releases: list[dict[str, Any]], **nightly: Any) -> Path:
    return write_matrix(folder / f"{name}.yaml", releases, [SPRING], nightly=nightly, **SMALL)


def later(nights: Nights, folder: Path) -> Nights:
    """Other nights, on a copy of the store as the last one left it; their matrices are still to be written."""
    shutil.copytree(nights.database.parent, folder / "results")
    program = replace(nights.program, folder=folder)
    return Nights(program=program, index=nights.index, matrices=())


def ranged(versions: str) -> dict[str, Any]:
    return {"package": "tinysim", "versions": versions, "pins": CALM}


def written(version: str, **more: Any) -> dict[str, Any]:
    return {"id": f"tinysim-{version}", "requires": [f"tinysim=={version}"], "pins": CALM, **more}


def matrices(folder: Path) -> tuple[Path, ...]:
    """One for each case that fits into the same nights."""
    series = [written("3.0", series="old"), written("3.0", id="new", series="new", pins=PINS)]
    return (
        matrix(folder, "drift", [ranged(">=3,<4")]),
        matrix(folder, "watch", [written("5.0")], watch=["tinysim"]),
        matrix(folder, "early", [written("5.0")], watch=["tinysim"], prereleases=True),
        matrix(folder, "late", [written("5.0")]),
        matrix(folder, "slow", [ranged(SLOW)]),
        matrix(folder, "beneath", series, also=["dependencies"]),
    )


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PackageIndex]:
    with serving(PackageIndex(folder=tmp_path_factory.mktemp("index"))) as served:
        served.publish_dependency("1.0", day(0))
        served.publish_dependency("2.0", day(0), "SCALE = 1.0 + 1e-9\n")
        for version in ("3.0", "5.0"):
            served.publish(version, "1.0", day(0))
        yield served


@pytest.fixture(scope="module")
def nights(index: PackageIndex, environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Nights:
    """The first night, on which dependencies have moved since the matrix's day, and four more; two begin with edits."""
    folder = tmp_path_factory.mktemp("nights")
    (folder / "waivers.yaml").write_text(json.dumps({"waivers": [UNUSED]}))
    nights = Nights(program=program_with(index, folder, environment), index=index, matrices=matrices(folder))
    index.publish_planted("3.1", damping("1.5e-11"), day(0))
    index.publish_dependency("2.1", day(1), "SCALE = 1.0 + 2e-9\n")
    nights.night(2)
    index.publish_planted("3.2", damping("3e-11"), day(2))
    nights.publish("5.1rc1", "1.3", 3)
    index.publish_dependency("2.2", day(2), "SCALE = 1.0 + 2e-9\n\n")
    nights.night(3, "--json", "-", "--notify", FAILING_HOOK)
    index.publish_planted("3.3", damping("3e-11"), day(3))
    nights.publish("5.1", "1.3", 4)
    nights.night(4, str(matrix(folder, "nowhere", [ranged(">=99")])))
    matrix(folder, "late", [written("5.0")], watch=["tinysim"])
    matrix(folder, "watch", [written("5.0")], watch=["tinysim"], prereleases=True)
    nights.night(5)
    matrix(folder, "watch", [written("5.0"), written("5.1")], watch=["tinysim"])
    nights.night(6)
    return nights


def test_small_steps_that_add_up_are_alarming_once(nights: Nights) -> None:
    assert nights.changes(2, "drift") == []
    assert nights.changes(3, "drift") == [("tinysim-3.0", "tinysim-3.2", "changed", "new")]
    neighbours = "SELECT verdict FROM pairs WHERE matrix = 'drift' AND older = 'tinysim-3.1' AND newer = 'tinysim-3.2'"
    assert rows(nights.database, neighbours)[0][0] in ("rounding", "amplified")
    record = nights.record(4, "drift")
    assert (record["exit_code"], record["news"], record["new_changes"]) == (0, ["tinysim 3.3"], 0)
    assert nights.changes(4, "drift") == [("tinysim-3.0", "tinysim-3.3", "changed", "known")]
    assert nights.record(5, "drift")["run_id"] is None


def test_a_package_that_is_written_out_is_watched(nights: Nights) -> None:
    assert nights.changes(4, "watch") == [("tinysim-5.0", "tinysim-5.1", "changed", "new")]
    assert nights.dumped(4, "watch") == ["tinysim-5.1"]


def test_pre_releases_count_on_request_alone(nights: Nights) -> None:
    assert nights.record(3, "early")["news"] == ["tinysim 5.1rc1"]
    assert nights.changes(3, "early") == [("tinysim-5.0", "tinysim-5.1rc1", "changed", "new")]
    assert nights.record(3, "watch")["run_id"] is None
    final = nights.record(4, "early")
    assert (final["news"], final["exit_code"]) == (["tinysim 5.1"], 0), "the change came with the pre-release"
    assert nights.record(4, "watch")["news"] == ["tinysim 5.1"]


def test_dependencies_that_moved_before_the_first_night_are_recorded_on_it(nights: Nights) -> None:
    assert nights.dumped(2, "beneath") == ["new", f"new@{day(2)}"]
    assert ("new", f"new@{day(2)}", "changed", "known") in nights.changes(2, "beneath")


def test_a_dependency_that_changes_nothing_is_news_without_alarm(nights: Nights) -> None:
    """Nor is it held against the same requirements in another series: what lies between those is known."""
    record = nights.record(3, "beneath")
    assert (record["exit_code"], record["news"]) == (0, ["tinydep 2.1 → 2.2 under new"])
    assert nights.dumped(3, "beneath") == [f"new@{day(3)}"]
    assert ("tinysim-3.0", "new", "changed", "known") in nights.changes(3, "beneath")
    assert nights.record(4, "beneath")["run_id"] is None


def test_a_hook_that_fails_is_told_and_changes_nothing(nights: Nights) -> None:
    done = nights.results[3]
    assert done.code == 1
    assert "the command of --notify failed with exit code 4" in done.stderr
    assert "## drift" in nights.told[3]
    assert "## watch" not in nights.told[3], "nothing is new there"
    told = {each["matrix"]: each["exit_code"] for each in json.loads(done.stdout)["audits"]}
    assert told == {"drift": 1, "watch": 0, "early": 1, "late": 0, "slow": 0, "beneath": 0}
    assert "sent" in done.stderr, "what the hook says is not mixed into the summary"


def sleeping(seconds: str) -> bool:
    return any(each.info["cmdline"] == ["sleep", seconds] for each in psutil.process_iter(["cmdline"]))


@pytest.mark.parametrize(
    ("command", "trouble"),
    [
        ("cat > told", ""),
        ("exit 3", "the command of --notify failed with exit code 3"),
        ("cat > told; sleep 613.5; true", "the command of --notify took longer than 2 s, and was ended"),
        ("true", ""),
    ],
)
def test_a_hook_gets_the_text_and_is_ended_in_time(
    command: str, trouble: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = "Hopper-v5: 3.4.0 → 3.5.0\n" * 10_000
    assert hook.tell(command, text, seconds=2) == trouble
    wait_until(lambda: not sleeping("613.5"), "the end of what the hook started")
    if "cat" in command:
        assert (tmp_path / "told").read_text(encoding="utf-8") == text


def test_a_matrix_that_the_index_cannot_serve_does_not_keep_the_others_from_their_night(nights: Nights) -> None:
    done = nights.results[4]
    assert done.code == 1, "a change comes first"
    assert "nowhere.yaml has 1 problem:\n  releases[0].versions, line" in done.stdout
    assert "the index has no tinysim in >=99" in done.stdout
    assert nights.record(4, "nowhere")["exit_code"] == 2
    assert "## nowhere" in nights.told[4]


def test_a_matrix_that_is_wrong_is_told_before_any_night_begins(nights: Nights, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("name: wrong\n")
    done = nights.program(*nights.arguments(7), str(wrong))
    assert done.code == 2
    assert "wrong.yaml has" in done.stderr
    assert "Traceback" not in done.stderr
    assert rows(nights.database, "SELECT count(*) FROM nights WHERE night = ?", str(day(7))) == [(0,)]


def test_what_somebody_writes_into_a_matrix_is_not_new(nights: Nights) -> None:
    assert nights.results[5].code == nights.results[6].code == 0
    late, watch = nights.record(5, "late"), nights.record(5, "watch")
    assert late["news"] == watch["news"] == []
    assert ("tinysim-5.0", "tinysim-5.1", "changed", "known") in nights.changes(5, "late")
    assert ("tinysim-5.0", "tinysim-5.1rc1", "changed", "known") in nights.changes(5, "watch")
    assert nights.record(6, "late")["run_id"] is None
    assert nights.record(6, "watch")["run_id"] is None, "what a night had found is the same when it is written out"


def test_a_note_is_handed_to_the_hook_once(nights: Nights) -> None:
    """A waiver that covers nothing is told every night, and nobody is woken for it every night."""
    assert all("the waiver for *: a → b is not used" in nights.results[number].stdout for number in (2, 5, 6))
    assert nights.told[2].count("is not used") == len(nights.matrices)
    assert nights.told[5] == nights.told[6] == ""


def interrupted(nights: Nights, number: int, cache: Path, before: str, release: str) -> Finished:
    """A night that somebody ends while a release is dumped."""
    with nights.program.started(*nights.arguments(number)) as started:
        started.wait_for(before)
        started.wait_for(f"building 1/1  {release}")
        wait_until(lambda: dumpers(cache), f"a dump of {release}")
        started.process.send_signal(signal.SIGINT)
        return started.finish()


def test_an_interrupted_night_tells_what_it_recorded_and_the_next_one_the_rest(
    nights: Nights, shared_cache: Path, tmp_path: Path
) -> None:
    nights = later(nights, tmp_path)
    nights.publish("3.4", "1.4", 7)
    nights.index.publish_planted("4.0", SLOW_AND_CHANGED, day(6))
    nights.matrices = (matrix(tmp_path, "drift", [ranged(">=3,<4")]), matrix(tmp_path, "slow", [ranged(SLOW)]))
    done = interrupted(nights, 7, shared_cache, "drift, night of", "tinysim-4.0")
    assert done.code == 130
    told = tmp_path / "told.md"
    assert "tinysim\\-3.4" in told.read_text(encoding="utf-8"), "no other night tells of it"
    assert nights.night(8).code == 1
    assert nights.record(8, "drift")["run_id"] is None
    assert nights.record(8, "slow")["news"] == ["tinysim 4.0"]
    assert nights.changes(8, "slow") == [("tinysim-3.0", "tinysim-4.0", "changed", "new")]
    assert nights.night(9).code == 0
    assert nights.record(9, "slow")["run_id"] is None


def test_an_index_that_tells_no_times_needs_no_age(
    index: PackageIndex, environment: dict[str, str], tmp_path: Path
) -> None:
    names = [f"{each}-py3-none-any.whl" for each in ("tinydep-1.0", "tinysim-3.0")]
    silent = PackageIndex(folder=index.folder, tells_times=False, uploaded={name: day(0) for name in names})
    with serving(silent):
        program = program_with(silent, tmp_path, environment)

        def night(min_age: int) -> Finished:
            path = tmp_path / "untold.yaml"
            dated = write_matrix(path, [ranged(">=3")], [SPRING], nightly={"min-age": min_age}, **SMALL)
            data = json.loads(dated.read_text())
            del data["exclude-newer"]
            path.write_text(json.dumps(data))
            return program("nightly", path, "--no-explain")

        refused = night(1)
        assert refused.code == 3
        assert "the index does not tell when tinysim 3.0 was uploaded" in refused.stdout
        assert "`min-age: 0`" in refused.stdout
        assert night(0).code == 0
        silent.publish("3.9", "1.3", day(0))
        refused = night(1)
        assert refused.code == 3
        assert "the index does not tell when tinysim 3.9 was uploaded" in refused.stdout
        done = night(0)
        assert done.code == 1
        assert "Spring: tinysim-3.0 → tinysim-3.9: changed" in done.stdout
