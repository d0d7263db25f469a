"""The laws as polynomials of the observation: their form, what rounding leaves of them, the units they need.

Appendix I of the paper, its sections A and F.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
from sympy.polys.rings import PolyElement

from analysis.algebra import diagnosis, rounding
from analysis.algebra.polynomials import Compiled
from analysis.paper import systems
from analysis.paper.drift import drift
from analysis.paper.experiment import Figure, Floats, Rule
from analysis.paper.laws import LINK, REACHER, parameterised

METRES = {"ell1": LINK, "ell2": LINK * Fraction(11, 10)}
UNITS = {"ell1": Fraction(1), "ell2": Fraction(11, 10)}
TARGETS = {1.0: 19.60, 1.1: 21.07, 1.3: 24.01, 2.0: 34.30, 4.0: 63.70}
"""The energy of the upright pose by the second link's mass."""
UPRIGHT = np.array([np.pi, 0.0, 0.0, 0.0])

ROUNDING = "the largest of many last digits, which move with the order of operations"


def _about(name: str, paper: float, measured: float, where: str) -> Figure:
    """What rounding leaves."""
    found = Figure(name=name, paper=paper, measured=measured, rule=Rule.ABOUT, exact=False, where=where)
    return found.explained(ROUNDING)


def energy() -> list[Figure]:
    """The form of Acrobot's energy, and how far it is from the energy in angles.

    Limits: agreement to rounding at random states; the identity itself is algebra and not decided here.
    """
    polynomial = parameterised("acrobot").polynomial
    denominators = sorted({int(value.denominator) for value in polynomial.coeffs()})
    same = partial(Figure, rule=Rule.SAME, where="appendix I-A")
    return [
        same(name="terms of the energy", paper=8, measured=len(polynomial.terms())),
        same(name="degree of the energy", paper=3, measured=parameterised("acrobot").degree),
        same(name="denominators of the energy", paper="2, 4, 8, 10", measured=", ".join(map(str, denominators))),
        same(name="largest denominator of the energy", paper=10, measured=denominators[-1]),
        _about(
            name="polynomial against angles", paper=1.14e-13, measured=_apart(0, 2000, 4 * np.pi), where="appendix I-A"
        ),
        _about(name="template against angles", paper=2.84e-14, measured=_apart(11, 3000, 5.0), where="appendix I"),
    ]


def _apart(seed: int, count: int, fastest: float) -> float:
    """The largest distance between the polynomial of the observation and the energy of the state."""
    rng = np.random.default_rng(seed)
    angles = rng.uniform(-np.pi, np.pi, (count, 2))
    states = np.hstack([angles, rng.uniform(-fastest, fastest, (count, 2))])
    values = _values(parameterised("acrobot").polynomial, systems.acrobot_observation(states))
    return float(np.max(np.abs(values - systems.energy(states))))


def kinematics() -> list[Figure]:
    """What rounding leaves of Reacher's kinematics, in metres and in units of the first link.

    Limits: rounding of this processor's sines, so that digits beyond the size are not expected to agree.
    """
    metres, units = (
        max(float(np.max(np.abs(_values(law, samples)))) for law in REACHER.at(lengths)[-2:])
        for lengths, samples in (
            (METRES, systems.reacher_samples(count=5000, seed=1)[0]),
            (UNITS, systems.reacher_samples(count=3000, seed=5, scale=float(LINK))[0]),
        )
    )
    return [
        _about(name="kinematics in metres", paper=7.29e-17, measured=metres, where="appendix I-F"),
        _about(name="kinematics in units of the first link", paper=8.88e-16, measured=units, where="appendix I"),
    ]


def _values(polynomial: PolyElement, samples: Floats) -> Floats:
    return Compiled.of([polynomial]).on(samples)[0][:, 0]


def units() -> list[Figure]:
    """Denominators of the link lengths, and whether coefficients found in data can be made exact with them.

    Limits: whether a small fraction is near, not whether the lengths are these.
    """
    same = partial(Figure, rule=Rule.SAME, where="appendix I-F")
    return [
        same(name="denominators in metres", paper="10, 100", measured=_denominators(METRES)),
        same(name="denominators in units of the first link", paper="1, 10", measured=_denominators(UNITS)),
        same(name="kinematics made exact in metres", paper="no", measured=_made_exact(1.0)),
        same(name="kinematics made exact in units", paper="yes", measured=_made_exact(float(LINK))),
    ]


def _denominators(lengths: dict[str, Fraction]) -> str:
    law, (cosine1, cosine2) = REACHER.at(lengths)[3], REACHER.ring.gens[:2]
    return ", ".join(str(int(law.coeff(term).denominator)) for term in (cosine1, cosine1 * cosine2))


def _made_exact(scale: float) -> str:
    samples = systems.reacher_samples(count=1000, scale=scale)
    known, found = diagnosis.recover(REACHER, parameterised("reacher"), samples)
    exact = rounding.snapped(found.coefficients, found.exponents, known.ring).polynomial
    return "no" if exact is None else "yes"


def targets() -> list[Figure]:
    """The energy that a swing-up aims for, by the mass that the model believes in.

    Limits: energies of a pose. Whether a controller reaches it is not asked.
    """
    return [
        Figure(
            name=f"energy of the upright pose, m2 {mass:g}",
            paper=paper,
            measured=round(float(systems.energy(UPRIGHT, replace(systems.SPECIFIED, m2=mass))), 2),
            rule=Rule.SAME,
            where="appendix H-D",
        )
        for mass, paper in TARGETS.items()
    ]


def plateau() -> list[Figure]:
    """Drift of the energy of the variant without the Coriolis term: it does not go away with the step.

    Limits: three steps; that there is a limit is read off them, not proven.
    """
    nips = replace(systems.SPECIFIED, coriolis=False)
    return [
        Figure(name=f"drift of nips, Δt {step:g}", paper=1.7e-4, measured=drift(step, nips), where="appendix I")
        for step in (0.05, 0.01, 0.005)
    ]
