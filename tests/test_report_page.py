"""The page in a real Chromium without network: what people see is what the store has."""

from __future__ import annotations

import math
import re
import shutil
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests import hostile_store
from tests.browsing import FAINT_TEXT, PHONE, Opened, chromium, opened
from tests.conftest import CHAOS, SPRING, Program, release, rows, write_matrix

VERSIONS = ["1.0", "1.1", "1.2", "1.3", "1.7", "1.12", "1.99"]
CHANGED = ("Spring", "tinysim-1.2", "tinysim-1.3")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def database(module_audit: Program) -> Path:
    """A real audit of the tiny simulator."""
    matrix = write_matrix(module_audit.folder / "tiny.yaml", [*map(release, VERSIONS)], [SPRING, CHAOS])
    path = module_audit.folder / "results" / "audit.duckdb"
    done = module_audit("run", matrix, "--db", path)
    assert done.code == 0, done.stderr
    return path


@pytest.fixture(scope="module")
def page_file(module_audit: Program, database: Path) -> Path:
    done = module_audit("report")
    assert done.code == 0, done.stderr
    assert "results/report.html: tiny" in done.stdout
    return module_audit.folder / "results" / "report.html"


def test_the_page_of_another_database_is_beside_it(module_audit: Program, database: Path, page_file: Path) -> None:
    other = module_audit.folder / "other.duckdb"
    shutil.copy(database, other)
    before = page_file.stat().st_mtime_ns
    assert module_audit("report", "--db", other).code == 0
    assert "<title>" in other.with_suffix(".html").read_text(encoding="utf-8")
    assert page_file.stat().st_mtime_ns == before


def address(*names: str) -> str:
    return "#" + "/".join(urllib.parse.quote(name, safe="~()*!.'") for name in names)


def pair(environment: str, older: str, newer: str) -> str:
    return address("tiny", environment, older, newer)


def test_the_first_screen_says_what_changed_where_and_since_when(browser: Browser, page_file: Path) -> None:
    with opened(browser, page_file) as shown:
        expect(shown.page.locator("h1")).to_contain_text("Changed in 1 of 2 environments")
        expect(shown.page.locator(".hero")).to_contain_text("Last change: 1.3 → 1.7, in Spring")
        spring = shown.page.locator(".where tr", has_text="Spring")
        expect(spring).to_contain_text("1.3 → 1.7")
        expect(spring).to_contain_text("1.7 (2 releases)")
        assert shown.page.locator(".hero").bounding_box()["y"] < 300  # type: ignore[index]


def test_a_cell_is_clicked_and_the_evidence_of_its_pair_appears(browser: Browser, page_file: Path) -> None:
    with opened(browser, page_file, address("tiny", "Spring")) as shown:
        shown.page.locator(f"table.map td[aria-label='{CHANGED[1]} → {CHANGED[2]}: changed']").click()
        panel = shown.page.locator("#pair")
        expect(panel.locator("h3")).to_have_text(f"{CHANGED[1]} → {CHANGED[2]}")
        expect(panel).to_contain_text("beyond the yardstick")
        expect(panel).to_contain_text("tinysim 1.2 → 1.3")
        expect(panel).to_contain_text("reproducers/")
        expect(panel.locator("svg.scale")).to_be_visible()
        assert shown.page.evaluate("location.hash") == pair(*CHANGED)


def number(text: str) -> float | None:
    return float(text) if text else None


def test_the_numbers_of_every_pair_are_those_of_the_store(browser: Browser, page_file: Path, database: Path) -> None:
    stored = rows(
        database,
        "SELECT environment, older, newer, verdict, first_step_ratio, null_ratio, states_beyond, states_forced,"
        " first_step_separation, horizon_separation, reason FROM pairs WHERE matrix = 'tiny'",
    )
    assert len({row[3] for row in stored}) >= 5
    with opened(browser, page_file) as shown:
        for environment, older, newer, verdict, ratio, null, beyond, forced, one_step, horizon, reason in stored:
            shown.go(pair(environment, older, newer))
            facts = shown.facts()
            expect(shown.page.locator(".pair-verdict strong")).to_have_text(verdict)
            text = re.sub(": (unavailable|unbuilt): ", ": ", shown.page.locator("#pair").text_content() or "")
            assert all(part in text for part in reason.split("; tinysim"))
            if verdict == "unavailable":
                assert "Ratio" not in facts
                continue
            assert [number(each) for each in (*facts["Ratio"], *facts["Null ratio"])] == [ratio, null]
            if verdict != "identical":
                assert [number(each) for each in facts["States beyond"]] == [beyond, forced]
                assert number(facts["Apart after one step"][0]) == one_step
                assert number(facts["Apart over trajectories"][0]) == horizon


