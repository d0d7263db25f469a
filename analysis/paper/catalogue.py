"""The catalogue of faults: mistakes that a simulator has plausibly carried, each with the constraints it must break.

The list is fixed, and not drawn, because only a fault of known locus and known value lets localisation and attribution
be scored. The two controls are right, and differ from the reference only in their seeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from analysis.paper.systems import SPECIFIED, AcrobotRun, Floats, ObservationFault, ReacherRun, Run, drawn

System = Literal["acrobot", "reacher"]
Category = Literal["parameter", "structural", "numerical", "observation", "control"]
Arm = tuple[Floats, ...]

ACROBOT = AcrobotRun(dt=0.005)
REACHER = ReacherRun(scale=0.1)
"""The settings at specification. Reacher's lengths are in units of its first link: of the coefficients 1/10 and 11/100
in metres, the second is not a fraction small enough to be recovered."""

COARSE = replace(ACROBOT, dt=0.2, steps=50)
"""The step that Gymnasium ships."""
COARSELY_SAMPLED = replace(ACROBOT, steps=2000, every=40)
"""The resolved step, observed on the grid of the coarse one, so that the two differ in the step alone."""

UNIT_NORMS = ("unit-norm θ1", "unit-norm θ2")
FORWARD_KINEMATICS = ("fk-x", "fk-y")
GENERATORS: dict[System, tuple[str, ...]] = {
    "acrobot": (*UNIT_NORMS, "energy"),
    "reacher": (*UNIT_NORMS, "dz", *FORWARD_KINEMATICS),
}

_ELLS_IN_A_METRE = 10
"""Reacher's ``ell1`` and ``ell2`` are lengths in units of the specified first link, a tenth of a metre."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One entry of the catalogue."""

    name: str
    category: Category
    breaks: tuple[str, ...] = ()
    """The generators that it must break, and no others."""
    parameter: str | None = None
    value: float | None = None
    """Of a fault of a parameter: which, and what it has become."""
    reference: Run
    test: Run
    """How the two arms are drawn. They differ in the fault alone."""

    @property
    def system(self) -> System:
        """The system it is a fault of."""
        return "acrobot" if isinstance(self.reference, AcrobotRun) else "reacher"


def moved(parameter: str, value: float) -> Run:
    """The run of the system that has this parameter, which now is ``value``.

    Limits: one constant at a time; no fault of the catalogue moves two.
    """
    if parameter.startswith("ell"):
        length: dict[str, Any] = {parameter.replace("ell", "l"): value / _ELLS_IN_A_METRE}
        return replace(REACHER, **length)
    constant: dict[str, Any] = {parameter.lower(): value}
    return replace(ACROBOT, parameters=replace(SPECIFIED, **constant))


def _swapped(observations: Floats, one: int, other: int) -> Floats:
    """Two columns transposed."""
    order = list(range(observations.shape[-1]))
    order[one], order[other] = other, one
    return observations[..., order]


def scaled(observations: Floats, column: int, factor: float) -> Floats:
    """One column multiplied.

    Limits: the state is not touched, only what is seen of it.
    """
    changed = observations.copy()
    changed[..., column] *= factor
    return changed


def shifted(observations: Floats, column: int, by: float) -> Floats:
    """One column with a constant added.

    Limits: a constant offset, not a drift.
    """
    changed = observations.copy()
    changed[..., column] += by
    return changed


def parameter_fault(name: str, parameter: str, value: float) -> Fault:
    """A constant of the wrong value: it breaks the generators in which the constant is a coefficient.

    Limits: which laws it must break is stated, not found out.
    """
    test = moved(parameter, value)
    acrobot = isinstance(test, AcrobotRun)
    return Fault(
        name=name,
        category="parameter",
        breaks=("energy",) if acrobot else FORWARD_KINEMATICS,
        parameter=parameter,
        value=value,
        reference=ACROBOT if acrobot else REACHER,
        test=test,
    )


def _dynamics(name: str, category: Category, test: AcrobotRun, reference: AcrobotRun = ACROBOT) -> Fault:
    return Fault(name=name, category=category, breaks=("energy",), reference=reference, test=test)


def _observation(name: str, base: Run, breaks: Sequence[str], fault: ObservationFault) -> Fault:
    test = replace(base, fault_of_observation=fault)
    return Fault(name=name, category="observation", breaks=tuple(breaks), reference=base, test=test)


def _control(name: str, base: Run) -> Fault:
    return Fault(name=name, category="control", reference=base, test=base)


CATALOGUE = (
    parameter_fault("acrobot_m2_1.3", "m2", 1.3),
    parameter_fault("acrobot_l1_1.2", "l1", 1.2),
    parameter_fault("acrobot_lc2_0.6", "lc2", 0.6),
    parameter_fault("acrobot_I2_1.5", "I2", 1.5),
    parameter_fault("acrobot_g_9.81", "g", 9.81),
    parameter_fault("reacher_l2_0.13", "ell2", 1.3),
    parameter_fault("reacher_l1_0.09", "ell1", 0.9),
    _dynamics("acrobot_nips_coriolis", "structural", replace(ACROBOT, parameters=replace(SPECIFIED, coriolis=False))),
    _dynamics("acrobot_torque_leak", "structural", replace(ACROBOT, torque=0.05)),
    _dynamics("acrobot_euler", "numerical", replace(ACROBOT, integrator="euler")),
    _dynamics("acrobot_dt_0.2", "numerical", COARSE, COARSELY_SAMPLED),
    _observation("acrobot_obs_swap", ACROBOT, GENERATORS["acrobot"], partial(_swapped, one=1, other=2)),
    _observation(
        "acrobot_obs_unnormalised", ACROBOT, ("unit-norm θ1", "energy"), partial(scaled, column=0, factor=1.02)
    ),
    _observation("reacher_dz_offset", REACHER, ("dz",), partial(shifted, column=10, by=1e-3)),
    _observation(
        "reacher_obs_swap", REACHER, (*UNIT_NORMS, *FORWARD_KINEMATICS), partial(_swapped, one=1, other=2)
    ),
    _control("none_acrobot", ACROBOT),
    _control("none_reacher", REACHER),
)  # fmt: skip


def arms(fault: Fault, *, paired: bool, noise: float) -> tuple[Arm, Arm]:
    """The reference and the faulty arm; paired ones start the same and have noises of their own.

    Limits: with one seed each: what another draw would show is for the calibration.
    """
    return _pair(fault.reference, fault.test, paired, noise)


def healthy_pair(fault: Fault, *, paired: bool, noise: float) -> tuple[Arm, Arm]:
    """The reference and the system's control on the same grid: what two arms without a fault differ by.

    Limits: it has the noise of the faulty pair and none of its fault; it is no second control.
    """
    return _pair(fault.reference, fault.reference, paired, noise)


def _pair(reference: Run, test: Run, paired: bool, noise: float) -> tuple[Arm, Arm]:
    usual, faulty = replace(reference, noise=noise), replace(test, noise=noise)
    return drawn(usual, seed=0, ic_seed=0), drawn(faulty, seed=1, ic_seed=0 if paired else 1)
