"""Attribution: the constant that made a law what it is gets named, and none does where none explains it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from analysis.algebra import attribution, diagnosis
from analysis.algebra.attribution import Attribution
from analysis.algebra.ideals import Ideal
from analysis.algebra.polynomials import coefficient_vector, monomials, polynomial_ring
from analysis.algebra.recovery import Recovered
from analysis.algebra.reference import Kind, ReferenceSet
from analysis.algebra.templates import FITS, SEPARATED
from analysis.algebra.verdict import Verdict
from analysis.paper.systems import AcrobotParameters, AcrobotRun, drawn

UNHURRIED = settings(deadline=None, max_examples=10)
ACROBOT = ReferenceSet.of(
    "acrobot",
    variables={"c1": "o[0]", "s1": "o[1]", "c2": "o[2]", "s2": "o[3]", "w1": "o[4]", "w2": "o[5]"},
    parameters={
        "m1": Fraction(1), "m2": Fraction(1), "l1": Fraction(1), "lc1": Fraction(1, 2), "lc2": Fraction(1, 2),
        "I1": Fraction(1), "I2": Fraction(1), "g": Fraction(49, 5),
    },
    laws={
        "unit-norm 1": (Kind.VANISHES, "c1**2 + s1**2 - 1"),
        "unit-norm 2": (Kind.VANISHES, "c2**2 + s2**2 - 1"),
        "energy": (
            Kind.CONSERVED,
            "0.5*(m1*lc1**2 + m2*(l1**2 + lc2**2 + 2*l1*lc2*c2) + I1 + I2)*w1**2"
            " + (m2*(lc2**2 + l1*lc2*c2) + I2)*w1*w2 + 0.5*(m2*lc2**2 + I2)*w2**2"
            " - m1*g*lc1*c1 - m2*g*(l1*c1 + lc2*(c1*c2 - s1*s2))",
        ),
    },
    lag=50,
)  # fmt: skip
ENERGY = ACROBOT.laws[2]
KNOWN = Ideal.of([law.polynomial for law in ACROBOT.laws[:2]], ACROBOT.ring)
TERMS = tuple(each for each in monomials(6, 3, lowest=1) if KNOWN.is_standard(each))
OUTSIDE = TERMS.index((0, 1, 0, 0, 0, 1))
"""A term, s1·w2, that the energy has not got whatever the constants are."""

Floats = NDArray[np.float64]


def recovered(coefficients: Floats, gap: float = 1e-7) -> Recovered:
    return Recovered(exponents=TERMS, coefficients=coefficients, smallest=gap, following=1.0)


def energy(**constants: str) -> Floats:
    """Of the acrobot that has these constants otherwise, as recovery would give it: of length one."""
    law = coefficient_vector(ACROBOT.at({name: Fraction(value) for name, value in constants.items()})[2], TERMS)
    return np.asarray(law / np.linalg.norm(law), dtype=np.float64)


def attributed(found: Recovered) -> Attribution:
    return attribution.attribute(ENERGY, ACROBOT.parameters, KNOWN, found)


def named(found: Attribution) -> list[dict[str, float]]:
    """Each explanation's constants."""
    return [{value.parameter: value.fitted for value in each.values} for each in found.explanations]


# One constant


@pytest.mark.parametrize(
    ("parameter", "value"),
    [("m2", "1.3"), ("l1", "1.2"), ("lc2", "0.6"), ("I2", "1.5"), ("g", "9.81"), ("m2", "0.2"), ("I1", "5")],
)
def test_the_constant_that_is_wrong_is_named_with_its_value(parameter: str, value: str) -> None:
    found = attributed(recovered(energy(**{parameter: value})))
    assert found.verdict is Verdict.PARAMETER_FAULT
    assert named(found) == [{parameter: pytest.approx(float(value), rel=1e-6)}]
    told = f"{parameter} is {float(value):.6g}, specified {float(ACROBOT.parameters[parameter]):.6g}"
    assert found.told.partition(" (or")[0] == told
    assert found.law == "energy"
    assert found.hypotheses[0].residual < 1e-8 < SEPARATED * 1e-8 < found.hypotheses[1].residual


