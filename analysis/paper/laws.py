"""The laws of the paper's two systems, in the coordinates of their observations and with its names of the constants."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

from analysis.algebra.ideals import Ideal
from analysis.algebra.reference import Kind, Law, ReferenceSet

ACROBOT = ReferenceSet.of(
    "acrobot",
    variables={name: f"observation[{place}]" for place, name in enumerate(("c1", "s1", "c2", "s2", "w1", "w2"))},
    parameters={
        "m1": Fraction(1),
        "m2": Fraction(1),
        "l1": Fraction(1),
        "lc1": Fraction(1, 2),
        "lc2": Fraction(1, 2),
        "I1": Fraction(1),
        "I2": Fraction(1),
        "g": Fraction("9.8"),
    },
    laws={
        "unit-norm θ1": (Kind.VANISHES, "c1**2 + s1**2 - 1"),
        "unit-norm θ2": (Kind.VANISHES, "c2**2 + s2**2 - 1"),
        "energy": (
            Kind.CONSERVED,
            "(m1*lc1**2 + m2*(l1**2 + lc2**2) + I1 + I2)*w1**2/2 + m2*l1*lc2*c2*w1**2"
            " + (m2*lc2**2 + I2)*w1*w2 + m2*l1*lc2*c2*w1*w2 + (m2*lc2**2 + I2)*w2**2/2"
            " - (m1*lc1 + m2*l1)*g*c1 - m2*g*lc2*(c1*c2 - s1*s2)",
        ),
    },
    lag=50,
)

LINK = Fraction(1, 10)
"""Reacher's first link, in metres: the unit of all its lengths here. In metres the coefficient 11/100 is not small."""

REACHER = ReferenceSet.of(
    "reacher",
    variables={
        name: f"observation[{place}]"
        for place, name in enumerate(("c1", "c2", "s1", "s2", "tx", "ty", "w1", "w2", "dx", "dy", "dz"))
    },
    parameters={"ell1": Fraction(1), "ell2": Fraction(11, 10)},
    laws={
        "unit-norm θ1": (Kind.VANISHES, "c1**2 + s1**2 - 1"),
        "unit-norm θ2": (Kind.VANISHES, "c2**2 + s2**2 - 1"),
        "dz": (Kind.VANISHES, "dz"),
        "fk-x": (Kind.VANISHES, "dx + tx - ell1*c1 - ell2*(c1*c2 - s1*s2)"),
        "fk-y": (Kind.VANISHES, "dy + ty - ell1*s1 - ell2*(s1*c2 + c1*s2)"),
    },
)

REACHER_IN_METRES = ReferenceSet.of(
    "reacher in metres",
    variables=dict(REACHER.variables),
    parameters={name: value * LINK for name, value in REACHER.parameters.items()},
    laws={law.name: (law.kind, str(law.template.as_expr())) for law in REACHER.laws},
)

SETS = {"acrobot": ACROBOT, "reacher": REACHER}


def parameterised(system: str) -> Law:
    """The law of a system that attribution reads: the energy, or the first identity of the kinematics.

    Limits: one law of the set. Constants that stand only in others are not read by it.
    """
    return next(law for law in SETS[system].laws if law.parameters)


@cache
def unit_norms() -> Ideal:
    """What holds of Acrobot's observation whatever its physics is.

    Limits: it holds of cosines and sines that are right; an observation with a fault may break it.
    """
    return Ideal.of(ACROBOT.identities(parameterised("acrobot")), ACROBOT.ring)
