"""What the page is made from, and what goes into the file."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
import sys
import zipfile
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from analysis.report import model, rendering
from analysis.report.model import Page
from analysis.report.rendering import TooLarge, render
from analysis.verdicts import SIGNS, Verdict
from audit.errors import UsageError
from audit.reports import report_collecting
from audit.storage.store import Store
from tests import hostile_store, synthetic_store
from tests.stored_runs import RUN, audited, cell, finish, judgement, release
from tests.synthetic_store import Size


def collected(path: Path, size: Size) -> Page:
    synthetic_store.make(path, size)
    with Store(path, read_only=True) as store:
        return report_collecting.collect(store)


def blocks(text: str) -> dict[str, str]:
    return dict(re.findall(r'<script type="application/json" id="([\w-]+)">([^<]*)</script>', text))


def unpacked(text: str) -> Any:
    return json.loads(zlib.decompress(base64.b64decode(text)))


def cells(environment: model.Environment) -> list[int]:
    return [cell for cell, count in environment.cells for _ in range(count)]


def sign(environment: model.Environment, one: int, other: int) -> str:
    """As the page's own script joins cells to verdicts."""
    if min(one, other) < 0:
        return environment.missing[-1 - min(one, other)].verdict
    low, high = sorted((one, other))
    return "=" if low == high else environment.verdicts[high * (high - 1) // 2 + low]


def test_cells_and_verdicts_together_are_the_pairs_of_the_store(tmp_path: Path) -> None:
    path = tmp_path / "audit.duckdb"
    page = collected(path, Size(releases=25, environments=3, behaviours=6, missing=0.1))
    joined = {
        (each.name, matrix.releases[older].name, matrix.releases[newer].name): sign(
            each, cells(each)[older], cells(each)[newer]
        )
        for matrix in page.matrices
        for each in matrix.environments
        for newer in range(25)
        for older in range(newer)
    }
    with Store(path, read_only=True) as store:
        stored = store.query("SELECT environment, older, newer, verdict FROM pairs").rows
    assert joined == {tuple(row[:3]): SIGNS[row[3]] for row in stored}


def test_neighbours_that_differ_are_those_of_the_store(tmp_path: Path) -> None:
    path = tmp_path / "audit.duckdb"
    page = collected(path, Size(releases=25, environments=3, behaviours=6, missing=0.1))
    names = [release.name for release in page.matrices[0].releases]
    found = {
        (each.name, names[older], names[newer], sign)
        for each in page.matrices[0].environments
        for older, newer, sign in each.neighbours
    }
    with Store(path, read_only=True) as store:
        stored = store.query(
            "SELECT environment, older, newer, verdict FROM pairs WHERE adjacent AND verdict IN"
            " ('rounding', 'amplified', 'changed')"
        ).rows
    assert found == {(*row[:3], SIGNS[row[3]]) for row in stored}
    assert found


def test_within_a_range_every_two_releases_are_comparable_and_it_cannot_be_longer(tmp_path: Path) -> None:
    page = collected(tmp_path / "audit.duckdb", Size(releases=40, environments=4, behaviours=8))
    for environment in page.matrices[0].environments:
        shown = cells(environment)

        def comparable(places: list[int], shown: list[int] = shown, of: model.Environment = environment) -> bool:
            return all(sign(of, shown[one], shown[other]) in "=≈" for one in places for other in places)

        dumped = [place for place, cell in enumerate(shown) if cell >= 0]
        for span in environment.trajectories:
            inside = [place for place in dumped if span.first <= place <= span.last]
            assert len(inside) == span.count
            assert comparable(inside)
            before = [place for place in dumped if place < span.first][-1:]
            after = [place for place in dumped if place > span.last][:1]
            assert not before or not comparable([*before, *inside])
            assert not after or not comparable([*inside, *after])


@pytest.mark.parametrize(
    ("pairing", "against", "expected"),
    [("against", "c", {(0, 2), (1, 2), (2, 3)}), ("adjacent", None, {(0, 1), (1, 2), (2, 3)})],
)
def test_neighbours_follow_what_the_matrix_compares(
    store: Store, pairing: str, against: str | None, expected: set[tuple[int, int]]
) -> None:
    audited(store, dict(zip("abcd", "wxyz", strict=True)), replace(RUN, pairing=pairing, against=against))
    (environment,) = report_collecting.collect(store).matrices[0].environments
    assert {(older, newer) for older, newer, _ in environment.neighbours} == expected


def test_what_nobody_compared_has_no_verdict(store: Store) -> None:
    audited(store, {"a": "x", "b": "y"})
    (environment,) = report_collecting.collect(store).matrices[0].environments
    assert environment.verdicts == model.NOT_COMPARED
    store.comparisons.put_comparison("x", "y", RUN.reads, judgement(Verdict.ROUNDING), [])
    (environment,) = report_collecting.collect(store).matrices[0].environments
    assert environment.verdicts == "≈"


def test_what_was_compared_once_stands_behind_matrices_and_what_nobody_could_dump_behind_all(store: Store) -> None:
    audited(store, {"a": "x", "b": "x"})
    audited(store, {"a": "x", "b": "x"}, replace(RUN, run_id="once", matrix="diff-a-b"))
    cells = [cell("a", 0, None), cell("b", 1, None)]
    finish(store, replace(RUN, run_id="empty", matrix="typo"), [release("a", 0), release("b", 1)], cells)
    assert [each.name for each in report_collecting.collect(store).matrices] == ["m", "diff-a-b", "typo"]


def test_another_matrix_is_refused_by_name(store: Store) -> None:
    with pytest.raises(UsageError, match="no finished audit yet"):
        report_collecting.collect(store)
    audited(store, {"a": "x"})
    assert [each.name for each in report_collecting.collect(store, ["m"]).matrices] == ["m"]
    with pytest.raises(UsageError, match=r"no finished audit of other in .*; there is m"):
        report_collecting.collect(store, ["other"])


# The file


def test_data_cannot_become_markup_and_reads_back_as_it_was(tmp_path: Path) -> None:
    hostile_store.make(tmp_path / "audit.duckdb")
    with Store(tmp_path / "audit.duckdb", read_only=True) as store:
        text = render(report_collecting.collect(store))
    data = blocks(text)
    assert not set("<>&\u2028\u2029") & set(data["data"])
    assert json.loads(data["data"])["matrices"][0]["name"] == hostile_store.EVIL
    assert unpacked(data["details-0-0"])["pairs"]["0-1"]["reason"] == f"reason {hostile_store.EVIL}"
    assert text.count("</script>") == len(data) + 1
    assert hostile_store.EVIL not in text


def test_the_policy_allows_the_pages_own_script_and_style_by_digest_and_nothing_else(tmp_path: Path) -> None:
    text = render(collected(tmp_path / "audit.duckdb", Size(releases=3, environments=1, behaviours=2)))
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]+)"', text)
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    for directive, tag in (("script-src", '<script type="module">'), ("style-src", "<style>")):
        inside = text.partition(tag)[2].partition(f"</{tag[1:].split()[0].rstrip('>')}>")[0]
        digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        assert f"{directive} 'sha256-{digest}'" in policy
    assert not re.search(r"""(?:src|href)\s*=\s*["'](?!#)""", text.partition('<script type="module">')[0])


