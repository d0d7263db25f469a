"""Measure what attribution names: constants planted wrong in Acrobot, faults that are no constant, and healthy data.

Right is the planted set of constants, alone or among those that cannot be told apart. Wrong is any other constant that
is named, unless it makes the very law that was planted: no data tell such constants apart. ``--seed`` draws everything
anew: a rule that was made on some seeds has to hold on others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations, product

import numpy as np

from analysis.algebra import diagnosis
from analysis.algebra.attribution import Hypothesis
from analysis.algebra.polynomials import coefficient_vector, monomials
from analysis.algebra.verdict import Verdict
from analysis.paper import laws
from analysis.paper.certificates import deviation
from analysis.paper.systems import SPECIFIED, AcrobotRun, drawn
from audit.terminal.screen import Screen

CONSTANTS = laws.parameterised("acrobot").parameters
ERRORS = (0.002, 0.05)
TRIPLES = 14
TAKEN = AcrobotRun(dt=0.005)
STEPS, LENGTHS, NOISES, SEEDS = (0.005, 0.02, 0.05, 0.08), (60, 120, 400), (0.0, 1e-8, 1e-6), 3
LEAKS = (0.01, 0.05, 0.2)
SAME_LAW = 1e-7
"""Between coefficients: what the fitted values are right to. An error of 0.2% moves the law by 1e-5 at least."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A system whose trajectories are attributed."""

    group: str
    run: AcrobotRun
    seed: int
    wrong: frozenset[str] = frozenset()
    """The constants that are wrong."""


def measure(screen: Screen, seed: int) -> None:
    """Print how often each group of systems was answered how."""
    every = [*_planted(seed), *_structural(seed), *_healthy(seed)]
    with ProcessPoolExecutor() as pool:
        answers = list(pool.map(answer, every, chunksize=4))
    for group in dict.fromkeys(case.group for case in every):
        counted = Counter(said for case, said in zip(every, answers, strict=True) if case.group == group)
        told = ", ".join(f"{count} {said}" for said, count in counted.most_common())
        screen.note(f"attribution, {group}: {told}")


def answer(case: Case) -> str:
    """What is said of one system, beside what is true of it."""
    found = diagnosis.attribute(laws.ACROBOT, laws.parameterised("acrobot"), drawn(case.run, case.seed))
    if found.verdict is not Verdict.PARAMETER_FAULT:
        return str(found.verdict) if found.hypotheses or case.wrong else "without a law that could be read"
    named = [frozenset(value.parameter for value in each.values) for each in (*found.explanations, *found.rivals)]
    if case.wrong not in named:
        same = all(_makes_the_same_law(case, each) for each in found.explanations)
        return "fewer constants that make the same law" if same else f"WRONG ({found.told})"
    return "right" if len(named) == 1 else "right among some that cannot be told apart"


def _makes_the_same_law(case: Case, named: Hypothesis) -> bool:
    values = {name: Fraction(getattr(case.run.parameters, name.lower())) for name in case.wrong}
    planted, told = (
        coefficient_vector(laws.ACROBOT.at(each)[-1], monomials(6, 3, lowest=1))
        for each in (values, {value.parameter: Fraction(value.fitted) for value in named.values})
    )
    return deviation(planted, told) < SAME_LAW


def _planted(seed: int) -> Iterator[Case]:
    generator = np.random.default_rng([seed, 1])
    triples = list(combinations(CONSTANTS, 3))
    for error, count in product(ERRORS, (1, 2, 3)):
        chosen = [triples[each] for each in generator.choice(len(triples), TRIPLES, replace=False)]
        for names in chosen if count == 3 else combinations(CONSTANTS, count):
            values = {
                name.lower(): float(laws.ACROBOT.parameters[name]) * (1 + error * generator.choice([-1, 1]))
                for name in names
            }
            yield Case(
                group=f"{count} wrong by {error:.1%}",
                run=replace(TAKEN, parameters=replace(SPECIFIED, **values)),
                seed=int(generator.integers(2**31)),
                wrong=frozenset(names),
            )


def _structural(seed: int) -> Iterator[Case]:
    generator = np.random.default_rng([seed, 2])
    for torque, _ in product(LEAKS, range(SEEDS)):
        yield Case(group="a leak of torque", run=replace(TAKEN, torque=torque), seed=int(generator.integers(2**31)))


def _healthy(seed: int) -> Iterator[Case]:
    generator = np.random.default_rng([seed, 3])
    for dt, steps, noise, _ in product(STEPS, LENGTHS, NOISES, range(SEEDS)):
        run = replace(TAKEN, dt=dt, steps=steps, noise=noise)
        yield Case(group="healthy, short, coarse or noisy", run=run, seed=int(generator.integers(2**31)))
