"""Watch the steps of a world on MuJoCo, substep by substep.

The stepper of a world ends in ``mujoco.mj_step``, or in ``mj_step2`` where it computes positions itself. While steps
are watched, other functions stand in their place. Before each substep they carry what the simulator steps from over to
data of their own, compute there what the substep is about to compute, and read it off; then the substep is taken.
"""

from contextlib import contextmanager

import numpy as np

from dumper.quantities import CONSTRAINT, CONTACT, DISCRETE, ENTRIES, IN_ORDER, Reader, Reading
from dumper.record import Incomparable
from dumper.stages import Watcher
from dumper.worlds import Unavailable

SUBSTEPS = 8
"""Substeps of a step that are recorded. What differs first does so in the first few; later ones carry it on."""

EVALUATED = 1
"""Substeps of which all four evaluations are recorded, where Runge and Kutta's method steps: each costs a substep."""

_HALVES = (0.5, 0.5, 1.0)  # of the step, that its second to fourth evaluations are ahead of the first
_FIRST, _LAST = 1, 4

# What the simulator steps from, where a release cannot copy its data itself (before mujoco 3.6).
_INPUTS = (
    "qpos", "qvel", "act", "ctrl", "qacc_warmstart", "qfrc_applied", "xfrc_applied", "mocap_pos", "mocap_quat",
    "eq_active", "userdata", "plugin_state",
)  # fmt: skip
_ALL_STAGES, _NO_SENSORS = 0, 1  # arguments of mj_forwardSkip; no quantity is made of a sensor
_AFTER = ("qpos", "qvel", "act", "qacc")