def test_a_healthy_law_is_consistent() -> None:
    found = attributed(recovered(energy()))
    assert found.verdict is Verdict.CONSISTENT
    assert not found.explanations
    assert found.specification < 1e-12
    assert found.told.startswith("consistent with specification (")


@UNHURRIED
@given(st.floats(1e-6, 1e6), st.booleans(), st.floats(-1e6, 1e6))
def test_the_scale_sign_and_constant_of_a_recovered_law_mean_nothing(scale: float, flip: bool, shift: float) -> None:
    law = energy(m2="1.3") * scale * (-1 if flip else 1)
    wider = Recovered(exponents=((0,) * 6, *TERMS), coefficients=np.array([shift, *law]), smallest=1e-7, following=1.0)
    plain, moved = attributed(recovered(law)), attributed(wider)
    assert named(plain) == [{"m2": pytest.approx(1.3, rel=1e-6)}]
    assert moved.verdict is plain.verdict
    assert named(moved) == [{"m2": pytest.approx(1.3, rel=1e-6)}]


# None


def test_a_law_with_a_term_that_no_constant_makes_is_not_explicable_however_well_separated() -> None:
    law = energy(m2="1.3")
    law[OUTSIDE] += 10 * FITS
    found = attributed(recovered(law))
    assert found.verdict is Verdict.NOT_EXPLICABLE
    assert found.hypotheses[0].values[0].parameter == "m2"
    assert found.hypotheses[0].residual > FITS
    assert not found.explanations
    assert "m2, leaves 0.01 of it" in found.told


def test_what_has_no_gap_is_not_explicable_though_it_looks_healthy() -> None:
    found = attributed(recovered(energy(), gap=0.3))
    assert found.verdict is Verdict.NOT_EXPLICABLE
    assert "no law can be read off these data" in found.told
    assert "the best varies 0.3 as much as the next" in found.told
    assert not found.hypotheses
    assert np.isnan(found.specification)


@pytest.mark.parametrize("size", [0.5 * FITS, FITS, 1.05 * FITS])
def test_noise_that_the_specification_explains_as_well_accuses_nobody(size: float) -> None:
    rng = np.random.default_rng(0)
    for _ in range(5):
        noise = rng.normal(size=len(TERMS))
        found = attributed(recovered(energy() + size * noise / np.linalg.norm(noise)))
        assert found.verdict is not Verdict.PARAMETER_FAULT


# Several


def test_two_wrong_constants_are_both_named() -> None:
    found = attributed(recovered(energy(m2="1.3", g="12")))
    assert found.verdict is Verdict.PARAMETER_FAULT
    assert named(found) == [{"m2": pytest.approx(1.3, rel=1e-5), "g": pytest.approx(12, rel=1e-5)}]
    assert "g is 12, specified 9.8 and m2 is 1.3, specified 1" in found.told


def test_a_small_second_fault_is_not_concealed_by_a_large_first() -> None:
    found = attributed(recovered(energy(m2="1.3", g="9.81")))
    assert found.hypotheses[0].residual < FITS  # alone, the first would do
    assert named(found) == [{"m2": pytest.approx(1.3, rel=1e-4), "g": pytest.approx(9.81, rel=1e-5)}]


def test_pairs_that_cannot_be_told_apart_are_both_offered() -> None:
    found = attributed(recovered(energy(I1="1.5", I2="1.5")))  # a law has no scale: so are masses a third less
    assert found.verdict is Verdict.PARAMETER_FAULT
    inertias, masses = sorted(named(found), key=lambda each: sorted(each))
    assert inertias == pytest.approx({"I1": 1.5, "I2": 1.5}, rel=1e-5)
    assert masses == pytest.approx({"m1": 2 / 3, "m2": 2 / 3}, rel=1e-5)


def swinging(text: str, **parameters: str) -> tuple[ReferenceSet, Ideal]:
    given_ones = {name: Fraction(value) for name, value in parameters.items()}
    laws = ReferenceSet.of(
        "pendulum",
        variables={"c": "o[0]", "w": "o[1]"},
        laws={"energy": (Kind.CONSERVED, text)},
        parameters=given_ones,
    )
    return laws, Ideal.of([], laws.ring)


