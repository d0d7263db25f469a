"""What people read goes where they read it."""

from __future__ import annotations

import re

import pytest

from audit.terminal import tables
from audit.terminal.screen import Screen

COLUMNS, ROWS = ("name", "number"), [("one", 1.0), ("two", None)]
TEXT = "name  number\none   1     \ntwo         \n"


def test_what_people_read_goes_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen()
    screen.table(COLUMNS, ROWS)
    screen.note("note")
    assert capsys.readouterr() == (f"{TEXT}note\n", "")


def test_where_a_machine_reads_standard_output_nothing_else_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen(on_standard_error=True)
    screen.table(COLUMNS, ROWS)
    screen.note("note")
    with screen.stage("stage", 1) as done:
        done("item")
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"{TEXT}note\nstage 1/1  item")


def test_warnings_and_errors_go_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    Screen().warning("warning")
    Screen().error("error")
    assert capsys.readouterr() == ("", "warning\nerror\n")


def test_a_table_as_text_is_as_wide_as_it_is() -> None:
    wide = "x" * 500
    assert tables.text(("a",), [(wide,)]).splitlines()[1] == wide


def shown(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Lines on a terminal, as plain text."""
    return re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out).splitlines()


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> Screen:
    """A terminal of 30 characters."""
    for name, value in {"FORCE_COLOR": "1", "TERM": "xterm", "COLUMNS": "30"}.items():
        monkeypatch.setenv(name, value)
    return Screen()


def test_a_table_that_a_terminal_cannot_hold_is_shown_value_by_value(
    narrow: Screen, capsys: pytest.CaptureFixture[str]
) -> None:
    ratios = [1.2e-12, 3.4e55, 5.6e-7, 7.8e90]
    narrow.table(("name", *"abcd"), [("one", *ratios), ("two", *ratios)])
    told = [line.split() for line in shown(capsys)]
    values = [["a", "1.2e-12"], ["b", "3.4e+55"], ["c", "5.6e-07"], ["d", "7.8e+90"]]
    assert told == [["name", "one"], *values, [], ["name", "two"], *values]


def test_a_table_that_folds_without_harm_stays_one(narrow: Screen, capsys: pytest.CaptureFixture[str]) -> None:
    narrow.table(("name", "said"), [("one", "more words than there is room for"), ("two", "")])
    first, *rest = shown(capsys)
    assert first.split() == ["name", "said"]
    assert [line[:3] for line in rest] == ["one", "   ", "two"]


def test_a_table_without_rows_is_its_headings(narrow: Screen, capsys: pytest.CaptureFixture[str]) -> None:
    narrow.table(("name", "number"), [])
    assert shown(capsys)[0].split() == ["name", "number"]
