"""The matrix: what is shipped, what is valid, what is not, each mistake with its path and its line."""

from __future__ import annotations

import json
import re
from itertools import combinations
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from audit.asked import matrix_file, releases
from audit.asked.matrix import OUTPUTS, Against, Matrix
from audit.asked.matrix_file import SHIPPED
from audit.asked.release_rows import ExplicitRow, GeneratedRow
from audit.asked.stimulus_spec import BoundedStart, NearStart
from audit.errors import EXIT_USAGE, MatrixError, UsageError
from audit.installing import index, listing
from tests.written_matrices import SMALLEST, plain, read, written

MATRICES = matrix_file.shipped()


def problems(folder: Path, text: str) -> tuple[str, ...]:
    with pytest.raises(MatrixError) as caught:
        read(folder, text)
    assert caught.value.exit_code == EXIT_USAGE
    return caught.value.problems


def places(told: tuple[str, ...]) -> list[str]:
    """``releases[0].id, line 4`` of each problem."""
    return [problem.split(": ", 1)[0] for problem in told]


# What is shipped


def test_matrices_are_shipped() -> None:
    assert {"paper.yaml", "smoke.yaml"} <= {path.name for path in MATRICES}


@pytest.mark.parametrize("path", MATRICES, ids=lambda path: path.name)
def test_every_shipped_matrix_is_valid_and_named_after_its_file(path: Path) -> None:
    file = matrix_file.read(path)
    assert file.matrix.name == path.stem
    assert file.matrix.description


@pytest.mark.parametrize("path", MATRICES, ids=lambda path: path.name)
def test_every_shipped_matrix_is_valid_by_the_schema_too(path: Path) -> None:
    schema = json.loads((SHIPPED / "schema.json").read_text(encoding="utf-8"))
    jsonschema.validate(plain(path), schema)


def test_the_schema_is_current() -> None:
    kept = (SHIPPED / "schema.json").read_text(encoding="utf-8")
    assert kept == matrix_file.schema(), "run `make schema`"


@pytest.mark.parametrize(
    "broken",
    [
        {"python": 3.11},
        {"releases": []},
        {"environments": [{"name": "x"}]},
        {"pairs": "some"},
        {"unknown": 1},
        {"releases": [{"id": "a", "requires": ["six"], "versions": ">1"}]},
        {"stimulus": {"steps": 0}},
        {"environments": [{"id": "E", "trajectories": 0}]},
        {"environments": [{"id": "E", "edits": {"g": None}}]},
        {"releases": [{"id": "a", "requires": ["six"], "edits": {"g": []}}]},
    ],
    ids=str,
)
def test_the_schema_and_the_code_refuse_the_same(broken: dict[str, Any]) -> None:
    valid = plain(SHIPPED / "smoke.yaml")
    jsonschema.validate(valid, json.loads(matrix_file.schema()))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**valid, **broken}, json.loads(matrix_file.schema()))
    with pytest.raises(ValueError, match="validation error"):
        Matrix.model_validate({**valid, **broken})


def test_the_paper_has_17_releases_11_environments_and_350_pairs() -> None:
    file = matrix_file.read(SHIPPED / "paper.yaml")
    requests = listing.expand(file)
    pairs = [
        pair
        for environment in file.matrix.environments
        for pair in combinations(releases.selected(requests, environment.releases), 2)
    ]
    assert (len(requests), len(file.matrix.environments), len(pairs)) == (17, 11, 350)
    assert file.matrix.pairs == "all"


def test_the_paper_has_its_pins_and_its_stimulus() -> None:
    matrix = matrix_file.read(SHIPPED / "paper.yaml").matrix
    assert matrix.pins == ("numpy<2",)
    assert (matrix.stimulus.seed, matrix.stimulus.trajectories, matrix.stimulus.steps) == (12345, 8, 500)
    assert matrix.stimulus.actions == "zero"
    assert matrix.outputs == ("observation",)
    assert all(environment.start is not None for environment in matrix.environments)


