"""What a step written in Python computes: every value that it assigns, in order, function by function.

The functions that a step calls in its package are rewritten for as long as it is watched: after each assignment they
tell what was assigned. Following them line by line (``sys.settrace``) tells the same and takes ten times as long. An
assignment is an event whether or not the value is a new one, and the third value of ``x`` is the same line's in every
state, unless the step went another way there.
"""

import gc
import os
import sys
import types
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

_INTEGERS = 2**63  # from here on they do not fit into an array
_NUMBERS = frozenset([float, bool, np.float64, np.float32])
_IMMUTABLE = _NUMBERS | {int}


def of_method(owner, name, rows):
    """Watch a method of an object, in the package of its class: wrappers around the object are not looked into."""

    def begins(frame):
        code = frame.f_code
        return code.co_name == name and code.co_argcount > 0 and frame.f_locals.get(code.co_varnames[0]) is owner

    inherited = getattr(type(owner), name)
    return Trace({_package(type(owner).__module__), _package(inherited.__module__)}, begins, rows)


def of_function(function, handle, rows):
    """Watch a function, in its own package and in that of the class of what it is handed."""
    packages = {_package(function.__module__), _package(type(handle).__module__)} - {"builtins"}
    return Trace(packages, lambda frame: frame.f_code is getattr(function, "__code__", None), rows)


class Trace(Watcher):
    """Watches a step from its first call for which ``begins`` is true, within ``packages`` (top-level names).

    What is called in other packages, such as numpy, is not looked into, but for what calls back. Which functions a step
    calls is found out in the first state, and its step taken once more when they are rewritten. What is called only in
    other states is not computed in every state, and would be left out.
    """

    def __init__(self, packages, begins, rows):
        super().__init__(rows)
        self._packages, self._begins = packages, begins
        self._called = None  # code and globals of what the step calls, by id, the step itself first
        self._rewritten = []  # functions with the code that is their own
        self._name = ""  # of the step's own function
        self._seen = []  # by rewritten functions: sites and values in turn
        self._ways = {}  # by the sites that a step came by: the values of each row

    @contextmanager
    def installed(self):
        try:
            yield
        finally:
            for function, code in self._rewritten:
                function.__code__ = code
                for name in self._offered():
                    function.__globals__.pop(name, None)

    def watch(self, step, action):
        if self._called is None:
            self.missed.append(self.row)
            return self._find_out(step, action)
        del self._seen[:]
        taken = step(action)
        self._ways.setdefault(tuple(self._seen[0::2]), {})[self.row] = self._seen[1::2]
        return taken

    def results(self):
        columns, beyond = self._columns()
        if not columns:
            raise Unavailable("its step is not written in Python that could be read: nothing can be seen in it")
        arrays, dtypes, lines = {}, {}, {}
        left_out = {"beyond the first %d of a step" % MOST: beyond} if beyond else {}
        for (function, variable, time), (site, parts) in columns.items():
            kind, array, reason = self._column(parts)
            if kind == "NoneType" and variable == source.RETURNED:
                continue
            if reason:
                left_out[reason] = left_out.get(reason, 0) + 1
                continue
            name = "00.%s.%s#%d" % (function, variable, time)
            arrays[name], dtypes[name] = array, kind
            lines[name] = "%s:%d" % (os.path.basename(site[2]), site[3])
        return arrays, {"substeps": 1, "recorded": 1, "dtypes": dtypes, "lines": lines, "left_out": left_out}

    def _columns(self):
        """By function, variable and how manyth time: where it was first assigned, and rows with their values."""
        columns, beyond = {}, 0
        for sites, steps in sorted(self._ways.items(), key=lambda way: min(way[1])):
            within = self._within(sites)
            own = sites[within][:MOST]
            beyond = max(beyond, len(sites[within]) - MOST)
            rows = sorted(steps)
            by_site = zip(*(steps[row][within] for row in rows))  # of all steps that went the same way
            for key, site, values in zip(_keys(own), own, by_site):
                columns.setdefault(key, (site, []))[1].append((rows, values))
        return columns, beyond

    def _within(self, sites):
        """From where to where it was the step: what stands around it may call the same functions."""
        functions = [site[0] for site in sites]
        first = functions.index(self._name) if self._name in functions else len(sites)
        ends = (place for place in range(first, len(sites)) if sites[place][:2] == (self._name, source.RETURNED))
        return slice(first, next(ends, len(sites)) + 1)

    def _column(self, parts):
        """The common type of a variable's values, the values in the order of rows, or why they are left out."""
        values = parts[0][1]
        if len(parts) > 1:
            by_row = {row: value for rows, some in parts for row, value in zip(rows, some)}
            values = [by_row[row] for row in sorted(by_row)]
        kind, values, reason = _common(values)
        if not reason and len(values) < self.rows:
            reason = "not computed in every state"
        return kind, None if reason else np.array(values), reason

    def _find_out(self, step, action):
        """Take a step and note what it calls, then rewrite that."""
        called, before = {}, sys.gettrace()

        def call(frame, *_):
            if not called and not self._begins(frame):
                return None
            first, code = not called, frame.f_code
            package = _package(str(frame.f_globals.get("__name__", "")))
            if package in self._packages and not code.co_name.startswith("<"):
                called[id(code)] = code, frame.f_globals
            return ended if first else None

        def ended(_, event, *__):
            if event == "return":
                sys.settrace(None)  # what stands around it may go on in the same package
            return ended

        sys.settrace(call)
        try:
            return step(action)
        finally:
            sys.settrace(before)
            self._called = called
            self._rewrite()

    def _rewrite(self):
        for code, scope in self._called.values():
            new = source.rewritten(code)
            if new is None:
                continue
            self._name = self._name or source.name_of(code)
            for function in _functions(code, scope):
                self._rewritten.append((function, code))
                function.__code__ = new
                function.__globals__.update(self._offered())

    def _offered(self):
        """What rewritten functions find among their globals."""
        return {
            source.KEEP: self._seen.extend,  # to append tuples would keep the garbage collector busy
            source.KEEP_ATTRIBUTE: self._keep_attribute,
            source.FROZEN: _frozen,
            source.IMMUTABLE: _IMMUTABLE,
        }

    def _keep_attribute(self, site, owner, name):
        attributes = getattr(owner, "__dict__", {})
        if name in attributes:  # to read a property would be to call it
            value = attributes[name]
            self._seen.extend((site, value if type(value) in _IMMUTABLE else _frozen(value)))


