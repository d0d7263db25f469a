"""What all worlds have in common whose MuJoCo model and data are at hand."""

import platform
from types import SimpleNamespace

import numpy as np

from dumper import anatomy, describe
from dumper.physics import Physics
from dumper.worlds import World

_UNLIMITED = 1e6  # a control that may go further is not limited; some releases say so by a huge number
# The parts of a model that a step depends on; the rest is for looking at.
_PHYSICAL = ("body_", "jnt_", "dof_", "geom_", "pair_", "eq_", "tendon_", "wrap_", "actuator_")


class OnMujoco(World):
    """A world whose state is qpos, qvel, act."""

    kind = "mujoco"

    def __init__(self, mujoco, model, data):
        self._mujoco, self._model, self._data = mujoco, model, data
        self._state = (data.qpos, data.qvel, data.act)  # views of the simulator's own memory
        self._physics = Physics(mujoco, model, data)
        self._names = anatomy.Names(self._physics, model)
        for name in ("features", "acting", "gap", "place", "constants", "move"):
            setattr(self, name, getattr(self._physics, name))

    def read(self):
        """The state now."""
        return np.concatenate(self._state)

    def copier(self, rows):
        """Return a function of ``k`` that copies the state into ``rows[k]``."""
        parts = [(rows[:, start:stop], view) for start, stop, view in self._slices() if stop > start]

        def copy(k):
            for part, view in parts:
                part[k] = view

        return copy

    def overwrite(self, state):
        """Set the state in data that have just been cleared, and compute what follows from it.

        A step computes all of that again. It is wanted before the step: by whoever asks what acts in this state, and
        by dm_control, whose step begins in the middle. But it leaves traces, and not in every release the same: up to
        mujoco 3.3.5 its accelerations, as the next step's warm start; in old releases it also normalises quaternions
        in place. So both are set back: every release starts its first step from the state it was given, cold, and
        takes it to the same bits as without any of this.
        """
        for start, stop, view in self._slices():
            view[:] = state[start:stop]
        self._mujoco.mj_forward(self._model, self._data)
        self._data.qpos[:] = state[: self._model.nq]
        self._data.qacc_warmstart[:] = 0

    def dissect(self, found):
        """The compiled model."""
        anatomy.add_model(found, self._names, self._model)

    def watcher(self, rows):
        """What MuJoCo computes, substep by substep."""
        from dumper.substeps import Substeps

        return Substeps(self._mujoco, self._model, self._data, self._names, rows)

    def layout(self):
        """Sizes, quaternions and limits as the model has them."""
        low, high = self._physics.bounds()
        reference = self.reference()
        return {
            "kind": self.kind,
            "evidence": self.evidence,
            "state_size": len(reference),
            "positions": int(self._model.nq),
            "quaternions": describe.quaternions(self._model),
            "reference": reference.tolist(),
            "low": describe.limits(low),
            "high": describe.limits(high),
            "action": self.action(),
        }

    def reference(self):
        """The state that others are drawn around."""
        raise NotImplementedError

    def action(self):
        """The action space."""
        raise NotImplementedError

    def _described(self, observation, time_step, source, model):
        return {
            "layout": self.layout(),
            "spaces": {"action": self.action(), "observation": observation},
            "time_step": time_step,
            "constants": _model_constants(self._model),
            "source_sha256": source,
            "model_sha256": model,
            "python": platform.python_version(),
            "numpy": np.__version__,
        }

    def _slices(self):
        start = 0
        for view in self._state:
            yield start, start + len(view), view
            start += len(view)


def box(low, high):
    """A box of float64 actions; an action without a limit is drawn between -1 and 1."""
    low, high = np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
    low = np.where(low > -_UNLIMITED, low, -1.0)
    high = np.where(high < _UNLIMITED, high, 1.0)
    return {
        "type": "Box",
        "shape": list(low.shape),
        "dtype": "float64",
        "low": [repr(float(value)) for value in low],
        "high": [repr(float(value)) for value in high],
    }


def _model_constants(model):
    """The numbers of the compiled model that a step depends on, and its options: what a release made of the file."""
    numbers = {"opt." + name: getattr(model.opt, name) for name in dir(model.opt) if not name.startswith("_")}
    for name in dir(model):
        if name.startswith(_PHYSICAL) and not name.endswith("rgba"):
            value = getattr(model, name)
            if isinstance(value, np.ndarray) and value.size and value.dtype.kind == "f":
                numbers[name] = value
    return describe.constants(SimpleNamespace(**numbers))