# What is valid


def test_defaults(tmp_path: Path) -> None:
    matrix = read(tmp_path, SMALLEST).matrix
    assert (matrix.pairs, matrix.outputs, matrix.exclude_newer) == ("all", OUTPUTS, None)
    assert matrix.environments[0].releases == ("*",)
    assert matrix.environments[0].title == "CartPole-v1"
    assert isinstance(matrix.stimulus.start, NearStart)


def test_rows_and_starts_are_told_apart_by_their_keys(tmp_path: Path) -> None:
    text = SMALLEST.replace("  - {id: a,", '  - {package: mujoco, versions: ">=3"}\n  - {id: a,')
    matrix = read(tmp_path, text + "    start: {low: [0], high: [1]}\n").matrix
    generated, explicit = matrix.releases
    assert isinstance(generated, GeneratedRow)
    assert isinstance(explicit, ExplicitRow)
    assert generated.id_template == "mujoco-{version}"
    assert isinstance(matrix.environments[0].start, BoundedStart)


def test_against_names_a_release(tmp_path: Path) -> None:
    pairs = read(tmp_path, SMALLEST + "pairs: {against: a}\n").matrix.pairs
    assert isinstance(pairs, Against)
    assert pairs.against == "a"


def test_messages_about_a_valid_file_name_path_and_line(tmp_path: Path) -> None:
    file = read(tmp_path, SMALLEST)
    assert file.at(("releases", 0, "requires", 0)) == "releases[0].requires[0], line 4"
    assert file.at(("environments", 0, "releases", 0)) == "environments[0].releases[0], line 6"
    assert file.at(()) == "the file, line 1"


# What is not


def test_every_problem_is_reported_at_once_with_its_path_and_its_line(tmp_path: Path) -> None:
    text = """\
name: "bad name"
python: 3.10
colour: blue
exclude-newer: someday
pins: ["numpy<2", "not a requirement"]
pairs: {against: nobody}
outputs: [state, smell]
stimulus:
  seed: -1
  steps: many
  actions: wild
  start: {low: [0, 1], high: [1]}
releases:
  - id: a
    requires:
      - six
      - "!!!"
  - {id: a, requires: []}
  - requires: [six]
    python: "2.7"
environments:
  - id: E
    releases: ["a", "zzz-*"]
    start:
      position: -1
      velocity: 0
  - {name: F}
  - id: E
"""
    told = problems(tmp_path, text)
    assert places(told) == [
        "name, line 1",
        "python, line 2",
        "colour, line 3",
        "exclude-newer, line 4",
        "pins[1], line 5",
        "pairs.against, line 6",
        "outputs[1], line 7",
        "stimulus.seed, line 9",
        "stimulus.steps, line 10",
        "stimulus.actions, line 11",
        "stimulus.start, line 12",
        "releases[0].requires[1], line 17",
        "releases[1].requires, line 18",
        "releases[1].id, line 18",
        "releases[2].id, line 19",
        "releases[2].python, line 20",
        "environments[0].releases[1], line 23",
        "environments[0].start.position, line 25",
        "environments[1], line 27",
        "environments[2].id, line 28",
    ]
    by_place = dict(problem.split(": ", 1) for problem in told)
    assert by_place["colour, line 3"] == "there is no such key here"
    assert by_place["releases[2].id, line 19"] == "is missing"
    assert by_place["stimulus.start, line 12"] == "low has 2 entries, high 1"
    assert by_place["pairs.against, line 6"] == "'nobody' is not the id of a release"
    assert by_place["releases[1].id, line 18"] == "'a' stands already at releases[0]"
    assert by_place["environments[2].id, line 28"] == "'E' stands already at environments[0]"


def test_the_error_says_how_many_and_of_which_file(tmp_path: Path) -> None:
    with pytest.raises(MatrixError, match=r"matrix\.yaml has 1 problem:\n  colour, line 7: there is no such key here$"):
        read(tmp_path, SMALLEST + "colour: blue\n")


