"""Measure the algebra: a screen beside the obvious one, the calibration, exact bases, and how cost grows."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from analysis.algebra import screening
from analysis.algebra.ideals import Ideal
from analysis.algebra.polynomials import monomials
from analysis.algebra.reference import Kind, ReferenceSet
from analysis.algebra.screening import Unit
from analysis.paper import catalogue, laws
from analysis.paper.experiments import EXPERIMENTS
from audit.cluster.workers import Workers
from audit.reproducing import PartJob
from audit.terminal.screen import Screen

Floats = NDArray[np.float64]

SCREEN_TARGET = 10e-3
CALIBRATION_TARGET = 60.0
BASIS_TARGETS = {("acrobot", 3): 1.0, ("reacher", 2): 1.0, ("reacher", 3): 10.0}
_ROUNDS = 15
_LONGER = (1, 10, 100)
"""Times as many samples. The first decade alone would mislead: within it the samples leave the processor's cache, and
each costs 1.6 times as much from there on, once."""


def measure(screen: Screen) -> None:
    """Print every figure beside its target."""
    reference, tested = (list(arm) for arm in catalogue.arms(catalogue.CATALOGUE[0], paired=False, noise=0.0))
    ours = _seconds(lambda: _both_units(laws.ACROBOT, reference, tested))
    obvious = _seconds(lambda: _obvious(laws.ACROBOT, reference, tested), rounds=3)
    screen.note(
        f"one screen of 3 laws on 8 × 400 samples, both units: {1e3 * ours:.1f} ms (target at most "
        f"{1e3 * SCREEN_TARGET:.0f}), {ours / obvious:.3f} of the obvious one's {1e3 * obvious:.0f} ms"
    )
    seconds = [_residuals_of(reference, times) for times in _LONGER]
    exponent = np.polyfit(np.log(_LONGER), np.log(seconds), 1)[0]
    times = " and ".join(f"{each / seconds[0]:.0f}" for each in seconds[1:])
    screen.note(
        f"residuals of {' and '.join(map(str, _LONGER[1:]))} times as many samples: {times} times the time, which "
        f"grows with the power {exponent:.2f} of the samples (linear: 1)"
    )
    for (system, degree), target in BASIS_TARGETS.items():
        generators = laws.SETS[system].generators
        ring = generators[0].ring
        taken = _seconds(lambda g=generators, r=ring, d=degree: _matrix(g, r, d), rounds=3)  # type: ignore[misc]
        count = len(monomials(ring.ngens, degree))
        screen.note(
            f"reduced basis and normal-form matrix of {system}, degree {degree}, {count} monomials: {taken:.2f} s "
            f"(target at most {target:g})"
        )
    began = time.perf_counter()
    _calibrate()
    taken = time.perf_counter() - began
    screen.note(
        f"calibration, 500 pairs in eight settings with both units, Ray's start included: {taken:.1f} s (target at "
        f"most {CALIBRATION_TARGET:.0f})"
    )


def _both_units(reference_set: ReferenceSet, reference: Sequence[Floats], tested: Sequence[Floats]) -> None:
    for unit in Unit:
        screening.screen(reference_set, reference, tested, unit=unit)


def _residuals_of(trajectories: Sequence[Floats], times: int) -> float:
    """Seconds for the residuals of trajectories so many times as long."""
    longer = [np.tile(each, (times, 1)) for each in trajectories]
    return _seconds(lambda: _residuals(longer), rounds=max(3, 4 * _ROUNDS // times))


def _residuals(trajectories: Sequence[Floats]) -> None:
    screening.residuals(laws.ACROBOT, trajectories, Unit.TRAJECTORY)


def _matrix(generators: Sequence[object], ring: object, degree: int) -> None:
    ideal = Ideal.of(generators, ring)
    ideal.normal_form_matrix(monomials(ideal.ring.ngens, degree))


def _calibrate() -> None:
    experiment = EXPERIMENTS["calibration"]
    with Workers(None, None) as workers:
        jobs = [PartJob(experiment=experiment.name, part=part) for part in range(len(experiment.parts))]
        results = {outcome.part: outcome.result for outcome in workers.run(jobs)}
    experiment.figures([results[part] for part in range(len(experiment.parts))])


def _obvious(reference_set: ReferenceSet, reference: Sequence[Floats], tested: Sequence[Floats]) -> None:
    """The same screens as one would write them first: law by law, unit by unit, term by term, scipy for both tests."""
    for law in reference_set.laws:
        residuals = [[_residual(law.polynomial, law.kind, each) for each in arm] for arm in (tested, reference)]
        stats.permutation_test(residuals, lambda a, b, axis: np.mean(a, axis=axis) - np.mean(b, axis=axis),
                               n_resamples=np.inf, alternative="greater", vectorized=True)  # fmt: skip
        blocks = [
            [_residual(law.polynomial, law.kind, each[100 * k : 100 * (k + 1)]) for each in arm for k in range(4)]
            for arm in (tested, reference)
        ]
        stats.mannwhitneyu(*blocks, alternative="greater", method="asymptotic")


def _residual(polynomial: object, kind: Kind, samples: Floats) -> float:
    values, scales = np.zeros(len(samples)), np.zeros(len(samples))
    for powers, coefficient in polynomial.terms():  # type: ignore[attr-defined]
        term = float(coefficient) * np.prod(samples ** np.array(powers), axis=1)
        values += term
        scales += np.abs(term)
    spread = np.std(values) if kind is Kind.CONSERVED else np.sqrt(np.mean(values**2))
    return float(spread / np.sqrt(np.mean(scales**2)))


def _seconds(function: Callable[[], None], rounds: int = _ROUNDS) -> float:
    """The processor's time of the fastest of a few calls, after one that is not counted: others use these cores too."""
    function()
    taken = []
    for _ in range(rounds):
        began = time.process_time()
        function()
        taken.append(time.process_time() - began)
    return min(taken)
