"""Source distributions whose builds do what a test plants in them, and how they are asked for."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

from audit.asked.releases import ReleaseRequest
from audit.confining import protections

PLANTING = """
import os, zipfile

INFO = "tinysource-1.0.dist-info"


def build_wheel(folder, settings=None, metadata=None):
    asked = open("/proc/%d/cmdline" % os.getppid(), "rb").read().decode().split("\\0")
    PLANT
    name = "tinysource-1.0-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(folder, name), "w") as wheel:
        wheel.writestr("tinysource/owned.pth", "")
        wheel.writestr(INFO + "/METADATA", "Metadata-Version: 2.1\\nName: tinysource\\nVersion: 1.0\\n")
        wheel.writestr(INFO + "/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(INFO + "/RECORD", "")
    return name
"""
"""Puts something where uv is about to install."""


def write_sdist(folder: Path, backend: str, requires: str = "") -> None:
    required = f"requires = {[requires] if requires else []}"
    files = {
        "PKG-INFO": "Metadata-Version: 2.1\nName: tinysource\nVersion: 1.0\n",
        "pyproject.toml": f'[build-system]\n{required}\nbuild-backend = "backend"\nbackend-path = ["."]\n',
        "backend.py": backend,
    }
    with tarfile.open(folder / "tinysource-1.0.tar.gz", "w:gz") as archive:
        for name, text in files.items():
            info = tarfile.TarInfo(f"tinysource-1.0/{name}")
            info.size = len(text.encode())
            archive.addfile(info, io.BytesIO(text.encode()))


def is_on(name: str) -> bool:
    """Whether this system has a protection."""
    (found,) = [each for each in protections.all_here() if each.name == name]
    return found.on


def request(*source: str) -> ReleaseRequest:
    return ReleaseRequest(
        id="r", requires=("tinysource==1.0",), pins=(), python="3.11", exclude_newer=None, series="", source=source
    )
