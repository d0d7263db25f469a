"""Tasks of dm_control's suite, through ``suite.load`` and the environment's own step.

A task's arguments are those of ``suite.load``: ``task_kwargs``, ``environment_kwargs``, ``visualize_reward``.

Many tasks draw more than a state when an episode begins: where the target is, how strong an actuator pulls. They write
it into the model. So a state is imposed after a reset from a fixed seed, which also winds back the count of steps and
whatever the task remembers.
"""

import hashlib
import importlib
import inspect
import os

import numpy as np

from dumper import anatomy
from dumper.on_mujoco import OnMujoco, box
from dumper.worlds import Unavailable

SEED = 0  # of the model that some tasks draw when they are made, and of the reset before a state is imposed


class EpisodeOver(Exception):
    """A step was asked for after the last one; dm_control would answer with a new episode, of its own drawing."""


class SuiteTask(OnMujoco):
    """A task such as ``walker/walk``, forced into states of its physics."""

    def __init__(self, name, arguments):
        self._env = _load(_import_suite(), name, arguments)
        self._error = importlib.import_module("dm_control.rl.control").PhysicsError
        self._over = False
        self.reset(SEED)
        physics = self._env.physics
        super().__init__(importlib.import_module("mujoco"), physics.model.ptr, physics.data.ptr)
        self._reference = self.read()

    def reset(self, seed):
        """Start an episode as a task that was made with ``random=seed`` would start its first."""
        self._env.task.random.seed(seed)
        self._over = False
        return _flat(self._env.reset().observation)

    def impose(self, state):
        """Start the episode of the fixed seed, clear the data, overwrite the state."""
        self.reset(SEED)
        # Some tasks simulate until they stand before an episode begins. What is left of that goes, except where they
        # put the bodies that only they move.
        data = self._data
        mocap = data.mocap_pos.copy(), data.mocap_quat.copy()
        self._mujoco.mj_resetData(self._model, data)
        data.mocap_pos[:], data.mocap_quat[:] = mocap
        self.overwrite(state)

    def stepper(self, action):
        """Return the environment's own step, its time step unpacked."""

        def step(action):
            if self._over:
                raise EpisodeOver("the episode is over")
            try:
                taken = self._env.step(action)
            except self._error:  # MuJoCo found its state bad: where a scene terminates, dm_control raises
                self._over = True
                observation = self._env.task.get_observation(self._env.physics)
                return _flat(observation), 0.0, True, False, {}
            self._over = last = taken.last()
            ended = last and taken.discount == 0.0
            reward = 0.0 if taken.reward is None else float(taken.reward)
            return _flat(taken.observation), reward, ended, last and not ended, {}

        return step

    def description(self):
        """Everything about the task that is not a step; the source is that of the task's module."""
        specs = self._env.observation_spec()
        text = "; ".join("%s: %s%s" % (key, specs[key].dtype, specs[key].shape) for key in sorted(specs))
        source = _source_digest(type(self._env.task))
        return self._described({"type": "Dict", "text": text}, float(self._env.control_timestep()), source, None)

    def dissect(self, found):
        """The compiled model as the fixed seed draws it, what the task holds, and how often it steps the physics."""
        super().dissect(found)
        anatomy.add_attributes(found, self._env.task, self.reset)
        found.add("attribute.control_timestep", self._env.control_timestep())
        anatomy.add_space(found, "space.action", self._env.action_spec())

    def reference(self):
        """The state in which the episode of the fixed seed begins."""
        return self._reference.copy()

    def action(self):
        """The controls within their ranges."""
        spec = self._env.action_spec()
        return box(np.broadcast_to(spec.minimum, spec.shape), np.broadcast_to(spec.maximum, spec.shape))

    def close(self):
        """Let go of the physics."""
        self._env.close()


def _import_suite():
    os.environ.setdefault("MUJOCO_GL", "disable")  # nothing is drawn here, and looking for a display takes its time
    try:
        return importlib.import_module("dm_control.suite")
    except ImportError as error:
        raise Unavailable("dm_control cannot be imported: %s" % error)


def _load(suite, name, arguments):
    domain, _, task = name.partition("/")
    if (domain, task) not in suite.ALL_TASKS:
        raise Unavailable("the suite has no task %s" % name)
    keywords = dict(arguments)
    keywords["task_kwargs"] = dict(keywords.get("task_kwargs", {}), random=SEED)
    return suite.load(domain, task, **keywords)


def _flat(observation):
    """One vector: the parts in the order of their names, so that another order of the same parts is no change."""
    return np.concatenate([np.ravel(observation[key]).astype(np.float64) for key in sorted(observation)])


def _source_digest(cls):
    try:
        return hashlib.sha256(inspect.getsource(inspect.getmodule(cls)).encode("utf-8")).hexdigest()
    except (OSError, TypeError):  # a class without a source file, such as a compiled one
        return None