def test_python_without_quotes_is_explained(tmp_path: Path) -> None:
    (told,) = problems(tmp_path, SMALLEST.replace('"3.11"', "3.10"))
    assert told.startswith("python, line 2: put the version in quotes")


@pytest.mark.parametrize("version", ["2.7", "3", "3.x", "python3.11", "3.11.", "4.0"])
def test_what_is_not_a_python_version(tmp_path: Path, version: str) -> None:
    assert places(problems(tmp_path, SMALLEST.replace("3.11", version))) == ["python, line 2"]


def test_a_name_makes_one_id_usable_twice(tmp_path: Path) -> None:
    text = SMALLEST + "  - {id: CartPole-v1, name: other}\n"
    assert [each.title for each in read(tmp_path, text).matrix.environments] == ["CartPole-v1", "other"]
    told = problems(tmp_path, text + "  - {id: Acrobot-v1, name: other}\n")
    assert told == ("environments[2].id, line 8: 'other' stands already at environments[1]",)


@pytest.mark.parametrize(
    ("text", "line"),
    [("name: [", 1), ("name: x\npython: 'unclosed\n", 3), ("name: x\n\tpython: y\n", 2), ("a: b\nc: d: e\n", 2)],
)
def test_text_that_is_not_yaml_is_told_with_its_line(tmp_path: Path, text: str, line: int) -> None:
    (told,) = problems(tmp_path, text)
    assert re.match(rf"line {line}: not YAML: ", told)


def test_a_key_that_stands_twice(tmp_path: Path) -> None:
    (told,) = problems(tmp_path, SMALLEST + "name: again\n")
    assert told == "name, line 1: stands a second time, at line 7"


@pytest.mark.parametrize("text", ["", "- 1\n", "3\n", "null\n", "just words\n"])
def test_what_is_no_mapping(tmp_path: Path, text: str) -> None:
    assert problems(tmp_path, text) == ("the file, line 1: should be a mapping",)


@pytest.mark.parametrize(
    ("addition", "said"),
    [
        ("    releases: []\n", "environments[0].releases, line 7: should not be empty"),
        ("  - {mjcf: ''}\n", "environments[1].mjcf, line 7: should not be empty"),
        ("stimulus: {steps: many}\n", "stimulus.steps, line 7: should be a whole number"),
    ],
)
def test_what_is_wrong_is_told_without_words_of_python(tmp_path: Path, addition: str, said: str) -> None:
    assert problems(tmp_path, SMALLEST + addition) == (said,)


@pytest.mark.parametrize(
    ("addition", "place"),
    [
        ("near: 1\n", "near, line 7"),
        ("explicit: 1\n", "explicit, line 7"),
        ("    releases: 3\n", "environments[0].releases, line 7"),
        ("    releases: '*'\n", "environments[0].releases, line 7"),
        ("    start: {low: [1], high: [0]}\n", "environments[0].start, line 7"),
        ("    coast: 1.5\n", "environments[0].coast, line 7"),
    ],
)
def test_one_mistake_is_told_at_its_place(tmp_path: Path, addition: str, place: str) -> None:
    assert places(problems(tmp_path, SMALLEST + addition)) == [place]


@pytest.mark.parametrize("addition", ["1: 2\n", "null: 2\n", "2026-01-01: 2\n", "exclude-newer: 2026-13-01\n"])
def test_one_mistake_is_told_with_its_line(tmp_path: Path, addition: str) -> None:
    (told,) = problems(tmp_path, SMALLEST + addition)
    assert "line 7:" in told


@pytest.mark.parametrize("bound", [".nan", ".inf"])
def test_bounds_that_nothing_can_be_drawn_between(tmp_path: Path, bound: str) -> None:
    told = problems(tmp_path, SMALLEST + f"    start: {{low: [0], high: [{bound}]}}\n")
    assert all(place.startswith("environments[0].start") for place in places(told))
    told = problems(tmp_path, SMALLEST + f"    start: {{position: {bound}, velocity: 0}}\n")
    assert all(place.startswith("environments[0].start") for place in places(told))


