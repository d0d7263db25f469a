"""A release as the nights of a matrix know it."""

from __future__ import annotations

import datetime
import json
from dataclasses import asdict, dataclass

from audit.asked.releases import ReleaseRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """A release that the nights of a matrix know."""

    request: ReleaseRequest
    asked: str
    """Digest of what the matrix asks for: with another, it is another release."""
    listing: str = ""
    """Digest of the range that it was listed under; where it is written out, of those that are watched above it."""
    package: str = ""
    version: str = ""
    lock_digest: str | None = None
    news: str = ""
    """What is new in it, in words; empty where it belongs to the matrix."""
    found: str
    """The night."""
    audited: str | None = None
    """The night; nothing while that is still to be done."""
    yanked: str | None = None
    """The night on which that was noticed."""

    @property
    def id(self) -> str:
        """The release's id."""
        return self.request.id

    @property
    def request_text(self) -> str:
        """The request as JSON."""
        return json.dumps(asdict(self.request), default=str)


def request_of(text: str) -> ReleaseRequest:
    """A request from its JSON."""
    data = json.loads(text)
    day = data.pop("exclude_newer")
    data |= {name: tuple(data[name]) for name in ("requires", "pins", "source")}
    return ReleaseRequest(**data, exclude_newer=datetime.date.fromisoformat(day) if day else None)
