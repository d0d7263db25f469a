"""The release audit of the paper: 350 pairs, chaos, what laws leave on shipped observations, installed constants."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from analysis.algebra import screening
from analysis.algebra.ideals import equality
from analysis.algebra.reference import Kind, ReferenceSet
from analysis.paper.experiment import Figure, Floats, Recordings, Rule, ShippedExperiment
from analysis.paper.laws import ACROBOT, REACHER_IN_METRES

COUNTS = {"identical": 311, "rounding": 26, "amplified": 13, "changed": 0}
NEWEST, NEWEST_MUJOCO = "gymnasium-1.3.0", "gymnasium-1.3.0+mujoco-3.10.0"
OLDEST_MUJOCO = "gymnasium-0.29.1+mujoco-2.3.7"
CHAOTIC, STEADY = "InvertedDoublePendulum-v4", "Reacher-v4"
PAIRS = {
    "first": (OLDEST_MUJOCO, "gymnasium-1.0.0+mujoco-3.1.6"),
    "second": ("gymnasium-1.2.3+mujoco-3.2.7", NEWEST_MUJOCO),
}
WINDOW = 50, 400
"""Steps between which the paper reads growth: off the last places, and before the observation's clip."""
EPSILON = float(np.finfo(np.float64).eps)
MAKES_CHAOS = "a rounding difference amplified by this processor's own rounding"

PENDULUM = ReferenceSet.of(
    "pendulum",
    variables={"c": "observation[0]", "s": "observation[1]", "w": "observation[2]"},
    laws={"unit-norm": (Kind.VANISHES, "c**2 + s**2 - 1"), "energy": (Kind.CONSERVED, "w**2/2 + 15*c")},
)


def _counts(recordings: Recordings) -> list[Figure]:
    rows = recordings.table("SELECT paper_verdict, count(*) FROM pairs WHERE matrix = $matrix GROUP BY ALL")
    counted = dict(rows)
    environments = recordings.table("SELECT count(DISTINCT environment) FROM pairs WHERE matrix = $matrix")
    figures = [
        Figure(name="pairs", paper=350, measured=sum(counted.values()), rule=Rule.SAME),
        Figure(name="environments", paper=11, measured=environments[0][0], rule=Rule.SAME),
    ]
    figures += [
        Figure(name=f"pairs {verdict}", paper=count, measured=counted.get(verdict, 0), rule=Rule.SAME)
        for verdict, count in COUNTS.items()
    ]
    return figures


def _separations(recordings: Recordings) -> list[Figure]:
    largest = "SELECT max({}) FROM separations WHERE matrix = $matrix AND output = 'observation' AND {}"
    calm = "environment NOT LIKE 'InvertedDoublePendulum%'"
    return [
        Figure(
            name="largest first-step separation",
            paper=2.22e-16,
            measured=float(recordings.table(largest.format("first_step_separation", "true"))[0][0]),
        ),
        Figure(
            name="largest separation where nothing is chaotic",
            paper=9.1e-15,
            measured=float(recordings.table(largest.format("horizon_separation", calm))[0][0]),
        ),
    ]


def separation(recordings: Recordings, environment: str, pair: str) -> Floats:
    """How far the observations of two releases are apart, step by step, the largest over trajectories and entries.

    Limits: over whole trajectories, where chaos has its say: it shows divergence, not its cause.
    """
    older, newer = (recordings.array(release, environment, "horizon.observation") for release in PAIRS[pair])
    return np.asarray(np.abs(older - newer).max(axis=(0, 2)), dtype=np.float64)


