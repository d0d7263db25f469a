"""Every verb that runs a release's code says beforehand what that code could do here, and can be told not to run."""

from __future__ import annotations

from pathlib import Path

import pytest

from audit.cli import commands
from audit.confining import protections
from audit.confining.protections import Protection
from audit.errors import AuditError, UsageError

OFF = Protection(name="network", on=False, told="a release can connect out")

ARGUMENTS = {
    "run": ["absent.yaml"],
    "diff": ["one==1", "two==1"],
    "sensitivity": ["absent.yaml"],
    "reproduce": ["absent"],
    "explain": ["E", "one==1", "two==1"],
    "blame": ["E", "one==1", "two==1"],
    "bisect": ["E", "--package=one", "--good=1", "--bad=2"],
    "nightly": ["absent.yaml"],
}
"""Calls that come to an end at the first thing that they do."""

HARMLESS = {"plan", "diagnose", "report", "query", "figure", "snapshot", "schedule", "doctor", "schema"}
"""Verbs that read, draw or print."""


@pytest.fixture(autouse=True)
def without_protection(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A system that lacks one, in a folder whose database is none."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").write_text("no folder")
    monkeypatch.setattr(protections, "missing", lambda: (OFF,))


def test_each_verb_runs_code_or_does_not() -> None:
    assert set(commands.commands) == set(ARGUMENTS) | HARMLESS


@pytest.mark.parametrize("verb", ARGUMENTS)
def test_it_is_said_before_anything_is_done(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(AuditError):
        commands.main([verb, *ARGUMENTS[verb]], standalone_mode=False)
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "NOT PROTECTED: network: a release can connect out\n")


@pytest.mark.parametrize("verb", ARGUMENTS)
def test_it_refuses_where_that_is_wanted(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UsageError, match="--require-sandbox, and on this system network: a release can connect out"):
        commands.main([verb, *ARGUMENTS[verb], "--require-sandbox"], standalone_mode=False)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("verb", ARGUMENTS)
def test_it_goes_on_where_everything_is_protected(verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protections, "missing", tuple)
    with pytest.raises(AuditError) as refused:
        commands.main([verb, *ARGUMENTS[verb], "--require-sandbox"], standalone_mode=False)
    assert "--require-sandbox" not in str(refused.value)