def _keys(sites):
    times = {}
    for function, variable, _, _ in sites:
        times[function, variable] = time = times.get((function, variable), -1) + 1
        yield function, variable, time


def _functions(code, scope):
    """The functions that have a code: the one of that name, or else all that the collector knows of."""
    found = None
    for name in (source.name_of(code) or "").split("."):
        found = (scope if found is None else getattr(found, "__dict__", {})).get(name)
    found = getattr(found, "__func__", found)  # of class methods and static ones
    if isinstance(found, types.FunctionType) and found.__code__ is code:
        return [found]
    return [each for each in gc.get_referrers(code) if isinstance(each, types.FunctionType) and each.__code__ is code]


def _frozen(value):
    """What nobody can change any more: a copy of an array, the entries of a list; otherwise what it is, in words."""
    kind = type(value)
    if kind is np.ndarray:
        return value.copy() if value.size <= LARGEST else _Other(_dtype_text(value.dtype))
    if kind is list or kind is tuple:
        return _Listed((kind.__name__,) + tuple(value)) if 0 < len(value) <= LARGEST else _Other(kind.__name__)
    if isinstance(value, (float, int, np.generic)):
        return value
    if isinstance(value, (np.ndarray, list, tuple)):  # of a class of its own
        return _frozen(np.asarray(value) if isinstance(value, np.ndarray) else tuple(value))
    return _Other(kind.__name__)


class _Listed(tuple):
    """The entries of a list or a tuple, after the word for which of them it was."""


class _Other(str):
    """The type of something that is no number, or too many."""


def _common(frozen):
    """The type that all values of a variable have, in words; their numbers; and why they do not fit into an array."""
    kinds = set(map(type, frozen))
    if len(kinds) == 1 and kinds <= _NUMBERS:  # most are
        return _kept(frozen[0])[0], frozen, ""
    kinds, values = zip(*map(_kept, frozen))
    reason = ""
    if any(value is None for value in values):
        reason = "not numbers, or more than %d of them" % LARGEST
    elif len(set(map(np.shape, values))) > 1:
        reason = "of another shape in another state"
    return _same(kinds), values, reason


def _kept(value):
    """The type of a frozen value, in words, and its numbers; none where it is something else."""
    if isinstance(value, (np.ndarray, np.generic)):
        return _dtype_text(value.dtype), value if value.dtype.kind in "biuf" else None
    if isinstance(value, _Listed):
        return _listed(value[0], value[1:])
    if isinstance(value, _Other):
        return str(value), None
    fits = isinstance(value, float) or -_INTEGERS <= value < _INTEGERS
    return type(value).__name__, value if fits else None


def _listed(word, entries):
    if not all(map(_is_number, entries)):
        return word, None
    array = np.array(entries)
    of_what = _same([type(each).__name__ for each in entries])
    return "%s of %s" % (word, of_what), array if array.dtype.kind in "biuf" else None


@lru_cache(maxsize=None)  # numpy takes longer to say it than everything else about a value takes
def _dtype_text(dtype):
    return str(dtype)


def _is_number(value):
    return isinstance(value, (bool, int, float, np.number, np.bool_))


def _package(module):
    return module.partition(".")[0]


def _same(kinds):
    return kinds[0] if len(set(kinds)) == 1 else "mixed"