def test_the_same_store_makes_the_same_file(tmp_path: Path) -> None:
    page = collected(tmp_path / "audit.duckdb", Size(releases=5, environments=2, behaviours=3))
    with Store(tmp_path / "audit.duckdb", read_only=True) as store:
        assert render(report_collecting.collect(store)) == render(page)


def test_a_page_that_is_too_large_leaves_out_what_is_asked_for_least(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = collected(tmp_path / "audit.duckdb", Size(releases=40, environments=2, behaviours=12))
    sizes = []
    for level, (left_out, keep) in enumerate(rendering.LEVELS):
        whole = rendering._file(page, left_out, keep)
        sizes.append(len(whole.encode()))
        monkeypatch.setattr(rendering, "MOST_BYTES", sizes[-1])
        text = render(page)
        assert text == whole, level
        assert json.loads(blocks(text)["data"])["leftOut"] == left_out
    assert sizes == sorted(sizes, reverse=True)
    assert len(set(sizes)) == len(sizes)
    monkeypatch.setattr(rendering, "MOST_BYTES", sizes[-1] - 1)
    with pytest.raises(TooLarge, match="the page would have"):
        render(page)


def test_neighbours_keep_their_evidence_longest(tmp_path: Path) -> None:
    page = collected(tmp_path / "audit.duckdb", Size(releases=40, environments=1, behaviours=12))
    near = {key for key, pair in page.details[0].environments[0].pairs.items() if pair.near}
    text = rendering._file(page, *rendering.LEVELS[2])
    kept = unpacked(blocks(text)["details-0-0"])["pairs"]
    assert 0 < len(kept) < len(page.details[0].environments[0].pairs)
    assert kept.keys() == near
    assert all(pair["outputs"] for pair in kept.values())


def test_the_parts_of_the_page_are_in_the_wheel(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=Path(__file__).parent.parent, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert {f"analysis/report/{name}" for name in (*rendering.SCRIPTS, "page.css", "page.html")} <= names


def test_every_script_of_the_page_is_in_it() -> None:
    folder = Path(rendering.__file__).parent
    assert sorted(rendering.SCRIPTS) == sorted(path.name for path in folder.glob("*.js"))
