"""Seek states in which something acts that the states of the bank never touched.

Under random actions an arm may never meet its object. What never acts is sought from states of the bank by hill
climbing over their positions: down the gap that the world tells, and away from bodies stuck in each other, so that what
is found could have been reached. Nothing is drawn here: the uniform numbers are handed over.
"""

import math

import numpy as np

EACH = 4  # states that show one feature: one may lie where the feature acts without effect
STARTS = 8  # states of the bank to choose the start of a climb from
EFFORT = 60  # evaluations of a climb in the first round; doubled in each, so that the impossible does not eat the rest
MOST = 8 * EFFORT  # evaluations of a climb to a feature that was found often enough, only never without overrunning
DEPTH = 0.02  # metres or radians that bodies and limits may be overrun by in all: visited states do so by 0.00 to 0.06
LIGHTEST = 0.1  # weight of overrunning in late rounds, 1 in the first: rather overrun something than not find it
BEYOND = 0.02  # how far beyond a limit to look for what acts there, in parts of its range
FARTHEST, NEAREST = 0.0, -2.5  # powers of ten between which the size of a step lies, in parts of the range
STRIDE = 1.5  # how much longer a step is when it helped and is repeated


class Spent(Exception):
    """The budget, or the numbers handed over, are used up."""


class Numbers:
    """Uniform numbers in [0, 1), handed out in order."""

    def __init__(self, numbers):
        self._numbers = np.asarray(numbers, dtype=np.float64)
        self._next = 0

    def take(self, count):
        """The next ``count`` numbers, as an array."""
        first, self._next = self._next, self._next + count
        if self._next > len(self._numbers):
            raise Spent
        return self._numbers[first : self._next]

    def below(self, limit):
        """A whole number from 0 to ``limit - 1``."""
        return int(self.take(1)[0] * limit)


def seek(world, states, numbers, budget, wanted):
    """Return sought states, what acts in the given states, and what acts in the sought ones.

    ``numbers`` are :class:`Numbers` or an array of them. The search ends when they, or ``budget`` evaluations, are used
    up; looking at the given states is not part of the budget. At most ``wanted`` states are returned, in equal shares
    for each feature that was found.
    """
    states = np.asarray(states, dtype=np.float64)
    place = getattr(world, "place", world.impose)  # all that is asked here is what acts and how far the rest is
    covered = _acting_in_each(world, place, states)
    missing = ~covered.any(axis=0)
    if not (len(states) and missing.any()):
        return states[:0], covered, covered[:0]
    numbers = numbers if isinstance(numbers, Numbers) else Numbers(numbers)
    search = _Search(world, place, states, missing, numbers, budget)
    try:
        search.limits()
        search.rounds()
    except Spent:
        pass
    sought = np.array(search.chosen(wanted), dtype=np.float64).reshape(-1, states.shape[1])
    return sought, covered, _acting_in_each(world, place, sought)