@pytest.mark.parametrize("package", ["six>1", "six[more]", "six @ https://example.org/six.whl", "six; os_name=='x'"])
def test_a_package_that_moves_is_a_bare_name(tmp_path: Path, package: str) -> None:
    text = SMALLEST.replace("  - {id: a,", f'  - {{package: "{package}", versions: ">=1"}}\n  - {{id: a,')
    assert places(problems(tmp_path, text)) == ["releases[0].package, line 4"]


def test_a_day_beyond_the_calendar_is_refused(tmp_path: Path) -> None:
    assert places(problems(tmp_path, SMALLEST + "exclude-newer: 9999-01-01\n")) == ["exclude-newer, line 7"]
    last = read(tmp_path, SMALLEST + "exclude-newer: 9998-12-31\n").matrix.exclude_newer
    assert index.until(last) == ["--exclude-newer", "9999-01-01T00:00:00Z"]


def test_generated_ids_are_checked_when_they_are_known(tmp_path: Path) -> None:
    text = SMALLEST.replace("  - {id: a,", '  - {package: six, versions: ">=1"}\n  - {id: a,')
    read(tmp_path, text + "    releases: [six-1.16.0]\npairs: {against: six-1.16.0}\n")


def test_a_file_that_is_not_text(tmp_path: Path) -> None:
    path = tmp_path / "matrix.yaml"
    path.write_bytes(b"\xff\xfe\x00name")
    with pytest.raises(UsageError, match="cannot be read"):
        matrix_file.read(path)


def test_a_folder_is_no_matrix(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        matrix_file.read(tmp_path)


# Finding


def test_a_matrix_is_found_by_path_by_name_and_without_suffix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert matrix_file.find("smoke.yaml") == matrix_file.find("smoke") == SHIPPED / "smoke.yaml"
    own = written(tmp_path, SMALLEST)
    assert matrix_file.find(str(own)) == own
    (tmp_path / "matrices").mkdir()
    (tmp_path / "matrices" / "smoke.yaml").write_text(SMALLEST)
    assert matrix_file.find("smoke.yaml") == Path("matrices/smoke.yaml")


def test_an_unknown_matrix_is_answered_with_those_there_are() -> None:
    with pytest.raises(UsageError, match=r"no matrix 'nothing'.*paper\.yaml.*smoke\.yaml"):
        matrix_file.find("nothing")


# What may be built


@pytest.mark.parametrize(
    ("written_as", "meant"),
    [("", ()), ("source: false", ()), ("source: true", (":all:",)), ("source: [Gym, box2d_py]", ("box2d-py", "gym"))],
)
def test_what_may_be_built_from_source(tmp_path: Path, written_as: str, meant: tuple[str, ...]) -> None:
    line = '  - {id: r, requires: ["a==1"]' + (f", {written_as}" if written_as else "") + "}\n"
    file = read(tmp_path, f"name: m\npython: '3.11'\nreleases:\n{line}environments: [{{id: E}}]\n{_STIMULUS}")
    assert listing.expand(file)[0].source == meant


@pytest.mark.parametrize("wrong", ["yes please", "1", "{gym: true}", '["gym==1"]'])
def test_a_wrong_source_is_told_in_one_sentence(tmp_path: Path, wrong: str) -> None:
    line = f'  - {{id: r, requires: ["a==1"], source: {wrong}}}\n'
    told = problems(tmp_path, f"name: m\npython: '3.11'\nreleases:\n{line}environments: [{{id: E}}]\n{_STIMULUS}")
    assert len(told) == 1
    assert told[0].startswith("releases[0].source")


_STIMULUS = "stimulus: {seed: 1, trajectories: 1, steps: 1, actions: zero}\n"
