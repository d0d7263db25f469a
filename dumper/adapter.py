"""The user's own environment, through a file of a few functions: ``adapter: file.py``.

The file runs inside each release's virtualenv and imports there whatever it audits. It defines

    make(**arguments)        anything, the *handle* that is passed to all others; arguments come from the matrix
    layout(handle)           {"state_size": 3}, and if it likes
                               "positions"    how many entries, the first ones, are positions (all)
                               "quaternions"  where in the state unit quaternions begin (none)
                               "reference"    the state that others are drawn around (what ``read`` gives at first)
                               "low", "high"  limits of each entry, None for an entry without one (none)
    actions(handle)          {"low": [-1.0], "high": [1.0]} for vectors of floats, {"n": 3} for one of 0, 1, 2
    impose(handle, state)    go to that state, a vector of float64, leaving nothing of what was before
    read(handle)             the state now, in full precision, as a vector of numbers
    step(handle, action)     (observation, reward, terminated, truncated)

and, where it can,

    reset(handle, seed)      start an episode from that seed and return the first observation; without it, an episode
                             starts at the reference, and what is returned is the state
    constants(handle)        {"gravity": 9.81}: constants that a run may move to prove that it would notice, the
                             likeliest to act first
    move(handle, name, factor)   multiply that constant
    edit(handle, name, value)    set what the matrix's ``edits`` name to a number, text or list, before anything is
                             stepped; a LookupError says that there is no such thing
    acting(handle)           {"at the stop": False}: what acts in the state it is in, always under the same names

It draws no random numbers other than in ``reset``. Observations are arrays of numbers, always of one shape and dtype.
"""

import hashlib
import importlib.util
import platform

import numpy as np

from dumper import tracing
from dumper.worlds import Unavailable, World

_REQUIRED = ("make", "layout", "actions", "impose", "read", "step")
_OPTIONAL = ("reset", "constants", "move", "acting", "edit")


class BadAdapter(Exception):
    """The adapter lacks something, or gave something that makes no sense."""


class Adapted(World):
    """An environment behind an adapter."""

    kind = "adapter"

    def __init__(self, path, arguments):
        self._path = path
        functions = _load(path)
        self._handle = functions.pop("make")(**arguments)
        self._functions = functions
        if ("constants" in functions) != ("move" in functions):
            raise BadAdapter("constants and move belong together, and the adapter has only one of them")
        self._describe()

    def layout(self):
        """What the adapter says, with everything that it left out."""
        return self._layout

    def description(self):
        """Everything about the environment that is not a step; the source is the adapter's own."""
        with open(self._path, "rb") as file:
            digest = hashlib.sha256(file.read()).hexdigest()
        observation = np.asarray(self.reset(0))
        return {
            "layout": self._layout,
            "spaces": {
                "action": self._actions,
                "observation": {"type": "Box", "shape": list(observation.shape), "dtype": str(observation.dtype)},
            },
            "time_step": None,
            "constants": {name: repr(value) for name, value in self._constants.items()},
            "source_sha256": digest,
            "model_sha256": None,
            "python": platform.python_version(),
            "numpy": np.__version__,
        }

    def reset(self, seed):
        """Start an episode; where the adapter has no ``reset``, at the reference."""
        if "reset" in self._functions:
            return _observation("reset", self._ask("reset", seed))
        self.impose(np.array(self._layout["reference"]))
        return self.read()

    def impose(self, state):
        """Go to a state."""
        self._ask("impose", np.array(state, dtype=np.float64))  # a copy: the adapter may keep it and step in it

    def read(self):
        """The state now."""
        return self._vector("read", self._ask("read"), self._layout["state_size"])

    def stepper(self, action):
        """Return the adapter's step with its answer checked and a fifth value."""
        handle, take = self._handle, self._functions["step"]

        def step(action):
            taken = take(handle, action)
            try:
                observation, reward, terminated, truncated = taken
                reward = float(reward)
            except (TypeError, ValueError):
                raise BadAdapter("step gave %r and not (observation, reward, terminated, truncated)" % (taken,))
            return _observation("step", observation), reward, bool(terminated), bool(truncated), {}

        return step

    def dissect(self, found):
        """The constants that the adapter names, and its actions."""
        found.add_all("", self._constants)
        for limit in ("n", "low", "high"):
            if limit in self._actions:
                found.add("space.action." + limit, np.array(self._actions[limit], dtype=np.float64))

    def watcher(self, rows):
        return self.tracer(rows)

    def tracer(self, rows):
        """What the adapter's step assigns, and what it calls in the package of the handle."""
        return tracing.of_function(self._functions["step"], self._handle, rows)

    def features(self):
        """The names that ``acting`` uses."""
        return self._features

    def acting(self):
        """Which of the features act now."""
        if not self._features:
            return super().acting()
        now = self._ask("acting")
        if list(now) != self._features:
            raise BadAdapter("acting named %s before and now %s" % (self._features, list(now)))
        return np.array([bool(now[name]) for name in self._features], dtype=np.bool_)

    def constants(self):
        """Names of the adapter's constants that are not zero, in its order."""
        return [name for name, value in self._constants.items() if value != 0]

    def move(self, name, factor):
        """Multiply a constant."""
        if name not in self._constants:
            raise BadAdapter("there is no constant %r to move" % (name,))
        self._ask("move", name, factor)

    def edit(self, name, value):
        """Let the adapter set it, and describe itself anew."""
        if "edit" not in self._functions:
            raise Unavailable("its adapter has no function edit: %s cannot be edited" % name)
        try:
            self._ask("edit", name, value)
        except LookupError:
            raise Unavailable("it has no %s that could be edited to %r" % (name, value))
        self._describe()

    def _describe(self):
        """Ask all that does not change from step to step."""
        self._actions = _actions(self._ask("actions"))
        self._layout = self._checked_layout()
        told = self._ask("constants") if "constants" in self._functions else {}
        self._constants = _numbers_by_name("constants", told)
        self._features = self._feature_names()

    def _ask(self, function, *values):
        return self._functions[function](self._handle, *values)

    def _checked_layout(self):
        given = self._ask("layout")
        if not isinstance(given, dict) or not _is_count(given.get("state_size")):
            raise BadAdapter("layout gave %r, without a state_size of at least 1" % (given,))
        size = given["state_size"]
        layout = {
            "kind": self.kind,
            "evidence": self.evidence,
            "state_size": size,
            "positions": given.get("positions", size),
            "quaternions": list(given.get("quaternions", ())),
            "low": _limits("low", given.get("low"), size),
            "high": _limits("high", given.get("high"), size),
            "action": self._actions,
        }
        reference = given["reference"] if "reference" in given else self._ask("read")
        layout["reference"] = self._vector("reference", reference, size).tolist()
        unknown = sorted(set(given) - set(layout))
        if unknown:
            raise BadAdapter("layout has %s, which means nothing here" % ", ".join(unknown))
        if not isinstance(layout["positions"], int) or not 0 <= layout["positions"] <= size:
            raise BadAdapter("layout says that %r of %d entries are positions" % (layout["positions"], size))
        if any(not isinstance(start, int) or not 0 <= start <= size - 4 for start in layout["quaternions"]):
            raise BadAdapter("layout has quaternions at %r in a state of %d" % (layout["quaternions"], size))
        return layout

    def _feature_names(self):
        if "acting" not in self._functions:
            return []
        now = self._ask("acting")
        if not isinstance(now, dict):
            raise BadAdapter("acting gave %r and not a dictionary of names" % (now,))
        return list(now)

    def _vector(self, what, given, size):
        try:
            vector = np.array(given, dtype=np.float64)
        except (TypeError, ValueError):
            raise BadAdapter("%s is %r and not a vector of numbers" % (what, given))
        if vector.shape != (size,):
            raise BadAdapter("%s has the shape %s and state_size is %d" % (what, vector.shape, size))
        return vector


