"""How one step comes about: what is computed within it, in order, from each of some imposed states.

Two releases that step differently from the same state first differ somewhere. A world's *watcher* sees the quantities
of a step while the world's own stepper takes it, and leaves the step as it is: a sample of the states is stepped once
more unwatched, and must lead to the same bits.
"""

import numpy as np

from dumper.answers import Answer
from dumper.record import (
    OUTPUTS,
    Incomparable,
    NotReproduced,
    Starts,
    as_array,
    first_action,
    record_batch,
    repeat,
    starts_of,
    try_out,
)

LARGEST = 10000
"""Entries that one quantity may have in one state: a larger one says nothing that smaller ones do not."""

_TOLD = {
    "substeps": 1,  # that the step was made of
    "recorded": 1,  # of these, from the first on
    "counts": {},  # arrays whose second axis is filled up with nan, and the array that says how far each row goes
    "names": {},  # of the entries of a field's second axis
    "geoms": [],  # names of what the numbers in `pair` stand for
    "discrete": [],  # quantities that are counts and the like
    "unseen": "",  # what of a step was not looked into, in words
    "dtypes": {},  # of values, before they were put into an array
    "lines": {},  # where in the source a value was assigned
    "left_out": {},  # how many quantities, by reason
}


class Watcher:
    """Sees one step from each of ``rows`` states. What a kind of world adds is how it sees."""

    def __init__(self, rows):
        self.rows = rows
        self.row = -1  # the state whose step is watched, or was last
        self.missed = []  # rows whose steps have to be taken once more to be seen
        self._steps = 0

    def installed(self):
        """Return a context in which steps can be watched, and after which nothing is left of it."""
        raise NotImplementedError

    def watch(self, step, action):
        """Take the step and see what comes about in it."""
        raise NotImplementedError

    def results(self):
        """What was seen: arrays by name, in the order of computation, with an entry for each row; and what of them.

        What there is to say of them is JSON, and replaces what is said in ``_TOLD``.
        """
        raise NotImplementedError

    def starts(self, starts, rows):
        """Some rows of the starts: while they are begun one after the other, the watcher knows where it is."""
        following = iter(rows)

        def begin(state):
            starts.begin(state)
            self.row = next(following)
            self._steps = 0

        return Starts(starts.values[rows], begin)

    def last(self, step, count):
        """Return a step of which the last of ``count`` from each state is watched; the others lead up to it."""

        def take(action):
            self._steps += 1
            return step(action) if self._steps < count else self.watch(step, action)

        return take


def record(world, request):
    """Watch a step from each of ``states``, under its row of ``actions``.

    ``run_up`` are actions to be taken before: what acts only through a warm solver can be seen after some. With
    ``traced`` the environment's own Python is watched, also where a simulator does most of the work.
    """
    count = len(request["states"])
    watcher = world.tracer(count) if "traced" in request else world.watcher(count)
    actions = request["actions"][:, None]
    if "run_up" in request:
        actions = np.concatenate([request["run_up"], actions], axis=1)
    given = {"forced.states": request["states"], "forced.actions": actions}
    starts = starts_of(world, given, "forced", world.layout()["state_size"])
    with watcher.installed():
        step, observation = try_out(world, starts, actions)
        watched = watcher.last(step, actions.shape[1])
        first, rows = as_array(observation), list(range(count))
        recorded = record_batch(world, watched, watcher.starts(starts, rows), actions.copy(), first)
        while watcher.missed:
            rows, watcher.missed = watcher.missed, []
            record_batch(world, watched, watcher.starts(starts, rows), actions[rows], first)
    _assert_untouched(world, starts, actions, recorded)
    return _answer(watcher, recorded, actions.shape)


def _assert_untouched(world, starts, actions, recorded):
    """Take steps from a sample of the states once more, unwatched."""
    starts.begin(starts.values[0])
    step = world.stepper(first_action(actions))
    try:
        repeat(world, step, starts, actions.copy(), recorded)
    except NotReproduced as error:
        raise Incomparable("watched, its step is another one, or it does not reproduce itself: %s" % error)


def _answer(watcher, recorded, shape):
    seen, told = watcher.results()
    for name in OUTPUTS:
        seen["%02d.outputs.%s" % (told["recorded"], name)] = recorded[name][:, -1]
    arrays = {name: array for name, array in seen.items() if array[0].size <= LARGEST}
    meta = dict(_TOLD, order=list(arrays), steps=shape[0] * shape[1])
    meta.update(told)
    meta["discrete"] = [name for name in meta["discrete"] if name in arrays]
    meta["counts"] = {name: count for name, count in meta["counts"].items() if name in arrays}
    if len(arrays) < len(seen):
        meta["left_out"] = dict(meta["left_out"], **{"more than %d entries" % LARGEST: len(seen) - len(arrays)})
    return Answer("ok", "", arrays=arrays, meta=meta)
