"""Holding what a screen found broken against what each fault of the catalogue must break."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from analysis.algebra import screening
from analysis.algebra.reference import ReferenceSet
from analysis.paper.catalogue import Arm, Fault

Broken = tuple[str, ...]
"""Names of the laws that a screen found broken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """What screening the catalogue came to."""

    detected: int
    localised: int
    """Faults of which just the laws that they must break were broken."""
    alarms: int
    """Controls of which a law was broken."""


def scored(found: Iterable[tuple[Fault, Broken]]) -> Score:
    """Count the faults that were detected and localised, and the controls that alarmed.

    Limits: localised is all or nothing: one law too many counts as much as five.
    """
    every = list(found)
    faults = [(fault, broken) for fault, broken in every if fault.category != "control"]
    return Score(
        detected=sum(bool(broken) for _, broken in faults),
        localised=sum(set(broken) == set(fault.breaks) for fault, broken in faults),
        alarms=sum(bool(broken) for fault, broken in every if fault.category == "control"),
    )


def screened(sets: Mapping[str, ReferenceSet], arms: Iterable[tuple[Fault, Arm, Arm]]) -> Score:
    """Screen every fault with the set of its system.

    Limits: by trajectories and at the usual level; other settings are not scored.
    """
    return scored(
        (fault, screening.screen(sets[fault.system], reference, test).broken) for fault, reference, test in arms
    )
