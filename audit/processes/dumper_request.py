"""What a dumper is asked, and the file that tells it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from audit import folders
from audit.asked.attachments import Attachment
from audit.digests import digest
from audit.stimuli.stimulus import Stimulus, unpacked

PROTOCOL = 3
REQUEST, IMPORTED = "request.json", "imported"
DUMPER = folders.ROOT / "dumper"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plant:
    """A fault to plant: a constant (the first that acts, where none is named) and what to multiply it by."""

    factor: float
    name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CellTask:
    """One thing to be asked about one environment."""

    task: str
    """``probe``, ``bank``, ``dump``, ``anatomy``, ``stages`` or ``registry``."""
    label: str
    """What the answer is found by; one release is asked each label once in a job."""
    environment: str
    kind: str
    """``mjcf``, ``dm_control``, ``adapter``, or the module with which an id is registered."""
    source: str
    arguments: str
    """Keyword arguments of the constructor, as JSON."""
    edits: str
    """What is set otherwise before anything is stepped, as JSON."""
    attachment: Attachment | None
    given: bytes | None
    """An npz; ``None`` where there is nothing to give: for a probe, an anatomy, a registry."""
    stimulus: Stimulus | None = None
    """What a dump has to answer to; its payload is ``given``."""
    plant: Plant | None = None
    apart: bool = False
    """Whether it must run in another process than the rest."""
    given_as: str = ""
    """The name under which what is given travels, where it travels apart."""

    def parted(self) -> CellTask:
        """Itself without what is given."""
        if self.given is None:
            return self
        stimulus = replace(self.stimulus, payload=b"") if self.stimulus is not None else None
        name = stimulus.digest if stimulus is not None else digest(self.given)
        return replace(self, given=None, stimulus=stimulus, given_as=name)

    @property
    def steps(self) -> int:
        """Steps that it takes, as far as is known beforehand."""
        return self.stimulus.steps if self.stimulus is not None else self.rows

    @property
    def rows(self) -> int:
        """States whose stages are asked for."""
        return len(unpacked(self.given)["states"]) if self.task == "stages" and self.given is not None else 0


@cache
def dumper_digest() -> str:
    """Digest of the dumper's own source: a dump made by another dumper is another dump."""
    files = sorted(DUMPER.glob("*.py"))
    return digest(*(part for file in files for part in (file.name, file.read_bytes())))


def write(folder: Path, api: str | None, expect: dict[str, str], cells: Sequence[CellTask]) -> list[Path]:
    """Write the request and all that belongs to it; return where the answers will be."""
    asked, paths = [], []
    for index, cell in enumerate(cells):
        given = folder / f"{index}.given.npz"
        if cell.given is not None:
            given.write_bytes(cell.given)
        paths.append(folder / f"{index}.answer.npz")
        asked.append(
            {
                "task": cell.task,
                "environment": cell.source,
                "kind": cell.kind,
                "source": cell.source,
                "arguments": json.loads(cell.arguments),
                "edits": json.loads(cell.edits),
                "files": _unpack(cell, folder / f"{index}.files"),
                "given": str(given),
                "plant": {"name": cell.plant.name, "factor": cell.plant.factor} if cell.plant else None,
                "answer": str(paths[-1]),
            }
        )
    request = {
        "protocol": PROTOCOL,
        "api": api,
        "expect": expect,
        "imported": str(folder / IMPORTED),
        "cells": asked,
    }
    (folder / REQUEST).write_text(json.dumps(request), encoding="utf-8")
    return paths


def _unpack(cell: CellTask, folder: Path) -> dict[str, str]:
    """Write the files that the environment is made of; say where its source lies."""
    if cell.attachment is None:
        return {}
    for name, data in cell.attachment.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return {cell.source: str(folder / cell.attachment.main)}