def _load(path):
    """The adapter's functions by name. What its imports raise is the release's affair and goes through."""
    spec = importlib.util.spec_from_file_location("audited_adapter", path)
    if spec is None:
        raise BadAdapter("%s is not a Python file" % path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    missing = [name for name in _REQUIRED if not callable(getattr(module, name, None))]
    if missing:
        raise BadAdapter("the adapter does not define %s" % ", ".join(missing))
    names = _REQUIRED + tuple(name for name in _OPTIONAL if callable(getattr(module, name, None)))
    return {name: getattr(module, name) for name in names}


def _actions(given):
    if isinstance(given, dict) and set(given) == {"n"} and _is_count(given["n"]):
        return {"type": "Discrete", "n": given["n"], "start": 0}
    if not isinstance(given, dict) or set(given) != {"low", "high"}:
        raise BadAdapter('actions gave %r and neither {"low": …, "high": …} nor {"n": …}' % (given,))
    low, high = list(given["low"]), list(given["high"])
    if len(low) != len(high) or not all(_is_number(value) for value in low + high):
        raise BadAdapter("actions gave %r, which are not two lists of finite numbers of one length" % (given,))
    if any(bottom > top for bottom, top in zip(low, high)):
        raise BadAdapter("actions gave %r, where a low is above its high" % (given,))
    limits = {"low": [repr(float(value)) for value in low], "high": [repr(float(value)) for value in high]}
    return dict(limits, type="Box", shape=[len(low)], dtype="float64")


def _limits(side, given, size):
    if given is None:
        return [None] * size
    values = list(given)
    if len(values) != size or not all(value is None or _is_number(value) for value in values):
        raise BadAdapter("layout's %s is %r and not a number or None for each of %d entries" % (side, given, size))
    return [None if value is None else float(value) for value in values]


def _numbers_by_name(what, given):
    if not isinstance(given, dict) or not all(_is_number(value) for value in given.values()):
        raise BadAdapter("%s gave %r and not numbers by name" % (what, given))
    return {str(name): float(value) for name, value in given.items()}


def _observation(what, given):
    observation = np.array(given)  # a copy: the adapter may go on writing into what it gave
    if observation.dtype.kind not in "biuf":
        raise BadAdapter("%s gave the observation %r, which is not an array of numbers" % (what, given))
    return observation


def _is_count(value):
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _is_number(value):
    return isinstance(value, (int, float, np.number)) and bool(np.isfinite(value))
