"""Jobs that leave a trace of how far they are, for tests of the workers: they travel, so that they are in a module."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from audit.cluster.jobs import Needs


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedJob:
    """Yields outcomes as fast as it may, and marks each in a folder before it does; where asked to, raises instead."""

    name: str
    folder: Path
    outcomes: int
    size: int
    shared: bytes = b""
    machine: str = ""
    waits: bool = False
    error: Exception | None = None

    @property
    def needs(self) -> Needs:
        return Needs(machine=self.machine)

    def parted(self) -> tuple[CountedJob, dict[str, bytes]]:
        return replace(self, shared=b""), {"shared": self.shared}

    def joined(self, parts: Mapping[str, bytes]) -> CountedJob:
        return replace(self, shared=parts["shared"])

    def run(self) -> Iterator[bytes]:
        for number in range(self.outcomes):
            (self.folder / f"{self.name}.{number}").touch()
            if self.error is not None:
                raise self.error
            yield self.shared + bytes(self.size)

    def blames_node(self, outcome: bytes) -> bool:
        return False

    def without(self, outcome: bytes) -> CountedJob:
        return replace(self, outcomes=self.outcomes - 1)

    def lost(self, reason: str) -> Iterator[bytes]:
        for _ in range(self.outcomes):
            yield reason.encode()
