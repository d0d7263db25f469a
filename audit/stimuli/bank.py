"""The state bank of an environment: states to force single steps from, an action for each, and what they cover."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict, TypeAdapter
from pydantic.dataclasses import dataclass as checked_dataclass

from audit.stimuli.stimulus import Batch

SHARES = {"visited": 0.5, "in range": 0.25, "sought": 0.25}
"""Of the states that a bank is asked for."""
SOURCES = ("given", *SHARES)

_LISTED = 6
"""Untouched pairs that a coverage names before it counts the rest."""


TERMINATES = "terminates"
"""What every kind of environment can tell: that the episode ends with the step."""

_KINDS = {
    "contact": "colliding pairs touched",
    "limit": "limits reached",
    "saturated": "actuators saturated",
    "": "other things acted",
}


@checked_dataclass(frozen=True, slots=True, kw_only=True, config=ConfigDict(extra="ignore"))
class Coverage:
    """What a bank's states exercise. It limits what `identical` claims."""

    sources: dict[str, int]
    """States by where they come from."""
    features: dict[str, int] | None
    """In how many states each thing acts that can; ``None`` where it was not measured."""
    fastest: float
    """The largest velocity among the states."""

    @property
    def states(self) -> int:
        """How many there are."""
        return sum(self.sources.values())

    def untouched(self, kind: str) -> list[str]:
        """Names of what never acts, of one kind."""
        return [name for name, count in self._of(kind).items() if not count]

    def _of(self, kind: str) -> dict[str, int]:
        """What has the kind as its first word; what has none of them goes by the kind ``""``."""
        found = {}
        for name, count in (self.features or {}).items():
            first, _, rest = name.partition(" ")
            if name != TERMINATES and (first == kind if kind else first not in _KINDS):
                found[rest if kind else name] = count
        return found

    @property
    def text(self) -> str:
        """In words, as it stands beside a verdict."""
        parts = [f"{self.states} states"]
        if self.features is None:
            return f"{parts[0]}, coverage not measured"
        for kind, words in _KINDS.items():
            possible = self._of(kind)
            if possible:
                parts.append(f"{sum(map(bool, possible.values()))} of {len(possible)} {words}")
        ends = self.features.get(TERMINATES, 0)
        parts.append(f"{ends} end the episode")
        if self.fastest:
            parts.append(f"speeds up to {self.fastest:.3g}")
        never = [name for kind in ("contact", "limit", "") for name in self.untouched(kind)]
        if never:
            more = f" and {len(never) - _LISTED} more" if len(never) > _LISTED else ""
            parts.append(f"never touched: {', '.join(never[:_LISTED])}{more}")
        return "; ".join(parts)


COVERAGE: TypeAdapter[Coverage] = TypeAdapter(Coverage)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bank:
    """States and actions, and what they cover."""

    states: NDArray[np.float64]
    actions: NDArray[Any]
    source: NDArray[np.uint8]
    """Where each state comes from: its place in ``SOURCES``."""
    coverage: Coverage

    @property
    def batch(self) -> Batch:
        """As single steps."""
        return Batch(starts=self.states, actions=self.actions[:, None])
