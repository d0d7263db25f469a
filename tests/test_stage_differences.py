from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from analysis import stages
from analysis.stages import Staged

STATES, COPIES = 5, 4


def staged(values: Mapping[str, Any], dtypes: Mapping[str, str] | None = None, noise: float = 1e-16) -> Staged:
    """Rows of states and then their copies, which differ by about a last place."""
    rows = STATES * (1 + COPIES)
    nudge = np.random.default_rng(1).choice([-1.0, 1.0], rows) * noise
    nudge[:STATES] = 0
    arrays = {
        name: np.asarray(value, dtype=np.float64) * np.ones(rows)[:, None] + nudge[:, None]
        for name, value in values.items()
    }
    return Staged(arrays=arrays, order=list(arrays), dtypes=dtypes or {})


OLDER = {"00.kinematics.xpos": [1.0, 2.0], "00.constraint.efc_D": [3.0], "00.integration.qpos": [4.0]}


def test_the_first_stage_that_differs_is_found_and_what_follows_from_it_is_not_taken_for_it() -> None:
    newer = {**OLDER, "00.constraint.efc_D": [3.1], "00.integration.qpos": [5.0]}
    found = stages.differences(staged(OLDER), staged(newer), STATES)
    assert [each.field for each in found] == ["efc_D", "qpos"]
    (first,) = stages.first_stage(found)
    assert (first.stage, first.states) == ("constraint", STATES)
    assert stages.before(list(OLDER), first.stage) == ["kinematics"]


def test_what_only_one_release_computes_is_not_called_the_same() -> None:
    older = staged({**OLDER, "00.kinematics in evaluation 2.xpos": [1.0]})
    newer = staged({**OLDER, "00.integration.qpos": [5.0]})
    order = stages.compared(older, newer, {"00.constraint.efc_D"})
    assert order == ["00.kinematics.xpos", "00.integration.qpos"]
    assert stages.before(order, "integration") == ["kinematics"]


def test_rounding_is_no_difference() -> None:
    newer = {name: np.array(value) * (1 + 2e-16) for name, value in OLDER.items()}
    assert stages.differences(staged(OLDER), staged(newer), STATES) == []


def test_a_quantity_that_a_release_does_not_reproduce_is_left_out() -> None:
    noisy = staged({**OLDER, "00.kinematics.xpos": [9.0, 9.0]})
    unsteady = stages.unsteady(staged(OLDER), noisy)
    assert unsteady == {"00.kinematics.xpos"}
    assert stages.differences(staged(OLDER), noisy, STATES, unsteady) == []


def test_quantities_that_one_release_does_not_have_are_passed_over() -> None:
    newer = {"00.integration.qpos": [4.5]}
    assert [each.field for each in stages.differences(staged(OLDER), staged(newer), STATES)] == ["qpos"]


def test_another_shape_is_a_difference_in_all_states() -> None:
    (found,) = stages.differences(staged(OLDER), staged({**OLDER, "00.constraint.efc_D": [3.0, 0.0]}), STATES)
    assert (found.states, found.ratio) == (STATES, float("inf"))


def test_padding_is_nothing() -> None:
    padded = {**OLDER, "00.constraint.efc_D": [3.0, np.nan]}
    assert stages.differences(staged(padded), staged(padded), STATES) == []


def test_of_a_function_the_first_variable_is_the_culprit_also_by_its_dtype_alone() -> None:
    older = {"00.Env.step.u#0": [1.0], "00.Env.step.speed#0": [2.0], "00.Env.step.speed#1": [2.0]}
    dtypes = {"00.Env.step.u#0": "float64"}
    newer = staged({**older, "00.Env.step.speed#0": [2.5]}, {"00.Env.step.u#0": "float32"})
    (first,) = stages.first_stage(stages.differences(staged(older, dtypes), newer, STATES))
    assert (first.stage, first.told) == ("Env.step", "u (float64 → float32)")


def test_a_stage_in_which_only_counts_differ_is_passed_over() -> None:
    older = {"00.solution.iterations": [3.0], "00.integration.qpos": [4.0]}
    counted = {"00.solution.iterations"}
    alone, followed = (
        stages.differences(
            replace(staged(older, noise=0), discrete=counted),
            replace(staged({**older, "00.solution.iterations": [4.0], "00.integration.qpos": [place]}, noise=0),
                    discrete=counted),
            STATES,
        )
        for place in (4.0, 4.5)
    )  # fmt: skip
    assert [each.field for each in stages.first_stage(alone)] == ["iterations"], "there is nothing else to tell"
    assert [each.field for each in stages.first_stage(followed)] == ["qpos"]
    assert [each.field for each in stages.only_counts(followed)] == ["iterations"]


def test_substeps_are_told() -> None:
    assert stages.stage_of("01.solution.qacc") == "solution in substep 2"
    assert stages.first_stage([]) == []
