"""All experiments of the paper that are measured again, by name."""

from __future__ import annotations

from analysis.paper.approximate import APPROXIMATE
from analysis.paper.balance import BALANCE
from analysis.paper.calibration import CALIBRATION
from analysis.paper.controls import CONTROLS
from analysis.paper.deflation import DEFLATION
from analysis.paper.drift import DRIFT
from analysis.paper.equality import EQUALITY
from analysis.paper.experiment import Experiment, ShippedExperiment
from analysis.paper.faults import FAULTS
from analysis.paper.floor import FLOOR
from analysis.paper.kinematics import KINEMATICS
from analysis.paper.negative import NEGATIVE
from analysis.paper.noise import NOISE
from analysis.paper.properties import PROPERTIES
from analysis.paper.release_audit import RELEASE_AUDIT
from analysis.paper.residual_features import RESIDUAL_FEATURES
from analysis.paper.spurious import SPURIOUS
from analysis.paper.two_faults import TWO_FAULTS

EXPERIMENTS: dict[str, Experiment] = {
    each.name: each
    for each in (
        PROPERTIES,
        DRIFT,
        FAULTS,
        RESIDUAL_FEATURES,
        NOISE,
        FLOOR,
        TWO_FAULTS,
        DEFLATION,
        EQUALITY,
        APPROXIMATE,
        CALIBRATION,
        BALANCE,
        SPURIOUS,
    )
}

SHIPPED: dict[str, ShippedExperiment] = {each.name: each for each in (RELEASE_AUDIT, CONTROLS, KINEMATICS, NEGATIVE)}
