"""Reference sets as files: those that ship say what the paper says, and a bad one is told at its place."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from analysis.algebra import ideals
from analysis.algebra.ideals import Decision
from analysis.algebra.polynomials import narrowed
from analysis.algebra.reference import ReferenceSet
from analysis.paper.laws import ACROBOT, REACHER_IN_METRES
from audit.asked.environment_rows import EnvironmentRow
from audit.asked.stimulus_spec import NearStart
from audit.errors import MatrixError, UsageError
from audit.laws import reference_file, speaking
from audit.laws.reference_file import ReferenceFile

SPRING = """\
name: spring
environments: [Spring, "tinysim:*"]
variables:
  x: state[0]
  v: state[1]
parameters: {k: 4.2}
laws:
  energy: {conserved: v**2 + k*x**2}
"""
SHIPPED = [path.stem for path in speaking.shipped()]


def written(folder: Path, text: str) -> Path:
    path = folder / "laws.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def read(folder: Path, text: str) -> ReferenceFile:
    return reference_file.read(written(folder, text))


# Those that ship


def test_there_are_nine() -> None:
    assert len(SHIPPED) == 9


@pytest.mark.parametrize("name", SHIPPED)
def test_a_file_is_found_for_the_environments_that_it_speaks_of(name: str) -> None:
    file = reference_file.find(name)
    for pattern in file.row.environments:
        row = EnvironmentRow(id=pattern.replace("*", "x"))
        assert file.speaks_of(row)
        assert file.path in speaking.shipped_for([row])
    assert speaking.shipped_for([EnvironmentRow(id="Nothing-v0")]) == []


@pytest.mark.parametrize("name", SHIPPED)
def test_every_file_that_ships_is_named_as_it_is_found(name: str) -> None:
    found = reference_file.find(name)
    assert found.row.name == found.laws.name == name
    assert found.path == speaking.FOLDER / f"{name}.yaml"


def restricted(laws: ReferenceSet, to: ReferenceSet) -> list[Any]:
    """The laws of one set in the ring of another that has fewer variables, read from the same columns."""
    columns = dict(laws.variables)
    assert all(columns[name] == text for name, text in to.variables)
    places = [laws.names.index(name) for name in to.names]
    return [narrowed(each, to.ring, places) for each in laws.generators]


@pytest.mark.parametrize(("name", "paper"), [("acrobot", ACROBOT), ("reacher-v4", REACHER_IN_METRES)])
def test_a_file_says_what_the_paper_says(name: str, paper: ReferenceSet) -> None:
    laws = reference_file.find(name).laws
    assert ideals.equality(laws.generators, restricted(paper, laws)) is Decision.EQUAL
    assert [law.kind for law in laws.laws] == [law.kind for law in paper.laws]


def test_a_file_at_other_constants_does_not() -> None:
    """The proof that the test above can fail."""
    heavier = reference_file.find("acrobot").laws.at({"LINK_MASS_2": Fraction(13, 10)})
    assert ideals.equality(heavier, ACROBOT.generators) is Decision.DIFFERENT


@pytest.mark.parametrize(("one", "other"), [("acrobot", "acrobot-state"), ("pendulum", "pendulum-state")])
def test_an_energy_is_the_same_in_the_observation_and_in_the_state(one: str, other: str) -> None:
    energies = [
        next(law for law in reference_file.find(name).laws.laws if law.name == "energy") for name in (one, other)
    ]
    assert energies[0].template == energies[1].template
    assert energies[0].polynomial == energies[1].polynomial


@pytest.mark.parametrize("name", ["reacher-v5", "reacher-state"])
def test_the_kinematics_is_the_same_wherever_it_is_read(name: str) -> None:
    laws, whole = reference_file.find(name).laws, reference_file.find("reacher-v4").laws
    assert laws.parameters == whole.parameters
    by_name = {law.name: law.polynomial.as_expr() for law in whole.laws}
    kinematics = [law for law in laws.laws if law.parameters]
    assert [law.name for law in kinematics] == ["fk-x", "fk-y"]
    assert all(law.polynomial.as_expr() == by_name[law.name] for law in kinematics)


def test_the_pendulums_energy_does_not_change_along_its_equation() -> None:
    """Of a rod: θ'' = 3g/(2l)·sin θ, with the angle counted from upright."""
    laws = reference_file.find("pendulum").laws
    cosine, sine, speed = laws.ring.gens
    energy = next(law for law in laws.laws if law.name == "energy").polynomial
    acceleration = 15 * sine  # of 10 m/s² and 1 m
    assert not energy.diff(cosine) * (-sine * speed) + energy.diff(speed) * acceleration


# What one says of itself


def test_constants_are_the_fractions_that_they_spell(tmp_path: Path) -> None:
    assert read(tmp_path, SPRING).laws.parameters == {"k": Fraction(21, 5)}
    assert read(tmp_path, SPRING.replace("4.2", "1/3")).laws.parameters == {"k": Fraction(1, 3)}
    assert reference_file.find("acrobot").laws.parameters["gravity"] == Fraction(49, 5)


def test_what_a_file_leaves_open_has_a_default(tmp_path: Path) -> None:
    found = read(tmp_path, SPRING)
    assert (found.row.lag, found.row.coast, found.row.trajectories, found.row.steps) == (1, None, 8, 500)
    assert found.row.start == NearStart(position=0.05, velocity=0.05)
    assert found.laws.relations == ()


def test_its_digest_is_that_of_its_text(tmp_path: Path) -> None:
    assert read(tmp_path, SPRING).digest == read(tmp_path, SPRING).digest
    assert read(tmp_path, SPRING).digest != read(tmp_path, SPRING.replace("4.2", "4.3")).digest


def test_without_more_it_is_run_as_it_ships(tmp_path: Path) -> None:
    (setting,) = read(tmp_path, SPRING).settings
    assert (setting.name, setting.edits, setting.steps) == ("shipped", {}, 500)


def test_the_setting_that_resolves_a_law_is_named_by_its_edits(tmp_path: Path) -> None:
    text = SPRING + "steps: 7\nresolved: {edits: {dt: 0.005, kind: fine}, steps: 400}\n"
    shipped, resolved = read(tmp_path, text).settings
    assert (shipped.name, shipped.edits, shipped.steps) == ("shipped", {}, 7)
    assert resolved.name == "dt = 0.005, kind = fine"
    assert (resolved.edits, resolved.steps) == ({"dt": 0.005, "kind": "fine"}, 400)


def test_nothing_drives_what_it_is_given(tmp_path: Path) -> None:
    found = read(tmp_path, SPRING + "start: {low: [-1], high: [1]}\ntrajectories: 5\nsteps: 7\n")
    given = found.stimulus(found.settings[0])
    assert (given.actions, given.trajectories, given.steps, given.start) == ("zero", 5, 7, found.row.start)


@pytest.mark.parametrize(
    ("row", "spoken_of"),
    [
        ({"id": "Spring"}, True),
        ({"id": "Other-v0", "name": "Spring"}, True),
        ({"adapter": "adapters/Spring.py"}, True),
        ({"id": "tinysim:tinysim/Spring-v0", "name": "whatever"}, True),
        ({"id": "Spring-v0"}, False),
        ({"id": "spring"}, False),
        ({"id": "Other-v0"}, False),
    ],
)
def test_it_speaks_of_an_environment_by_id_name_or_pattern(
    tmp_path: Path, row: dict[str, Any], spoken_of: bool
) -> None:
    assert read(tmp_path, SPRING).speaks_of(EnvironmentRow.model_validate(row)) is spoken_of


# Finding one


def test_one_is_found_by_its_path(tmp_path: Path) -> None:
    assert reference_file.find(str(written(tmp_path, SPRING))).row.name == "spring"


def test_a_name_that_none_has_is_told_with_those_there_are() -> None:
    with pytest.raises(UsageError, match=r"^there is no reference set 'acrobat': .* one of acrobot, acrobot-state, "):
        reference_file.find("acrobat")


# Bad ones

FORM = {
    "an unknown key": (SPRING + "colour: red\n", "colour, line 9: there is no such key here"),
    "both kinds": (
        SPRING.replace("{conserved:", "{vanishes: x, conserved:"),
        "laws.energy, line 8: give either vanishes or conserved",
    ),
    "neither kind": (
        SPRING.replace("{conserved: v**2 + k*x**2}", "{}"),
        "laws.energy, line 8: give either vanishes or conserved",
    ),
    "a constant in words": (SPRING.replace("4.2", "four"), "parameters.k, line 6: 'four' is not a number"),
    "a constant that is no number": (SPRING.replace("4.2", ".nan"), "parameters.k, line 6: nan is not a number"),
    "a constant over nothing": (SPRING.replace("4.2", "1/0"), "parameters.k, line 6: '1/0' is not a number"),
    "no laws": (SPRING.replace("\n  energy: {conserved: v**2 + k*x**2}", " {}"), "laws, line 7: "),
    "laws left out": (SPRING.partition("laws:")[0], "laws, line 1: is missing"),
    "a function of columns that there is not": (
        SPRING.replace("state[1]", "tan(state[1])"),
        "variables.v, line 5: 'tan(state[1])' is no expression of columns",
    ),
    "a column and its entry": (
        SPRING.replace("state[1]", "state[1] + state"),
        "variables.v, line 5: 'state[1] + state' needs one entry of state",
    ),
    "a torn variable": (SPRING.replace("state[1]", "state[1"), "variables.v, line 5: 'state[1' is not an expression"),
    "no lag": (SPRING + "lag: 0\n", "lag, line 9: "),
    "nothing that resolves": (SPRING + "resolved: {edits: {}, steps: 4}\n", "resolved.edits, line 9: "),
    "a name with a space": (SPRING.replace("name: spring", "name: my spring"), "name, line 1: 'my spring' must begin"),
    "no mapping": ("- spring\n", "the file, line 1: should be a mapping"),
}


@pytest.mark.parametrize("bad", FORM)
def test_what_is_wrong_with_the_form_is_told_at_its_place(tmp_path: Path, bad: str) -> None:
    text, told = FORM[bad]
    with pytest.raises(MatrixError, match=r"laws\.yaml") as caught:
        read(tmp_path, text)
    (problem,) = caught.value.problems
    assert told in problem


LAWS = {
    "an unknown variable": (
        "v**2 + k*q**2",
        "laws.energy, line 8: 'v**2 + k*q**2' names q, and there are only x, v, k",
    ),
    "a sine": ("v**2 + sin(x)", "laws.energy, line 8: 'v**2 + sin(x)' is not a polynomial: sin(x) is none"),
    "a root": ("v**0.5", "laws.energy, line 8: 'v**0.5' is not a polynomial"),
    "a division by a constant": ("v**2/k", "laws.energy, line 8: 'v**2/k' is not a polynomial: it divides by k"),
    "nothing": ("v - v", "laws.energy, line 8: 'v - v' is zero whatever the data are"),
    "no variable": ("k**2", "laws.energy, line 8: 'k**2' has none of the variables x, v in it"),
    "no expression": ("v +", "laws.energy, line 8: 'v +' is not an expression"),
}


@pytest.mark.parametrize("bad", LAWS)
def test_what_is_no_law_is_told_in_one_sentence(tmp_path: Path, bad: str) -> None:
    law, told = LAWS[bad]
    with pytest.raises(UsageError, match=re.escape(told)) as caught:
        read(tmp_path, SPRING.replace("v**2 + k*x**2", law))
    assert str(caught.value).startswith(f"{tmp_path / 'laws.yaml'}: ")
    assert "\n" not in str(caught.value)


def test_a_name_cannot_be_a_variable_and_a_constant(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"laws\.yaml: x cannot be a variable and a parameter$"):
        read(tmp_path, SPRING.replace("{k: 4.2}", "{x: 4.2}"))


def test_a_relation_that_names_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"laws\.yaml: 'x - q' names q, and there are only x, v$"):
        read(tmp_path, SPRING + 'relations: ["x - q"]\n')


def test_everything_that_is_wrong_with_the_form_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(MatrixError) as caught:
        read(tmp_path, SPRING.replace("4.2", "four").replace("state[0]", "tan(x)") + "colour: red\n")
    assert [each.split(",")[0] for each in caught.value.problems] == ["variables.x", "parameters.k", "colour"]


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"absent\.yaml cannot be read"):
        reference_file.read(tmp_path / "absent.yaml")
