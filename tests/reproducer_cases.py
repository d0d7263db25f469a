"""Changes made up for tests of reproducers, one of every kind."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from audit.asked.attachments import Attachment
from audit.asked.environment_rows import EnvironmentRow
from audit.explanations.reproducer_case import Case, Outcome, Reset, Side, Step

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
STEP = Step(state=(0.1, 1 / 3), action=(0.25,), action_dtype="float32")
SCENE = '<mujoco><worldbody><body name="b"><joint/><geom size="1"/></body></worldbody></mujoco>'


def row(**given: Any) -> EnvironmentRow:
    return EnvironmentRow.model_validate(given or {"id": "Pusher-v4"})


def case(**given: Any) -> Case:
    made = Case(
        environment=row(),
        kind="mujoco",
        older=OLDER,
        newer=NEWER,
        given=STEP,
        beyond=31,
        tried=512,
        ratio=3.4e9,
        told=("first stage: constraint assembly (efc_D)", "dof_invweight0[obj_slidex]: 0.5 → 0.25"),
    )
    return replace(made, **given)


def after_reset(side: Side, state: float) -> Side:
    return replace(side, outcome=Outcome(state=(state, 0.0), observation=(state, 0.0, 1.0), reward=None))


RESET: dict[str, Any] = {
    "older": after_reset(OLDER, 0.5),
    "newer": after_reset(NEWER, 0.75),
    "given": Reset(seed=3),
    "beyond": 30,
    "tried": 32,
}
EDITED: dict[str, Any] = {
    "older": replace(OLDER, name="shipped"),
    "newer": replace(
        NEWER, name="heavier", packages=OLDER.packages, edits={"MASS": 1.3, "POWERS": (1.0, 2.5), "kind": "nips"}
    ),
}
IN_FILE: dict[str, Any] = {
    "older": replace(OLDER, edits={"geom@size": (1, 2.5), "body[@name='b']@pos": "0 0 1"}),
    "newer": replace(NEWER, edits={"geom@size": (1, 2.5), "body[@name='b']@pos": "0 0 1"}),
}
ADAPTER = Attachment(main="mujoco.py", files={"mujoco.py": b"def make(length=1.0):\n    return length\n"})

KINDS = {
    "registered on MuJoCo": case(),
    "registered with a state": case(environment=row(id="Pendulum-v1", arguments={"g": 9.81}), kind="state"),
    "discrete": case(environment=row(id="CartPole-v1"), kind="state", given=replace(STEP, action=1)),
    "two APIs": case(
        kind="state", older=replace(OLDER, packages=(("gym", "0.26.2"), ("mujoco", "2.3.7"), ("numpy", "1.26.4")))
    ),
    "gym": case(
        kind="state",
        older=replace(OLDER, packages=(("gym", "0.21.0"), ("numpy", "1.26.4"))),
        newer=replace(NEWER, packages=(("gym", "0.26.2"), ("numpy", "1.26.4"))),
    ),
    "scene": case(environment=row(mjcf="scenes/b.xml", arguments={"frame_skip": 5, "keyframe": "up"}), attached=SCENE),
    "scene with files": case(
        environment=row(mjcf="scenes/b.xml"),
        attached=Attachment(main="models/b.xml", files={"models/b.xml": b"<mujoco/>", "meshes/a.stl": b"\0"}),
    ),
    "task": case(environment=row(dm_control="walker/walk", arguments={"task_kwargs": {"time_limit": 5}})),
    "reset on MuJoCo": case(**RESET),
    "reset with a state": case(environment=row(id="CartPole-v1"), kind="state", **RESET),
    "reset of what cannot be imposed": case(environment=row(id="Blackjack-v1"), kind="replay", **RESET),
    "reset of two APIs": case(
        **RESET | {"older": replace(RESET["older"], packages=(("gym", "0.21.0"), ("numpy", "1.26.4")))}
    ),
    "reset of a scene": case(environment=row(mjcf="scenes/b.xml"), attached=SCENE, **RESET),
    "reset of a task": case(environment=row(dm_control="walker/walk"), **RESET),
    "reset through an adapter": case(environment=row(adapter="mine.py"), kind="adapter", attached=ADAPTER, **RESET),
    "edited": case(kind="state", **EDITED),
    "edited alike": case(
        kind="state", older=replace(OLDER, edits={"dt": 0.01}), newer=replace(NEWER, edits={"dt": 0.01})
    ),
    "edited file": case(**IN_FILE),
    "edited file of a scene": case(environment=row(mjcf="scenes/b.xml"), attached=SCENE, **IN_FILE),
    "edited file of a task": case(environment=row(dm_control="walker/walk"), **IN_FILE),
    "edited, and reset": case(
        **RESET | {"newer": replace(RESET["newer"], edits={"model.opt.timestep": 0.01, "geom@size": True})}
    ),
    "adapter": case(
        environment=row(adapter="mine.py", arguments={"length": 2}), kind="adapter", attached=ADAPTER, **EDITED
    ),
    "two Pythons": case(older=replace(OLDER, python="3.9.18")),
    "not numbers": case(
        given=replace(STEP, state=(math.inf, -math.inf)),
        older=replace(OLDER, outcome=replace(OLDER.outcome, reward=math.nan)),
        ratio=math.inf,
    ),
    "another length": case(older=replace(OLDER, outcome=replace(OLDER.outcome, observation=(0.1,)))),
    "many numbers": case(
        given=replace(STEP, state=tuple(np.random.default_rng(0).normal(size=47))),
        older=replace(OLDER, outcome=replace(OLDER.outcome, observation=tuple(np.arange(350) / 7))),
        newer=replace(NEWER, outcome=replace(NEWER.outcome, observation=tuple(np.arange(350) / 7.5))),
    ),
}
