"""Make a world: an environment of some kind, with one way to reset, impose, read and step it.

``World`` is what every kind offers. Kinds differ in how their state is handed over: most are forced into any state,
some can only be replayed from a seed, and some are tables.
"""

import importlib

import numpy as np


class Unavailable(Exception):
    """The release does not offer this environment, or not in a form that can be audited."""


class World:
    """An environment made in a release. What a kind cannot tell, it leaves as it is here."""

    kind = ""
    evidence = "forced"  # or "replayed" from a seed, or a "table" of all transitions

    def layout(self):
        """What the orchestrator must know to draw states and actions: sizes, a reference state, the action space."""
        raise NotImplementedError

    def description(self):
        """Everything about the environment that is not a step."""
        raise NotImplementedError

    def reset(self, seed):
        """Start an episode from a seed; return the first observation."""
        raise NotImplementedError

    def impose(self, state):
        """Start an episode and overwrite its state, so that nothing of what was before, or of the reset, is left."""
        raise NotImplementedError

    def place(self, state):
        """Go to a state as far as is needed to tell what acts in it, which may be faster than to impose it."""
        self.impose(state)

    def read(self):
        """The state now, in full precision."""
        raise NotImplementedError

    def stepper(self, action):
        """Return a function of the action that gives five values: observation, reward, terminated, truncated, info."""
        raise NotImplementedError

    def copier(self, rows):
        """Return a function of ``k`` that copies the state into ``rows[k]``: what the loop calls at every step."""

        def copy(k):
            rows[k] = self.read()

        return copy

    def features(self):
        """Names of what may act in a state, such as a pair of geoms in contact; none where the kind cannot tell."""
        return []

    def acting(self):
        """Which of the features act in the state that the simulator is in now."""
        return np.zeros(0, dtype=np.bool_)

    def gap(self, index):
        """How far a feature is from acting: a number that a search can make smaller."""
        return float("inf")

    def constants(self):
        """Names of constants that could be moved to plant a fault, the likeliest to act first."""
        return []

    def move(self, name, factor):
        """Multiply a constant and whatever follows from it."""
        raise NotImplementedError

    def edit(self, name, value):
        """Set a constant otherwise, before anything is stepped."""
        raise Unavailable("it has no %s that could be edited" % name)

    def dissect(self, found):
        """Tell everything that it is made of to ``found``, an :class:`~dumper.anatomy.Anatomy`."""
        raise NotImplementedError

    def watcher(self, rows):
        """Return what sees how a step comes about, from each of so many states: a :class:`~dumper.stages.Watcher`."""
        raise Unavailable("what this kind of environment computes within a step cannot be seen")

    def tracer(self, rows):
        """Return the like for the Python that a step is written in."""
        raise Unavailable("what this kind of environment does in Python cannot be seen")

    def close(self):
        """Let go of windows and files."""


def make(kind, source, arguments, files, edits):
    """Make the world that ``source`` names, and set in it what ``edits`` has by name."""
    in_file = {name: value for name, value in edits.items() if "@" in name}
    if in_file:
        from dumper import model_file

        with model_file.edited(in_file):
            world = _make(kind, source, arguments, files)
    else:
        world = _make(kind, source, arguments, files)
    try:
        for name in edits:
            if name not in in_file:
                world.edit(name, edits[name])
    except Exception:
        world.close()
        raise
    return world


def _make(kind, source, arguments, files):
    """An id, a scene's path, a task or an adapter's path."""
    if kind == "mjcf":
        from dumper.scene import Scene

        return Scene(importlib.import_module("mujoco"), files[source], arguments)
    if kind == "dm_control":
        from dumper.suite import SuiteTask

        return SuiteTask(source, arguments)
    if kind == "adapter":
        from dumper.adapter import Adapted

        return Adapted(files[source], arguments)
    from dumper import registered

    return registered.make(importlib.import_module(kind), source, arguments)
