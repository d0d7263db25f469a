"""Verbs, options, exit codes, and one clear sentence for every mistake."""

from __future__ import annotations

import csv
import errno
import io
import json
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import duckdb
import pytest

from audit import __version__, cli
from audit.cli import commands
from tests.conftest import Finished, Program, rows, write_matrix

VERBS = sorted(commands.commands)

RELEASES = [
    {"id": "gymnasium-0.29.1", "requires": ["gymnasium==0.29.1"], "pins": ["numpy<2"]},
    {"id": "gymnasium-1.3.0", "requires": ["gymnasium==1.3.0"], "pins": ["numpy<2.4"]},
]
CARTPOLE = {"id": "CartPole-v1", "start": {"low": [-0.05] * 4, "high": [0.05] * 4}}

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A real pair of gymnasium releases, planned, audited, planned again."""

    program: Program
    database: Path
    before: Finished
    run: Finished
    after: Finished

    def query(self, *arguments: str | Path) -> Finished:
        return self.program("query", *arguments, "--db", self.database)


@pytest.fixture(scope="module")
def planned(module_audit: Program) -> Planned:
    # Between the two the bounds of the observation space went from the largest float to infinity: not read here.
    outputs = ["state", "observation", "reward", "terminated", "truncated", "reset"]
    matrix = write_matrix(module_audit.folder / "real.yaml", RELEASES, [CARTPOLE], outputs=outputs)
    database = module_audit.folder / "results" / "real.duckdb"
    before = module_audit("plan", matrix, "--db", database)
    assert not database.parent.exists(), "a plan leaves nothing behind"
    run = module_audit("run", matrix, "--db", database)
    after = module_audit("plan", matrix, "--db", database)
    return Planned(program=module_audit, database=database, before=before, run=run, after=after)


def test_version(release_audit: Program) -> None:
    finished = release_audit("--version")
    assert finished.code == 0
    assert __version__ in finished.stdout


@pytest.mark.parametrize("verb", ["", *VERBS])
def test_help(release_audit: Program, verb: str) -> None:
    finished = release_audit(*filter(None, [verb]), "--help")
    assert finished.code == 0
    assert "Usage" in finished.stdout
    assert finished.stderr == ""


def test_verbs_are_listed_by_what_they_are_for(release_audit: Program) -> None:
    listed = release_audit("--help", COLUMNS="80").stdout.partition("\n\nAudit:\n")[2]
    for heading in ("Explain:", "Results:", "Every night:", "Set-up:"):
        assert f"\n\n{heading}\n" in listed
    told = dict(re.findall(r"(?m)^  ([a-z]+) +(.*)$", listed))
    assert sorted(told) == VERBS, "each once, in one line"
    for verb, short in told.items():
        assert len(short) <= 50, verb
        assert short.endswith("."), verb


def test_options_that_verbs_share_are_told_alike() -> None:
    shared: dict[str, set[str]] = {}
    for verb in commands.commands.values():
        for option in verb.params:
            if isinstance(option, click.Option) and option.name in ("database", "timeout", "jobs", "address", "day"):
                assert option.help, f"{verb.name} {option.opts}"
                if (verb.name, option.name) not in (("nightly", "day"), ("schedule", "timeout")):
                    shared.setdefault(option.name, set()).add(f"{option.help} {option.default} {option.metavar}")
    assert {name: len(told) for name, told in shared.items()} == dict.fromkeys(shared, 1)
    assert len(shared) == 5


@pytest.mark.parametrize("verb", VERBS)
def test_every_option_is_explained_and_none_shows_a_pattern(release_audit: Program, verb: str) -> None:
    for option in commands.commands[verb].params:
        assert not isinstance(option, click.Option) or option.help, option.name
    assert "%Y" not in release_audit(verb, "--help").stdout


@pytest.mark.parametrize(("shell", "said"), [("bash", "_release_audit_completion"), ("zsh", "#compdef release-audit")])
def test_a_shell_can_complete_it(release_audit: Program, shell: str, said: str) -> None:
    script = release_audit(_RELEASE_AUDIT_COMPLETE=f"{shell}_source")
    assert (script.code, script.stderr) == (0, "")
    assert said in script.stdout
    completed = release_audit(
        _RELEASE_AUDIT_COMPLETE=f"{shell}_complete", COMP_WORDS="release-audit sch", COMP_CWORD="1"
    )
    assert (completed.code, completed.stderr) == (0, "")
    assert {"schedule", "schema"} <= set(re.split(r"[\n,]", completed.stdout))


def test_a_shell_that_is_unknown_is_an_error(release_audit: Program) -> None:
    refused = release_audit(_RELEASE_AUDIT_COMPLETE="abacus_source")
    assert refused.code == 3, "and not 1, which says that something changed"
    assert "ended from within with 1" in refused.sentence


# Plan and run


def test_plan_before_a_run(planned: Planned) -> None:
    assert planned.before.code == 0, planned.before.stderr
    assert "2 releases, 0 cells dumped, 2 to dump" in planned.before.stdout
    assert planned.before.stdout.count("to build") == 2


def test_real_releases_are_audited(planned: Planned) -> None:
    assert planned.run.code == 0, planned.run.stderr
    found = rows(planned.database, "SELECT matrix, environment, older, newer, adjacent, verdict FROM pairs")
    assert found == [("real", "CartPole-v1", "gymnasium-0.29.1", "gymnasium-1.3.0", True, "identical")]


def test_plan_after_a_run(planned: Planned) -> None:
    assert planned.after.code == 0, planned.after.stderr
    assert "2 releases, 2 cells dumped, 0 to dump" in planned.after.stdout
    assert planned.after.stdout.count("built") == 2
    assert rows(planned.database, "SELECT count(*) FROM internal.runs") == [(1,)]


def test_the_run_is_recorded(planned: Planned) -> None:
    columns = (
        "matrix_text, harness_version, python_version, uv_version, host, cpu_model, exit_code, finished >= started"
    )
    ((text, version, *others),) = rows(planned.database, f"SELECT {columns} FROM internal.runs")
    assert json.loads(text)["name"] == "real"
    assert version == __version__
    assert all(others[:-2])
    assert others[-2:] == [0, True]


def test_what_the_summary_proposes_can_be_run(planned: Planned) -> None:
    proposed = planned.run.stdout.partition("\nNext:\n")[2].partition("\n\n")[0].splitlines()
    commands = [shlex.split(line)[1:] for line in proposed]
    assert [command[0] for command in commands] == ["report", "query", "query"], "nothing changed: nothing to explain"
    for command in commands:
        finished = planned.program(*command)
        assert finished.code == 0, finished.stderr


# Query


def test_query_as_table(planned: Planned) -> None:
    finished = planned.query("SELECT older, newer, verdict FROM pairs")
    assert finished.code == 0
    lines = [line.split() for line in finished.stdout.splitlines()]
    assert lines == [["older", "newer", "verdict"], ["gymnasium-0.29.1", "gymnasium-1.3.0", "identical"]]


def test_query_as_csv(planned: Planned) -> None:
    finished = planned.query("SELECT release, 'a,\"b\"' AS odd FROM releases ORDER BY position", "--format", "csv")
    assert list(csv.reader(io.StringIO(finished.stdout))) == [
        ["release", "odd"],
        ["gymnasium-0.29.1", 'a,"b"'],
        ["gymnasium-1.3.0", 'a,"b"'],
    ]


def test_query_as_json(planned: Planned) -> None:
    finished = planned.query("SELECT verdict, horizon_separation FROM pairs", "--format", "json")
    assert json.loads(finished.stdout) == [{"verdict": "identical", "horizon_separation": 0.0}]


def test_json_without_numbers_that_json_lacks(planned: Planned) -> None:
    def refuse(constant: str) -> Any:
        raise AssertionError(f"{constant} is not JSON")

    finished = planned.query("SELECT 'inf'::DOUBLE AS far, 'nan'::DOUBLE AS odd", "--format", "json")
    assert finished.code == 0
    json.loads(finished.stdout, parse_constant=refuse)


def test_query_to_files(planned: Planned) -> None:
    for form in ("csv", "json", "parquet"):
        path = planned.program.folder / f"pairs.{form}"
        finished = planned.query("SELECT * FROM pairs", "--format", form, "--output", path)
        assert finished.code == 0, finished.stderr
        with duckdb.connect() as connection:
            assert connection.execute(f"SELECT verdict FROM '{path}'").fetchall() == [("identical",)]


def test_a_table_in_a_file_is_the_table(planned: Planned) -> None:
    sql = "SELECT older, verdict FROM pairs"
    path = planned.program.folder / "new" / "folder" / "pairs.txt"
    assert planned.query(sql, "--output", path).code == 0
    assert path.read_text(encoding="utf-8") == planned.query(sql).stdout == planned.query(sql, "--output", "-").stdout
    assert path.read_text(encoding="utf-8").split() == ["older", "verdict", "gymnasium-0.29.1", "identical"]


@pytest.mark.parametrize(
    "command",
    [
        ("query", "SELECT 1", "--output"),
        ("query", "SELECT 1", "--format", "csv", "--output"),
        ("query", "SELECT 1", "--format", "parquet", "--output"),
        ("report", "--output"),
        ("snapshot", "--output"),
        ("figure", "smoke.yaml", "--output"),
        ("explain", "E", "one", "two", "--json"),
        ("run", "smoke.yaml", "--json"),
        ("nightly", "smoke.yaml", "--junit"),
        ("diff", "one", "two", "--markdown"),
    ],
)
def test_a_file_that_cannot_be_written_is_a_mistake_in_the_call(planned: Planned, command: tuple[str, ...]) -> None:
    in_a_file = planned.database / "out" / "file.svg"
    finished = planned.program(*command, in_a_file, "--db", planned.database)
    assert (finished.code, finished.stdout) == (2, "")
    assert f"{in_a_file} cannot be written: {planned.database} is not a folder" in finished.sentence


@pytest.mark.parametrize("form", ["csv", "json", "parquet"])
def test_missing_folders_are_made(planned: Planned, form: str) -> None:
    path = planned.program.folder / f"made for {form}" / "below" / "file"
    finished = planned.query("SELECT 1", "--format", form, "--output", path)
    assert finished.code == 0, finished.stderr
    assert path.is_file()


def test_parquet_needs_a_file(planned: Planned) -> None:
    finished = planned.query("SELECT 1", "--format", "parquet")
    assert finished.code == 2
    assert "--output" in finished.sentence


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM internal.runs",
        "DROP VIEW pairs",
        "CREATE TABLE mine (number INTEGER)",
        "SELECT * FROM nowhere",
        "SELEC",
    ],
)
def test_query_neither_writes_nor_crashes(planned: Planned, sql: str) -> None:
    content = planned.database.read_bytes()
    finished = planned.query(sql)
    assert finished.code == 2
    assert "the query failed" in finished.sentence
    assert planned.database.read_bytes() == content


def test_query_of_a_missing_database(release_audit: Program) -> None:
    finished = release_audit("query", "SELECT 1", "--db", "missing.duckdb")
    assert finished.code == 2
    assert "there is no database at missing.duckdb" in finished.sentence
    assert list(release_audit.folder.iterdir()) == []


# Mistakes


def test_unknown_verb(release_audit: Program) -> None:
    finished = release_audit("dance")
    assert finished.code == 2
    assert "dance" in finished.sentence


def test_unknown_option(release_audit: Program) -> None:
    finished = release_audit("run", "smoke.yaml", "--jobs", "0")
    assert finished.code == 2
    assert "--jobs" in finished.sentence


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
    path = write_matrix(release_audit.folder / "against.yaml", RELEASES, [CARTPOLE], pairs={"against": "gymnasium-9"})
    finished = release_audit("run", path)
    assert finished.code == 2
    assert "'gymnasium-9' is not the id of a release" in finished.stderr
    assert "pairs.against, line" in finished.stderr


def test_a_range_without_versions(release_audit: Program) -> None:
    row = {"package": "tinysim", "versions": ">=7"}
    path = write_matrix(release_audit.folder / "none.yaml", [row], [CARTPOLE])
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
    matrix = write_matrix(release_audit.folder / "strange.yaml", RELEASES, [CARTPOLE])
    for command in (("run", matrix), ("plan", matrix), ("query", "SELECT 1")):
        finished = release_audit(*command, "--db", path)
        assert finished.code == 3, command
        assert complaint in finished.sentence
    assert path.read_bytes() == content


def test_a_database_that_cannot_be_written(release_audit: Program) -> None:
    (release_audit.folder / "results").write_text("a file where the folder should be", encoding="utf-8")
    matrix = write_matrix(release_audit.folder / "file.yaml", RELEASES, [CARTPOLE])
    finished = release_audit("run", matrix)
    assert finished.code == 3
    assert "results/audit.duckdb" in finished.sentence


def test_doctor(release_audit: Program) -> None:
    finished = release_audit("doctor")
    assert finished.code == 0, finished.stdout
    assert "BAD" not in finished.stdout
    for name in ("Python", "uv", "package index", "room for virtualenvs", "CPU"):
        assert name in finished.stdout


def test_doctor_finds_that_the_index_is_away(release_audit: Program) -> None:
    finished = release_audit("doctor", UV_DEFAULT_INDEX="http://127.0.0.1:9/simple", UV_HTTP_RETRIES="0")
    assert finished.code == 3
    assert "BAD" in finished.stdout
    assert "127.0.0.1:9" in finished.stdout
    assert "Traceback" not in finished.stderr
