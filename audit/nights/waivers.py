"""Accepted changes: who accepts which, why, and until when. A YAML file beside the matrix, validated like one."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from audit.asked import yaml_models
from audit.asked.fields import Day
from audit.asked.matrix_file import WAIVERS
from audit.asked.yaml_models import FileModel

Boundary = tuple[str, str, str]
"""An environment, the older release, the newer one."""


def _said(text: str) -> str:
    if not text.strip():
        raise ValueError("should say something")
    return text.strip()


Words = Annotated[str, AfterValidator(_said)]


class Waiver(FileModel):
    """One accepted change: at these environments, between these releases."""

    environment: Words = Field(description="Name of an environment in results, or a pattern such as 'Ant-*'.")
    older: Words = Field(description="Id of the older release, or a pattern.")
    newer: Words = Field(description="Id of the newer release, or a pattern.")
    reason: Words = Field(description="Why the change is accepted.")
    who: Words = Field(description="Who accepts it.")
    until: Day = Field(description="The last day on which it is accepted.")

    def covers(self, boundary: Boundary) -> bool:
        """Whether the change lies within it."""
        patterns = self.environment, self.older, self.newer
        return all(fnmatchcase(name, pattern) for name, pattern in zip(boundary, patterns, strict=True))

    @property
    def boundary(self) -> str:
        """Where it holds, in words."""
        return f"{self.environment}: {self.older} → {self.newer}"

    @property
    def told(self) -> str:
        """Why, by whom, until when."""
        return f"{self.reason} ({self.who}, until {self.until})"


class WaiverFile(FileModel):
    """The whole file."""

    waivers: tuple[Waiver, ...] = Field(default=(), description="Accepted changes.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Waivers:
    """The accepted changes, as they stand on a day."""

    waivers: tuple[Waiver, ...] = ()
    day: datetime.date

    def accepting(self, boundary: Boundary) -> Waiver | None:
        """The waiver that accepts a change; one that has expired accepts nothing."""
        return next((each for each in self.waivers if each.until >= self.day and each.covers(boundary)), None)

    def notes(self, met: Iterable[Boundary]) -> tuple[str, ...]:
        """Waivers that have expired, and those that cover nothing of what was ever met."""
        met = tuple(met)
        told = []
        for each in self.waivers:
            if each.until < self.day:
                told.append(f"the waiver for {each.boundary} expired on {each.until} ({each.who}: {each.reason})")
            elif not any(each.covers(boundary) for boundary in met):
                told.append(f"the waiver for {each.boundary} is not used: no such change has been met ({each.who})")
        return tuple(told)


def read(path: Path, day: datetime.date) -> Waivers:
    """Read and validate; raise :class:`audit.errors.MatrixError` with everything that is wrong."""
    return Waivers(waivers=yaml_models.read(path, WaiverFile).model.waivers, day=day)


def beside(matrix: Path, given: Path | None, day: datetime.date) -> Waivers:
    """The file that was given, else the one beside the matrix, else none."""
    path = given or matrix.parent / WAIVERS
    return read(path, day) if given is not None or path.is_file() else Waivers(day=day)
