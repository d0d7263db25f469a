"""Diagnose trajectories from anywhere against a reference set: a logged simulator, a world model, a data set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from analysis.algebra import diagnosis, dictionaries, screening
from analysis.algebra.attribution import Attribution
from analysis.algebra.errors import BadData
from analysis.algebra.reference import Kind, Law, ReferenceSet
from analysis.algebra.screening import Screen, Unit
from audit.errors import UsageError
from audit.laws import trajectory_files
from audit.laws.reference_file import ReferenceFile
from audit.laws.trajectory_files import Columns

Floats = NDArray[np.float64]

ALONE = 1e-6
"""From this on a vanishing law is broken, where there is nothing to hold it against: beside the size of its terms, so
that units do not matter, or as it is where there is but one term. Observations in single precision leave 4e-8 of an
identity between a sine and a cosine; the smallest fault of the paper's catalogue, a fingertip that is a millimetre too
high, leaves 1e-3."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LawLine:
    """One law on the trajectories."""

    law: str
    kind: str
    residual: float
    """Median over trajectories, beside the size of the law's terms."""
    against: float | None
    ratio: float | None
    p: float | None
    said: str
    """``broken``, ``holds``, or what can be said without another system."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosed:
    """What the trajectories of a file say."""

    laws: tuple[LawLine, ...]
    attributions: tuple[Attribution, ...]
    notes: tuple[str, ...]

    @property
    def found(self) -> bool:
        """Whether a law is broken or a constant is named."""
        return any(line.said.startswith("broken") for line in self.laws) or any(
            each.explanations for each in self.attributions
        )


def diagnose(reference: ReferenceFile, tested: Path, against: Path | None, unit: Unit) -> Diagnosed:
    """Read, screen, attribute.

    Raises:
        UsageError: in one sentence that says what is wrong with which file.
    """
    laws, notes = reference.laws, []
    files = [path for path in (tested, against) if path is not None]
    trajectories = {path: trajectory_files.read(path) for path in files}
    left = ", ".join(law.name for law in laws.laws if law.kind is Kind.CONSERVED)
    unfit = next((path for path in files if _why_unfit(trajectories[path], reference.row.coast)), None)
    if left and unfit is not None:
        has, only = _why_unfit(trajectories[unfit], reference.row.coast)
        notes.append(f"{unfit} has {has}, and {left} is conserved only {only}: left out")
        laws = replace(laws, laws=tuple(law for law in laws.laws if law.kind is not Kind.CONSERVED))
    elif left:
        notes += [
            f"{path} has no actions: it is taken to be driven by nothing, or {left} would not be conserved"
            for path in files
            if not any("action" in columns for columns in trajectories[path])
        ]
    if not laws.laws:
        raise UsageError(f"no law of {laws.name} can be held against {tested}: {notes[0]}")
    samples = {path: _samples(path, laws, trajectories[path]) for path in files}
    try:
        found = diagnosis.diagnose(laws, samples[tested], samples[against] if against is not None else None, unit=unit)
    except BadData as error:
        raise UsageError(f"{tested}: {error}") from None
    if found.screen is not None and found.screen.attainable >= screening.ALPHA:
        notes.append(
            f"so few trajectories cannot show more than p = {found.screen.attainable:.2g}, so nothing can be called "
            "broken: give eight or more of each"
        )
    if found.screen is not None and found.screen.is_drawn:
        notes.append("p is of ways to split the trajectories that were drawn at random: there are too many to try all")
    if found.screen is not None and found.screen.left_out:
        notes.append(
            f"{found.screen.left_out} trajectories are less than half as long as the others, and are left out of the "
            "comparison"
        )
    return Diagnosed(
        laws=_lines(laws, samples[tested], found.screen), attributions=found.attributions, notes=tuple(notes)
    )


def _samples(path: Path, laws: ReferenceSet, trajectories: Sequence[Columns]) -> list[Floats]:
    """The variables of the laws; trajectories of a single sample are poses, and are taken together."""
    try:
        found = [laws.samples(columns) for columns in trajectories]
        if _are_poses(trajectories):
            found = [np.vstack(found)]
        dictionaries.checked(found, len(laws.variables))
    except BadData as error:
        raise UsageError(f"{path}: {error}") from None
    return found


def _are_poses(trajectories: Sequence[Columns]) -> bool:
    return len(trajectories) > 1 and all(len(next(iter(columns.values()))) == 1 for columns in trajectories)


def _why_unfit(trajectories: Sequence[Columns], coast: int | None) -> tuple[str, ...]:
    """What trajectories have along which nothing is conserved, and where it would be; nothing where it may be."""
    if any("action" in columns and (columns["action"] != (coast or 0)).any() for columns in trajectories):
        return "actions", "where nothing drives"
    return ("single samples", "along a trajectory") if _are_poses(trajectories) else ()


def _lines(laws: ReferenceSet, samples: Sequence[Floats], screen: Screen | None) -> tuple[LawLine, ...]:
    if screen is None:
        found = screening.residuals(laws, samples)
        return tuple(
            LawLine(
                law=law.name,
                kind=str(law.kind),
                residual=float(np.median(found.relative[:, place])),
                against=None,
                ratio=None,
                p=None,
                said=_alone(law, float(found.absolute[:, place].max()), float(found.relative[:, place].max())),
            )
            for place, law in enumerate(laws.laws)
        )
    return tuple(
        LawLine(
            law=law.name,
            kind=str(law.kind),
            residual=each.tested,
            against=each.reference,
            ratio=each.ratio,
            p=each.p,
            said="broken" if each.broken else "holds as well as there",
        )
        for law, each in zip(laws.laws, screen.laws, strict=True)
    )


def _alone(law: Law, absolute: float, relative: float) -> str:
    """Without another system to hold it against, only a vanishing law can be called broken, and only by its size."""
    if law.kind is Kind.CONSERVED:
        return "how much is too much needs another system: --against"
    decides = relative if len(law.template.terms()) > 1 else absolute
    return f"broken by {absolute:.2g}" if decides > ALONE else f"holds to {absolute:.2g}"
