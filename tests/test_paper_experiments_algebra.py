"""The experiments on the algebra: small runs of each, and what their figures make of results."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from analysis.algebra import screening
from analysis.algebra.ideals import Decision, equality
from analysis.algebra.screening import Unit
from analysis.paper import (
    approximate_coefficients,
    approximate_recovery,
    balance,
    calibration,
    catalogue,
    deflation,
    perturbation,
    properties,
    recovered_sets,
    spurious,
)
from analysis.paper.approximate import APPROXIMATE
from analysis.paper.balance import BALANCE
from analysis.paper.calibration import CALIBRATION, Batch
from analysis.paper.catalogue import CATALOGUE, Fault
from analysis.paper.deflation import DEFLATION
from analysis.paper.equality import EQUALITY, EXPECTED, RATIONALS, Compared, declared, recovered
from analysis.paper.experiment import Experiment, Figure
from analysis.paper.experiments import EXPERIMENTS
from analysis.paper.laws import SETS
from analysis.paper.properties import PROPERTIES
from analysis.paper.scores import Score, scored
from analysis.paper.spurious import SPURIOUS, Search, Stress
from analysis.paper.systems import drawn

EVERY = (PROPERTIES, DEFLATION, EQUALITY, APPROXIMATE, CALIBRATION, BALANCE, SPURIOUS)
BY_NAME = {fault.name: fault for fault in CATALOGUE}


def wrong(figures: Sequence[Figure]) -> list[str]:
    return [figure.name for figure in figures if not figure.agrees]


@pytest.mark.parametrize("experiment", EVERY, ids=lambda experiment: experiment.name)
def test_an_experiment_is_registered_and_can_be_sent_to_a_worker(experiment: Experiment) -> None:
    assert EXPERIMENTS[experiment.name] is experiment
    assert pickle.loads(pickle.dumps(experiment.run)) is experiment.run
    assert len(pickle.loads(pickle.dumps(tuple(experiment.parts)))) == len(experiment.parts)


# Properties


@pytest.mark.parametrize("group", [name for name in properties.GROUPS if name != "plateau"])
def test_a_property_is_as_the_paper_states_it(group: str) -> None:
    figures = properties.GROUPS[group]()
    assert not wrong([figure for figure in figures if figure.exact])
    assert all(figure.where for figure in figures)


def test_all_properties_have_names_of_their_own() -> None:
    groups = [properties.GROUPS[name]() for name in PROPERTIES.parts if name != "plateau"]
    names = [figure.name for figure in PROPERTIES.figures(groups)]
    assert len(names) == len(set(names)) > 60


# Deflation


def test_a_count_does_not_tell_that_the_survivor_is_the_energy() -> None:
    found = deflation.row((0.2, 1e-4))
    assert (found.raw, found.projected, found.reduced) == (15, 14, 1)
    assert found.residual == pytest.approx(0.62, rel=0.05)
    assert np.isnan(deflation.row((0.2, 1e-6)).residual)


def test_figures_of_the_table_itself_agree_and_a_changed_row_does_not() -> None:
    rows = list(deflation.TABLE.values())
    assert not wrong(DEFLATION.figures(rows))
    rows[0] = replace(rows[0], projected=13, residual=6.2e-1)
    assert len(wrong(DEFLATION.figures(rows))) == 2


# Equality


@pytest.mark.parametrize("fault", CATALOGUE, ids=lambda fault: fault.name)
def test_declared_laws_are_decided_as_the_category_says(fault: Fault) -> None:
    assert equality(declared(fault), SETS[fault.system].generators) is EXPECTED[fault.category]


@pytest.mark.parametrize("name", ["acrobot_obs_swap", "acrobot_obs_unnormalised", "reacher_dz_offset"])
def test_declared_laws_hold_in_what_is_observed(name: str) -> None:
    fault = BY_NAME[name]
    laws = SETS[fault.system]
    made = replace(
        laws,
        laws=tuple(
            replace(law, polynomial=polynomial)
            for law, polynomial in zip(laws.laws, declared(fault) or (), strict=True)
        ),
    )
    assert screening.residuals(made, drawn(fault.test)).absolute.max() < 1e-9
    assert screening.residuals(laws, drawn(fault.test)).absolute.max() > 1e-4


def test_a_constant_is_recovered_as_the_fraction_that_it_is() -> None:
    fault = BY_NAME["reacher_l2_0.13"]
    found = recovered(fault)
    assert found is not None
    assert found[0] == str(Fraction(13, 10))
    assert equality(found[1], declared(fault)) is Decision.EQUAL
    assert recovered(BY_NAME["acrobot_nips_coriolis"]) is None


def made_up_equality(**changes: Decision) -> list[int | Compared]:
    values = iter(RATIONALS.split(", "))
    return [10] * len(perturbation.DECADES) + [
        Compared(
            declared=changes.get(fault.name, EXPECTED[fault.category]),
            recovered=Decision.EQUAL if fault.parameter else Decision.UNAVAILABLE,
            value=next(values) if fault.parameter else "",
        )
        for fault in CATALOGUE
    ]


def test_figures_of_equality_count_decisions() -> None:
    assert not wrong(EQUALITY.figures(made_up_equality()))
    results = made_up_equality(acrobot_euler=Decision.DIFFERENT)
    results[0] = 9
    results[-1] = Compared(declared=Decision.EQUAL, recovered=Decision.UNAVAILABLE, value="2")
    assert len(wrong(EQUALITY.figures(results))) == 5


# Laws that are only nearly right


@pytest.mark.parametrize("system", ["acrobot", "reacher"])
def test_every_coefficient_is_moved_by_the_same_part_of_itself(system: str) -> None:
    moved, again = (perturbation.perturbed(system, 3, pattern) for pattern in (0, 0))
    assert moved is again
    for law, other in zip(SETS[system].laws, moved.laws, strict=True):
        ratios = {value / law.polynomial[power] for power, value in other.polynomial.terms()}
        assert ratios <= {Fraction(1001, 1000), Fraction(999, 1000)}
        assert other.polynomial.monoms() == law.polynomial.monoms()
    assert moved.generators != perturbation.perturbed(system, 3, 1).generators
    assert equality(moved.generators, SETS[system].generators) is Decision.DIFFERENT


def test_a_deviation_is_a_little_less_than_what_coefficients_were_moved_by() -> None:
    assert 0.9e-4 < perturbation.largest_deviation(4) <= 1.001e-4


def test_a_fault_is_screened_with_every_set() -> None:
    part = approximate_coefficients.Screened(fault=BY_NAME["reacher_dz_offset"], paired=True)
    found = approximate_coefficients.broken(part)
    assert len(found) == 1 + len(perturbation.DECADES) * perturbation.PATTERNS
    assert set(found.values()) == {("dz",)}


def test_ranges_are_over_patterns_and_regimes() -> None:
    keys = [(0, 0), *((decade, 0) for decade in perturbation.DECADES)]
    results = [dict.fromkeys(keys, part.fault.breaks) for part in approximate_coefficients.PARTS]
    figures = {figure.name: figure for figure in approximate_coefficients.figures(results)}
    assert figures["detected, coefficients off by 1e-2"].measured == "15"
    assert figures["detected, coefficients off by 1e-2"].note
    results[0][2, 0] = ()
    figures = {figure.name: figure for figure in approximate_coefficients.figures(results)}
    assert figures["detected, coefficients off by 1e-2"].measured == "14–15"
    assert figures["false alarms of all sets"].measured == "0/40"


def test_a_screen_is_scored_by_what_a_fault_must_break() -> None:
    broken = {fault.name: fault.breaks for fault in CATALOGUE}
    assert scored((fault, broken[fault.name]) for fault in CATALOGUE) == Score(detected=15, localised=15, alarms=0)
    broken |= {"acrobot_euler": (), "acrobot_g_9.81": ("energy", "unit-norm θ1"), "none_reacher": ("dz",)}
    assert scored((fault, broken[fault.name]) for fault in CATALOGUE) == Score(detected=14, localised=13, alarms=1)


def test_noise_takes_the_energy_and_the_height_out_of_a_recovered_set() -> None:
    clean, noisy = recovered_sets.recovered_laws(0.0), recovered_sets.recovered_laws(1e-4)
    kept = {law.name for each in recovered_sets.recovered_sets(noisy).values() for law in each.laws}
    assert kept == {"unit-norm θ1", "unit-norm θ2", "fk-x", "fk-y"}
    assert max(each.deviation for found in clean.values() for each in found) < 1e-7
    assert sum(len(each.laws) for each in recovered_sets.recovered_sets(noisy, gap=np.inf).values()) == 8


def test_a_recovered_law_is_in_the_scale_of_the_specified_one() -> None:
    (energy,) = (each for each in recovered_sets.recovered_laws(0.0)["acrobot"] if each.law.name == "energy")
    ring = energy.law.polynomial.ring
    assert float(energy.law.polynomial.coeff(ring.gens[0])) == pytest.approx(-14.7, rel=1e-6)


def test_figures_of_recovered_sets_agree_with_the_table_itself() -> None:
    assert not wrong(approximate_recovery.figures(list(approximate_recovery.TABLE.values())))


# Calibration


@pytest.mark.parametrize(
    ("system", "noise", "first"), [("acrobot", 0.0, 8), ("acrobot", 1e-3, 117), ("reacher", 1e-3, 143)]
)
def test_a_batch_is_what_single_screens_say(system: calibration.System, noise: float, first: int) -> None:
    run = replace(catalogue.ACROBOT if system == "acrobot" else catalogue.REACHER, noise=noise)
    pairs = [[drawn(run, 1000 + 2 * pair + arm) for arm in (0, 1)] for pair in (first, first + 1)]
    found = calibration.alarms(Batch(system=system, noise=noise, first=first, pairs=2))
    assert any(found.values())
    for (unit, floor), count in found.items():
        screens = [screening.screen(SETS[system], *pair, unit=unit, floor=floor) for pair in pairs]
        assert sum(bool(each.broken) for each in screens) == count


def test_false_alarms_are_counted_over_all_batches() -> None:
    settings = [(unit, floor) for unit in Unit for floor in (screening.FLOOR, 0.0)]
    figures = CALIBRATION.figures([dict.fromkeys(settings, 1) for _ in CALIBRATION.parts])
    rates = [figure for figure in figures if figure.name.startswith("false alarms")]
    assert len(rates) == 16
    assert {figure.measured for figure in rates} == {0.02}
    covered = [figure for figure in figures if figure.name.startswith("1% covered")]
    assert {figure.measured for figure in covered} == {"no"}
    assert all(figure.note for figure in figures if not figure.exact and not figure.agrees)


# Balance


def test_damping_is_what_was_put_in_and_only_by_the_trapezoid() -> None:
    found = BALANCE.run(((0.1, 0.05), 0.005))
    assert found["trapezoid"].decisive
    assert found["trapezoid"].coefficients == pytest.approx((0.1, 0.05), rel=1e-3)
    assert not found["rectangle"].decisive


def test_starts_and_torques_are_drawn_in_turn() -> None:
    steps = balance.transitions((0.0, 0.0), 0.005)
    rng = np.random.default_rng(0)
    rng.uniform(size=4)
    assert steps.action[:400] == pytest.approx(rng.uniform(-1, 1, 400))
    assert steps.before.shape == steps.after.shape == (4800, 6)
    assert (steps.before[1:400] == steps.after[:399]).all()


def test_only_decisive_recoveries_are_held_to_their_error() -> None:
    good = balance.Found(gap=0.01, coefficients=(0.1, 0.05), error=3.3e-3, decisive_rotations=(True, True))
    none = replace(good, gap=0.5, error=1.0, decisive_rotations=(False, True))
    results = [{"trapezoid": none if place == 9 else good, "rectangle": none} for place in range(15)]
    figures = {figure.name: figure for figure in BALANCE.figures(results)}
    assert figures["decisive, trapezoid"].agrees
    assert figures["worst error of the damping, trapezoid"].agrees
    assert not figures["worst error of the damping, rectangle"].agrees
    assert figures["decisive, rectangle"].note


# Chance relations


def test_a_chance_relation_does_not_hold_elsewhere() -> None:
    found = spurious.stress()
    assert (found.trained, found.held_out) == (5, 1)
    assert found.genuine_accepted
    assert not found.chance_accepted


def test_figures_of_chance_relations() -> None:
    stressed = Stress(
        chance=0.12, genuine=2e-17, trained=5, held_out=1, chance_accepted=False, genuine_accepted=True
    )  # fmt: skip
    searched = Search(laws=5, decision="equal")
    assert not wrong(SPURIOUS.figures([searched, stressed]))
    assert len(wrong(SPURIOUS.figures([replace(searched, laws=4), replace(stressed, chance_accepted=True)]))) == 2
