"""Wheels of pure Python, written by the tests and installed by the real uv."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from pathlib import Path

_TIME = (2020, 1, 1, 0, 0, 0)  # the same bytes in every session, so that uv's cache is not filled with copies


def write(
    folder: Path, name: str, version: str, files: dict[str, str], requires: tuple[str, ...], form: str = "1.0"
) -> None:
    """Write a pure-Python wheel."""
    path = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    head = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    content = files | {
        f"{info}/METADATA": head + "".join(f"Requires-Dist: {each}\n" for each in requires),
        f"{info}/WHEEL": f"Wheel-Version: {form}\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{file},{_hash(text)},{len(text.encode())}\n" for file, text in content.items())
    with zipfile.ZipFile(path, "w") as wheel:
        for file, text in (content | {f"{info}/RECORD": f"{record}{info}/RECORD,,\n"}).items():
            wheel.writestr(zipfile.ZipInfo(file, _TIME), text)


def _hash(text: str) -> str:
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")
