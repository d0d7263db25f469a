"""The laws stage: changed pairs held against laws that a matrix brings, on real wheels of the tiny simulator."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import SPRING, Finished, Program, release, rows, write_matrix

# Of the spring without its damper. Semi-implicit Euler keeps it to the first order of the step: hence the smaller one.
ENERGY = """\
name: spring
environments: [Spring]
variables: {x: "state[0]", v: "state[1]"}
parameters: {stiffness: 4}
laws: {energy: {conserved: v**2/2 + stiffness*x**2/2}}
lag: 50
start: {low: [-1, -1], high: [1, 1]}
steps: 200
resolved: {edits: {dt: 0.0001}, steps: 2000}
"""
# Of an observation that only version 1.18 has.
THIRD = """\
name: third
environments: [Spring]
variables: {third: "observation[2]"}
laws: {nothing there: {vanishes: third}}
start: {low: [-1, -1], high: [1, 1]}
steps: 10
"""
# With a way to resolve it that no version has.
VISCOUS = ENERGY.replace("name: spring", "name: viscous").replace("{dt: 0.0001}", "{viscosity: 1.0}")

FREE: dict[str, Any] = {**SPRING, "edits": {"damping": 0.0}}
BALL = {"id": "tinysim:tinysim/Ball-v0", "name": "Ball", "releases": ["tinysim-1.0", "tinysim-1.25"]}
STIMULUS = {"seed": 7, "trajectories": 2, "steps": 10, "actions": "uniform"}
STIFF = {**release("1.0", name="stiff"), "edits": {"stiffness": 4.5}}


def write_laws(folder: Path, **files: str) -> list[str]:
    """Files of laws beside a matrix, as it names them."""
    (folder / "laws").mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / "laws" / f"{name}.yaml").write_text(text, encoding="utf-8")
    return [f"laws/{name}.yaml" for name in files]


def write(folder: Path, name: str, releases: list[dict[str, Any]], *environments: dict[str, Any], **more: Any) -> Path:
    small = {"stimulus": STIMULUS, "bank": {"states": 16}, "pairs": "adjacent"}
    return write_matrix(folder / f"{name}.yaml", releases, environments, **small | more)


def kept(database: Path) -> list[tuple[Any, ...]]:
    """Everything that was found of laws."""
    return [
        row for table in ("screenings", "attributions") for row in rows(database, f"FROM internal.{table} ORDER BY ALL")
    ]


TOLD = "    energy broken, ratio 2.99, p 7.8e-05: stiffness is 4.5, specified 4"


@dataclass(frozen=True, slots=True, kw_only=True)
class Audited:
    """An audit of a spring that is too stiff in the middle of its releases, run twice."""

    program: Program
    laws: list[str]
    database: Path
    first: Finished
    second: Finished
    kept: tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]
    """After the first run and after the second."""

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        return rows(self.database, sql)


@pytest.fixture(scope="module")
def audited(module_audit: Program) -> Audited:
    folder = module_audit.folder
    laws = write_laws(folder, spring=ENERGY, third=THIRD, viscous=VISCOUS)
    versions = [release("1.0"), release("1.1"), STIFF, release("1.18"), release("1.25")]
    spring = {**FREE, "releases": ["tinysim-1.0", "tinysim-1.1", "stiff", "tinysim-1.18"]}
    matrix = write(folder, "laws", versions, spring, BALL, laws=laws)
    database = folder / "laws.duckdb"
    first = module_audit("run", matrix, "--db", database)
    after_first = kept(database)
    second = module_audit("run", matrix, "--db", database)
    both = after_first, kept(database)
    return Audited(program=module_audit, laws=laws, database=database, first=first, second=second, kept=both)


def test_the_audit_is_complete_whatever_the_laws_say(audited: Audited) -> None:
    assert (audited.first.code, audited.first.stderr) == (0, "")
    pairs = audited.query("SELECT environment, older, newer, verdict FROM pairs ORDER BY environment, older_position")
    assert pairs == [
        ("Ball", "tinysim-1.0", "tinysim-1.25", "changed"),
        ("Spring", "tinysim-1.0", "tinysim-1.1", "identical"),
        ("Spring", "tinysim-1.1", "stiff", "changed"),
        ("Spring", "stiff", "tinysim-1.18", "changed"),
    ]
    assert audited.query("SELECT DISTINCT stage, status FROM failures") == [("laws", "unheld")]


def test_a_changed_pair_is_screened_in_both_directions_and_settings(audited: Audited) -> None:
    found = audited.query(
        "SELECT setting, tested, broken, ratio > 2, p < 1e-4, attainable < 1e-4 FROM screenings"
        " WHERE newer = 'stiff' AND laws = 'spring' ORDER BY ALL"
    )
    assert found == [
        ("dt = 0.0001", "stiff", True, True, True, True),
        ("dt = 0.0001", "tinysim-1.1", False, False, False, True),
        ("shipped", "stiff", True, True, True, True),
        ("shipped", "tinysim-1.1", False, False, False, True),
    ]


def test_the_constant_is_named_with_its_value(audited: Audited) -> None:
    columns = "verdict, explanation, parameters, round(fitted[1], 6), specified"
    assert audited.query(f"SELECT {columns} FROM attributions WHERE release = 'stiff'") == [
        ("parameter fault", "stiffness is 4.5, specified 4", ["stiffness"], 4.5, [4.0])
    ]
    others = audited.query(
        "SELECT release, laws, setting, law, verdict, explanation, parameters, residual FROM attributions"
        " WHERE release <> 'stiff' ORDER BY ALL"
    )
    as_specified: tuple[Any, ...] = ("spring", "dt = 0.0001", "energy", "consistent with specification", "", [], None)
    assert others == [(f"tinysim-{version}", *as_specified) for version in ("1.0", "1.1", "1.18")]


def test_the_summary_tells_the_law_and_the_constant_under_the_pair(audited: Audited) -> None:
    lines = audited.first.stdout.splitlines()
    (newer,) = [below for line, below in pairwise(lines) if "Spring: tinysim-1.1 → stiff: " in line]
    assert newer.startswith(TOLD)
    (older,) = [below for line, below in pairwise(lines) if "Spring: stiff → tinysim-1.18: " in line]
    assert older.startswith(f"    in stiff:{TOLD[3:]}"), "the older one may be the one that is wrong"


def test_laws_that_a_release_could_not_be_held_against_are_told(audited: Audited) -> None:
    lines = audited.first.stdout.splitlines()
    (told,) = [below for line, below in pairwise(lines) if "Spring: tinysim-1.1 → stiff: " in line]
    assert "not held against viscous: unavailable at viscosity = 1.0: it has no viscosity" in told
    assert "third: 'observation[2]' needs entry 2 of observation, which has 2" in told


def test_an_environment_without_laws_has_none(audited: Audited) -> None:
    assert audited.query("SELECT DISTINCT environment FROM screenings") == [("Spring",)]
    assert audited.query("SELECT DISTINCT environment FROM attributions") == [("Spring",)]
    assert "undriven" not in "".join(line for line in audited.first.stdout.splitlines() if "Ball" in line)


def test_laws_of_a_column_that_a_release_lacks_are_left_aside(audited: Audited) -> None:
    assert "tinysim-1.18/Spring: third" in audited.first.stdout
    assert audited.query("SELECT count(*) FROM screenings WHERE laws = 'third'") == [(0,)]


def test_a_setting_that_no_release_can_be_put_into_is_left_aside(audited: Audited) -> None:
    assert "undriven viscosity = 1.0" in audited.first.stdout
    assert audited.query("SELECT DISTINCT setting FROM screenings WHERE laws = 'viscous'") == [("shipped",)]
    assert audited.query("SELECT count(*) FROM attributions WHERE laws = 'viscous'") == [(0,)]


def test_a_second_run_screens_and_attributes_nothing_again(audited: Audited) -> None:
    assert (audited.second.code, audited.second.stderr) == (0, "")
    assert audited.kept[0] == audited.kept[1] != []
    assert "attributing" not in audited.second.stdout
    assert "dumping" not in audited.second.stdout
    screened = [line for line in audited.second.stdout.splitlines() if line.startswith("screening")]
    assert all(line.split()[-3] == "third" for line in screened), "what could not be read is all that is tried again"
    assert any(line.startswith(TOLD) for line in audited.second.stdout.splitlines())


def test_another_stimulus_shows_other_behaviours_and_their_laws_are_told_too(audited: Audited) -> None:
    """What the laws are read from is the same, and stored already; whose it is, is not."""
    folder, database = audited.program.folder, audited.database
    matrix = write(
        folder, "other", [release("1.0"), STIFF], FREE, laws=audited.laws[:1], stimulus={**STIMULUS, "seed": 8}
    )
    finished = audited.program("run", matrix, "--db", database)
    assert finished.code == 0, finished.stderr
    assert "undriven" not in finished.stdout
    assert "energy broken, ratio 2.99, p 7.8e-05: stiffness is 4.5, specified 4" in finished.stdout
    assert rows(database, "SELECT count(*) FROM screenings WHERE matrix = 'other'") == [(4,)]
    assert rows(database, "SELECT count(*) FROM attributions WHERE matrix = 'other'") == [(2,)]


def test_laws_that_are_edited_are_held_against_anew(audited: Audited) -> None:
    folder = audited.program.folder
    database = Path(shutil.copy(audited.database, folder / "edited.duckdb"))
    (folder / "edited").mkdir()
    laws = [f"edited/{name}" for name in write_laws(folder / "edited", spring=ENERGY.replace("4}", "4.5}"))]
    matrix = write(folder, "edited", [release("1.0"), STIFF], FREE, laws=laws)
    finished = audited.program("run", matrix, "--db", database)
    assert finished.code == 0, finished.stderr
    of_it = "WHERE matrix = 'edited' AND laws = 'spring'"
    assert rows(database, f"SELECT DISTINCT tested FROM screenings {of_it} AND broken") == [("tinysim-1.0",)]
    assert rows(database, f"SELECT release, explanation FROM attributions {of_it} ORDER BY ALL") == [
        ("stiff", ""),
        ("tinysim-1.0", "stiffness is 4, specified 4.5"),
    ]


def test_matrices_with_other_laws_or_none_leave_each_other_what_they_found(audited: Audited) -> None:
    """One database, the same behaviours: a set of the same name says something else, and a matrix has no set."""
    folder, program = audited.program.folder, audited.program
    database = folder / "several.duckdb"
    (folder / "softer").mkdir()
    softer = [f"softer/{name}" for name in write_laws(folder / "softer", spring=ENERGY.replace("4}", "4.5}"))]
    brought: dict[str, dict[str, Any]] = {"mine": {"laws": audited.laws[:1]}, "theirs": {"laws": softer}, "none": {}}
    told, found = {}, {}
    for name, laws in brought.items():
        matrix = write(folder, f"several_{name}", [release("1.0"), STIFF], FREE, **laws)
        finished = program("run", matrix, "--db", database)
        assert finished.code == 0, finished.stderr
        told[name] = "energy" in finished.stdout
        found[name] = said(database, name)
    assert told == {"mine": True, "theirs": True, "none": False}
    assert found["none"] == ([], [])
    assert found["mine"] == (
        [("stiff",)], [("stiff", "stiffness is 4.5, specified 4"), ("tinysim-1.0", "")]
    )  # fmt: skip
    assert found["theirs"] == (
        [("tinysim-1.0",)], [("stiff", ""), ("tinysim-1.0", "stiffness is 4, specified 4.5")]
    )  # fmt: skip
    assert {name: said(database, name) for name in brought} == found, "each still shows its own"
    again = program("run", folder / "several_mine.yaml", "--db", database)
    assert not [line for line in again.stdout.splitlines() if line.startswith(("screening", "attributing"))]


def said(database: Path, name: str) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """Who breaks a law in the latest run of a matrix, and the constants of its releases."""
    where = f"WHERE matrix = 'several_{name}'"
    return (
        rows(database, f"SELECT DISTINCT tested FROM screenings {where} AND broken"),
        rows(database, f"SELECT release, explanation FROM attributions {where} ORDER BY ALL"),
    )


# Mistakes, before any work


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (None, "laws/mine.yaml cannot be read: "),
        (ENERGY.replace("v**2/2", "q**2/2"), "laws/mine.yaml: laws.energy, line 5: "),
        (ENERGY.replace("state[1]", "tan(state[1])"), "variables.v, line 3: "),
        (ENERGY.replace("name: spring", "name: acrobot"), "acrobot is the name of another reference set"),
        (ENERGY + "colour: red\n", "colour, line 10: there is no such key here"),
    ],
)
def test_mistakes_in_laws_are_told_before_any_work(release_audit: Program, text: str | None, told: str) -> None:
    laws = write_laws(release_audit.folder, mine=text) if text is not None else ["laws/mine.yaml"]
    matrix = write(release_audit.folder, "wrong", [release("1.0"), STIFF], FREE, laws=laws)
    finished = release_audit("run", matrix, "--db", "wrong.duckdb")
    assert (finished.code, finished.stdout) == (2, "")
    assert told in finished.stderr
    assert "Traceback" not in finished.stderr
    assert rows(release_audit.folder / "wrong.duckdb", "SELECT count(*) FROM internal.runs") == [(0,)]
    planned = release_audit("plan", matrix)
    assert (planned.code, told in planned.stderr) == (2, True)


# What it costs those who have no use for it


def test_the_algebra_is_imported_only_where_it_is_used() -> None:
    script = "import sys, audit.cli, audit.pipeline; sys.exit(bool({'sympy', 'scipy'} & set(sys.modules)))"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_an_audit_in_which_nothing_changed_does_not_import_it(release_audit: Program) -> None:
    matrix = write(release_audit.folder, "quiet", [release("1.0"), release("1.1")], SPRING)
    finished = release_audit("run", matrix, PYTHONPROFILEIMPORTTIME="1")
    assert finished.code == 0
    imported = {line.split("|")[-1].strip() for line in finished.stderr.splitlines() if line.startswith("import time")}
    assert {"audit.cli", "numpy"} <= imported
    assert not {"sympy", "scipy"} & imported
