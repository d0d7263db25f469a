"""What a worker can be given: something that yields outcomes one by one and can be taken up again where it was lost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol, Self, TypeVar

Outcome = TypeVar("Outcome")


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What decides where a job is run."""

    machine: str = ""
    """The class of machines that it must run on; empty where any will do."""
    venv: str = ""
    """The virtualenv that it starts, which a node has or builds first; empty where there is none."""


class Job(Protocol[Outcome]):
    """One job. It travels to another process, so all that it holds must be picklable."""

    @property
    def waits(self) -> bool:
        """Whether it waits for a process of its own, so that a thread of this one can run it as well."""
        ...

    @property
    def needs(self) -> Needs:
        """Where it can run."""
        ...

    def parted(self) -> tuple[Self, Mapping[str, bytes]]:
        """Itself without the bytes that other jobs hold too, and those by a name that is the same for all of them."""
        ...

    def joined(self, parts: Mapping[str, bytes]) -> Self:
        """Itself with those bytes again."""
        ...

    def run(self) -> Iterator[Outcome]:
        """Do it; yield each outcome as soon as it is there."""
        ...

    def blames_node(self, outcome: Outcome) -> bool:
        """Whether the outcome is the node's fault, so that another node may do better."""
        ...

    def without(self, outcome: Outcome) -> Self:
        """What is left of it after that outcome."""
        ...

    def lost(self, reason: str) -> Iterator[Outcome]:
        """What is left of it, as outcomes that say why there are none."""
        ...
