"""Changes made up for tests of reproducers, one of every kind."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from audit.asked.attachments import Attachment
from audit.asked.environment_rows import EnvironmentRow
from audit.explanations.reproducer_case import Case, Outcome, Side

OLDER = Side(
    name="mujoco-2.3.7",
    requires=("gymnasium[mujoco]==0.29.1", "mujoco==2.3.7"),
    packages=(("gymnasium", "0.29.1"), ("mujoco", "2.3.7"), ("numpy", "1.26.4")),
    python="3.11.7",
    outcome=Outcome(state=(0.1, 2.0), observation=(0.1, 2.0, 3.0), reward=-0.5),
)
NEWER = replace(
    OLDER,
    name="mujoco-3.0.0",
    requires=("gymnasium[mujoco]==0.29.1", "mujoco==3.0.0"),
    packages=(("gymnasium", "0.29.1"), ("mujoco", "3.0.0"), ("numpy", "1.26.4")),
    outcome=Outcome(state=(0.1, 2.5), observation=(0.1, 2.25, 3.0), reward=-0.5),
)
SCENE = '<mujoco><worldbody><body name="b"><joint/><geom size="1"/></body></worldbody></mujoco>'


def row(**given: Any) -> EnvironmentRow:
    return EnvironmentRow.model_validate(given or {"id": "Pusher-v4"})


def case(**given: Any) -> Case:
    made = Case(
        environment=row(),
        kind="mujoco",
        older=OLDER,
        newer=NEWER,
        state=(0.1, 1 / 3),
        action=(0.25,),
        action_dtype="float32",
        states_beyond=31,
        states_forced=512,
        ratio=3.4e9,
        told=("first stage: constraint assembly (efc_D)", "dof_invweight0[obj_slidex]: 0.5 → 0.25"),
    )
    return replace(made, **given)


KINDS = {
    "registered on MuJoCo": case(),
    "registered with a state": case(environment=row(id="Pendulum-v1", arguments={"g": 9.81}), kind="state"),
    "discrete": case(environment=row(id="CartPole-v1"), kind="state", action=1),
    "two APIs": case(
        kind="state", older=replace(OLDER, packages=(("gym", "0.26.2"), ("mujoco", "2.3.7"), ("numpy", "1.26.4")))
    ),
    "gym": case(
        kind="state",
        older=replace(OLDER, packages=(("gym", "0.21.0"), ("numpy", "1.26.4"))),
        newer=replace(NEWER, packages=(("gym", "0.26.2"), ("numpy", "1.26.4"))),
    ),
    "scene": case(environment=row(mjcf="scenes/b.xml", arguments={"frame_skip": 5, "keyframe": "up"}), scene=SCENE),
    "scene with files": case(
        environment=row(mjcf="scenes/b.xml"),
        scene=Attachment(main="models/b.xml", files={"models/b.xml": b"<mujoco/>", "meshes/a.stl": b"\0"}),
    ),
    "task": case(environment=row(dm_control="walker/walk", arguments={"task_kwargs": {"time_limit": 5}})),
    "two Pythons": case(older=replace(OLDER, python="3.9.18")),
    "not numbers": case(
        state=(math.inf, -math.inf),
        older=replace(OLDER, outcome=replace(OLDER.outcome, reward=math.nan)),
        ratio=math.inf,
    ),
    "another length": case(older=replace(OLDER, outcome=replace(OLDER.outcome, observation=(0.1,)))),
    "many numbers": case(
        state=tuple(np.random.default_rng(0).normal(size=47)),
        older=replace(OLDER, outcome=replace(OLDER.outcome, observation=tuple(np.arange(350) / 7))),
        newer=replace(NEWER, outcome=replace(NEWER.outcome, observation=tuple(np.arange(350) / 7.5))),
    ),
}