def attributed_pendulum(
    text: str, constants: Mapping[str, str], becoming: Mapping[str, str], odd: float = 0.0
) -> Attribution:
    """With some of a term, c·w, that is not in the law."""
    laws, known = swinging(text, **constants)
    terms = monomials(2, 2, lowest=1)
    law = coefficient_vector(laws.at({name: Fraction(value) for name, value in becoming.items()})[0], terms)
    law[terms.index((1, 1))] += odd
    found = Recovered(exponents=terms, coefficients=law, smallest=1e-7, following=1.0)
    return attribution.attribute(laws.laws[0], laws.parameters, known, found)


@pytest.mark.parametrize("odd", [0.0, 1e-4])
def test_constants_that_enter_a_law_in_the_same_way_are_offered_as_alternatives(odd: float) -> None:
    found = attributed_pendulum("l*w**2/3 + g*c", {"l": "1", "g": "10"}, {"g": "12"}, odd)
    assert found.verdict is Verdict.PARAMETER_FAULT
    assert found.reason == "these data cannot tell the constants apart"
    told = {name: value for each in named(found) for name, value in each.items()}
    assert told == {"g": pytest.approx(12, rel=1e-6), "l": pytest.approx(10 / 12, rel=1e-6)}
    assert " or " in found.told


def test_what_was_divided_out_of_the_data_is_divided_out_of_the_template_too() -> None:
    laws = ReferenceSet.of(
        "spring",
        variables={"c": "cos(angle)", "s": "sin(angle)", "w": "speed"},
        laws={"energy": (Kind.CONSERVED, "w**2/2 + k*c**2 + g*s")},
        parameters={"k": Fraction(1), "g": Fraction(2)},
    )
    known = Ideal.of(laws.relations, laws.ring)
    terms = ((0, 1, 0), (0, 2, 0), (0, 0, 2))
    law = coefficient_vector(known.normal_form(laws.at({"k": Fraction(3)})[0]), terms)
    assert law.tolist() == [2, -3, 0.5]  # c² has become 1 − s²
    found = Recovered(exponents=terms, coefficients=law, smallest=1e-7, following=1.0)
    assert named(attribution.attribute(laws.laws[0], laws.parameters, known, found)) == [{"k": pytest.approx(3)}]


def test_a_constant_that_is_specified_as_zero_can_become_another() -> None:
    found = attributed_pendulum("w**2/2 + g*c + k*c**2", {"g": "10", "k": "0"}, {"k": "3"})
    assert named(found) == [{"k": pytest.approx(3, rel=1e-6)}]


def test_a_law_that_vanishes_keeps_its_constant_term() -> None:
    ring = polynomial_ring(("x", "y"))
    laws = ReferenceSet.of(
        "rod",
        variables={"x": "o[0]", "y": "o[1]"},
        laws={"length": (Kind.VANISHES, "x**2 + y**2 - l**2")},
        parameters={"l": Fraction(1)},
    )
    angle = np.random.default_rng(0).uniform(0, 2 * np.pi, (2, 60))
    samples = [1.25 * np.column_stack([np.cos(each), np.sin(each)]) for each in angle]
    found = diagnosis.attribute(laws, laws.laws[0], samples)
    assert laws.ring == ring
    assert abs(named(found)[0]["l"]) == pytest.approx(1.25, rel=1e-9)


# From data


@pytest.mark.parametrize(
    ("parameters", "explanation"),
    [
        (AcrobotParameters(), []),
        (AcrobotParameters(m2=1.3), [{"m2": 1.3}]),
        (AcrobotParameters(m2=1.3, g=9.81), [{"g": 9.81, "m2": 1.3}]),
    ],
)
def test_constants_are_told_from_trajectories(
    parameters: AcrobotParameters, explanation: list[dict[str, float]]
) -> None:
    found = diagnosis.attribute(ACROBOT, ENERGY, drawn(AcrobotRun(parameters=parameters, dt=0.005, steps=200)))
    assert named(found) == [pytest.approx(each, rel=1e-4) for each in explanation]
    assert found.gap < 1e-5


def test_a_dropped_coriolis_term_is_no_constant() -> None:
    trajectories = drawn(AcrobotRun(parameters=AcrobotParameters(coriolis=False), dt=0.005))
    assert diagnosis.attribute(ACROBOT, ENERGY, trajectories).verdict is Verdict.NOT_EXPLICABLE


COARSE = [(0.07, 18), (0.08, 6), (0.08, 13), (0.1, 8)]


