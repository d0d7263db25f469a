"""Do two systems obey the same laws? Decided exactly, of the catalogue and of sets a little wrong (appendix D).

Two of the paper's nineteen systems are built from the constants of installed releases, and are not measured here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from sympy.polys.rings import PolyElement

from analysis.algebra import diagnosis, expressions, ideals, polynomials
from analysis.algebra.ideals import Decision
from analysis.algebra.verdict import Verdict
from analysis.paper import catalogue
from analysis.paper.catalogue import CATALOGUE, Fault
from analysis.paper.experiment import Experiment, Figure, Rule, share
from analysis.paper.laws import SETS, parameterised
from analysis.paper.perturbation import DECADES, PATTERNS, perturbed

LARGEST_DENOMINATOR = 1000
"""Of the fraction that a fitted constant is taken for."""

EXPECTED = {
    "parameter": Decision.DIFFERENT,
    "observation": Decision.DIFFERENT,
    "numerical": Decision.EQUAL,
    "control": Decision.EQUAL,
    "structural": Decision.UNAVAILABLE,
}
"""By the category of a fault. Another integrator leaves the algebra as it is; without conservation there is none."""

BACK = {
    "acrobot_obs_swap": {"s1": "c2", "c2": "s1"},
    "acrobot_obs_unnormalised": {"c1": "50*c1/51"},
    "reacher_dz_offset": {"dz": "dz - 1/1000"},
    "reacher_obs_swap": {"c2": "s1", "s1": "c2"},
}
"""What each true coordinate is in terms of the observed ones."""

RATIONALS = "13/10, 6/5, 3/5, 3/2, 981/100, 13/10, 9/10"


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """A system of the catalogue beside the specification and beside what its data say."""

    declared: Decision
    recovered: Decision
    """Whether the laws recovered from its data are the declared ones."""
    value: str
    """The constant that was recovered; empty where none was."""


def declared(fault: Fault) -> Sequence[PolyElement] | None:
    """The laws that a system with this fault obeys by construction; ``None`` where there are none of this form.

    Limits: what the fault's author says it obeys. Nothing is measured.
    """
    specified = SETS[fault.system]
    if fault.category == "structural":
        return None
    if fault.parameter is not None:
        return specified.at({fault.parameter: Fraction(str(fault.value))})
    if fault.name in BACK:
        places = [
            (specified.ring.gens[specified.names.index(name)], _read(text, specified.names))
            for name, text in BACK[fault.name].items()
        ]
        return [law.compose(places) for law in specified.generators]
    return specified.generators


def _read(text: str, names: Sequence[str]) -> PolyElement:
    return polynomials.exact(expressions.polynomial(text, names))


def recovered(fault: Fault) -> tuple[str, Sequence[PolyElement]] | None:
    """The constant that attribution names, as a fraction, and the laws that follow; ``None`` where it names none.

    Limits: rounded to the nearest small fraction: right for constants that are one, and no check that they are.
    """
    specified = SETS[fault.system]
    _, test = catalogue.arms(fault, paired=True, noise=0.0)
    found = diagnosis.attribute(specified, parameterised(fault.system), test, by_coefficients=True)
    if found.verdict is not Verdict.PARAMETER_FAULT:
        return None
    exact = {
        value.parameter: Fraction(value.fitted).limit_denominator(LARGEST_DENOMINATOR)
        for value in found.explanations[0].values
    }
    return " and ".join(map(str, exact.values())), specified.at(exact)


def _compared(fault: Fault) -> Compared:
    made, found = declared(fault), recovered(fault)
    return Compared(
        declared=ideals.equality(made, SETS[fault.system].generators),
        recovered=ideals.equality(made, found[1]) if found else Decision.UNAVAILABLE,
        value=found[0] if found else "",
    )


def _perturbed(decade: int) -> int:
    """Of all patterns of signs and both systems, how many are told from the specification."""
    decisions = [
        ideals.equality(perturbed(system, decade, pattern).generators, specified.generators)
        for system, specified in SETS.items()
        for pattern in range(PATTERNS)
    ]
    return decisions.count(Decision.DIFFERENT)


def _run(part: int | Fault) -> int | Compared:
    return _compared(part) if isinstance(part, Fault) else _perturbed(part)


def _figures(results: Sequence[int | Compared]) -> list[Figure]:
    told = [each for each in results if isinstance(each, int)]
    compared = [each for each in results if isinstance(each, Compared)]
    right = [each.declared is EXPECTED[fault.category] for fault, each in zip(CATALOGUE, compared, strict=True)]
    named = [each for each in compared if each.value]
    same = [each.recovered for each in named].count(Decision.EQUAL)
    rewritten = [ideals.equality(_rewritten(each.generators), each.generators) for each in SETS.values()]
    note = "the paper's 19 have two systems of installed releases more, which are another experiment"
    return [
        _same(name="decisions on declared laws that are right", paper="17/17", measured=share(right), note=note),
        _same(name="systems whose data name a constant", paper=7, measured=len(named)),
        _same(name="constants recovered", paper=RATIONALS, measured=", ".join(each.value for each in named)),
        _same(name="recovered laws that are the declared ones", paper="7/7", measured=f"{same}/{len(named)}"),
        _same(
            name="perturbed sets that are told apart",
            paper="90/90",
            measured=f"{sum(told)}/{len(told) * PATTERNS * len(SETS)}",
        ),
        _same(
            name="sets equal to themselves, written otherwise",
            paper="2/2",
            measured=share([each is Decision.EQUAL for each in rewritten]),
        ),
    ]


def _rewritten(generators: Sequence[PolyElement]) -> list[PolyElement]:
    """Other laws with the same consequences: of each, a multiple and what came before it times a variable."""
    before = [generators[0].ring.zero, *generators[:-1]]
    return [3 * each + each.ring.gens[0] * other for each, other in zip(generators, before, strict=True)]


def _same(name: str, paper: float | str, measured: float | str, note: str = "") -> Figure:
    return Figure(name=name, paper=paper, measured=measured, rule=Rule.SAME, note=note, where="appendix D")


EQUALITY = Experiment(
    name="equality",
    title="exact equality of ideals: declared, recovered, perturbed",
    parts=(*DECADES, *CATALOGUE),
    run=_run,
    figures=_figures,
)
