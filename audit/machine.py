"""The machine is a suspect too: the same wheel takes other code paths where other instructions or another libm are."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from audit.digests import digest


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A CPU's model and instruction sets, and the C library. Dumps are compared only within one digest."""

    model: str
    flags: tuple[str, ...]
    libc: str
    library_path: str
    """``LD_LIBRARY_PATH``, which can put another libm before the system's."""

    @property
    def digest(self) -> str:
        """Of all but the model's name: two models with the same instruction sets are one class."""
        return digest(platform.machine(), *self.flags, self.libc, self.library_path)[:16]


@cache
def here() -> Machine:
    """This machine."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    parted = (line.partition(":") for line in reversed(lines))
    fields = {name.strip(): value.strip() for name, _, value in parted}
    flags = fields.get("flags") or fields.get("Features") or platform.processor()
    return Machine(
        model=fields.get("model name") or platform.processor() or platform.machine(),
        flags=tuple(sorted(flags.split())),
        libc=" ".join(platform.libc_ver()),
        library_path=os.environ.get("LD_LIBRARY_PATH", ""),
    )