class Substeps(Watcher):
    """Sees every quantity of the table at the first substeps of a step."""

    def __init__(self, mujoco, model, data, names, rows):
        super().__init__(rows)
        self._mujoco, self._model, self._data, self._names = mujoco, model, data, names
        self._inner = mujoco.MjData(model)
        self._carry = _carrier(mujoco, model, data, self._inner)
        self._reader = Reader(mujoco, model, self._inner)
        self._views = [getattr(data, field) for field in _AFTER]
        self._readings, self._after = [], []  # of each substep: what it computed, and what it led to
        self._by_four = model.opt.integrator == int(mujoco.mjtIntegrator.mjINT_RK4)
        self._evaluations = {}  # by substep and which: what was computed there
        self._unseen = ""
        self._most = 0
        self._taken = None  # substeps of the step that is being watched, if one is

    @contextmanager
    def installed(self):
        mujoco = self._mujoco
        step, step2 = mujoco.mj_step, mujoco.mj_step2

        def watched_step(m, d, nstep=1):
            if self._taken is None or d is not self._data:
                step(m, d, nstep)
                return
            for _ in range(nstep):
                self._see(step)

        def watched_step2(m, d):
            if self._taken is None or d is not self._data:
                step2(m, d)
            else:
                self._see(step2)

        mujoco.mj_step, mujoco.mj_step2 = watched_step, watched_step2
        try:
            yield
        finally:
            mujoco.mj_step, mujoco.mj_step2 = step, step2

    def watch(self, step, action):
        self._taken = 0
        try:
            return step(action)
        finally:
            self._most = max(self._most, self._taken)
            self._taken = None

    def results(self):
        if not self._readings:
            raise Unavailable("its steps do not go through mujoco.mj_step: nothing can be seen in them")
        found = {}
        for number, (reading, after) in enumerate(zip(self._readings, self._after)):
            parts = {_FIRST: self._reader.parts(reading)}
            for which in range(_FIRST + 1, _LAST + 1):
                if (number, which) in self._evaluations:
                    parts[which] = self._reader.parts(self._evaluations[number, which])
            state = self._state(parts, after)
            for which, each in parts.items():
                found.update(
                    (_name(number, stage, field, which), each[field]) for stage, field in IN_ORDER if field in each
                )
            found.update((_name(number, "integration", field), value) for field, value in state.items())
        return found, self._told(found)

    def _told(self, found):
        names = {kind: self._names.of(kind) for kind in ENTRIES}
        named = {field: names[kind] for kind, fields in ENTRIES.items() for field in fields if names[kind]}
        return {
            "substeps": self._most,
            "recorded": len(self._readings),
            "counts": dict(_counts(found)),
            "discrete": [name for name in found if name.rpartition(".")[2] in DISCRETE],
            "unseen": self._unseen,
            "names": {field: called for field, called in named.items() if self._fit(called, field)},
            "geoms": names["geom"],
        }

    def _fit(self, names, field):
        """From mujoco 4 on there may be more controls than actuators."""
        return len(names) == len(getattr(self._data, field, names))

    def _see(self, take):
        number, self._taken = self._taken, self._taken + 1
        if number >= SUBSTEPS:
            take(self._model, self._data)
            return
        if number == len(self._readings):
            self._readings.append(Reading(self.rows, self._reader))
            self._after.append(np.full((self.rows, sum(map(len, self._views))), np.nan))
        self._carry()
        self._mujoco.mj_forwardSkip(self._model, self._inner, _ALL_STAGES, _NO_SENSORS)
        self._reader.read(self._readings[number], self.row)
        if self._by_four and number < EVALUATED:
            self._evaluate(number)
        take(self._model, self._data)
        np.concatenate(self._views, out=self._after[number][self.row])

    def _evaluate(self, number):
        """Take the way of Runge and Kutta's method by hand, from the first evaluation to the last."""
        model, inner, step = self._model, self._inner, self._model.opt.timestep
        place, speed, activation, begun = inner.qpos.copy(), inner.qvel.copy(), inner.act.copy(), inner.time
        for which, part in enumerate(_HALVES, _FIRST + 1):
            there = place.copy()
            self._mujoco.mj_integratePos(model, there, part * inner.qvel, step)
            faster, more = speed + part * inner.qacc * step, activation + part * inner.act_dot * step
            inner.qpos[:], inner.qvel[:], inner.act[:], inner.time = there, faster, more, begun + part * step
            self._mujoco.mj_forwardSkip(model, inner, _ALL_STAGES, _NO_SENSORS)
            if (number, which) not in self._evaluations:
                self._evaluations[number, which] = Reading(self.rows, self._reader)
            self._reader.read(self._evaluations[number, which], self.row)

    def _state(self, parts, after):
        """What the substep led to. The acceleration that it left must be the one that was seen last.

        Of the four that Runge and Kutta's method computes the last is left. If it is another than was seen, the way
        there is another in this release, and only the first evaluation is known.
        """
        split = np.split(after, np.cumsum([len(view) for view in self._views]), axis=1)
        left = dict(zip(_AFTER, split))
        last = parts.get(_LAST if self._by_four else _FIRST)
        differs = last is None or left["qacc"].tobytes() != last["qacc"].tobytes()
        if left["qacc"].size and differs and not self._by_four:
            raise Incomparable("what was seen is not what its step computed: that led to another acceleration")
        if left["qacc"].size and differs:
            self._unseen = (
                "the second to fourth of the evaluations that Runge and Kutta's method makes in some substeps"
            )
            for which in range(_FIRST + 1, _LAST + 1):
                parts.pop(which, None)
        return {field: left[field] for field in ("qpos", "qvel", "act") if left[field].size}


def _name(number, stage, field, which=_FIRST):
    return "%02d.%s%s.%s" % (number, stage, "" if which == _FIRST else " in evaluation %d" % which, field)


def _counts(found):
    """The fields that have a line for each contact or constraint, with the field that counts them."""
    for name in found:
        within, _, field = name.rpartition(".")
        number, _, stage = within.partition(".")
        evaluation = stage.partition(" ")[1:]
        if field in CONTACT:
            yield name, "%s.collision%s.ncon" % (number, "".join(evaluation))
        elif field.startswith(CONSTRAINT):
            yield name, "%s.constraint%s.nefc" % (number, "".join(evaluation))


def _carrier(mujoco, model, data, inner):
    """Return what makes ``inner`` step as ``data`` would."""
    if hasattr(mujoco, "mj_copyData"):
        return lambda: mujoco.mj_copyData(inner, model, data)
    shared = [name for name in _INPUTS if np.size(getattr(data, name, ()))]
    pairs = [(getattr(inner, name), getattr(data, name)) for name in shared]

    def carry():
        inner.time = data.time
        for to, given in pairs:
            to[...] = given

    return carry
