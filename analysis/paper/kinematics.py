"""Reacher's observation against its own forward kinematics: half of it is read within the step (appendix H)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from analysis.algebra.ideals import equality
from analysis.paper.experiment import Figure, Floats, Recordings, Rule, ShippedExperiment
from analysis.paper.laws import REACHER_IN_METRES

LINKS = 0.1, 0.11
QUOTED = "gymnasium-1.3.0+mujoco-3.10.0"
RELEASES = (
    "gymnasium-0.29.1+mujoco-2.3.7",
    "gymnasium-1.0.0+mujoco-3.1.6",
    "gymnasium-1.2.3+mujoco-3.2.7",
    "gymnasium-1.3.0+mujoco-3.1.6",
    "gymnasium-1.3.0+mujoco-3.2.7",
    QUOTED,
)
STALE = 6.20e-9
LARGEST_STALE = 2.27e-8
BEYOND = 2.46e-4
ROUNDING = {"v4-forward": 2.08e-17, "v4-rest": 2.78e-17, "v4-mended": 2.78e-17}
EXACT = 1e-15
"""A fingertip this near to where the angles put it is there: 0.2 m has a last place of 3e-17."""


def _misplaced(recordings: Recordings, release: str, environment: str) -> Floats:
    """How far the fingertip is from where the angles put it, in metres, pose by pose."""
    seen = recordings.array(release, environment, "horizon.observation")[:, 0]
    first, second = recordings.array(release, environment, "horizon.state")[:, 0, :2].T
    there = np.stack(
        [
            LINKS[0] * np.cos(first) + LINKS[1] * np.cos(first + second),
            LINKS[0] * np.sin(first) + LINKS[1] * np.sin(first + second),
        ],
        axis=1,
    )
    return np.asarray(np.abs(seen - there).max(axis=1), dtype=np.float64)


def _figures(recordings: Recordings) -> Sequence[Figure]:
    quoted = {name: _misplaced(recordings, QUOTED, name) for name in (*ROUNDING, "v4-step", "v4-beyond")}
    figures = [
        Figure(name="median after a step", paper=STALE, measured=float(np.median(quoted["v4-step"]))),
        Figure(name="largest after a step", paper=LARGEST_STALE, measured=float(quoted["v4-step"].max())),
        Figure(name="largest beyond the joint's limit", paper=BEYOND, measured=float(quoted["v4-beyond"].max())),
    ]
    titles = {"v4-forward": "mj_forward alone", "v4-rest": "a step at rest", "v4-mended": "a step, then mj_forward"}
    figures += [
        Figure(
            name=f"median after {titles[name]}",
            paper=paper,
            measured=float(np.median(quoted[name])),
            rule=Rule.ABOUT,
            exact=False,
        )
        for name, paper in ROUNDING.items()
    ]
    return [*figures, *_everywhere(recordings), *_installed(recordings)]


def _everywhere(recordings: Recordings) -> list[Figure]:
    stale = [np.median(_misplaced(recordings, release, "v4-step")) for release in RELEASES]
    mended = [_misplaced(recordings, release, "v4-mended").max() for release in RELEASES]
    newer = RELEASES[1:]
    same = [
        np.array_equal(_misplaced(recordings, release, "v4-step"), _misplaced(recordings, release, "v5-step"))
        for release in newer
    ]
    mended += [_misplaced(recordings, release, "v5-mended").max() for release in newer]
    return [
        Figure(
            name="configurations in which it is stale",
            paper=len(RELEASES),
            measured=sum(abs(float(each) / STALE - 1) < 0.05 for each in stale),
            rule=Rule.SAME,
        ),
        Figure(
            name="configurations of v4 and v5 that mj_forward mends",
            paper=len(RELEASES) + len(newer),
            measured=sum(float(each) < EXACT for each in mended),
            rule=Rule.SAME,
        ),
        Figure(name="configurations in which v4 and v5 agree", paper=len(newer), measured=sum(same), rule=Rule.SAME),
    ]


def _installed(recordings: Recordings) -> list[Figure]:
    """The laws with the lengths of the compiled model: of its frames, and of its capsules, which stop short."""
    seen = recordings.array(QUOTED, "v5-lengths", "horizon.observation")[0, 0]
    lengths = [Fraction(str(round(float(each), 12))) for each in seen]
    decisions = [
        equality(REACHER_IN_METRES.generators, REACHER_IN_METRES.at({"ell1": first, "ell2": second}))
        for first, second in (lengths[:2], lengths[2:])
    ]
    return [
        Figure(name="installed Reacher's frames and the reference", paper="equal", measured=str(decisions[0])),
        Figure(name="installed Reacher's capsules and the reference", paper="different", measured=str(decisions[1])),
    ]


KINEMATICS = ShippedExperiment(
    name="kinematics",
    title="Reacher's fingertip is read within the step, on all six configurations, with and without mj_forward",
    matrix="paper/kinematics.yaml",
    figures=_figures,
)
