"""The catalogue: that it is the paper's, and that each fault changes what it says and nothing else."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest

from analysis.paper.catalogue import ACROBOT, CATALOGUE, GENERATORS, REACHER, Fault, arms, healthy_pair, moved
from analysis.paper.systems import SPECIFIED, Floats, ReacherRun

FAULTS = {fault.name: fault for fault in CATALOGUE}
NAMES = (
    "acrobot_m2_1.3", "acrobot_l1_1.2", "acrobot_lc2_0.6", "acrobot_I2_1.5", "acrobot_g_9.81", "reacher_l2_0.13",
    "reacher_l1_0.09", "acrobot_nips_coriolis", "acrobot_torque_leak", "acrobot_euler", "acrobot_dt_0.2",
    "acrobot_obs_swap", "acrobot_obs_unnormalised", "reacher_dz_offset", "reacher_obs_swap", "none_acrobot",
    "none_reacher",
)  # fmt: skip
COUNTS = {"parameter": 7, "structural": 2, "numerical": 2, "observation": 4, "control": 2}


def paired(name: str) -> tuple[Floats, Floats]:
    """Rows of both arms of a paired draw without noise."""
    reference, test = arms(FAULTS[name], paired=True, noise=0.0)
    return np.concatenate(reference), np.concatenate(test)


def broken(rows: Floats, fault: Fault) -> set[str]:
    """Generators that do not hold of the rows, by their definitions."""
    if fault.system == "reacher":
        c1, c2, s1, s2, tx, ty, _, _, dx, dy, dz = rows.T
        own = {
            "dz": dz,
            "fk-x": dx + tx - c1 - 1.1 * (c1 * c2 - s1 * s2),
            "fk-y": dy + ty - s1 - 1.1 * (s1 * c2 + c1 * s2),
        }
    else:
        c1, s1, c2, s2, w1, w2 = rows.T
        kinetic = (7 / 4 + c2 / 2) * w1**2 + (5 / 4 + c2 / 2) * w1 * w2 + 5 / 8 * w2**2
        energy = (kinetic - 14.7 * c1 - 4.9 * c1 * c2 + 4.9 * s1 * s2).reshape(8, -1)
        own = {"energy": energy - energy[:, :1]}
    residuals = {"unit-norm θ1": c1**2 + s1**2 - 1, "unit-norm θ2": c2**2 + s2**2 - 1, **own}
    return {name for name, residual in residuals.items() if np.abs(residual).max() > 1e-6}


def test_it_is_the_papers_table() -> None:
    assert tuple(fault.name for fault in CATALOGUE) == NAMES
    assert {name: sum(fault.category == name for fault in CATALOGUE) for name in COUNTS} == COUNTS


@pytest.mark.parametrize("fault", CATALOGUE, ids=lambda fault: fault.name)
def test_a_fault_breaks_the_generators_it_says_and_no_others(fault: Fault) -> None:
    reference, test = arms(fault, paired=False, noise=0.0)
    assert set(fault.breaks) <= set(GENERATORS[fault.system])
    assert broken(np.concatenate(test), fault) == set(fault.breaks)
    assert broken(np.concatenate(reference), fault) == set()


@pytest.mark.parametrize("fault", CATALOGUE, ids=lambda fault: fault.name)
def test_arms_have_one_grid_and_paired_ones_one_start(fault: Fault) -> None:
    shape = (8, 51 if fault.name == "acrobot_dt_0.2" else 401, 6) if fault.system == "acrobot" else (1, 4000, 11)
    for pair in (arms(fault, paired=True, noise=0.0), healthy_pair(fault, paired=True, noise=0.0)):
        assert [np.shape(arm) for arm in pair] == [shape, shape]
    if fault.category != "observation" and fault.system == "acrobot":
        reference, test = arms(fault, paired=True, noise=0.0)
        assert all((one[0] == other[0]).all() for one, other in zip(reference, test, strict=True))


@pytest.mark.parametrize("fault", [fault for fault in CATALOGUE if fault.category == "parameter"], ids=lambda f: f.name)
def test_a_faulty_parameter_is_the_only_thing_that_moved(fault: Fault) -> None:
    assert fault.parameter is not None
    assert fault.value is not None
    assert fault.test == moved(fault.parameter, fault.value)
    assert fault.value == pytest.approx(float(fault.name.split("_")[-1]) * (10 if fault.system == "reacher" else 1))
    assert fault.test != fault.reference


def test_a_parameter_moved_to_its_specification_is_the_reference() -> None:
    for name in ("m1", "m2", "l1", "lc1", "lc2", "I1", "I2", "g"):
        assert moved(name, getattr(SPECIFIED, name.lower())) == ACROBOT
    assert moved("ell1", 1.0) == REACHER
    back = moved("ell2", 1.1)
    assert isinstance(back, ReacherRun)
    assert back.l2 == pytest.approx(REACHER.l2)


def test_only_parameters_have_values() -> None:
    for fault in CATALOGUE:
        assert (fault.parameter is not None) == (fault.value is not None) == (fault.category == "parameter")


@pytest.mark.parametrize("name", ["acrobot_obs_swap", "reacher_obs_swap"])
def test_a_swap_transposes_two_columns(name: str) -> None:
    reference, test = paired(name)
    test[:, [1, 2]] = test[:, [2, 1]]
    np.testing.assert_array_equal(test, reference)


def test_the_unnormalised_cosine_is_two_hundredths_too_long() -> None:
    reference, test = paired("acrobot_obs_unnormalised")
    np.testing.assert_array_equal(test[:, 0], reference[:, 0] * 1.02)
    np.testing.assert_array_equal(test[:, 1:], reference[:, 1:])


def test_the_offset_is_added_after_scaling() -> None:
    reference, test = paired("reacher_dz_offset")
    assert (test[:, 10] == 1e-3).all()
    np.testing.assert_array_equal(test[:, :10], reference[:, :10])


def test_controls_and_healthy_pairs_differ_in_their_seeds_alone() -> None:
    for name in ("none_acrobot", "none_reacher"):
        reference, test = paired(name)
        np.testing.assert_array_equal(reference, test)
        noisy, other = arms(FAULTS[name], paired=True, noise=1e-3)
        assert np.std(np.subtract(other, noisy)) == pytest.approx(1e-3 * 2**0.5, rel=0.02)
        healthy = healthy_pair(FAULTS[name], paired=False, noise=1e-3)
        np.testing.assert_array_equal(np.stack(arms(FAULTS[name], paired=False, noise=1e-3)), np.stack(healthy))


def test_the_healthy_pair_of_the_coarse_step_is_resolved() -> None:
    reference, _ = arms(FAULTS["acrobot_dt_0.2"], paired=True, noise=0.0)
    healthy = healthy_pair(FAULTS["acrobot_dt_0.2"], paired=True, noise=0.0)
    assert all((np.stack(arm) == np.stack(reference)).all() for arm in healthy)


def test_faults_can_be_sent_to_another_process() -> None:
    for fault in CATALOGUE:
        copy = pickle.loads(pickle.dumps(fault))
        assert replace(copy, test=fault.test) == fault
