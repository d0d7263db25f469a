"""The state bank of an environment, made in the release that the matrix calls its baseline.

*Visited* states come from rollouts, states *in range* are drawn within the limits, and states are *sought* in which
something acts that the others never touched. The orchestrator draws the seeds, the actions and all random numbers.
"""

import numpy as np

from dumper import seeking
from dumper.answers import Answer
from dumper.record import as_arguments, first_action

SOURCES = ("given", "visited", "in range", "sought")

TERMINATES = "terminates"
"""A feature that every kind of environment has: the episode ends with the step."""

_ROLLOUTS = 8  # at least: one episode may go on for all the states that are wanted
_ENOUGH = 4  # visited states to choose from, for each that is wanted
_WIDER = 0.5  # of the visited span: how far beyond it unlimited entries are drawn
_EXPLODED = 10.0  # times what rollouts reached: where one step leads further, bodies were stuck in each other
_DEEPEST = 0.05  # metres or radians by which bodies and limits may be overrun in all: nothing gets there by itself
_TRIES = 8  # draws for each state in range, before fewer are accepted


def make(world, request):
    """Answer with ``states``, their ``source`` and what was ``acting`` in each of them, before or after its step.

    A state from which the environment refuses to step is left out; ``kept`` are the places of the others among all.

    ``request`` holds ``states`` that are given, ``seeds`` and ``actions`` of the rollouts, ``numbers`` in [0, 1), an
    action for each state of the bank (``forced_actions``), and the ``wanted`` number of states of each source.
    """
    given = request["states"]
    wanted = dict(zip(SOURCES[1:], request["wanted"].tolist()))
    numbers = seeking.Numbers(request["numbers"])
    actions = request["actions"]
    parts = [(0, given)]
    if wanted["visited"]:
        visited = _visit(world, request["seeds"].tolist(), actions, _ENOUGH * wanted["visited"])
        in_range = _in_range(world, visited, wanted["in range"], numbers, first_action(actions))
        found = np.concatenate([given, visited, in_range])
        sought, _, _ = seeking.seek(world, found, numbers, int(request["budget"]), wanted["sought"])
        lacking = wanted["in range"] + wanted["sought"] - len(in_range) - len(sought)
        parts += [(1, _spread(visited, wanted["visited"] + lacking)), (2, in_range), (3, sought)]
    states = np.concatenate([part for _, part in parts])
    source = np.concatenate([np.full(len(part), number, dtype=np.uint8) for number, part in parts])
    acting, kept = _acting(world, states, request["forced_actions"])
    arrays = {"states": states[kept], "source": source[kept], "acting": acting[kept], "kept": kept}
    return Answer("ok", "", arrays=arrays, meta={"features": [*world.features(), TERMINATES]})


def _visit(world, seeds, actions, enough):
    """States of rollouts. Every other one goes on past its end, as long again: what has fallen meets other contacts."""
    found = []
    world.reset(seeds[0])
    step = world.stepper(first_action(actions))
    for number, seed in enumerate(seeds):
        if len(found) >= enough and number >= _ROLLOUTS:
            break
        world.reset(seed)
        found.append(world.read())
        last = len(actions[0])
        for taken, action in enumerate(as_arguments(actions[number % len(actions)])):
            if taken >= last:
                break
            try:
                ended = step(action)[2]
            except Exception:  # it refuses to go on past its end
                break
            found.append(world.read())
            if ended:
                last = min(last, 2 * (taken + 1) if number % 2 else 0)
    states = np.array(found)
    return states[np.isfinite(states).all(axis=1)]


def _spread(states, count):
    """As many of the states, evenly over all of them: over the rollouts, and over each rollout's episode."""
    chosen = np.linspace(0, len(states) - 1, min(count, len(states))).astype(int)
    return states[np.unique(chosen)]


def _in_range(world, visited, count, numbers, action):
    """States drawn within the limits; where an entry has none, within what was visited and a little beyond."""
    layout = world.layout()
    low, high = visited.min(axis=0), visited.max(axis=0)
    span = high - low
    low, high = low - _WIDER * span, high + _WIDER * span
    for entry, (least, most) in enumerate(zip(layout["low"] or [], layout["high"] or [])):
        if least is not None and most is not None:
            low[entry], high[entry] = least, most
    found = []
    reach = _EXPLODED * np.maximum(np.abs(visited).max(axis=0), 1.0)
    world.impose(visited[0])
    step = world.stepper(action)
    for _ in range(_TRIES * count):
        if len(found) == count:
            break
        try:
            state = _drawn(low, high, layout["quaternions"], numbers)
        except seeking.Spent:
            break
        world.impose(state)
        stuck = seeking.depth(world) > _DEEPEST
        try:
            step(action)
        except Exception:  # an environment may refuse what it would never get into by itself
            continue
        after = world.read()
        if not stuck and np.isfinite(after).all() and (np.abs(after) <= reach).all():
            found.append(state)
    return np.array(found).reshape(len(found), visited.shape[1])


def _drawn(low, high, quaternions, numbers):
    state = low + (high - low) * numbers.take(len(low))
    for first in quaternions:
        quaternion = 2.0 * numbers.take(4) - 1.0
        state[first : first + 4] = quaternion / np.sqrt((quaternion**2).sum())
    return state


def _acting(world, states, actions):
    """What acts in each state or after its step, and the places of the states that can be stepped from."""
    acting = np.zeros((len(states), len(world.features()) + 1), dtype=np.bool_)
    world.impose(states[0])
    step = world.stepper(first_action(actions[:, None]))
    arguments = as_arguments(actions)
    kept, refused = [], None
    for index, state in enumerate(states):
        world.impose(state)
        acting[index, :-1] = world.acting()
        try:
            acting[index, -1] = bool(step(arguments[index])[2])
        except Exception as error:  # it was left behind by an episode that was over
            refused = error
            continue
        acting[index, :-1] |= world.acting()
        kept.append(index)
    if not kept and refused is not None:
        raise refused
    return acting, np.array(kept, dtype=np.int64)
