"""``explain`` and ``blame`` by the names that an audit has: they answer about what was audited, and nothing else."""

from __future__ import annotations

import datetime
import json
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from audit.errors import UsageError
from audit.explanations import audited, between
from audit.explanations.between import QuestionOptions
from audit.installing.locks import Lock
from audit.storage.records import NightRecord
from audit.storage.store import Store
from audit.storage.watched_release import Watched
from tests import stored_runs, tinychain
from tests.asked_releases import request
from tests.conftest import Finished, rows, write_matrix
from tests.tinychain import Desk, identifier

SMALL: dict[str, Any] = {
    "exclude-newer": None,
    "stimulus": {"trajectories": 2, "steps": 5},
    "bank": {"states": 8, "budget": 50},
}
RELEASES: list[dict[str, Any]] = [
    {"id": "before", "requires": ["tinychain==0.29", "tinymath==1.2"]},
    {"id": "between", "requires": ["tinychain==0.30", "tinymath==1.2"]},
    {"id": "after", "requires": ["tinychain==0.32", "tinymath==1.5"]},
]
BROUGHT = {"maths": "tinymath 1.2 → 1.5", "chain": "tinychain 0.30 → 0.32"}
"""By matrix: what brings the change that its argument makes visible."""

ADAPTER = (Path(__file__).parent / "adapters" / "pendulum.py").read_text(encoding="utf-8")
EDIT = "\n\ndef edit(pendulum: Pendulum, name: str, value: float) -> None:\n    setattr(pendulum, name, value)\n"
SWING = "swing.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class Audits:
    """Runs of matrices in one database."""

    desk: Desk
    runs: dict[str, Finished]

    def __call__(self, *arguments: str) -> Finished:
        return self.desk.program(*arguments, "--db", self.desk.database)

    def proposed(self, matrix: str) -> list[str]:
        """The commands of a summary, as printed: those after it and those in its lines."""
        summary, _, after = self.runs[matrix].stdout.partition("\nNext:\n")
        lines = [*after.partition("\n\n")[0].splitlines(), *re.findall(r"`([^`]*)` finds out", summary)]
        return [line.strip() for line in lines]


@pytest.fixture(scope="module")
def audits(tmp_path_factory: pytest.TempPathFactory, shared_cache: Path) -> Audits:
    """One title with two different arguments, and an adapter with an edited release."""
    desk = tinychain.desk(tmp_path_factory.mktemp("audited folder"), shared_cache)
    folder = desk.program.folder
    for name, shows in (("maths", "tinymath"), ("chain", "tinychain")):
        row = {"id": identifier("Chosen"), "name": "Light", "arguments": {"shows": shows}}
        write_matrix(folder / f"{name}.yaml", RELEASES, [row], **SMALL)
    (folder / SWING).write_text(ADAPTER + EDIT, encoding="utf-8")
    edited = [
        {"id": "shipped", "requires": ["tinymath==1.2"], "edits": {"damping": 0.2}},
        {"id": "edited", "requires": ["tinymath==1.5"], "edits": {"damping": 0.2, "gravity": 9.0}},
    ]
    write_matrix(folder / "swing.yaml", edited, [{"adapter": SWING, "arguments": {"length": 2.0}}], **SMALL)
    runs = {}
    for name in ("maths", "chain", "swing"):
        runs[name] = desk.program("run", folder / f"{name}.yaml", "--db", desk.database)
        assert runs[name].code == 0, runs[name].stdout + runs[name].stderr
    return Audits(desk=desk, runs=runs)


@pytest.mark.parametrize("matrix", ["maths", "chain", "swing"])
def test_what_the_summary_of_a_change_proposes_can_be_run(audits: Audits, matrix: str) -> None:
    commands = audits.proposed(matrix)
    verbs = [re.findall(" -m audit ([a-z]+)", command) for command in commands]
    assert verbs == [["report"], ["explain"], ["query"], ["query"], ["explain"]]
    program = audits.desk.program
    for command in commands:
        subprocess.run(command, shell=True, cwd=program.folder, env=program.environment, check=True)


@pytest.mark.parametrize(("matrix", "brought"), list(BROUGHT.items()))
def test_the_arguments_of_the_audit_are_those_that_are_asked_about(audits: Audits, matrix: str, brought: str) -> None:
    """Without them nothing changes, and with the other matrix's something else does."""
    blamed = audits("blame", "--matrix", matrix, "Light", "between", "after")
    assert blamed.code == 0, blamed.stderr
    assert blamed.stdout.splitlines()[-1].strip() == brought
    explained = audits("explain", "--matrix", matrix, "Light", "between", "after")
    assert f"brought by        {brought}" in explained.stdout
    assert rows(audits.desk.database, "SELECT blamed FROM blames WHERE matrix = ?", matrix) == [([brought],)]