def test_outputs_and_growth_are_those_of_the_store(browser: Browser, page_file: Path, database: Path) -> None:
    environment, older, newer, decade, fastest, slowest = rows(
        database,
        "SELECT environment, older, newer, steps_per_decade, twin_fastest, twin_slowest FROM certificates LIMIT 1",
    )[0]
    outputs = rows(
        database,
        "SELECT output, same_bits, first_step_ratio FROM separations WHERE environment = ? AND older = ? AND newer = ?",
        environment, older, newer,
    )  # fmt: skip
    with opened(browser, page_file, pair(environment, older, newer)) as shown:
        expect(shown.page.locator("#pair svg.figure polyline")).to_be_visible()
        expect(shown.page.locator("#pair svg.figure polygon")).to_be_visible()
        facts = shown.facts()
        assert [number(each) for each in (*facts["Steps per decade"], *facts["Twins, fastest to slowest"])] == [
            decade,
            fastest,
            slowest,
        ]
        for output, same_bits, ratio in outputs:
            row = shown.page.locator("#pair table.plain tbody tr", has=shown.page.get_by_role("rowheader", name=output))
            if same_bits:
                expect(row).to_contain_text("same bits")
            else:
                assert number(row.locator("data").first.get_attribute("value") or "") == ratio


def signs(shown: Opened) -> dict[tuple[str, str], str]:
    cells: list[tuple[str, str]] = shown.page.evaluate(
        "[...document.querySelectorAll('table.map td')].map((cell) => cell.getAttribute('aria-label'))"
    )
    pairs = (str(text).rpartition(": ") for text in cells)
    return {(ends.split(" → ")[0], ends.split(" → ")[1]): verdict for ends, _, verdict in pairs}


@pytest.mark.parametrize("title", ["Spring", "Chaos"])
def test_the_map_shows_every_pair_as_the_store_judges_it(
    browser: Browser, page_file: Path, database: Path, title: str
) -> None:
    stored = rows(database, "SELECT older, newer, verdict FROM pairs WHERE environment = ?", title)
    with opened(browser, page_file, address("tiny", title)) as shown:
        assert signs(shown) == {(older, newer): verdict for older, newer, verdict in stored}


def focused(shown: Opened) -> Any:
    return shown.page.evaluate("document.activeElement.getAttribute('aria-label') ?? document.activeElement.id")


def test_a_keyboard_is_enough(browser: Browser, page_file: Path) -> None:
    with opened(browser, page_file, address("tiny", "Spring")) as shown:
        keyboard = shown.page.keyboard
        for _ in range(60):
            keyboard.press("Tab")
            if shown.page.evaluate("document.activeElement.matches('table.map td')"):
                break
        assert focused(shown).startswith("tinysim-1.12 → tinysim-1.99")
        keyboard.press("ArrowUp")
        keyboard.press("ArrowUp")
        assert focused(shown).startswith("tinysim-1.3 → tinysim-1.7")
        keyboard.press("ArrowUp")
        assert focused(shown) == "tinysim-1.2 → tinysim-1.3: changed"
        keyboard.press("ArrowLeft")
        keyboard.press("ArrowRight")
        keyboard.press("Enter")
        shown.page.wait_for_function("() => document.activeElement.id === 'pair-title'")
        expect(shown.page.locator("#pair h3")).to_have_text(f"{CHANGED[1]} → {CHANGED[2]}")
        keyboard.press("Escape")
        assert focused(shown) == "tinysim-1.2 → tinysim-1.3: changed"


def test_an_address_opens_its_pair_and_the_way_back_leads_back(browser: Browser, page_file: Path) -> None:
    with opened(browser, page_file, pair(*CHANGED)) as shown:
        expect(shown.page.locator("#pair h3")).to_have_text(f"{CHANGED[1]} → {CHANGED[2]}")
        assert shown.page.locator("table.map td[aria-selected]").get_attribute("aria-label") == (
            f"{CHANGED[1]} → {CHANGED[2]}: changed"
        )
        shown.page.select_option("#choose-newer", label="tinysim-1.7")
        expect(shown.page.locator("#pair h3")).to_have_text(f"{CHANGED[1]} → tinysim-1.7")
        shown.page.go_back()
        expect(shown.page.locator("#pair h3")).to_have_text(f"{CHANGED[1]} → {CHANGED[2]}")


