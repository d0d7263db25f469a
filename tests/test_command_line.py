"""Verbs, options, help, completion, and what is checked of the machine."""

from __future__ import annotations

import re

import click
import pytest

from audit import __version__
from audit.cli import commands
from tests.conftest import Program

VERBS = sorted(commands.commands)


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