@pytest.mark.parametrize("verb", ["explain", "blame"])
def test_what_the_audit_has_said_already_is_not_passed_over_in_silence(audits: Audits, verb: str) -> None:
    refused = audits(verb, "--matrix", "maths", "Light", "between", "after", "--python", "3.9", "--with", "numpy<2")
    assert refused.code == 2
    assert "as the audit of maths had them, so that --with and --python would do nothing" in refused.sentence


@pytest.mark.parametrize("matrix", ["maths", "chain"])
def test_releases_that_are_no_neighbours_are_explained_with_the_dumps_of_the_audit(audits: Audits, matrix: str) -> None:
    cells = "SELECT cell_key FROM internal.run_cells JOIN internal.runs USING (run_id) WHERE matrix = ?"
    audited_cells = {key for (key,) in rows(audits.desk.database, cells, matrix)}
    before = audits.desk.dumped()
    assert audited_cells <= {key for key, _ in before}
    explained = audits("explain", "--no-blame", "--matrix", matrix, "Light", "before", "after")
    assert explained.code == 0, explained.stderr
    assert "Light: before → after: changed" in explained.stdout
    assert audits.desk.dumped() == before, "nothing is dumped that the audit has"


def test_names_that_two_audits_use_for_different_things_are_not_guessed_at(audits: Audits) -> None:
    for verb in ("explain", "blame"):
        finished = audits(verb, "Light", "before", "after")
        assert finished.code == 2
        assert "is not the same in chain and maths: add --matrix NAME" in finished.sentence
    finished = audits("explain", "--matrix", "swing", "Light", "before", "after")
    assert (finished.code, "no audit of swing in" in finished.sentence) == (2, True)


def test_scripts_of_two_audits_with_the_same_names_lie_apart(audits: Audits) -> None:
    for matrix, shows in (("maths", "tinymath"), ("chain", "tinychain")):
        finished = audits("explain", "--json", "-", "--no-blame", "--matrix", matrix, "Light", "between", "after")
        script = Path(json.loads(finished.stdout)["reproducer"])
        case = json.loads((script.parent / "case.json").read_text(encoding="utf-8"))
        assert case["environment"]["arguments"] == {"shows": shows}


def test_a_release_beside_the_audits_is_asked_about_the_same_environment(audits: Audits) -> None:
    finished = audits("blame", "--matrix", "maths", "Light", "between", "tinychain==0.32")
    assert finished.code == 0, finished.stderr
    assert finished.stdout.splitlines()[-1].strip() == BROUGHT["maths"]


def test_an_edit_is_a_suspect_beside_what_is_installed(audits: Audits) -> None:
    finished = audits("explain", "swing", "shipped", "edited")
    assert finished.code == 0, finished.stderr
    assert "gravity: 9.81 → 9" in finished.stdout
    assert "length" not in finished.stdout.partition("brought by")[0], "it is 2 in both"
    assert "brought by        edits: damping = 0.2 → damping = 0.2, gravity = 9.0" in finished.stdout


def test_files_that_are_others_now_are_refused_and_what_is_known_is_told(audits: Audits) -> None:
    asked = "swing", "shipped", "edited"
    assert audits("explain", *asked).code == 0
    file = audits.desk.program.folder / SWING
    try:
        file.write_text(ADAPTER + EDIT + "\n# another\n", encoding="utf-8")
        finished = audits("blame", *asked, "--fresh")
        assert (finished.code, "swing was audited with other files than" in finished.sentence) == (2, True)
        file.unlink()
        finished = audits("blame", *asked, "--fresh")
        assert (finished.code, f"{SWING} cannot be read" in finished.sentence) == (2, True)
        assert audits("explain", *asked).code == 0, "the store has it"
    finally:
        file.write_text(ADAPTER + EDIT, encoding="utf-8")
    assert audits("blame", *asked, "--fresh").code == 0


# Without a world

LOCK = Lock.from_text("a==1.5\nb==2\n")
MATRIX = """\
name: m
python: "3.11"
pins: ["c<3"]
releases:
  - {id: one, requires: [b], pins: ["a<2"], exclude-newer: 2026-01-02, source: [b], edits: {g: 2}}
  - {package: a, versions: ">=1", with: ["b[x]"], id: "a-{version}-b"}
environments:
  - {id: E, name: Title, arguments: {k: 1}}
  - {mjcf: scene.xml}
"""


def keep(store: Store, releases: Sequence[tuple[str, str]], *, matrix: str = "m", text: str = MATRIX) -> None:
    """A run of a matrix on all of its environments."""
    store.put_locks({LOCK.digest: (LOCK.text, LOCK.packages)})
    listed = [
        replace(stored_runs.release(name, place, requires=requires), lock_digest=LOCK.digest)
        for place, (name, requires) in enumerate(releases)
    ]
    cells = [
        stored_runs.cell(name, place, "x", environment=title)
        for title in ("Title", "scene")
        for place, (name, _) in enumerate(releases)
    ]
    run = replace(stored_runs.RUN, run_id=matrix, matrix=matrix, matrix_text=text.replace("name: m", f"name: {matrix}"))
    stored_runs.finish(store, run, listed, cells)