@pytest.mark.parametrize("wrong", ["#nowhere", "#tiny/Nothing/a/b", "#%E0%A4%A", "#tiny/Spring/tinysim-1.0"])
def test_an_address_that_leads_nowhere_shows_the_page(browser: Browser, page_file: Path, wrong: str) -> None:
    with opened(browser, page_file, wrong) as shown:
        expect(shown.page.locator("table.map")).to_be_visible()


@pytest.mark.parametrize("size", [PHONE, (768, 1024), (1920, 1080)])
def test_no_window_has_to_be_scrolled_sideways(browser: Browser, page_file: Path, size: tuple[int, int]) -> None:
    with opened(browser, page_file, pair(*CHANGED), size=size) as shown:
        expect(shown.page.locator("#pair .evidence")).to_be_visible()
        assert shown.overflow() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_stands_out_from_what_is_behind_it(browser: Browser, page_file: Path, scheme: str) -> None:
    for environment, older, newer in (CHANGED, ("Chaos", "tinysim-1.3", "tinysim-1.7")):
        with opened(browser, page_file, pair(environment, older, newer), scheme=scheme) as shown:
            expect(shown.page.locator("#pair .evidence")).to_be_visible()
            assert shown.page.evaluate(FAINT_TEXT) == []
            dark = shown.page.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
            assert dark is (scheme == "dark")


def test_it_prints_on_white_without_what_is_only_for_screens(browser: Browser, page_file: Path) -> None:
    with opened(browser, page_file, pair(*CHANGED), scheme="dark") as shown:
        expect(shown.page.locator("#pair .evidence")).to_be_visible()
        shown.page.emulate_media(media="print", color_scheme="dark")
        assert shown.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        expect(shown.page.locator(".chooser")).to_be_hidden()
        expect(shown.page.locator("table.map")).to_be_visible()
        assert shown.page.evaluate(FAINT_TEXT) == []
        assert shown.page.pdf(format="A4").startswith(b"%PDF")


def test_markup_from_packages_is_shown_as_text(browser: Browser, module_audit: Program, tmp_path: Path) -> None:
    hostile_store.make(tmp_path / "audit.duckdb")
    file = tmp_path / "report.html"
    assert module_audit("report", "--db", tmp_path / "audit.duckdb", "--output", file).code == 0
    evil = hostile_store.EVIL
    with opened(browser, file, address(evil, evil, f"a{evil}", f"b{evil}")) as shown:
        expect(shown.page.locator("#pair .evidence")).to_be_visible()
        assert shown.page.locator("#pair h3").text_content() == f"a{evil} → b{evil}"
        text = shown.page.evaluate("document.getElementById('main').textContent")
        for place in hostile_store.PLACES:
            assert f"{place} {evil}" in text, place
        expect(shown.page.locator("#pair")).to_contain_text("First met on the night of 2026-01-01; accepted: waiver")
        expect(shown.page.locator(".hero")).to_contain_text("Last night, 2026-01-01: 1 new.")
        assert shown.page.evaluate("document.querySelectorAll('img, iframe, main script').length") == 0
        assert shown.page.evaluate("window.pwned") is None


def test_the_page_runs_no_script_but_its_own(browser: Browser, page_file: Path) -> None:
    with opened(browser, page_file) as shown:
        shown.page.evaluate(
            "const script = document.createElement('script'); script.textContent = 'window.pwned = 1';"
            " document.body.append(script)"
        )
        assert shown.page.evaluate("window.pwned") is None
        assert any("Content Security Policy" in each for each in shown.complaints)
        shown.complaints.clear()


def test_a_number_that_json_cannot_hold_is_read(browser: Browser, module_audit: Program, tmp_path: Path) -> None:
    hostile_store.make(tmp_path / "audit.duckdb", separation=math.inf)
    file = tmp_path / "report.html"
    assert module_audit("report", "--db", tmp_path / "audit.duckdb", "--output", file).code == 0
    evil = hostile_store.EVIL
    with opened(browser, file, address(evil, evil, f"a{evil}", f"b{evil}")) as shown:
        expect(shown.page.locator("#pair .facts").first).to_contain_text("∞")
