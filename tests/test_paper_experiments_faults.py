"""The experiments on faults: parts at reduced size, and figures of results that are made up, right and wrong."""

from __future__ import annotations

import math
import pickle
import sys
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from analysis.algebra.attribution import Attribution, Hypothesis, Value
from analysis.algebra.screening import LawScreen, Screen
from analysis.algebra.verdict import Verdict
from analysis.paper import baselines, floor, levels, noise, residual_features, two_faults
from analysis.paper.baselines import Outcome, kernel_test
from analysis.paper.catalogue import CATALOGUE, GENERATORS, Fault
from analysis.paper.comparison import (
    NOISY,
    PAIRED,
    SCREENS,
    SETTINGS,
    TWO_SAMPLE,
    UNPAIRED,
    Comparison,
    Method,
    Setting,
    compare,
    named,
)
from analysis.paper.experiment import Experiment, Figure, Rule
from analysis.paper.experiments import EXPERIMENTS
from analysis.paper.faults import FAULTS, figures
from analysis.paper.systems import AcrobotRun

BY_NAME = {fault.name: fault for fault in CATALOGUE}
OURS = ("faults", "residual-features", "noise", "floor", "two-faults")


def short(name: str) -> Fault:
    """A fault of Acrobot whose trajectories are a quarter as long."""
    fault = BY_NAME[name]
    assert isinstance(fault.reference, AcrobotRun)
    assert isinstance(fault.test, AcrobotRun)
    return replace(fault, reference=replace(fault.reference, steps=100), test=replace(fault.test, steps=100))


def by_name(found: Sequence[Figure]) -> dict[str, Figure]:
    assert len({figure.name for figure in found}) == len(found)
    return {figure.name: figure for figure in found}


def wrong(found: Sequence[Figure]) -> set[str]:
    return {figure.name for figure in found if not figure.agrees}


# What the experiments are made of


@pytest.mark.parametrize("name", OURS)
def test_an_experiment_can_be_sent_to_another_process(name: str) -> None:
    experiment = EXPERIMENTS[name]
    copy: Experiment = pickle.loads(pickle.dumps(experiment))
    assert len(copy.parts) == len(experiment.parts)
    assert copy.run is experiment.run


def test_every_part_of_the_papers_tables_is_there() -> None:
    assert [len(EXPERIMENTS[name].parts) for name in OURS] == [17 * 3, 15, 6 * 4, 4 * 2 * 8, 4]


def test_a_note_is_given_only_to_what_disagrees() -> None:
    figure = Figure(name="a", paper=1.0, measured=1.0)
    assert figure.explained("why") is figure
    assert replace(figure, measured=2.0).explained("why").note == "why"


# One comparison


@pytest.fixture(scope="module")
def wrong_mass() -> Comparison:
    return compare((short("acrobot_m2_1.3"), PAIRED))


def test_a_wrong_mass_is_detected_localised_and_named(wrong_mass: Comparison) -> None:
    assert wrong_mass.methods == tuple(Method)
    for method in SCREENS:
        assert wrong_mass.p(method) < 0.01
        assert wrong_mass.localised(method)
        assert wrong_mass.ratio(method, "energy") > 1e6
    assert wrong_mass.p(Method.PAIRED) < 0.01
    assert wrong_mass.value is not None
    assert wrong_mass.value.fitted == pytest.approx(1.3, rel=1e-5)
    assert pickle.loads(pickle.dumps(wrong_mass)).value == wrong_mass.value


def test_a_control_is_left_alone_and_unpaired_arms_have_no_differences() -> None:
    found = compare((short("none_acrobot"), UNPAIRED))
    assert found.control
    assert Method.PAIRED not in found.methods
    assert all(found.p(method) > 0.01 and found.localised(method) for method in SCREENS)
    assert found.value is None


def test_what_is_not_installed_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.neural_network", None)
    found = compare((short("acrobot_g_9.81"), NOISY))
    assert Method.DISCRIMINATOR not in found.methods
    features = residual_features.measure(short("acrobot_g_9.81"))
    assert set(features.p) == {Method.MMD}
    assert len(residual_features.figures([features])) == 2


