"""A figure of the paper beside the one measured here, and the experiments that measure them.

An experiment is cut into parts that run anywhere and in any order. Nothing is tuned so that a figure agrees: where one
cannot, a sentence says why.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

CLOSE = 0.05
"""Relatively: the tolerance of the paper's own checks (appendix I)."""


class Rule(StrEnum):
    """When a measured figure agrees with the paper's."""

    CLOSE = "within 5%"
    SAME = "the same"
    AT_MOST = "at most"
    ABOUT = "within a factor of 2"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One figure."""

    name: str
    paper: float | str
    measured: float | str
    rule: Rule = Rule.CLOSE
    exact: bool = True
    """Whether it is algebra or a deterministic computation, so that a disagreement is a mistake somewhere. Draws of
    random numbers by another library and the last digits of another processor are not."""
    note: str = ""
    """Why it does not agree, or what is measured here instead."""
    where: str = ""
    """Its place in the paper."""

    @property
    def agrees(self) -> bool:
        """Whether the rule holds."""
        if isinstance(self.paper, str) or isinstance(self.measured, str):
            return str(self.paper) == str(self.measured)
        return _agrees(float(self.paper), float(self.measured), self.rule)

    def explained(self, note: str) -> Figure:
        """Itself, with a note if it does not agree.

        Limits: the note is the author's; nothing checks that it is the reason.
        """
        return self if self.agrees else replace(self, note=note)


def share(held: Sequence[bool]) -> str:
    """How many of how many, as the paper writes it.

    Limits: a count without its uncertainty.
    """
    return f"{sum(held)}/{len(held)}"


def _agrees(paper: float, measured: float, rule: Rule) -> bool:
    if math.isnan(measured):
        return False
    if rule is Rule.SAME or paper == measured:
        return paper == measured
    if rule is Rule.AT_MOST:
        return measured <= paper
    if rule is Rule.ABOUT:
        return paper * measured > 0 and 0.5 <= measured / paper <= 2.0
    return paper != 0 and abs(measured / paper - 1.0) <= CLOSE


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """Something that the paper measured and that needs nothing but arithmetic."""

    name: str
    title: str
    parts: Sequence[Any]
    """What ``run`` is called with, once each: the longest first."""
    run: Callable[[Any], Any]
    """A function of this package, so that another process can find it."""
    figures: Callable[[Sequence[Any]], Sequence[Figure]]
    """From the results of all parts, in their order."""


class Recordings(Protocol):
    """What an audit of shipped releases has recorded."""

    def array(self, release: str, environment: str, output: str) -> Floats:
        """An output of a cell, such as ``horizon.observation``: trajectories × steps × entries.

        Limits: what was recorded; a cell that failed raises and is not an empty array.
        """
        ...

    def description(self, release: str, environment: str) -> Mapping[str, Any]:
        """What the release said of the environment.

        Limits: the release's own words, which nobody has checked.
        """
        ...

    def table(self, sql: str) -> Sequence[tuple[Any, ...]]:
        """Rows of a query on the views, of this matrix; ``$matrix`` stands for its name.

        Limits: the rows of this run; other runs of the matrix are not in them.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ShippedExperiment:
    """Something that the paper measured on releases as they are installed: an audit of a matrix, then arithmetic."""

    name: str
    title: str
    matrix: str
    figures: Callable[[Recordings], Sequence[Figure]]
