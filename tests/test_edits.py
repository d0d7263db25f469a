"""Constants set otherwise: read from a matrix, part of every key, and found when they are faults."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from audit import run_rows
from audit.asked.environment_rows import EnvironmentRow
from audit.asked.stimulus_spec import StimulusSpec
from audit.errors import MatrixError
from audit.installing import index, listing
from audit.installing.venvs import Recipe
from audit.laws import law_lines
from audit.planning import plan
from audit.planning.plan import Cell, Recording
from audit.stimuli import starts, stimulus
from audit.storage.store import Store
from tests.conftest import Finished, Program, rows, write_matrix
from tests.planned_cells import LAYOUT, batch, planned
from tests.written_matrices import SMALLEST, read

# In a matrix


BOXES = Path(__file__).parent.parent / "matrices" / "scenes" / "boxes.xml"


def with_edits(edits: str) -> str:
    """The smallest matrix whose release, at line 4, is edited."""
    return SMALLEST.replace('1.0.0"]}', '1.0.0"], edits: ' + edits + "}")


def test_values_keep_their_types(tmp_path: Path) -> None:
    edits = (
        read(
            tmp_path,
            with_edits("{m: 1.3, n: 2, on: true, kind: nips, torque: [-1, 0.5], \"body[@name='tip']@pos\": 0.13 0 0}"),
        )
        .matrix.releases[0]
        .edits
    )
    assert list(edits.values()) == [1.3, 2, True, "nips", (-1, 0.5), "0.13 0 0"]
    assert [type(value) for value in edits.values()] == [float, int, bool, str, tuple, str]


def test_nothing_is_edited_unless_it_is_asked_for(tmp_path: Path) -> None:
    matrix = read(tmp_path, SMALLEST).matrix
    assert matrix.releases[0].edits == matrix.environments[0].edits == {}


@pytest.mark.parametrize(
    ("edits", "said"),
    [
        ("{g: .nan}", "edits.g, line 4: should be finite"),
        ("{g: -.inf}", "edits.g, line 4: should be finite"),
        ("{g: [1, .inf]}", "edits.g, line 4: should be finite"),
        ("{g: null}", "edits.g, line 4: should be true or false, a number, text, or a list of numbers"),
        ("{g: []}", "edits.g, line 4: should be true or false, a number, text, or a list of numbers"),
        ("{g: [a]}", "edits.g, line 4: should be true or false, a number, text, or a list of numbers"),
        ("{g: [true]}", "edits.g, line 4: should be true or false, a number, text, or a list of numbers"),
        ("{g: {a: 1}}", "edits.g, line 4: should be true or false, a number, text, or a list of numbers"),
        ("[g]", "edits, line 4: should be a mapping"),
        ('{"@pos": 1}', "edits.@pos, line 4: '@pos' is not a path and an attribute"),
        ("{\"body[@name='x']\": 1}", "line 4: \"body[@name='x']\" is not a path and an attribute"),
        ('{"body[@pos": 1}', "line 4: 'body[@pos' is not a path and an attribute"),
    ],
)
def test_what_cannot_be_an_edit_is_told_at_its_place(tmp_path: Path, edits: str, said: str) -> None:
    with pytest.raises(MatrixError) as caught:
        read(tmp_path, with_edits(edits))
    (told,) = caught.value.problems
    assert told.startswith("releases[0].edits")
    assert said in told


@pytest.mark.parametrize(("key", "value"), [("steps", 0), ("trajectories", 0), ("steps", 2_000_000)])
def test_an_environments_own_steps_have_the_bounds_of_the_stimulus(tmp_path: Path, key: str, value: int) -> None:
    with pytest.raises(MatrixError, match=rf"environments\[0\]\.{key}, line 7: input should be"):
        read(tmp_path, SMALLEST + f"    {key}: {value}\n")


@pytest.mark.parametrize(
    ("own", "shape"),
    [({}, (3, 10)), ({"steps": 4}, (3, 4)), ({"trajectories": 5}, (5, 10)), ({"steps": 1, "trajectories": 1}, (1, 1))],
)
def test_an_environments_own_steps_come_before_the_stimulus(own: dict[str, int], shape: tuple[int, int]) -> None:
    row = EnvironmentRow.model_validate({"id": "E", **own})
    assert starts.horizon(StimulusSpec(trajectories=3, steps=10), row, LAYOUT).shape == shape


# In a release and a cell


def test_a_request_tells_its_edits_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "versions", lambda *_: ("1.0", "1.1"))
    text = with_edits("{LINK_MASS_2: 1.3, kind: nips}").replace(
        "environments:", '  - {package: six, versions: ">=1", edits: {g: 1}}\nenvironments:'
    )
    requests = listing.expand(read(tmp_path, text))
    assert [each.text for each in requests] == [
        "gymnasium==1.0.0, with LINK_MASS_2 = 1.3, kind = nips",
        "six==1.0, with g = 1",
        "six==1.1, with g = 1",
    ]
    assert [row.requires for row in run_rows.release_rows(requests, {}, [])] == [each.text for each in requests]


def cell(environment: dict[str, Any] | None = None, release: dict[str, Any] | None = None) -> Cell:
    plain = planned("one")
    row = EnvironmentRow.model_validate({"id": "E", "edits": environment or {}})
    request = replace(plain.release.request, edits=release or {})
    return replace(plain, environment=row, release=replace(plain.release, request=request))


def keys(each: Cell) -> tuple[str, str, str]:
    return each.probe_key, each.bank_key(b""), each.key(stimulus.assemble({"horizon": batch(2, 3)}))


def test_a_releases_edits_come_over_the_environments_and_further_ones_over_both() -> None:
    both = cell({"a": 1, "b": 1, "c": 1}, {"b": 2, "c": 2})
    assert both.edits == {"a": 1, "b": 2, "c": 2}
    assert both.edited({"c": 3}).edited({"d": 4}).edits == {"a": 1, "b": 2, "c": 3, "d": 4}


@pytest.mark.parametrize("edited", [cell({"a": 1}), cell(None, {"a": 1}), cell().edited({"a": 1})])
def test_edits_are_part_of_every_key(edited: Cell) -> None:
    assert not set(keys(edited)) & set(keys(cell()))
    assert keys(edited) == keys(cell({"a": 1})), "what is edited counts, not by whom"
    assert not set(keys(edited)) & {key for value in (1.0, True, "1", 2) for key in keys(cell({"a": value}))}


def test_the_order_of_edits_is_that_of_their_names() -> None:
    one, other = cell({"a": 1, "b": 2}), cell({"b": 2}, {"a": 1})
    assert keys(one) == keys(other)
    assert list(json.loads(other.asked("probe").edits)) == ["a", "b"]


def test_an_edited_release_shares_its_virtualenv() -> None:
    assert Recipe.of(cell().release) == Recipe.of(cell(None, {"a": 1}).release)


def test_the_dumper_is_asked_for_them() -> None:
    given = stimulus.assemble({"horizon": batch(2, 3)})
    recording = Recording(cell=cell({"a": (1, 2)}).edited({"dt": 0.005}), stimulus=given, purpose="finer")
    assert json.loads(recording.asked().edits) == {"a": [1, 2], "dt": 0.005}
    assert recording.identifier == "one/E (finer)"
    assert plan.edits_text({}) == cell().asked("dump").edits == "{}"


# End to end, on real wheels

TIP = "body[@name='fingertip']@pos"


@pytest.fixture(scope="module")
def found(module_audit: Program) -> Path:
    """Shipped environments, once as they are, once with the value they have written again, once with another."""
    shipped = {"requires": ["gymnasium[mujoco]==1.2.3", "mujoco==3.2.7"], "pins": ["numpy<2.4"]}
    edits: dict[str, dict[str, Any]] = {
        "shipped": {},
        "acrobot-none": {"LINK_MASS_2": 1.0},
        "acrobot-m2": {"LINK_MASS_2": 1.3},
        "acrobot-m3": {"LINK_MASS_3": 1.3},
        "reacher-none": {TIP: "0.11 0 0"},
        "reacher-l2": {TIP: "0.13 0 0"},
    }
    matrix = write_matrix(
        module_audit.folder / "edits.yaml",
        [{"id": name, **shipped, "edits": each} for name, each in edits.items()],
        [
            {"id": "Acrobot-v1", "releases": ["shipped", "acrobot-*"], "coast": 1},
            {"id": "Acrobot-v1", "name": "finer", "releases": ["shipped"], "edits": {"dt": 0.005}, "steps": 7},
            {"id": "Reacher-v5", "releases": ["shipped", "reacher-*"]},
        ],
        pairs={"against": "shipped"},
        stimulus={"trajectories": 2, "steps": 10},
        bank={"states": 32},
    )
    database = module_audit.folder / "edits.duckdb"
    done = module_audit("run", matrix, "--db", database)
    assert done.code == 0, done.stdout + done.stderr
    return database


def test_a_fault_in_a_shipped_environment_is_found_and_a_null_is_not(found: Path) -> None:
    verdicts = rows(found, "SELECT environment, newer, verdict FROM pairs ORDER BY environment, newer_position")
    assert verdicts == [
        ("Acrobot-v1", "acrobot-none", "identical"),
        ("Acrobot-v1", "acrobot-m2", "changed"),
        ("Acrobot-v1", "acrobot-m3", "unavailable"),
        ("Reacher-v5", "reacher-none", "identical"),
        ("Reacher-v5", "reacher-l2", "changed"),
    ]
    ((reason,),) = rows(found, "SELECT reason FROM pairs WHERE verdict = 'unavailable'")
    assert reason == "acrobot-m3: it has no LINK_MASS_3 that could be edited"


def test_edited_releases_are_told_apart_and_share_a_lock(found: Path) -> None:
    assert rows(found, "SELECT count(DISTINCT lock_digest), count(DISTINCT requires) FROM releases") == [(1, 6)]
    told = dict(rows(found, "SELECT release, description->'edits' FROM dumps WHERE status = 'ok'"))
    assert json.loads(told["reacher-l2"]) == {TIP: "0.13 0 0"}


def test_an_environment_may_be_edited_for_all_releases(found: Path) -> None:
    ((time_step, steps),) = rows(
        found,
        "SELECT description->>'time_step', shape FROM dumps JOIN internal.behaviour_outputs USING (behaviour)"
        " WHERE environment = 'finer' AND output = 'horizon.reward'",
    )
    assert float(time_step) == 0.005
    assert json.loads(steps) == [2, 7]


# The shipped matrix of faults, run once


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """The audit of ``faults.yaml``, and what the laws say of each fault."""

    finished: Finished
    database: Path
    lines: dict[tuple[str, str], str]
    """By environment and fault."""


@pytest.fixture(scope="module")
def faults(module_audit: Program) -> Faults:
    database = module_audit.folder / "faults.duckdb"
    done = module_audit("run", "faults.yaml", "--db", database)
    assert done.code == 0, done.stdout + done.stderr
    with Store(database, read_only=True) as store:
        ((run_id,),) = store.query("SELECT run_id FROM internal.runs").rows
        told = law_lines.lines(store, run_id)
    lines = {(environment, newer): line for (environment, _, newer), line in told.items()}
    return Faults(finished=done, database=database, lines=lines)


def test_every_fault_of_the_shipped_matrix_is_found_and_every_null_stays_silent(faults: Faults) -> None:
    verdicts = rows(faults.database, "SELECT environment, newer, verdict FROM pairs")
    assert len(verdicts) == 27
    unlike = [each for each in verdicts if each[2] != ("identical" if each[1].endswith("-none") else "changed")]
    assert unlike == []
    assert rows(faults.database, "SELECT DISTINCT reproduced, planted FROM environments") == [("yes", "seen")]
    assert set(faults.lines) == {(environment, newer) for environment, newer, found in verdicts if found == "changed"}


def test_a_scene_is_edited_too(release_audit: Program) -> None:
    """Its folder is the only one around it that may be looked into."""
    mujoco: dict[str, Any] = {"requires": ["mujoco==3.4.0"], "pins": ["numpy<2.4"]}
    releases: list[dict[str, Any]] = [
        {"id": "shipped", **mujoco},
        {"id": "lighter", **mujoco, "edits": {"option@gravity": "0 0 -5"}},
    ]
    scene = {"mjcf": str(BOXES), "start": {"position": 0.01, "velocity": 0.05}}
    matrix = write_matrix(release_audit.folder / "scene.yaml", releases, [scene], bank={"states": 24, "budget": 200})
    finished = release_audit("run", matrix)
    assert finished.code == 0, finished.stdout + finished.stderr
    found = rows(release_audit.folder / "results/audit.duckdb", "SELECT environment, older, newer, verdict FROM pairs")
    assert found == [("boxes", "shipped", "lighter", "changed")]
    assert "opt.gravity" in finished.stdout


NAMED = {
    ("Acrobot-v1", "acrobot-m2"): "LINK_MASS_2 is 1.3, specified 1",
    ("Acrobot-v1", "acrobot-l1"): "LINK_LENGTH_1 is 1.2, specified 1",
    ("Acrobot-v1", "acrobot-lc2"): "LINK_COM_POS_2 is 0.6, specified 0.5",
    # A law has no scale: both inertias half as large again are both masses a third less.
    ("Acrobot-v1", "acrobot-moi"): "LINK_MOI_1 is 1.5, specified 1 and LINK_MOI_2 is 1.5, specified 1"
    " or LINK_MASS_1 is 0.666667, specified 1 and LINK_MASS_2 is 0.666667, specified 1",
    ("shipped-acrobot", "acrobot-adapter-i2"): "LINK_MOI_2 is 1.5, specified 1",
    ("shipped-acrobot", "acrobot-adapter-g"): "gravity is 9.81, specified 9.8",
    ("Reacher-v4", "reacher-l2"): "link2 is 0.13, specified 0.11",
    ("Reacher-v5", "reacher-l2"): "link2 is 0.13, specified 0.11",
    ("Reacher-v4", "reacher-l1"): "link1 is 0.09, specified 0.1",
    ("Reacher-v5", "reacher-l1"): "link1 is 0.09, specified 0.1",
}
RATIOS = {"pendulum-g": 11 / 10, "pendulum-l": 10 / 12}
"""Of g to l: the pendulum's two constants are one."""
UNEXPLAINED = {
    ("Acrobot-v1", "acrobot-nips"): "energy",
    ("Acrobot-v1", "acrobot-leak"): "energy",
    ("shipped-acrobot", "acrobot-adapter-euler"): "energy",
    ("shipped-acrobot", "acrobot-adapter-swap"): "energy",
    ("shipped-acrobot", "acrobot-adapter-scale"): "unit-norm θ1",
    ("shipped-reacher", "reacher-adapter-swap"): "fk-x",
}


