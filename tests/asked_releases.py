"""Releases of small packages, asked for and resolved through the real uv."""

from __future__ import annotations

import datetime
import sys
from pathlib import Path

from audit.asked.releases import ReleaseRequest
from audit.installing import locks
from audit.installing.locks import Release

HERE = f"{sys.version_info.major}.{sys.version_info.minor}"
DAY = datetime.date(2024, 6, 1)


def request(*requires: str, pins: tuple[str, ...] = (), day: datetime.date | None = DAY) -> ReleaseRequest:
    return ReleaseRequest(id="r", requires=requires, pins=pins, python=HERE, exclude_newer=day, series="")


def resolved(*requires: str, pins: tuple[str, ...] = ()) -> Release:
    release = locks.resolve(request(*requires, pins=pins))
    assert isinstance(release, Release), release
    return release


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]
