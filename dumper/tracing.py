"""What a step written in Python computes: every value that it assigns, in order, function by function.

While a step runs, Python tells of every line that is about to be executed. The statement before it has then assigned
what it assigns: which variables and which attributes of ``self`` those are stands in the source. So an assignment is an
event whether or not the value is a new one, and the third value of ``x`` is the same line's in every state, unless the
step went another way there.
"""

import os
import sys
from contextlib import contextmanager
from functools import lru_cache

import numpy as np

from dumper import source
from dumper.stages import Watcher
from dumper.worlds import Unavailable

MOST = 500
"""Values that are kept of one step."""

LARGEST = 64
"""Entries of an array that is kept; of a larger one, the values that were made of it are."""

RETURNED = "return"
"""The name of what a function returns: no variable can have it."""

_INTEGERS = 2**63  # from here on they do not fit into an array


def of_method(owner, name, rows):
    """Watch a method of an object, in the package of its class: wrappers around the object are not looked into."""

    def begins(frame):
        code = frame.f_code
        return code.co_name == name and code.co_argcount > 0 and frame.f_locals.get(code.co_varnames[0]) is owner

    inherited = getattr(type(owner), name)
    return Trace({_package(type(owner).__module__), _package(inherited.__module__)}, begins, rows)


def of_function(function, handle, rows):
    """Watch a function, in its own package and in that of the class of what it is handed."""
    code = getattr(function, "__code__", None)
    packages = {_package(function.__module__), _package(type(handle).__module__)} - {"builtins"}
    return Trace(packages, lambda frame: frame.f_code is code, rows)


class Trace(Watcher):
    """Watches a step from its first call for which ``begins`` is true, within ``packages`` (top-level names).

    What is called in other packages, such as numpy, is not looked into, but for what calls back.
    """

    def __init__(self, packages, begins, rows):
        super().__init__(rows)
        self._packages, self._begins = packages, begins
        self._first = None
        self._times, self._missed = {}, 0  # of the step that is watched
        # By function, variable and how manyth time: type and value for each row that has it, and where it was assigned.
        self._values, self._places = {}, {}
        self._beyond = 0

    @contextmanager
    def installed(self):
        yield  # it is only there while a step is watched

    def watch(self, step, action):
        self._first, self._times, self._missed = None, {}, 0
        before = sys.gettrace()
        sys.settrace(self._called)
        try:
            return step(action)
        finally:
            sys.settrace(before)
            self._first = None
            self._beyond = max(self._beyond, self._missed)

    def results(self):
        if not self._values:
            raise Unavailable("its step is not written in Python that could be read: nothing can be seen in it")
        arrays, dtypes, lines = {}, {}, {}
        left_out = {"beyond the first %d of a step" % MOST: self._beyond} if self._beyond else {}
        for key, told in self._values.items():
            kinds, values = zip(*told.values())
            reason = self._why_left_out(values)
            if reason:
                left_out[reason] = left_out.get(reason, 0) + 1
                continue
            name = "00.%s.%s#%d" % key
            arrays[name], dtypes[name], lines[name] = np.array(values), _common(kinds), "%s:%d" % self._places[key]
        return arrays, {"substeps": 1, "recorded": 1, "dtypes": dtypes, "lines": lines, "left_out": left_out}

    def _why_left_out(self, values):
        if any(value is None for value in values):
            return "not numbers, or more than %d of them" % LARGEST
        if len(values) < self.rows:
            return "not computed in every state"
        return "of another shape in another state" if len(set(map(np.shape, values))) > 1 else ""

    def _called(self, frame, event, _):
        """What Python asks at every call: whoever is to be told of the lines of this one."""
        if self._first is None:
            if not self._begins(frame):
                return None
            self._first = frame
        code = frame.f_code
        package = _package(str(frame.f_globals.get("__name__", "")))
        if package not in self._packages or code.co_name.startswith("<"):
            return None
        return self._follower(frame)

    def _follower(self, frame):
        path, first = frame.f_code.co_filename, frame.f_code.co_firstlineno
        functions, statements = source.read(path)
        function = functions.get(first)
        if function is None:  # made at run time: there is nothing to read
            return None
        file = os.path.basename(path)
        self._keep_all(function, _parameters(frame), (file, first))
        running = source.NO_STATEMENT

        def follow(frame, event, value):
            nonlocal running
            following = statements.get(frame.f_lineno, source.NO_STATEMENT)
            if event == "line" and following is running and running.first < running.last:
                return follow  # it goes on in another of its lines
            before, running = running, following
            if event == "exception":
                running = source.NO_STATEMENT  # it did not come to assign anything
            elif before.assigned:
                self._keep_all(function, _assigned(frame, before.assigned), (file, before.first))
            if event == "return":
                self._keep_all(function, [] if value is None else [(RETURNED, value)], (file, frame.f_lineno))
                if frame is self._first:
                    sys.settrace(None)  # what stands around it may go on in the same package
            return follow

        return follow

    def _keep_all(self, function, pairs, place):
        times, values = self._times, self._values
        for variable, value in pairs:
            time = times[function, variable] = times.get((function, variable), -1) + 1
            key = (function, variable, time)
            if key not in values:
                if len(values) == MOST:
                    self._missed += 1
                    continue
                values[key], self._places[key] = {}, place
            values[key][self.row] = _kept(value)


def _parameters(frame):
    code, given = frame.f_code, frame.f_locals
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return [(name, given[name]) for name in names if name != "self" and name in given]


def _assigned(frame, names):
    variables = frame.f_locals
    attributes = getattr(variables.get("self"), "__dict__", {})
    for name in names:
        owner, key = (attributes, name[5:]) if name.startswith("self.") else (variables, name)
        if key in owner:
            yield name, owner[key]


def _kept(value):
    """The type of a value, and its numbers, which nobody can change any more; none where it is something else."""
    kind = type(value).__name__
    if isinstance(value, float):
        return kind, value
    if isinstance(value, int):
        return kind, value if -_INTEGERS <= value < _INTEGERS else None
    if isinstance(value, (np.ndarray, np.generic)):
        numbers = value.dtype.kind in "biuf" and value.size <= LARGEST
        return _dtype_text(value.dtype), value.copy() if numbers else None
    if isinstance(value, (list, tuple)) and 0 < len(value) <= LARGEST and all(map(_is_number, value)):
        array = np.array(value)
        of_what = _common([type(each).__name__ for each in value])
        return "%s of %s" % (kind, of_what), array if array.dtype.kind in "biuf" else None
    return kind, None


@lru_cache(maxsize=None)  # numpy takes longer to say it than everything else about a value takes
def _dtype_text(dtype):
    return str(dtype)


def _is_number(value):
    return isinstance(value, (bool, int, float, np.number, np.bool_))


def _package(module):
    return module.partition(".")[0]


def _common(kinds):
    return kinds[0] if len(set(kinds)) == 1 else "mixed"