@pytest.mark.parametrize("fault", NAMED)
def test_a_wrong_constant_of_a_shipped_environment_is_named_with_its_value(
    faults: Faults, fault: tuple[str, str]
) -> None:
    law, _, named = faults.lines[fault].partition(": ")
    assert law.startswith("fk-x broken, ratio " if "reacher" in fault[1] else "energy broken at dt = 0.005, ratio ")
    assert named == NAMED[fault]


@pytest.mark.parametrize("fault", RATIOS)
def test_two_constants_that_enter_as_one_are_both_named(faults: Faults, fault: str) -> None:
    named = faults.lines["Pendulum-v1", fault].partition(": ")[2]
    fitted = {part.split()[0]: float(part.split()[2].rstrip(",")) for part in named.split(" or ")}
    assert fitted == pytest.approx({"g": 10 * RATIOS[fault], "l": 1 / RATIOS[fault]}, rel=5e-4)


@pytest.mark.parametrize("fault", UNEXPLAINED)
def test_a_fault_that_is_no_constant_is_not_blamed_on_one(faults: Faults, fault: tuple[str, str]) -> None:
    line = faults.lines[fault]
    assert line.startswith(f"{UNEXPLAINED[fault]} broken")
    assert line.endswith(": no constant of the specification explains it")
    explanations = rows(faults.database, "SELECT DISTINCT explanation FROM attributions WHERE release = ?", fault[1])
    assert explanations == [("",)]


def test_another_time_step_is_another_integration_of_the_same_constants(faults: Faults) -> None:
    line = faults.lines["Acrobot-v1", "acrobot-dt"]
    assert line.startswith("in shipped: energy broken, ratio "), "the finer one keeps it better"
    assert line.endswith(": its constants are as specified, so it is integrated otherwise")


def test_a_fingertip_out_of_the_plane_breaks_a_law_without_constants(faults: Faults) -> None:
    assert faults.lines["Reacher-v4", "reacher-dz"] == "dz broken, ratio inf, p 3.9e-04"
    assert faults.lines["Reacher-v5", "reacher-dz"].startswith("neither breaks what the other keeps: "), (
        "it observes no height"
    )


def test_the_summary_prints_what_the_laws_say_under_the_pair(faults: Faults) -> None:
    printed = [line.strip() for line in faults.finished.stdout.splitlines()]
    for fault in (("Acrobot-v1", "acrobot-m2"), ("Pendulum-v1", "pendulum-g"), ("Reacher-v5", "reacher-l2")):
        assert faults.lines[fault] in printed