def _chaos(recordings: Recordings) -> list[Figure]:
    first, second = (separation(recordings, CHAOTIC, pair) for pair in PAIRS)
    steady, still = (separation(recordings, STEADY, pair) for pair in PAIRS)
    figures = [
        Figure(name="chaotic pair at step 0", paper=2.22e-16, measured=float(first[0])),
        *(
            Figure(
                name=f"chaotic pair at step {step}",
                paper=paper,
                measured=float(first[step]),
                rule=Rule.ABOUT,
                exact=False,
                note=MAKES_CHAOS if not 0.5 <= first[step] / paper <= 2 else "",
            )
            for step, paper in ((100, 4.8e-9), (400, 6.4e-2))
        ),
        Figure(name="steady pair at steps 0 and 499", paper=5.55e-17, measured=float(max(steady[0], steady[-1]))),
        Figure(
            name="second steady pair",
            paper=0.0,
            measured=float(still.max()),
            rule=Rule.SAME,
            exact=False,
            note="a last place of the smallest entry, on this processor" if 0 < still.max() < EPSILON else "",
        ),
    ]
    for name, curve, rate in (("first", first, 32.4), ("second", second, 41.6)):
        start, end = WINDOW
        decades = float(np.log10(curve[end] / curve[start]))
        figures.append(
            Figure(
                name=f"steps per decade, {name} chaotic pair",
                paper=rate,
                measured=(end - start) / decades,
                exact=False,
            )
        )
        figures.append(
            Figure(
                name=f"decades climbed by step 400, {name} chaotic pair",
                paper=14,
                measured=round(float(np.log10(curve[end] / curve[0]))),
                rule=Rule.SAME,
                exact=False,
            )
        )
    return figures


def residual(laws: ReferenceSet, law: str, trajectories: Floats) -> float:
    """What a law leaves on all trajectories together: pooled where it vanishes, along each where it is conserved.

    Limits: one number for all trajectories, as the paper has it; no test is made of it.
    """
    place = [each.name for each in laws.laws].index(law)
    if laws.laws[place].kind is Kind.VANISHES:
        pooled = trajectories.reshape(1, -1, trajectories.shape[-1])
        return float(screening.batch_residuals(laws, pooled).relative[0, place])
    found = screening.batch_residuals(laws, trajectories)
    scales = found.absolute[:, place] / found.relative[:, place]
    return float(found.absolute[:, place].mean() / scales.mean())


def _residuals(recordings: Recordings) -> list[Figure]:
    acrobot, pendulum = (
        recordings.array(NEWEST, name, "horizon.observation") for name in ("Acrobot-v1", "Pendulum-v1")
    )
    reacher = recordings.array(NEWEST_MUJOCO, "Reacher-v4", "horizon.observation")
    expected: list[tuple[str, float, float, bool]] = [
        ("Acrobot unit-norm θ1, single precision", 1.70e-8, residual(ACROBOT, "unit-norm θ1", acrobot), True),
        ("Acrobot energy at the shipped step", 3.55e-3, residual(ACROBOT, "energy", acrobot), True),
        ("Pendulum unit-norm, single precision", 1.71e-8, residual(PENDULUM, "unit-norm", pendulum), True),
        (
            "Reacher unit-norm θ1, double precision",
            3.57e-17,
            residual(REACHER_IN_METRES, "unit-norm θ1", reacher),
            False,
        ),
        ("Reacher fk-x", 1.11e-8, residual(REACHER_IN_METRES, "fk-x", reacher), True),
        ("Reacher fk-y", 1.58e-7, residual(REACHER_IN_METRES, "fk-y", reacher), True),
    ]
    return [
        Figure(name=name, paper=paper, measured=measured, exact=exact, rule=Rule.CLOSE if exact else Rule.ABOUT)
        for name, paper, measured, exact in expected
    ]


def _installed(recordings: Recordings) -> list[Figure]:
    acrobot = recordings.description(NEWEST, "Acrobot-v1")["constants"]
    values = {
        "m1": "LINK_MASS_1",
        "m2": "LINK_MASS_2",
        "l1": "LINK_LENGTH_1",
        "lc1": "LINK_COM_POS_1",
        "lc2": "LINK_COM_POS_2",
        "I1": "LINK_MOI",
        "I2": "LINK_MOI",
    }
    installed = ACROBOT.at({name: Fraction(str(acrobot[each])) for name, each in values.items()})
    heavier = ACROBOT.at({"m2": Fraction(13, 10)})
    return [
        Figure(
            name="installed Acrobot and reference",
            paper="equal",
            measured=str(equality(ACROBOT.generators, installed)),
        ),
        Figure(name="installed Acrobot and m2 = 1.3", paper="different", measured=str(equality(heavier, installed))),
    ]


RELEASE_AUDIT = ShippedExperiment(
    name="releases",
    title="the audit of 350 pairs, chaos, the floors of shipped observations, installed constants",
    matrix="paper.yaml",
    figures=lambda recordings: [
        *_counts(recordings),
        *_separations(recordings),
        *_chaos(recordings),
        *_residuals(recordings),
        *_installed(recordings),
    ],
)
