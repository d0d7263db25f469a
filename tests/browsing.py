"""A real Chromium without a network, and ways to read a page in it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
PHONE = (360, 740)
DESKTOP = (1280, 900)


@contextmanager
def chromium() -> Iterator[Browser]:
    """The system's own: Playwright's would have to be downloaded."""
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip("there is no Chromium: install the system's package, such as `apt-get install chromium`")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield browser
        browser.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A page, with everything that it complained about and asked for."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def facts(self) -> dict[str, list[str]]:
        """Of the open pair: values of the numbers by what they are called."""
        found: dict[str, list[str]] = self.page.evaluate(
            """() => Object.fromEntries([...document.querySelectorAll("#pair .facts > div")].map((row) => [
                row.querySelector("dt").textContent, [...row.querySelectorAll("data")].map((each) => each.value)]))"""
        )
        return found

    def go(self, address: str) -> None:
        """To a pair, until it is shown."""
        self.page.evaluate("address => { location.hash = address }", address)
        self.page.wait_for_function("address => document.getElementById('pair').dataset.shown === address", arg=address)

    def overflow(self) -> int:
        """By how many pixels the page is wider than its window."""
        return int(self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))


@contextmanager
def opened(
    browser: Browser, file: Path, address: str = "", *, size: tuple[int, int] = DESKTOP, scheme: Any = "light"
) -> Iterator[Opened]:
    """A page from disk in a new, empty profile without network. It must not complain, nor ask for anything else."""
    width, height = size
    context = browser.new_context(
        offline=True, viewport={"width": width, "height": height}, color_scheme=scheme, reduced_motion="reduce"
    )
    context.set_default_timeout(20_000)
    found = Opened(page=context.new_page())
    found.page.on("console", lambda message: found.complaints.append(f"{message.type}: {message.text}"))
    found.page.on("pageerror", lambda error: found.complaints.append(str(error)))
    found.page.on("dialog", lambda dialog: found.complaints.append(f"dialog: {dialog.message}"))
    found.page.on("request", lambda request: found.requests.append(request.url))
    found.page.goto(f"{file.as_uri()}{address}")
    found.page.wait_for_selector("#verdict")
    yield found
    assert found.complaints == []
    assert [url.partition("#")[0] for url in found.requests] == [file.as_uri()]
    context.close()


FAINT_TEXT = """() => {
  const parse = (text) => { const [r, g, b, a = 1] = text.match(/[\\d.]+/g).map(Number); return [r, g, b, a]; };
  const light = (rgb) => {
    const [r, g, b] = rgb.map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const colour = parse(getComputedStyle(each).backgroundColor);
      if (colour[3] === 1) return colour;
    }
    return parse(getComputedStyle(document.body).backgroundColor);
  };
  const found = [];
  for (const element of document.body.querySelectorAll("*")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!own || !element.checkVisibility() || ["SCRIPT", "NOSCRIPT", "OPTION"].includes(element.tagName)) continue;
    const style = getComputedStyle(element);
    const text = parse(element instanceof SVGElement ? style.fill : style.color);
    const [one, other] = [light(text.slice(0, 3)), light(behind(element).slice(0, 3))].sort((a, b) => b - a);
    const ratio = (one + 0.05) / (other + 0.05);
    const name = `${element.tagName} ${element.className.baseVal ?? element.className}`;
    if (ratio < 4.5) found.push(`${ratio.toFixed(2)} ${name}: ${element.textContent.slice(0, 40)}`);
  }
  return [...new Set(found)];
}"""
"""Texts whose contrast to what is behind them is below 4.5, the level AA of WCAG for small ones."""
