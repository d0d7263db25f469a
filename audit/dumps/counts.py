"""How many dumps a run took, and how many it did not have to."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from audit.dumps.dumping import Dumped


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpCounts:
    """Cells of a run by where their dumps came from, and what was run besides."""

    dumped: int = 0
    shared: int = 0
    """Cells that are the same as another of the run but for their name: one was dumped for all."""
    reused: int = 0
    """Cells whose dumps were in the store before the run."""
    checked: int = 0
    """Controls, twins and second looks that were run."""

    @classmethod
    def of(cls, cells: Collection[Dumped], controls: Collection[Dumped]) -> DumpCounts:
        """Of the dumps of a run's cells, and of its controls."""
        return cls(
            dumped=sum(_is_fresh(each) for each in cells),
            shared=sum(each.shared for each in cells),
            reused=sum(each.reused for each in cells),
            checked=sum(_is_fresh(each) for each in controls),
        )

    @property
    def told(self) -> str:
        """In words."""
        shared = [f"{self.shared} the same as one of these"] if self.shared else []
        return ", ".join(
            [
                f"{self.dumped} dumped now",
                *shared,
                f"{self.reused} known from before",
                f"{self.checked} control run{'s' if self.checked != 1 else ''}",
            ]
        )


def _is_fresh(dumped: Dumped) -> bool:
    return not dumped.reused and not dumped.shared
