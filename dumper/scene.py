"""A MuJoCo model straight on the bindings, without gymnasium: the user's own scene.

A scene takes two arguments: ``frame_skip``, how many simulator steps one step is made of (1 unless given), and
``keyframe``, the name or number of the keyframe that it starts from (the model's own reference unless given).

Its observation is ``sensordata`` followed by every body's position and orientation in the world, as a program finds
them after ``mj_step``. They belong to the beginning of the last simulator step, not to its end: that is when MuJoCo
computes them. What that step made of them is in the state.
"""

import hashlib

import numpy as np

from dumper.on_mujoco import OnMujoco, box
from dumper.worlds import Unavailable

_BAD_STATES = ("mjWARN_BADQPOS", "mjWARN_BADQVEL", "mjWARN_BADQACC")


class Scene(OnMujoco):
    """An MJCF file. It has no reward; it terminates where MuJoCo finds its own state bad."""

    def __init__(self, mujoco, path, arguments):
        model = mujoco.MjModel.from_xml_path(path)
        super().__init__(mujoco, model, mujoco.MjData(model))
        self._path = path
        self._frame_skip = _checked(arguments)
        self._keyframe = _keyframe(mujoco, model, arguments.get("keyframe"))
        self._parts = (self._data.sensordata, self._data.xpos[1:].ravel(), self._data.xquat[1:].ravel())
        self.reset(0)

    def reset(self, seed):
        """Start from the reference: nothing here is random, so every seed gives the same."""
        self._clear()
        self.overwrite(self.read())
        return np.concatenate(self._parts)

    def impose(self, state):
        """Clear the data and overwrite the state."""
        self._clear()
        self.overwrite(state)

    def stepper(self, action):
        """Return a function of the action: ``mj_step`` as often as ``frame_skip`` says."""
        model, data, parts, frame_skip = self._model, self._data, self._parts, self._frame_skip
        mj_step, concatenate = self._mujoco.mj_step, np.concatenate
        control, warned = data.ctrl, data.warning.number
        bad = [int(getattr(self._mujoco.mjtWarning, name)) for name in _BAD_STATES]
        first, last = min(bad), max(bad) + 1  # neighbours, though not at the same place in all releases

        def step(action):
            control[:] = action
            mj_step(model, data, frame_skip)
            return concatenate(parts), 0.0, bool(warned[first:last].any()), False, {}

        return step

    def description(self):
        """Everything about the scene that is not a step, with the constants of the compiled model."""
        entries = sum(len(part) for part in self._parts)
        observation = {"type": "Box", "shape": [entries], "dtype": "float64", "low": None, "high": None}
        with open(self._path, "rb") as file:
            digest = hashlib.sha256(file.read()).hexdigest()
        return self._described(observation, float(self._model.opt.timestep) * self._frame_skip, None, digest)

    def dissect(self, found):
        """The compiled model, and how it is stepped."""
        super().dissect(found)
        found.add("attribute.frame_skip", self._frame_skip)

    def reference(self):
        """The model's reference, or the keyframe."""
        self._clear()
        return self.read()

    def action(self):
        """The controls within their ranges."""
        limited = np.asarray(self._model.actuator_ctrllimited, dtype=bool)
        low, high = np.where(limited[:, None], self._model.actuator_ctrlrange, [-np.inf, np.inf]).T
        return box(low, high)

    def _clear(self):
        """Forget everything: the data become those of the reference, or of the keyframe with its mocap bodies."""
        if self._keyframe is None:
            self._mujoco.mj_resetData(self._model, self._data)
        else:
            self._mujoco.mj_resetDataKeyframe(self._model, self._data, self._keyframe)


def _checked(arguments):
    """How many simulator steps make a step; anything else than what a scene takes is a mistake in the matrix."""
    unknown = sorted(set(arguments) - {"frame_skip", "keyframe"})
    if unknown:
        raise ValueError("a scene takes frame_skip and keyframe, not %s" % ", ".join(unknown))
    frame_skip = arguments.get("frame_skip", 1)
    if type(frame_skip) is not int or frame_skip < 1:
        raise ValueError("frame_skip is %r, and must be a whole number from 1 on" % (frame_skip,))
    return frame_skip


def _keyframe(mujoco, model, wanted):
    """The number of the keyframe that was asked for by name or number."""
    if wanted is None:
        return None
    number = wanted
    if isinstance(wanted, str):
        number = mujoco.mj_name2id(model, int(mujoco.mjtObj.mjOBJ_KEY), wanted)
    if not 0 <= number < model.nkey:
        raise Unavailable("the scene has no keyframe %r" % (wanted,))
    return number
