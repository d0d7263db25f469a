"""What a worker can be given: something that yields outcomes one by one and can be taken up again where it was lost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, Self, TypeVar

Outcome = TypeVar("Outcome")


class Job(Protocol[Outcome]):
    """One job. It travels to another process, so all that it holds must be picklable."""

    @property
    def waits(self) -> bool:
        """Whether it waits for a process of its own, so that a thread of this one can run it as well."""
        ...

    def run(self) -> Iterator[Outcome]:
        """Do it; yield each outcome as soon as it is there."""
        ...

    def without(self, outcome: Outcome) -> Self:
        """What is left of it after that outcome."""
        ...

    def lost(self, reason: str) -> Iterator[Outcome]:
        """What is left of it, as outcomes that say why there are none."""
        ...
