"""From a matrix to verdicts: real uv, real virtualenvs, real Ray, a real database, on a simulator with known faults."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import pytest
from packaging.utils import canonicalize_name

from tests.conftest import (
    CHAOS,
    SPRING,
    STIMULUS,
    Finished,
    Program,
    behaviours,
    descendants,
    dumpers,
    pairs,
    release,
    rows,
    running,
    wait_until,
    write_matrix,
)

NO_RAY = "/dev/null/none"
"""A folder for Ray that cannot be: an audit that needs it fails at once."""

BASELINE = "tinysim-1.0"
PLANTED = ["1.0", "1.1", "1.2", "1.3", "1.4", "1.5", "1.6", "1.18", "1.7", "1.12", "1.98", "1.99"]
RELEASES = [
    *map(release, PLANTED),
    release("1.0", name="other-dependency", dependency="2.0"),
    {"id": "gym-0.21.0", "requires": ["gym==0.21.0"]},
]

CELLS = 2 * (len(RELEASES) - 3)
"""Three releases do not get as far as a cell."""

EVERYTHING_MOVED = {"state", "observation", "reward"}
EXPECTED: dict[tuple[str, str], tuple[str, set[str]]] = {
    ("Spring", "tinysim-1.1"): ("identical", set()),
    ("Spring", "tinysim-1.2"): ("rounding", EVERYTHING_MOVED),
    ("Spring", "tinysim-1.3"): ("changed", EVERYTHING_MOVED),
    ("Spring", "tinysim-1.4"): ("changed", {"reward"}),
    ("Spring", "tinysim-1.5"): ("changed", {"terminated"}),
    ("Spring", "tinysim-1.6"): ("changed", {"observation", "reset"}),
    ("Spring", "tinysim-1.18"): ("changed", {"observation", "reset"}),
    ("Spring", "tinysim-1.7"): ("identical", set()),
    ("Spring", "tinysim-1.12"): ("identical", set()),
    ("Spring", "tinysim-1.98"): ("unavailable", set()),
    ("Spring", "tinysim-1.99"): ("unavailable", set()),
    ("Spring", "other-dependency"): ("changed", EVERYTHING_MOVED),
    ("Spring", "gym-0.21.0"): ("unavailable", set()),
    ("Chaos", "tinysim-1.1"): ("identical", set()),
    ("Chaos", "tinysim-1.2"): ("identical", set()),
    ("Chaos", "tinysim-1.3"): ("identical", set()),
    ("Chaos", "tinysim-1.4"): ("identical", set()),
    ("Chaos", "tinysim-1.5"): ("identical", set()),
    ("Chaos", "tinysim-1.6"): ("identical", set()),
    ("Chaos", "tinysim-1.18"): ("identical", set()),
    ("Chaos", "tinysim-1.7"): ("amplified", EVERYTHING_MOVED),
    ("Chaos", "tinysim-1.12"): ("unavailable", set()),
    ("Chaos", "tinysim-1.98"): ("unavailable", set()),
    ("Chaos", "tinysim-1.99"): ("unavailable", set()),
    ("Chaos", "other-dependency"): ("identical", set()),
    ("Chaos", "gym-0.21.0"): ("unavailable", set()),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Audited:
    """An audit that was run, with what it left behind."""

    program: Program
    matrix: Path
    database: Path
    finished: Finished

    def again(self, matrix: Path, *options: str) -> Finished:
        """Run a matrix on the same database, where nothing but what is there can be used."""
        return self.program("run", matrix, "--db", self.database, *options, RAY_TMPDIR=NO_RAY)

    def reason(self, environment: str, newer: str) -> str:
        found = rows(
            self.database,
            "SELECT reason FROM pairs WHERE matrix = 'planted' AND environment = ? AND newer = ?",
            environment,
            newer,
        )
        return str(found[0][0])


@pytest.fixture(scope="module")
def audited(module_audit: Program) -> Audited:
    matrix = write_matrix(module_audit.folder / "planted.yaml", RELEASES, [SPRING, CHAOS], pairs={"against": BASELINE})
    database = module_audit.folder / "audit.duckdb"
    finished = module_audit("run", matrix, "--db", database, "--jobs", "2")
    return Audited(program=module_audit, matrix=matrix, database=database, finished=finished)


def test_every_planted_difference_is_found_and_every_null_is_silent(audited: Audited) -> None:
    moved: dict[tuple[str, str], set[str]] = {}
    for environment, newer, output in rows(
        audited.database, "SELECT environment, newer, output FROM separations WHERE NOT same_bits"
    ):
        moved.setdefault((environment, newer), set()).add(output)
    found = {
        (environment, newer): (verdict, moved.get((environment, newer), set()))
        for environment, newer, verdict in rows(audited.database, "SELECT environment, newer, verdict FROM pairs")
    }
    assert found == EXPECTED
    assert {older for (older,) in rows(audited.database, "SELECT older FROM pairs")} == {BASELINE}


def test_the_audit_is_complete_whatever_it_found(audited: Audited) -> None:
    assert audited.finished.code == 0, audited.finished.stderr
    assert audited.finished.stderr == ""
    assert "26 pairs: 11 identical, 1 rounding, 1 amplified, 6 changed, 7 unavailable" in audited.finished.stdout


def test_sizes_of_what_moved(audited: Audited) -> None:
    sizes = {
        newer: (first, ulps, horizon)
        for newer, first, ulps, horizon in rows(
            audited.database,
            "SELECT newer, first_step_separation, first_step_ulps, horizon_separation FROM pairs"
            " WHERE verdict NOT IN ('identical', 'unavailable')",
        )
    }
    assert 0 < sizes["tinysim-1.2"][2] < 1e-13
    assert sizes["tinysim-1.2"][1] <= 4
    assert 1e-10 < sizes["tinysim-1.3"][0] < 1e-6
    assert sizes["tinysim-1.7"][0] < 1e-13
    assert sizes["tinysim-1.7"][2] > 1e-3
    assert sizes["tinysim-1.5"][0] == 1.0
    assert 1e-9 < sizes["tinysim-1.6"][0] < 1e-6
    assert math.isinf(sizes["tinysim-1.18"][0])
    assert 1e-12 < sizes["other-dependency"][0] < 1e-8


def test_reasons_name_what_is_wrong(audited: Audited) -> None:
    assert "observation has dtypes float32 and float64" in audited.reason("Spring", "tinysim-1.6")
    assert "observation has shapes 2 and 3" in audited.reason("Spring", "tinysim-1.18")
    assert "reward only beyond the yardstick in 520 of 520 states" in audited.reason("Spring", "tinysim-1.4")
    assert "NameNotFound" in audited.reason("Chaos", "tinysim-1.12")
    assert "depends on tinydep==99" in audited.reason("Spring", "tinysim-1.98")
    assert "Unsupported wheel major version" in audited.reason("Spring", "tinysim-1.99")


def test_what_does_not_resolve_or_build_is_a_row(audited: Audited) -> None:
    found = {
        subject: (stage, status)
        for subject, stage, status in rows(audited.database, "SELECT subject, stage, status FROM failures")
    }
    assert found == {
        "tinysim-1.98": ("resolve", "unresolved"),
        "tinysim-1.99": ("build", "unbuilt"),
        "gym-0.21.0": ("resolve", "unresolved"),
    }
    status = dict(rows(audited.database, "SELECT release, status FROM releases"))
    assert {name for name, each in status.items() if each != "ready"} == set(found)
    ((reason, tail),) = rows(audited.database, "SELECT reason, stderr_tail FROM failures WHERE subject = 'gym-0.21.0'")
    assert "gym==0.21.0" in reason
    assert "allow that with `source: true`" in tail


def test_every_distribution_of_a_release_is_listed(audited: Audited) -> None:
    listed = dict(
        rows(audited.database, "SELECT package, version FROM release_packages WHERE release = 'other-dependency'")
    )
    assert {"cloudpickle", "farama-notifications", "gymnasium", "numpy", "tinydep", "tinysim"} <= set(listed)
    assert (listed["tinysim"], listed["tinydep"], listed["gymnasium"]) == ("1.0", "2.0", "1.3.0")
    assert listed in _installed(audited.program)


def _installed(program: Program) -> list[dict[str, str]]:
    """The distributions of every virtualenv in the cache, which tests of other files have filled too."""
    venvs = (Path(program.environment["RELEASE_AUDIT_CACHE"]) / "venvs").glob("*/lib/python3.11/site-packages")
    return [{canonicalize_name(each.name): each.version for each in distributions(path=[str(venv)])} for venv in venvs]


def test_what_an_environment_is_made_of_is_kept(audited: Audited) -> None:
    found = {
        name: json.loads(text)
        for name, text in rows(
            audited.database, "SELECT release, description FROM dumps WHERE environment = 'Spring' AND status = 'ok'"
        )
    }
    assert float(found[BASELINE]["constants"]["damping"]) == 0.3
    assert float(found["tinysim-1.3"]["constants"]["damping"]) != 0.3
    assert found[BASELINE]["time_step"] == 0.02
    assert found[BASELINE]["source_sha256"] == found["tinysim-1.1"]["source_sha256"]
    assert found[BASELINE]["source_sha256"] != found["tinysim-1.2"]["source_sha256"]


def test_a_second_run_dumps_nothing_and_starts_no_ray(audited: Audited) -> None:
    before = pairs(audited.database, "planted")
    again = audited.again(audited.matrix)
    assert again.code == 0, again.stderr
    assert f"0 dumped now, {CELLS} known from before" in again.stdout
    assert "dumping" not in again.stdout
    assert "building 1/1  tinysim-1.99: unbuilt" in again.stdout
    assert pairs(audited.database, "planted") == before
    assert rows(audited.database, "SELECT count(*) FROM pairs_history WHERE matrix = 'planted'") == [(2 * len(before),)]


def test_no_ray_in_that_folder(audited: Audited) -> None:
    """The proof that the test above can fail. One or two jobs would not need it."""
    releases = [release(version) for version in ("1.0", "1.2", "1.3")]
    matrix = write_matrix(audited.program.folder / "new.yaml", releases, [SPRING], stimulus={"seed": 8})
    finished = audited.again(matrix)
    assert finished.code == 3
    assert "a local Ray cluster could not be used" in finished.sentence


def test_all_pairs(audited: Audited) -> None:
    chosen = [release(version) for version in ("1.0", "1.1", "1.2", "1.12")]
    matrix = write_matrix(audited.program.folder / "all.yaml", chosen, [SPRING, CHAOS], pairs="all")
    assert audited.again(matrix).code == 0
    counts = rows(
        audited.database,
        "SELECT environment, count(*), count(*) FILTER (adjacent) FROM pairs WHERE matrix = 'all' GROUP BY 1",
    )
    assert sorted(counts) == [("Chaos", 6, 3), ("Spring", 6, 3)]
    between = rows(
        audited.database,
        "SELECT verdict FROM pairs WHERE matrix = 'all' AND environment = 'Spring' AND older = 'tinysim-1.1'"
        " AND newer = 'tinysim-1.2'",
    )
    assert between == [("rounding",)]


def test_adjacent_pairs_skip_a_release_that_lacks_the_environment(audited: Audited) -> None:
    chosen = [release(version) for version in ("1.0", "1.12", "1.7", "1.1")]
    matrix = write_matrix(audited.program.folder / "adjacent.yaml", chosen, [CHAOS, SPRING], pairs="adjacent")
    assert audited.again(matrix).code == 0
    found = rows(
        audited.database,
        "SELECT older, newer, verdict FROM pairs WHERE matrix = 'adjacent' AND environment = 'Chaos'"
        " ORDER BY older_position, newer_position",
    )
    assert [(older[8:], newer[8:], verdict) for older, newer, verdict in found] == [
        ("1.0", "1.12", "unavailable"),
        ("1.0", "1.7", "amplified"),
        ("1.12", "1.7", "unavailable"),
        ("1.7", "1.1", "amplified"),
    ]
    assert rows(
        audited.database, "SELECT count(*) FROM pairs WHERE matrix = 'adjacent' AND environment = 'Spring'"
    ) == [(3,)]


def test_check_tells_whether_something_changed(audited: Audited) -> None:
    assert audited.again(audited.matrix, "--check").code == 1
    silent = [release(version) for version in ("1.0", "1.1", "1.2", "1.7")]
    quiet = write_matrix(audited.program.folder / "quiet.yaml", silent, [SPRING, CHAOS])
    assert audited.again(quiet, "--check").code == 0


def test_what_was_amplified_has_a_certificate_and_can_be_drawn(audited: Audited) -> None:
    ((environment, certificate, decade, curve),) = rows(
        audited.database,
        "SELECT environment, certificate, steps_per_decade, curve FROM certificates"
        " WHERE matrix = 'planted' AND older = 'tinysim-1.0' AND newer = 'tinysim-1.7'",
    )
    assert (environment, certificate) == ("Chaos", "holds")
    assert 2 < decade < 10  # the logistic map at 3.9 doubles a difference in about 1.4 steps
    assert len(curve) == 60
    picture = audited.program.folder / "separations.svg"
    drawing = ("figure", audited.matrix, "--output", picture, "--db", audited.database)
    drawn = audited.program(*drawing)
    assert drawn.code == 0, drawn.stderr
    assert "Chaos" in picture.read_text(encoding="utf-8")
    for kind, told in (("ratios", "pairs of behaviours"), ("timeline", "2 environments")):
        another = audited.program(*drawing, "--kind", kind)
        assert (another.code, told in another.stdout) == (0, True)
    none = audited.program(*drawing, "--env", "Spring")
    assert (none.code, "nothing to draw" in none.sentence) == (2, True)
    other = audited.program(*drawing, "--output", "picture.gif")
    assert (other.code, ".svg or .png" in other.sentence) == (2, True)


def test_outputs_that_the_verdict_does_not_read(audited: Audited) -> None:
    chosen = [release("1.0"), release("1.1"), release("1.4")]
    matrix = write_matrix(audited.program.folder / "reads.yaml", chosen, [SPRING], outputs=["observation"])
    finished = audited.again(matrix, "--check")
    assert finished.code == 0
    assert "2 of the identical pairs differ in outputs that this matrix's verdict does not read" in " ".join(
        finished.stdout.split()
    )
    sql = "SELECT verdict, reason FROM pairs WHERE matrix = 'reads' AND older = 'tinysim-1.0' AND newer = 'tinysim-1.4'"
    ((verdict, reason),) = rows(audited.database, sql)
    assert verdict == "identical"
    assert "reward by" in reason


def test_one_lock_under_two_names_is_one_release(audited: Audited) -> None:
    twins: list[dict[str, Any]] = [release("1.0"), release("1.0", name="twin")]
    matrix = write_matrix(audited.program.folder / "twins.yaml", twins, [SPRING])
    assert audited.again(matrix).code == 0
    assert rows(audited.database, "SELECT verdict FROM pairs WHERE matrix = 'twins'") == [("identical",)]
    assert rows(audited.database, "SELECT count(DISTINCT lock_digest) FROM releases WHERE matrix = 'twins'") == [(1,)]


def test_equal_releases_are_dumped_once_and_that_is_what_is_told(release_audit: Program) -> None:
    """The first of the two was not known before, and neither was the second."""
    twins: list[dict[str, Any]] = [release("1.0"), release("1.0", name="twin")]
    matrix = write_matrix(release_audit.folder / "twins.yaml", twins, [SPRING])
    first = release_audit("run", matrix, "--json", "summary.json")
    assert "1 dumped now, 1 the same as one of these, 0 known from before, " in first.stdout
    (told,) = json.loads((release_audit.folder / "summary.json").read_text())["audits"]
    assert (told["dumped"], told["shared"], told["reused"]) == (1, 1, 0)
    database = release_audit.folder / "results" / "audit.duckdb"
    assert rows(database, "SELECT release FROM dumps WHERE reused") == []
    assert "0 dumped now, 2 known from before, 0 control runs" in release_audit("run", matrix).stdout
    assert rows(database, "SELECT release FROM dumps WHERE NOT reused") == []


def test_an_added_release_is_the_only_one_dumped(audited: Audited) -> None:
    matrix = write_matrix(
        audited.program.folder / "added.yaml", [release("1.0"), release("1.2"), release("1.13")], [SPRING, CHAOS]
    )
    finished = audited.program("run", matrix, "--db", audited.database)
    assert finished.code == 0, finished.stderr
    assert "2 dumped now, 4 known from before" in finished.stdout
    fresh = rows(audited.database, "SELECT DISTINCT release FROM dumps WHERE matrix = 'added' AND NOT reused")
    assert fresh == [("tinysim-1.13",)]


def test_a_generated_row_lists_the_versions_of_the_index(audited: Audited) -> None:
    row = {"package": "tinysim", "versions": ">=1.0,<1.4", "pins": release("1.0")["pins"]}
    matrix = write_matrix(audited.program.folder / "generated.yaml", [row], [SPRING])
    finished = audited.program("run", matrix, "--db", audited.database)
    assert finished.code == 0, finished.stderr
    found = rows(audited.database, "SELECT release FROM releases WHERE matrix = 'generated' ORDER BY position")
    assert found == [("tinysim-1.0",), ("tinysim-1.1",), ("tinysim-1.2",), ("tinysim-1.3",)]


def test_killed_in_the_middle_it_goes_on_where_it_was(
    audited: Audited, release_audit: Program, shared_cache: Path
) -> None:
    """And one worker comes to the same as two, killed or not."""
    database = release_audit.folder / "killed.duckdb"
    command = ("run", audited.matrix, "--db", database, "--jobs", "1")
    with release_audit.started(*command) as harness:
        harness.wait_for("dumping 1/")
        workers = [pid for pid, name in descendants(harness.process.pid).items() if name.startswith("ray::_Worker")]
        harness.process.kill()
        harness.process.wait()
        wait_until(lambda: not dumpers(shared_cache), "dumpers end with the harness")
        wait_until(lambda: not any(map(running, workers)), "workers end with the harness")
    done = rows(database, "SELECT count(*) FROM internal.dumps")[0][0]
    assert 0 < done < CELLS
    assert rows(database, "SELECT count(*) FROM pairs") == [(0,)]
    resumed = release_audit(*command)
    assert resumed.code == 0, resumed.stderr
    counted = re.search(r"(\d+) dumped now, (\d+) known from before", resumed.stdout)
    assert counted is not None
    assert int(counted[1]) + int(counted[2]) == CELLS
    assert 0 < int(counted[2]) <= done
    assert pairs(database, "planted") == pairs(audited.database, "planted")
    assert behaviours(database, "planted") == behaviours(audited.database, "planted")


def test_a_release_between_two_changes_is_looked_into_for_both(release_audit: Program) -> None:
    """It takes the steps of each pair, from that pair's own states."""
    few = {"bank": {"states": 24, "budget": 200}, "stimulus": {**STIMULUS, "trajectories": 2, "steps": 20}}
    matrix = write_matrix(
        release_audit.folder / "between.yaml", [release("1.0"), release("1.3"), release("1.5")], [SPRING], **few
    )
    finished = release_audit("run", matrix, "--db", "between.duckdb")
    assert finished.code == 0, finished.stderr
    found = rows(
        release_audit.folder / "between.duckdb",
        "SELECT older, newer, stage, fields, reason FROM explanations WHERE adjacent ORDER BY ALL",
    )
    assert [(older, newer, reason) for older, newer, _, _, reason in found] == [
        ("tinysim-1.0", "tinysim-1.3", ""),
        ("tinysim-1.3", "tinysim-1.5", ""),
    ]
    assert all(stage == "Spring.step" and fields for _, _, stage, fields, _ in found)
