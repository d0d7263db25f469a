"""Summaries for machines: each form holds what is new, accepted and missing, and text of packages stays text."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from audit.errors import AuditError, UsageError
from audit.named_files import STANDARD_OUTPUT
from audit.reports.summaries import as_json, junit, markdown, plain
from audit.reports.summaries.outputs import Outputs
from audit.reports.summaries.value import AuditSummary, NotAudited
from audit.storage.records import Finding, NightChange, Standing
from tests.conftest import SPRING, Program, release, write_matrix

NASTY = '<script>alert(1)</script> | `code` \x1b[31mred\x00 ]]> & "quoted" [a](http://x) www.a.b @everyone *bold*\nnext'

CHANGE = NightChange(
    environment="E", older="a-1", newer="a-2", verdict=Finding.CHANGED, standing=Standing.NEW, reason="far apart"
)
SUMMARY = AuditSummary(
    matrix="m",
    night="2026-11-18",
    exit_code=1,
    run_id="r",
    news=("a 2", "numpy 1 → 2 under a-1"),
    releases=3,
    changes=(
        CHANGE,
        replace(CHANGE, environment="F", standing=Standing.WAIVED, waiver="fine (ada, until 2027-01-01)"),
        replace(CHANGE, environment="G", standing=Standing.KNOWN),
    ),
    not_audited=(NotAudited(subject="a-3", status="unbuilt", reason="no wheel"),),
    notes=("a 4 has been yanked",),
)


def nasty() -> AuditSummary:
    change = replace(CHANGE, reason=NASTY, environment=NASTY)
    return replace(SUMMARY, changes=(change,), notes=(NASTY,), news=(NASTY,))


def test_lines_tell_what_is_urgent_first() -> None:
    told = plain.lines(SUMMARY)
    assert told[0] == "m, night of 2026-11-18: 1 new change, 1 change accepted, 1 could not be audited"
    order = ["new releases:", "new changes:", "accepted changes:", "could not be audited:", "notes:"]
    assert [line for line in told if line in order] == order
    assert "  E: a-1 → a-2: changed: far apart" in told
    assert "\x1b" not in plain.text(nasty())


def test_an_audit_of_nothing_does_not_say_that_nothing_changed() -> None:
    trouble = "Nothing could be audited: no release could be dumped on any environment"
    for first in (True, False):
        empty = replace(SUMMARY, exit_code=3, changes=(), first=first, empty=True, trouble=trouble)
        assert empty.headline == trouble
    blind = replace(SUMMARY, exit_code=3, changes=(), not_audited=(), trouble="Blind on E")
    assert blind.headline == "Nothing changed. Blind on E"


@pytest.mark.parametrize(("count", "words"), [(1, "1 release is recorded as it is"), (2, "2 releases are recorded as")])
def test_the_first_night_counts_its_releases(count: int, words: str) -> None:
    assert words in AuditSummary(matrix="m", night="n", exit_code=0, first=True, releases=count).headline


def test_all_notes_are_kept_and_some_are_shown() -> None:
    """The next night looks up in the text what was told: nobody is woken for what is not shown."""
    notes = tuple(f"note {number}." for number in range(plain.LISTED + 3))
    many = replace(SUMMARY, notes=notes)
    assert "  and 3 more" in plain.lines(many)
    assert all(plain.note(each) in plain.text(many) for each in notes)


def test_a_quiet_night_is_quiet() -> None:
    quiet = AuditSummary(matrix="m", night="2026-11-18", exit_code=0)
    assert quiet.is_quiet
    assert quiet.headline == "Nothing new"
    assert not replace(quiet, trouble="no index", exit_code=3).is_quiet
    assert not replace(quiet, notes=("yanked",)).is_quiet


def test_markdown_has_a_table_for_each_kind() -> None:
    text = markdown.render([SUMMARY])
    assert "### New changes\n\n| environment | older | newer | verdict | reason |\n|---|---|---|---|---|\n" in text
    assert r"| E | a\-1 | a\-2 | changed | far apart |" in text
    assert "### Accepted changes" in text
    assert "### Could not be audited" in text
    assert "Known already: 1." in text


def test_nothing_in_markdown_is_markup_but_its_own() -> None:
    text = markdown.render([nasty()])
    for raw in ("<script", "\x1b", "\x00", "[a](", "@everyone", "*bold*", "`code`", "http://", "www."):
        assert raw not in text
    rows = [line for line in text.splitlines() if line.startswith("| &lt;script")]
    assert len(rows) == 1
    assert rows[0].replace(r"\|", "").count("|") == 6, "no cell is broken in two"


def test_json_is_json_with_a_list_for_each_standing() -> None:
    (told,) = json.loads(as_json.render([SUMMARY]))["audits"]
    assert [len(told[standing]) for standing in ("new", "waived", "known")] == [1, 1, 1]
    assert told["new"][0]["environment"] == "E"
    assert told["waived"][0]["waiver"] == "fine (ada, until 2027-01-01)"
    assert told["not_audited"] == [{"subject": "a-3", "status": "unbuilt", "reason": "no wheel"}]
    assert (told["exit_code"], told["news"]) == (1, ["a 2", "numpy 1 → 2 under a-1"])
    assert json.loads(as_json.render([nasty()]))["audits"][0]["new"][0]["reason"] == NASTY


def test_junit_fails_for_what_is_new_and_skips_what_is_accepted() -> None:
    (suite,) = ElementTree.fromstring(junit.render([SUMMARY]))
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors"), suite.get("skipped")) == (
        "5",
        "1",
        "0",
        "2",
    )
    (failed,) = suite.findall("testcase[failure]")
    assert (failed.get("classname"), failed.get("name")) == ("m.E", "a-1 → a-2")
    assert failed[0].get("message") == "changed: far apart"


def test_junit_of_an_audit_that_is_not_complete_is_an_error() -> None:
    (suite,) = ElementTree.fromstring(junit.render([replace(SUMMARY, exit_code=3, changes=(), trouble="no index")]))
    assert suite.get("errors") == "1"


def test_junit_is_xml_whatever_packages_say() -> None:
    (suite,) = ElementTree.fromstring(junit.render([nasty()]))
    message = suite.findall("testcase/failure")[0].get("message")
    assert message is not None
    assert "<script>alert(1)</script>" in message


def test_two_summaries_do_not_share_standard_output() -> None:
    assert Outputs.of(json=STANDARD_OUTPUT, markdown=Path("f.md"), junit=None).takes_standard_output
    with pytest.raises(UsageError, match="only one summary"):
        Outputs.of(json=STANDARD_OUTPUT, markdown=STANDARD_OUTPUT)


def test_a_file_that_cannot_be_written_does_not_keep_the_others_from_it(tmp_path: Path) -> None:
    wanted = Outputs.of(json=tmp_path / "m.json", markdown=tmp_path / "m.md")
    (tmp_path / "m.json").mkdir()
    with pytest.raises(AuditError, match=r"the summary --json \S+ could not be written: Is a directory"):
        wanted.write([SUMMARY])
    assert (tmp_path / "m.md").read_text(encoding="utf-8").startswith("## m")


@pytest.mark.parametrize("name", ["m.yaml", "smoke"])
def test_the_file_to_write_is_never_taken_for_the_matrix(release_audit: Program, tmp_path: Path, name: str) -> None:
    """Whatever it is called: the word after the option is the file, and then the matrix is missing."""
    matrix = write_matrix(tmp_path / "m.yaml", [release("1.0")], [SPRING])
    before = matrix.read_text()
    refused = release_audit("run", "--json", name)
    assert refused.code == 2
    assert "Missing argument 'MATRIX'" in refused.sentence
    assert matrix.read_text() == before
    assert list(tmp_path.iterdir()) == [matrix]


def test_a_summary_that_cannot_be_written_is_told_before_anything_is_run(
    release_audit: Program, tmp_path: Path
) -> None:
    matrix = write_matrix(tmp_path / "m.yaml", [release("1.0")], [SPRING])
    refused = release_audit("run", matrix, "--json", matrix / "summary.json")
    assert refused.code == 2
    assert "m.yaml is not a folder" in refused.sentence
    assert refused.stdout == ""
    assert list(tmp_path.iterdir()) == [matrix]


def test_a_run_is_summarised_too(release_audit: Program, tmp_path: Path) -> None:
    """What is new in it, what is accepted, what is missing; a waiver also holds for ``--check``."""
    matrix = write_matrix(tmp_path / "m.yaml", [release(v) for v in ("1.0", "1.3", "1.98")], [SPRING])
    arguments = ("run", matrix, "--check", "--no-explain", "--junit", "new/folder/m.xml", "--json", "-")
    done = release_audit(*arguments)
    assert done.code == 1
    (told,) = json.loads(done.stdout)["audits"]
    assert [(each["older"], each["newer"]) for each in told["new"]] == [("tinysim-1.0", "tinysim-1.3")]
    assert [each["subject"] for each in told["not_audited"]] == ["tinysim-1.98"]
    assert ElementTree.fromstring((tmp_path / "new" / "folder" / "m.xml").read_text())[0].get("failures") == "1"
    waiver = {"environment": "*", "older": "*1.0", "newer": "*1.3", "reason": "r", "who": "w", "until": "2999-01-01"}
    (tmp_path / "waivers.yaml").write_text(json.dumps({"waivers": [waiver]}))
    again = release_audit(*arguments)
    assert again.code == 0
    (told,) = json.loads(again.stdout)["audits"]
    assert (told["new"], len(told["known"])) == ([], 1)
    assert told["known"][0]["waiver"] == "r (w, until 2999-01-01)"
    assert "\n1 change accepted: r (w, until 2999-01-01)\n" in again.stderr