class _Search:
    """The climbs, and what they found: for each feature and each climb the state that overruns least."""

    def __init__(self, world, place, states, missing, numbers, budget):
        self._world, self._place, self._states = world, place, states
        self._missing, self._numbers, self._left = missing, numbers, budget
        layout = world.layout()
        self._positions, self._quaternions = layout["positions"], layout["quaternions"]
        self._low = _bounds(layout["low"], self._positions, -np.inf)
        self._high = _bounds(layout["high"], self._positions, np.inf)
        self._range = self._high - self._low
        self._range[~np.isfinite(self._range)] = 1.0
        self._found = {feature: {} for feature in np.flatnonzero(missing).tolist()}
        self._climbs = 0

    def limits(self):
        """Set each limited entry a little beyond each of its bounds, in one state of the bank after the other."""
        for bound, sign in ((self._low, -1), (self._high, 1)):
            reached = sign * (self._states[:, : self._positions] - bound) > 0
            for entry in np.flatnonzero(np.isfinite(bound) & ~reached.any(axis=0)):
                for _ in range(EACH):
                    state = _any(self._numbers, self._states).copy()
                    beyond = BEYOND * self._range[entry] * self._numbers.take(1)[0]
                    state[entry] = bound[entry] + sign * min(beyond, DEPTH)
                    self._climbs += 1
                    self._evaluate(state, None, 1.0)

    def rounds(self):
        """Climb to what is missing in rounds of growing effort, what was found least often first."""
        sought = [feature for feature in self._found if math.isfinite(self._first_gap(feature))]
        effort, weight = EFFORT, 1.0
        while sought:
            for feature in sorted(sought, key=lambda each: len(self._found[each])):
                if not self._enough(feature, effort):
                    self._climb(feature, effort, weight)
            sought = [feature for feature in sought if not self._enough(feature, effort)]
            effort, weight = 2 * effort, max(weight / 2, LIGHTEST)

    def chosen(self, wanted):
        """A few states that show everything that was found, then each feature's own, the one that overruns least first.

        The first few may be states in which much is stuck in much. They show it all, but nothing well.
        """
        ranked = [sorted(finds.values(), key=lambda find: find[0]) for finds in self._found.values()]
        each_in_turn = [finds[rank] for rank in range(EACH) for finds in ranked if rank < len(finds)]
        states = {state.tobytes(): state for _, state, _ in _covering(each_in_turn) + each_in_turn}
        return list(states.values())[:wanted]

    def _first_gap(self, feature):
        self._place(self._states[0])
        return self._world.gap(feature)

    def _enough(self, feature, effort):
        """Whether there are states enough, or there is no hope of states that overrun less: some shapes overlap."""
        if effort > MOST and len(self._found[feature]) >= EACH:
            return True
        return sum(depth <= DEPTH for depth, _, _ in self._found[feature].values()) >= EACH

    def _climb(self, feature, effort, weight):
        """Take steps that bring the feature nearer; once it acts, steps that overrun less, while the effort lasts."""
        self._climbs += 1
        starts = [(start,) + self._evaluate(start, feature, weight) for start in self._starts(feature)]
        state, score, done = min(starts, key=lambda start: start[1])
        step, helped, back = None, False, True
        for _ in range(effort):
            if done:
                return
            if not helped:  # what helped is done again, and further; what did not, the other way; then something else
                step, back = (self._step(), False) if back else (-step, True)
            trial = self._moved(state, step)
            trial_score, done = self._evaluate(trial, feature, weight)
            helped = trial_score < score
            if helped:
                state, score, step, back = trial, trial_score, STRIDE * step, True

    def _starts(self, feature):
        """States of the bank, and states found for other features, which may be nearer, if it does not act in them."""
        found = [find for finds in self._found.values() for find in finds.values()]
        others = [state for _, state, acting in found if not acting[feature]]
        return [_any(self._numbers, others if others and k % 2 else self._states) for k in range(STARTS)]

    def _evaluate(self, state, feature, weight):
        """Go to a state, keep it for whatever missing acts in it; return its score and whether that is good enough."""
        if self._left <= 0:
            raise Spent
        self._left -= 1
        self._place(state)
        acting = self._world.acting()
        depth = _overrun(self._world, acting)
        for each in np.flatnonzero(acting & self._missing).tolist():
            self._keep(each, depth, state, acting)
        overrun = weight * max(0.0, depth - DEPTH)
        if feature is None or acting[feature]:
            return overrun, overrun == 0
        return max(self._world.gap(feature), 0.0) + overrun, False

    def _keep(self, feature, depth, state, acting):
        """Of one climb only the best, because its states resemble each other; of all climbs, the best few."""
        finds = self._found[feature]
        if any(state is kept for _, kept, _ in finds.values()):  # it was another climb's start
            return
        if self._climbs not in finds or depth < finds[self._climbs][0]:
            finds[self._climbs] = (depth, state, acting)
        if len(finds) > EACH:
            del finds[max(finds, key=lambda climb: finds[climb][0])]

    def _step(self):
        """A step of random size along one position, a few, or all of them."""
        count, size = self._numbers.take(2)
        entries = (1, 1, 2, 3, self._positions)[int(5 * count)]
        if entries < self._positions:
            chosen = [self._numbers.below(self._positions) for _ in range(entries)]
        else:
            chosen = range(self._positions)
        step = np.zeros(self._positions)
        step[chosen] = 2 * np.array(self._numbers.take(len(chosen))) - 1
        return step * self._range * 10 ** (NEAREST + (FARTHEST - NEAREST) * size)

    def _moved(self, state, step):
        """The state after a step over its positions, within limits, with quaternions of norm 1."""
        moved = state.copy()
        slack = BEYOND * self._range
        moved[: self._positions] = np.clip(state[: self._positions] + step, self._low - slack, self._high + slack)
        for first in self._quaternions:
            norm = np.linalg.norm(moved[first : first + 4])
            moved[first : first + 4] = moved[first : first + 4] / norm if norm > 0 else state[first : first + 4]
        return moved


def _covering(finds):
    """Of the finds, one after the other that which shows most of what those before it do not show."""
    covering = []
    shows = np.array([acting for _, _, acting in finds])
    while shows.any():
        best = int(shows.sum(axis=1).argmax())
        covering.append(finds[best])
        shows = shows & ~shows[best]
    return covering


def depth(world):
    """How far bodies and limits are overrun in all, in the state that the simulator is in now."""
    return _overrun(world, world.acting())


def _overrun(world, acting):
    return sum(max(0.0, -world.gap(each)) for each in np.flatnonzero(acting).tolist())


def _acting_in_each(world, place, states):
    acting = np.zeros((len(states), len(world.features())), dtype=bool)
    for index, state in enumerate(states):
        place(state)
        acting[index] = world.acting()
    return acting


def _any(numbers, states):
    return states[numbers.below(len(states))]


def _bounds(bounds, positions, none):
    """The bounds of the positions, infinite where there is none."""
    given = [None] * positions if bounds is None else bounds[:positions]
    values = np.array([none if each is None else each for each in given], dtype=np.float64)
    return np.where(np.isnan(values), none, values)
