"""One clear sentence for every mistake in a call, a matrix or a database."""

from __future__ import annotations

import errno
import sys
from pathlib import Path

import duckdb
import pytest

from audit import cli
from tests.conftest import SPRING, Program, release, write_matrix

MALFORMED = """\
name: malformed
python: 3.11
pairs: {against: nobody}
releases:
  - id: one
    requires: ["gymnasium === = 1"]
  - id: one
    requires: []
    colour: red
environments:
  - id: CartPole-v1
    releases: [two]
    start: {low: [0, 1], high: [1]}
"""


def test_unknown_verb(release_audit: Program) -> None:
    finished = release_audit("dance")
    assert finished.code == 2
    assert "dance" in finished.sentence


def test_unknown_option(release_audit: Program) -> None:
    finished = release_audit("run", "smoke.yaml", "--jobs", "0")
    assert finished.code == 2
    assert "--jobs" in finished.sentence


@pytest.mark.parametrize(
    ("call", "tells"),
    [
        ("dance", "`release-audit --help` tells more"),
        ("run --chekc", "`release-audit run --help` tells more"),
        ("explain CartPole-v1 older", "`release-audit explain --help` tells more"),
    ],
)
def test_who_made_a_mistake_in_the_call_of_a_verb_is_referred_to_the_help_of_that_verb(
    release_audit: Program, call: str, tells: str
) -> None:
    assert tells in release_audit(*call.split()).sentence


def test_missing_matrix(release_audit: Program) -> None:
    finished = release_audit("run", "missing.yaml")
    assert finished.code == 2
    assert "there is no matrix 'missing.yaml'" in finished.sentence
    assert "smoke.yaml" in finished.sentence


def test_malformed_matrix_tells_everything_at_once(release_audit: Program) -> None:
    path = release_audit.folder / "malformed.yaml"
    path.write_text(MALFORMED, encoding="utf-8")
    for verb in ("run", "plan"):
        finished = release_audit(verb, path)
        assert finished.code == 2
        assert "Traceback" not in finished.stderr
        for problem in (
            "python, line 2: ",
            "pairs.against, line 3: 'nobody'",
            "releases[0].requires[0], line 6: ",
            "releases[1].id, line 7: 'one'",
            "releases[1].requires, line 8: ",
            "releases[1].colour, line 9: ",
            "environments[0].releases[0], line 12: 'two'",
            "environments[0].start, line 13: ",
        ):
            assert problem in finished.stderr
    assert list(release_audit.folder.iterdir()) == [path], "nothing is done before the matrix is right"


def test_text_that_is_not_yaml(release_audit: Program) -> None:
    path = release_audit.folder / "torn.yaml"
    path.write_text("name: torn\nreleases: [\n", encoding="utf-8")
    finished = release_audit("run", path)
    assert finished.code == 2
    assert "line 3: not YAML" in finished.stderr
    assert "Traceback" not in finished.stderr


def test_unknown_release_in_against(release_audit: Program) -> None:
    path = write_matrix(
        release_audit.folder / "against.yaml", [release("1.0")], [SPRING], pairs={"against": "tinysim-9"}
    )
    finished = release_audit("run", path)
    assert finished.code == 2
    assert "'tinysim-9' is not the id of a release" in finished.stderr
    assert "pairs.against, line" in finished.stderr


def test_a_range_without_versions(release_audit: Program) -> None:
    row = {"package": "tinysim", "versions": ">=7"}
    path = write_matrix(release_audit.folder / "none.yaml", [row], [SPRING])
    finished = release_audit("run", path)
    assert finished.code == 2
    assert "releases[0].versions, line" in finished.stderr
    assert "the index has no tinysim in >=7" in finished.stderr


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            FileNotFoundError(errno.ENOENT, "No such file or directory", "results/x"),
            "No such file or directory: results/x",
        ),
        (OSError(errno.EIO, "Input/output error"), "Input/output error"),
        (TimeoutError("it took too long"), "it took too long"),
        (OSError(), "OSError"),
    ],
)
def test_an_error_of_the_system_is_told_with_what_it_has_to_say(
    error: OSError, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(**_: object) -> None:
        raise error

    monkeypatch.setattr(cli.commands, "main", fail)
    monkeypatch.setattr(cli, "_INTERRUPTIONS", ())
    monkeypatch.setattr("audit.cluster.descendants.end_all", lambda: None)  # here, these are the tests' own
    monkeypatch.setattr("os._exit", sys.exit)
    with pytest.raises(SystemExit) as left:
        cli.main()
    assert left.value.code == 3
    assert capsys.readouterr().err == f"release-audit: {said}; what was stored before is kept\n"


# Databases that are none of ours


@pytest.fixture(params=["newer", "foreign", "text"])
def strange_database(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, str]:
    """A file in the database's place, and what the program has to say of it."""
    path = tmp_path / "strange.duckdb"
    if request.param == "text":
        path.write_text("this is not a database\n" * 1000, encoding="utf-8")
        return path, "cannot be used as a database"
    statements = {
        "newer": "CREATE SCHEMA internal; CREATE TABLE internal.migrations AS SELECT 999 AS number",
        "foreign": "CREATE TABLE shopping AS SELECT 'milk' AS item",
    }
    with duckdb.connect(str(path)) as connection:
        connection.execute(statements[request.param])
    return path, "was written by another version of release-audit"


def test_strange_databases_are_left_alone(release_audit: Program, strange_database: tuple[Path, str]) -> None:
    path, complaint = strange_database
    content = path.read_bytes()
    matrix = write_matrix(release_audit.folder / "strange.yaml", [release("1.0")], [SPRING])
    for command in (("run", matrix), ("plan", matrix), ("query", "SELECT 1")):
        finished = release_audit(*command, "--db", path)
        assert finished.code == 3, command
        assert complaint in finished.sentence
    assert path.read_bytes() == content


def test_a_database_that_cannot_be_written(release_audit: Program) -> None:
    (release_audit.folder / "results").write_text("a file where the folder should be", encoding="utf-8")
    matrix = write_matrix(release_audit.folder / "file.yaml", [release("1.0")], [SPRING])
    finished = release_audit("run", matrix)
    assert finished.code == 3
    assert "results/audit.duckdb" in finished.sentence
