"""One HTML file from the page's values: the template, its style and scripts, and the data, with nothing to fetch.

Text of packages cannot become markup: data goes in as JSON whose ``<``, ``>`` and ``&`` are escaped, the scripts write
it as text only, and the page's policy runs no script but its own, which it names by digest.
"""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from importlib import resources
from typing import Any

from analysis.report.model import Details, MatrixDetails, Page, Pair

MOST_BYTES = 5_000_000
"""A page that can be sent by mail and opened on a phone. What does not fit is left out, by the levels below."""

SCRIPTS = ("elements.js", "data.js", "overview.js", "heatmap.js", "curve.js", "pair.js", "sections.js", "main.js")
"""In this order they are one module."""

_ESCAPES = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}


class TooLarge(Exception):
    """The page does not fit, however much of it is left out."""


def render(page: Page) -> str:
    """The page as one file, with as many details as fit.

    Limits: it shows what it is given; nothing is compared or judged here, and what was left out is only named.

    Raises:
        TooLarge: where not even verdicts alone fit.
    """
    for left_out, keep in LEVELS:
        text = _file(page, left_out, keep)
        if len(text.encode()) <= MOST_BYTES:
            return text
    raise TooLarge(f"the page would have {len(text.encode()) / 1e6:.1f} MB, more than {MOST_BYTES / 1e6:g}")


Keep = Callable[[Pair], Pair | None]


def _everything(pair: Pair) -> Pair | None:
    return pair


def _shorter_unless_near(pair: Pair) -> Pair | None:
    return pair if pair.near else _without_rows(pair)


def _near(pair: Pair) -> Pair | None:
    return pair if pair.near else None


def _shorter_near(pair: Pair) -> Pair | None:
    return _without_rows(pair) if pair.near else None


def _nothing(_: Pair) -> Pair | None:
    return None


def _without_rows(pair: Pair) -> Pair:
    return replace(pair, outputs=(), growth=replace(pair.growth, steps=(), curve=(), twin_low=(), twin_high=())
                   if pair.growth is not None else None)  # fmt: skip


LEVELS: tuple[tuple[str, Keep], ...] = (
    ("", _everything),
    ("single outputs and curves of pairs that are no neighbours", _shorter_unless_near),
    ("the evidence of pairs that are no neighbours", _near),
    ("the evidence of pairs that are no neighbours, and single outputs and curves of all", _shorter_near),
    ("the evidence of all pairs", _nothing),
)
"""What is left out, in words, until the page fits."""


def _file(page: Page, left_out: str, keep: Keep) -> str:
    overview = {
        "version": page.version,
        "threshold": page.threshold,
        "leftOut": left_out,
        "matrices": page.matrices,
    }
    blocks = [_block("data", _escaped(_json(overview)))]
    for place, details in enumerate(page.details):
        blocks += (_block(name, _packed(value)) for name, value in _details(place, details, keep))
    style, script = _part("page.css"), "\n".join(map(_part, SCRIPTS))
    template = _part("page.html")
    parts = {
        "{{policy}}": f"default-src 'none'; script-src {_digest(script)}; style-src {_digest(style)}; base-uri 'none'; "
        "form-action 'none'",
        "{{style}}": style,
        "{{script}}": script,
        "{{data}}": "\n".join(blocks),
    }
    for name, text in parts.items():  # data last: whatever stands in it, nothing is put into it
        template = template.replace(name, text, 1)
    return template


def _details(place: int, details: MatrixDetails, keep: Keep) -> Iterator[tuple[str, Any]]:
    """Blocks by name: ``details-0`` of a matrix, ``details-0-3`` of its fourth environment."""
    yield f"details-{place}", {"locks": details.locks, "blames": details.blames}
    for index, environment in enumerate(details.environments):
        yield f"details-{place}-{index}", _kept(environment, keep)


def _kept(details: Details, keep: Keep) -> dict[str, Any]:
    kept = ((key, keep(pair)) for key, pair in details.pairs.items())
    return {
        "pairs": {key: pair for key, pair in kept if pair is not None},
        "explanations": details.explanations,
    }


def _json(value: Any) -> str:
    return json.dumps(value, default=_fields, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _fields(value: Any) -> dict[str, Any]:
    """A dataclass as an object; `asdict` would copy everything below it, which takes longer than writing it."""
    return {each.name: getattr(value, each.name) for each in fields(value)}


def _escaped(text: str) -> str:
    r"""JSON that says the same and cannot end the element it stands in.

    >>> _escaped('"</script>"')
    '"\\u003c/script\\u003e"'
    """
    return text.translate(_ESCAPES)


def _packed(value: Any) -> str:
    return base64.b64encode(zlib.compress(_json(value).encode(), 9)).decode()


def _block(name: str, text: str) -> str:
    return f'<script type="application/json" id="{name}">{text}</script>'


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _part(name: str) -> str:
    return (resources.files("analysis.report") / name).read_text(encoding="utf-8")
