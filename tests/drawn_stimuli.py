"""Ways to ask for trajectories, for tests of what is drawn."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import settings
from numpy.typing import NDArray

from audit.asked.environment_rows import EnvironmentRow
from audit.asked.stimulus_spec import StimulusSpec
from audit.stimuli import starts, stimulus
from audit.stimuli.layout import Layout
from audit.stimuli.stimulus import Stimulus

UNHURRIED = settings(deadline=None, max_examples=60)
DISCRETE: Any = {"type": "Discrete", "n": 3, "start": 0}
BOX: Any = {
    "type": "Box", "shape": [2], "dtype": "float32", "low": ["-1.0", "-0.4000000059604645"], "high": ["1.0", "0.5"],
}  # fmt: skip
LAYOUT = Layout(
    kind="state", state_size=4, positions=4, quaternions=(), reference=(0.0, 0.0, 0.0, 0.0), action=DISCRETE
)


def with_action(action: Any) -> Layout:
    return replace(LAYOUT, action=action)


def spec(**values: Any) -> StimulusSpec:
    return StimulusSpec.model_validate({"trajectories": 8, "steps": 5, **values})


def environment(**values: Any) -> EnvironmentRow:
    return EnvironmentRow.model_validate({"id": "E", **values})


def draw(spec: StimulusSpec, environment: EnvironmentRow, layout: Layout = LAYOUT) -> tuple[NDArray[Any], NDArray[Any]]:
    batch = starts.horizon(spec, environment, layout)
    return batch.starts, batch.actions


def assembled(spec: StimulusSpec, environment: EnvironmentRow, layout: Layout = LAYOUT) -> Stimulus:
    return stimulus.assemble({"horizon": starts.horizon(spec, environment, layout)})
