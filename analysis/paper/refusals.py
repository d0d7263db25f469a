"""Where attribution declines: faults that no constant explains, by the gap or by the fit, and controls (appendix H)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from analysis.algebra.verdict import Verdict
from analysis.paper.comparison import NOISY, PAIRED, UNPAIRED, Comparison, Setting, left
from analysis.paper.experiment import Figure, Rule, share

WHERE = "appendix H, attribution"

WITHOUT_CONSTANTS = "reacher_dz_offset"
"""It breaks a law that has no constant in it, so attribution is not asked."""

FEW_DIFFERENCES = (
    "a lag of 50 leaves the paper one difference of each of 8 trajectories, 8 rows for 69 terms; here a lag is at "
    "most half of a trajectory"
)
NULL_DIRECTIONS = (
    "transposed columns leave several directions in which nothing varies: the paper has the ratio of two rounding "
    "errors, here none of them is smaller than another and the gap is 1"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """A gap that the paper quotes."""

    setting: Setting
    fault: str
    paper: float
    note: str = ""
    """What is measured here instead, so that it agrees by chance if at all."""


GAPS = (
    Gap(setting=UNPAIRED, fault="acrobot_nips_coriolis", paper=0.554),
    Gap(setting=UNPAIRED, fault="acrobot_euler", paper=0.367),
    Gap(setting=UNPAIRED, fault="acrobot_torque_leak", paper=0.118),
    Gap(setting=UNPAIRED, fault="acrobot_obs_unnormalised", paper=1.3e-7),
    Gap(setting=PAIRED, fault="acrobot_torque_leak", paper=0.038),
    Gap(setting=UNPAIRED, fault="acrobot_dt_0.2", paper=0.859, note=FEW_DIFFERENCES),
    Gap(setting=UNPAIRED, fault="acrobot_obs_swap", paper=0.960, note=NULL_DIRECTIONS),
    Gap(setting=UNPAIRED, fault="reacher_obs_swap", paper=0.937, note=NULL_DIRECTIONS),
)
FITS = {(UNPAIRED, "acrobot_obs_unnormalised"): 4.5e-3, (PAIRED, "acrobot_torque_leak"): 1.7e-2}
"""What the best single constant leaves, where the gap admits a law."""


def refusal_figures(comparisons: Sequence[Comparison]) -> Iterator[Figure]:
    """Counts of refusals and of controls that are consistent, then gaps and fits.

    Limits: that a refusal came, not that its reason is the fault; gaps near the line depend on the draw.
    """
    for setting in (UNPAIRED, PAIRED):
        yield from _counts([each for each in comparisons if each.setting == setting], setting)
    found = {(each.setting, each.fault.name): each.attribution for each in comparisons}
    for gap in GAPS:
        name = f"{gap.setting.name}, {gap.fault}: gap"
        measured = found[gap.setting, gap.fault].gap
        yield Figure(name=name, paper=gap.paper, measured=measured, exact=not gap.note, note=gap.note, where=WHERE)
    for (setting, fault), paper in FITS.items():
        best = left(found[setting, fault])
        yield Figure(name=f"{setting.name}, {fault}: residual of the fit", paper=paper, measured=best, where=WHERE)
    yield _verdict_under_noise(found[NOISY, "none_acrobot"].verdict)


def _counts(here: Sequence[Comparison], setting: Setting) -> Iterator[Figure]:
    explicable = ("parameter", "control")
    asked = [
        each.attribution
        for each in here
        if each.fault.category not in explicable and each.fault.name != WITHOUT_CONSTANTS
    ]
    refused = [each for each in asked if each.verdict is Verdict.NOT_EXPLICABLE]
    controls = [each.attribution.verdict is Verdict.CONSISTENT for each in here if each.control]
    yield _count(f"{setting.name}: refusals", "7/7", f"{len(refused)}/{len(asked)}")
    yield _count(f"{setting.name}: consistent controls", "2/2", share(controls))
    if setting is UNPAIRED:
        by_gap = sum(not each.hypotheses for each in refused)
        yield _count(f"{setting.name}: refusals by the gap", "6", str(by_gap))


def _count(name: str, paper: str, measured: str) -> Figure:
    return Figure(name=name, paper=paper, measured=measured, rule=Rule.SAME, where=WHERE)


def _verdict_under_noise(verdict: Verdict) -> Figure:
    return _count(f"{NOISY.name}, none_acrobot: verdict", str(Verdict.NOT_EXPLICABLE), str(verdict))
