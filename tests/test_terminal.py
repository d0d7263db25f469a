"""What people read goes where they read it."""

from __future__ import annotations

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