NIGHT = NightRecord(
    matrix="m",
    night="",
    exit_code=0,
    run_id="m",
    news=(),
    new_changes=0,
    waived_changes=0,
    known_changes=0,
    not_audited=0,
    summary="",
)
KEPT = [("one", "b, with g = 2"), ("a-1.5-b", "a==1.5, b[x]")]


def test_a_release_of_an_audit_is_what_its_row_asks_for(store: Store) -> None:
    keep(store, KEPT)
    found = audited.find(store, "Title", ("one", "a-1.5-b"), None)
    assert found is not None
    one, generated = (found.releases[name].request for name in ("one", "a-1.5-b"))
    assert (one.requires, one.pins, str(one.exclude_newer)) == (("b",), ("c<3", "a<2"), "2026-01-02")
    assert (one.source, dict(one.edits), one.python) == (("b",), {"g": 2}, "3.11.7")
    assert (generated.requires, generated.pins, generated.exclude_newer) == (("a==1.5", "b[x]"), ("c<3",), None)
    assert found.environment.arguments == {"k": 1}
    assert [found.releases[name].cell for name in ("one", "a-1.5-b")] == ["one/Title", "a-1.5-b/Title"]


def test_a_question_is_about_an_audit_if_it_has_the_title_and_one_of_the_releases(store: Store) -> None:
    keep(store, KEPT)
    both = between.ask(store, "Title", ("one", "a-1.5-b"), QuestionOptions())
    assert (both.run_id, both.known_cells) == ("m", ("one/Title", "a-1.5-b/Title"))
    mixed = between.ask(store, "Title", ("one", "a==1.6"), QuestionOptions())
    assert (mixed.run_id, mixed.known_cells) == ("", None)
    assert (mixed.title, mixed.newer.requires, mixed.newer.python) == ("Title", ("a==1.6",), "3.11.7")
    own = between.ask(store, "Title", ("a==1.5", "a==1.6"), QuestionOptions(python="3.11"))
    assert (own.audited, own.file.matrix.environments[0].id) == (None, "Title")
    with pytest.raises(UsageError, match="one and one are the same release"):
        between.ask(store, "Title", ("one", "one"), QuestionOptions())


def test_a_release_that_a_night_found_is_what_the_night_asked_for(store: Store) -> None:
    later = replace(request("b"), id="one@2026-11-19", requires=("b",), edits={"g": 2}, like="one")
    keep(store, [*KEPT, (later.id, later.text)])
    with pytest.raises(UsageError, match="one@2026-11-19 cannot be looked at as m has it"):
        audited.find(store, "Title", ("one", later.id), None)
    night = store.nights.begin("m", datetime.date(2026, 11, 19), "q")
    store.nights.keep("m", [Watched(request=later, asked="", found=night)])
    store.nights.finish(replace(NIGHT, night=night), [], [])
    found = audited.find(store, "Title", ("one", later.id), None)
    assert found is not None
    assert found.releases[later.id].request == replace(later, python="3.11.7")


def test_a_row_that_the_matrix_does_not_have_is_not_made_up(store: Store) -> None:
    keep(store, [("one", "b, with g = 3"), KEPT[1]])
    with pytest.raises(UsageError, match="one cannot be looked at as m has it"):
        audited.find(store, "Title", ("one", "a-1.5-b"), None)


def test_two_matrices_that_ask_the_same_are_one_question_and_others_are_not(store: Store) -> None:
    keep(store, KEPT)
    keep(store, KEPT, matrix="later", text=MATRIX + "stimulus: {seed: 3}\n")
    ends = ("one", "a-1.5-b")
    found = audited.find(store, "Title", ends, None)
    assert found is not None
    assert found.run_id == "later", "other states of the same environment"
    keep(store, KEPT, matrix="other", text=MATRIX.replace("k: 1", "k: 2"))
    with pytest.raises(UsageError, match="is not the same in later and m and other: add --matrix NAME"):
        audited.find(store, "Title", ends, None)
    named = audited.find(store, "Title", ends, "m")
    assert named is not None
    assert named.run_id == "m"


def test_files_that_an_earlier_version_did_not_write_down_are_not_guessed_at(store: Store) -> None:
    keep(store, KEPT)
    question = between.ask(store, "scene", ("one", "a-1.5-b"), QuestionOptions())
    with pytest.raises(UsageError, match="did not keep which files scene is made of: run it again"):
        question.attached()
