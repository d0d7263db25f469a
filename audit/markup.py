"""Text of packages in Markdown: nothing in it is markup, a mention or a link."""

from __future__ import annotations

import re

from audit.failures import readable

_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+!|~$@-])")
_MARKS = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}

_LINKED = re.compile(r"(?<=:)(?=//)|(?<=www)(?=\.)|(?<=\\@)", re.IGNORECASE)
"""Where services make an address or a name into a link by themselves; a space without a width keeps them from it."""


def escaped(text: str) -> str:
    """The text on one line, as it is to be seen."""
    flat = " ".join(readable(text).split())
    marked = "".join(_MARKS.get(each, each) for each in flat)
    return _LINKED.sub("\u200b", _SPECIAL.sub(r"\\\1", marked))
