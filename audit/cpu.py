"""The CPU is a suspect too: the same wheel takes other code paths where other instructions exist."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from audit import folders


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """A CPU's model and instruction sets. Dumps are compared only within one digest."""

    model: str
    flags: tuple[str, ...]

    @property
    def digest(self) -> str:
        """Of the architecture and the instruction sets; two models with the same sets are one class."""
        return folders.digest(platform.machine(), *self.flags)[:16]


@cache
def features() -> Features:
    """Those of this machine."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return Features(model=platform.processor() or "unknown", flags=(platform.processor(),))
    parted = (line.partition(":") for line in reversed(lines))
    fields = {name.strip(): value.strip() for name, _, value in parted}
    flags = fields.get("flags") or fields.get("Features") or ""
    return Features(model=fields.get("model name", platform.machine()), flags=tuple(sorted(flags.split())))