def test_permutations_that_cannot_change_the_decision_are_spared(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(0)
    for shift in (0.0, 0.05, 0.2):
        one, other = generator.normal(0, 1, (200, 3)), generator.normal(shift, 1, (200, 3))
        curtailed = kernel_test(one, other)
        with monkeypatch.context() as patch:
            patch.setattr(baselines, "CURTAILED", 1.0)
            whole = kernel_test(one, other)
        assert curtailed.statistic == whole.statistic
        assert curtailed.p == pytest.approx(whole.p, abs=0.05)
        assert curtailed == whole or min(curtailed.p, whole.p) > baselines.CURTAILED


# Figures of comparisons that are made up


def attribution(verdict: Verdict, *explanations: tuple[Value, ...], gap: float = 0.5) -> Attribution:
    hypotheses = tuple(Hypothesis(values=values, residual=4.5e-3) for values in explanations)
    told = hypotheses if verdict is Verdict.PARAMETER_FAULT else ()
    return Attribution(
        rivals=(),
        law="",
        verdict=verdict,
        explanations=told,
        hypotheses=hypotheses,
        gap=gap,
        specification=1.0,
        reason="",
    )


def value(parameter: str, fitted: float) -> Value:
    return Value(parameter=parameter, fitted=fitted, specified=1.0)


def screen_of(method: Method, fault: Fault, detected: bool) -> Screen:
    p = {Method.BLOCK: 9.77e-12, Method.TRAJECTORY: 2.331e-4}[method]
    broken = {law: detected and law in fault.breaks for law in GENERATORS[fault.system]}
    return Screen(
        laws=tuple(
            LawScreen(law=law, reference=1.0, tested=1.0, ratio=1.0, p=p if hit else 1.0, broken=hit)
            for law, hit in broken.items()
        ),
        unit=SCREENS[method],
        attainable=p,
    )


def perfect(fault: Fault, setting: Setting, methods: Sequence[Method] = tuple(Method)) -> Comparison:
    """All that has a fault is found by everybody, and what has none by nobody."""
    faulty = fault.category != "control"
    outcome = Outcome(statistic=math.inf, p=1e-4 if faulty else 1.0)
    verdict = {"parameter": Verdict.PARAMETER_FAULT, "control": Verdict.CONSISTENT}
    said = verdict.get(fault.category, Verdict.NOT_EXPLICABLE)
    explanation = value(fault.parameter or "m1", fault.value or 1.0)
    possible = [method for method in methods if setting.paired or method is not Method.PAIRED]
    return Comparison(
        fault=fault,
        setting=setting,
        screens={method: screen_of(method, fault, faulty) for method in possible if method in SCREENS},
        outcomes={method: outcome for method in possible if method not in SCREENS},
        attribution=attribution(said, (explanation,)),
    )


def everywhere(methods: Sequence[Method] = tuple(Method)) -> list[Comparison]:
    return [perfect(fault, setting, methods) for fault, setting in FAULTS.parts]


def test_what_everybody_finds_agrees_with_the_papers_screen() -> None:
    found = by_name(figures(everywhere()))
    for method in SCREENS:
        for what in ("detection", "false alarms", "localisation", "attribution"):
            assert found[f"{PAIRED.name}, {method}: {what}"].agrees
            assert found[f"{PAIRED.name}, {method}: {what}"].exact
    assert found[f"{UNPAIRED.name}: refusals"].agrees
    assert found[f"{UNPAIRED.name}: consistent controls"].agrees
    assert found[f"{PAIRED.name}: worst relative error of a value, bound"].agrees
    assert found["Wilson upper bound of the false alarms"].agrees


def test_what_the_papers_baselines_miss_disagrees_with_a_note() -> None:
    found = by_name(figures(everywhere()))
    for method in TWO_SAMPLE:
        figure = found[f"{PAIRED.name}, {method}: detection"]
        assert (figure.measured, figure.agrees, figure.exact) == ("15/15", False, False)
        assert "other draws" in figure.note
    assert found[f"{PAIRED.name}, {Method.MMD}: false alarms"].note == ""


def test_every_exact_figure_that_disagrees_is_told() -> None:
    """Under noise nobody finds everything, and gaps are not what was made up."""
    exact = {figure.name for figure in figures(everywhere()) if figure.exact and not figure.agrees}
    assert f"{NOISY.name}, {Method.BLOCK}: detection" in exact
    assert f"{UNPAIRED.name}, acrobot_euler: gap" in exact
    assert f"{UNPAIRED.name}, acrobot_dt_0.2: gap" not in exact  # it has a note: another lag is measured


def test_a_screen_that_misses_a_fault_is_a_disagreement() -> None:
    comparisons = everywhere()
    blind = {Method.BLOCK: screen_of(Method.BLOCK, BY_NAME["acrobot_euler"], detected=False)}
    place = FAULTS.parts.index((BY_NAME["acrobot_euler"], UNPAIRED))
    comparisons[place] = replace(comparisons[place], screens={**comparisons[place].screens, **blind})
    found = by_name(figures(comparisons))
    for what in ("detection", "localisation"):
        figure = found[f"{UNPAIRED.name}, {Method.BLOCK}: {what}"]
        assert (figure.measured, figure.agrees, figure.exact) == ("14/15", False, True)


@pytest.mark.parametrize(
    "explanations",
    [[(value("l1", 1.3),)], [(value("m2", 1.3),), (value("l1", 0.9),)], [(value("m2", 1.3), value("g", 9.81))]],
)
def test_another_constant_or_several_are_not_right(explanations: list[tuple[Value, ...]]) -> None:
    comparisons = everywhere()
    said = attribution(Verdict.PARAMETER_FAULT, *explanations)
    comparisons[0] = replace(comparisons[0], attribution=said)
    assert comparisons[0].fault.name == "acrobot_m2_1.3"
    assert comparisons[0].value is None
    found = by_name(figures(comparisons))
    assert found[f"{UNPAIRED.name}, {Method.TRAJECTORY}: attribution"].measured == "6/7"
    assert not found[f"{UNPAIRED.name}, acrobot_m2_1.3: m2"].agrees
    assert not found[f"{UNPAIRED.name}: worst relative error of a value, bound"].agrees


def test_without_the_discriminator_its_figures_are_left_out() -> None:
    methods = [method for method in Method if method is not Method.DISCRIMINATOR]
    complete, without = by_name(figures(everywhere())), by_name(figures(everywhere(methods)))
    assert without.keys() < complete.keys()
    assert all("discriminator" in name for name in complete.keys() - without.keys())


def test_a_rate_counts_what_is_below_the_level() -> None:
    found = by_name(list(levels.level_figures(everywhere())))
    rates = [found[f"{PAIRED.name}, {Method.TRAJECTORY}: rate at α = {level:g}"] for level in levels.LEVELS]
    assert [figure.measured for figure in rates] == [0.0, 0.0, 0.0, 1.0, 1.0, 1.0]
    assert all(figure.agrees and figure.exact for figure in rates)
    assert len(found) == 48 + 8 + 3


def test_all_settings_are_of_the_papers_table() -> None:
    assert [setting.name for setting in SETTINGS] == ["unpaired σ=0", "paired σ=0", "paired σ=1e-3"]


# Residuals as features


def test_the_offset_is_the_one_fault_that_ks_on_residuals_misses() -> None:
    for name in ("reacher_dz_offset", "reacher_obs_swap"):
        found = residual_features.measure(BY_NAME[name])
        assert (set(found.named) == set(found.breaks)) == (name == "reacher_obs_swap")
        assert found.p[Method.MMD] < 0.01


def test_localisation_is_exact_or_none() -> None:
    features = residual_features.Features(breaks=("energy",), named=("energy",), p={Method.MMD: 0.5})
    more = replace(features, named=("energy", "unit-norm θ1"))
    found = residual_features.figures([features] * 14 + [more])
    assert [(figure.measured, figure.agrees) for figure in found] == [("14/15", True), ("0/15", False)]
    assert found[1].note


# Noise


def test_a_little_noise_leaves_reacher_attributed_and_a_lot_washes_out_acrobot() -> None:
    found = noise.measure(noise.Cell(noise=1e-4, lag=50))
    held = [fault.system for fault, each in zip(noise.PARAMETER_FAULTS, found, strict=True) if noise.right(fault, each)]
    assert held == ["reacher", "reacher"]


def test_a_value_must_be_within_five_hundredths_and_the_only_one() -> None:
    fault = BY_NAME["acrobot_m2_1.3"]
    near, far = (value("m2", 1.3 * factor) for factor in (1.04, 1.06))
    assert noise.right(fault, attribution(Verdict.PARAMETER_FAULT, (near,)))
    assert not noise.right(fault, attribution(Verdict.PARAMETER_FAULT, (far,)))
    assert not noise.right(fault, attribution(Verdict.PARAMETER_FAULT, (near,), (value("l1", 1.1),)))
    assert named(attribution(Verdict.CONSISTENT, (near,))) is None


def test_a_cell_that_differs_has_a_note() -> None:
    nothing = (attribution(Verdict.NOT_EXPLICABLE),) * 7
    found = noise.figures([nothing] * len(noise.CELLS))
    assert len(found) == 24 + 4 + 2
    assert wrong(found) == {figure.name for figure in found}
    assert all("ten times" in figure.note for figure in found[:24])


# Floor


def test_a_constant_is_moved_relatively() -> None:
    moved = {name: floor.Cell(constant=name, magnitude=0.1, noise=0.0).fault for name in floor.BASELINES}
    assert {name: fault.value for name, fault in moved.items()} == pytest.approx(
        {"m2": 1.1, "g": 10.78, "lc2": 0.55, "ell2": 1.21}
    )


def sweep(cell: floor.Cell) -> floor.Sweep:
    """As the paper has it."""
    limits: dict[Method, float | str] = dict.fromkeys(SCREENS, floor.SCREENED[cell.noise][cell.constant])
    limits |= dict.fromkeys(TWO_SAMPLE, floor.BASELINES[cell.constant])
    p = {
        method: 1e-3 if not isinstance(limit, str) and cell.magnitude >= limit else 0.5
        for method, limit in limits.items()
    }
    return floor.Sweep(p=p, ratio=5.5e5)


def test_the_floor_is_the_smallest_error_rejected() -> None:
    found = floor.figures([sweep(cell) for cell in floor.CELLS])
    assert len(found) == 2 * 4 * 5 + 1
    assert not wrong(found)
    assert not any(figure.note for figure in found)


def test_a_baseline_that_rejects_nothing_says_how_near_it_was() -> None:
    def blind(cell: floor.Cell) -> floor.Sweep:
        return replace(sweep(cell), p={**sweep(cell).p, Method.MMD: 0.012, Method.BLOCK: 0.5})

    found = by_name(floor.figures([blind(cell) for cell in floor.CELLS]))
    figure = found["σ = 0, m2: smallest error rejected by MMD"]
    assert (figure.measured, figure.exact) == ("none", False)
    assert "p = 0.012" in figure.note
    assert found["σ = 0, m2: smallest error rejected by screen by blocks"].exact


# Two faults


def test_two_constants_are_found_without_being_told_which() -> None:
    pair = two_faults.PAIRS[0]
    assert two_faults.error(pair, two_faults.measure(pair)) < two_faults.ACCEPTED


def test_one_constant_or_two_others_are_no_recovery() -> None:
    pair = two_faults.PAIRS[0]
    right = (value("m2", 1.3), value("g", 9.81))
    fault = Verdict.PARAMETER_FAULT
    assert two_faults.error(pair, attribution(fault, right)) == 0.0
    for others in ([right[:1]], [(right[0], value("l1", 1.2))], [right, (right[0], value("l1", 1.2))], []):
        assert two_faults.error(pair, attribution(fault, *others)) == math.inf


def test_a_pair_that_is_missed_is_counted() -> None:
    found = [
        attribution(Verdict.PARAMETER_FAULT, tuple(value(*each) for each in pair.values)) for pair in two_faults.PAIRS
    ]
    assert by_name(two_faults.figures(found))["both constants recovered"].agrees
    found[2] = attribution(Verdict.NOT_EXPLICABLE, (value("m1", 0.5),))
    found[0] = attribution(Verdict.NOT_EXPLICABLE)
    figure = by_name(two_faults.figures(found))["both constants recovered"]
    assert (figure.measured, figure.agrees, figure.rule) == ("2/4", False, Rule.SAME)