@pytest.mark.parametrize(("dt", "seed"), COARSE)
def test_a_healthy_system_that_is_integrated_coarsely_is_consistent(dt: float, seed: int) -> None:
    trajectories = drawn(AcrobotRun(dt=dt), seed)
    found = diagnosis.attribute(ACROBOT, ENERGY, trajectories, lag=1)
    assert (found.verdict, found.explanations) == (Verdict.CONSISTENT, ())
    assert found.specification < 1.3 * found.hypotheses[0].residual
    by_coefficients = diagnosis.attribute(ACROBOT, ENERGY, trajectories, lag=1, by_coefficients=True)
    assert by_coefficients.verdict is Verdict.NOT_EXPLICABLE  # that they are vague is not seen in them
    assert by_coefficients.reason.endswith("and no constant much less")
    assert by_coefficients.specification > FITS > by_coefficients.hypotheses[0].residual


def test_two_small_errors_are_not_concealed_by_a_specification_that_no_constant_beats() -> None:
    trajectories = drawn(AcrobotRun(parameters=AcrobotParameters(m1=0.875, lc1=0.5475), dt=0.005, steps=200))
    found = diagnosis.attribute(ACROBOT, ENERGY, trajectories, by_coefficients=True)
    assert found.specification < SEPARATED * found.hypotheses[0].residual
    for each in (found, diagnosis.attribute(ACROBOT, ENERGY, trajectories)):
        assert {"m1": 0.875, "lc1": 0.5475} in [pytest.approx(one, rel=1e-4) for one in named(each)]


def test_two_errors_that_nearly_look_like_one_constant_are_told_from_it_by_the_data() -> None:
    """m1·lc1 stays what it was to 4e-6, so that I1 makes nearly the same law, and its coefficients are as near."""
    trajectories = drawn(AcrobotRun(parameters=AcrobotParameters(m1=0.998, lc1=0.501), dt=0.005), 1023)
    found = diagnosis.attribute(ACROBOT, ENERGY, trajectories)
    assert {"m1": 0.998, "lc1": 0.501} in [pytest.approx(each, rel=1e-6) for each in named(found)]
    assert all(len(each) == 2 for each in named(found))


def test_two_constants_that_make_the_same_law_as_one_are_told_beside_it() -> None:
    found = diagnosis.attribute(
        ACROBOT, ENERGY, drawn(AcrobotRun(parameters=AcrobotParameters(i1=1.05), dt=0.005, steps=200))
    )
    assert named(found) == [{"I1": pytest.approx(1.05, rel=1e-6)}]
    assert [{value.parameter for value in each.values} for each in found.rivals] == [{"m1", "lc1"}]
    assert " (or, two at once, lc1 is " in found.told


def test_three_wrong_constants_are_explained_by_none() -> None:
    wrong = AcrobotParameters(m2=1.002, g=9.8 * 0.998, lc2=0.501)
    found = diagnosis.attribute(ACROBOT, ENERGY, drawn(AcrobotRun(parameters=wrong, dt=0.005)))
    assert (found.verdict, found.explanations) == (Verdict.NOT_EXPLICABLE, ())


@pytest.mark.parametrize("noise", [1e-8, 1e-7, 1e-6])
def test_noise_hides_neither_a_constant_nor_that_there_is_none(noise: float) -> None:
    healthy = diagnosis.attribute(ACROBOT, ENERGY, drawn(AcrobotRun(dt=0.005, noise=noise), 7))
    assert healthy.verdict is Verdict.CONSISTENT
    wrong = drawn(AcrobotRun(parameters=AcrobotParameters(m2=1.3), dt=0.005, noise=noise), 7)
    assert named(diagnosis.attribute(ACROBOT, ENERGY, wrong)) == [{"m2": pytest.approx(1.3, rel=1e-5)}]


def test_many_explanations_are_counted_in_words() -> None:
    value = attribution.Value(parameter="g", fitted=2.0, specified=1.0)
    each = attribution.Hypothesis(values=(value,), residual=0.0)
    found = attributed(recovered(energy(m2="1.3")))
    many = replace(found, explanations=(each,) * 5, rivals=())
    assert many.told == " or ".join(["g is 2, specified 1"] * 3) + " or 2 others"
