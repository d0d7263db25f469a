"""Start from each state of the stimulus, take its actions, record every step.

A stimulus is a few batches, each of states (or seeds) with one or more actions for every one of them. ``horizon`` holds
trajectories. ``forced`` holds single steps: impose a state, take one step, stop. ``nudged`` holds copies of the forced
states moved by one unit in the last place.
"""

import json

import numpy as np

from dumper.answers import Answer

OUTPUTS = ("state", "observation", "reward", "terminated", "truncated")
BATCHES = ("forced", "nudged", "horizon")
REPEATED = 16  # forced states that are imposed once more, in another order


class Incomparable(Exception):
    """The stimulus does not fit this release's environment, so nothing it did could be compared."""


class NotReproduced(Exception):
    """The same state, imposed twice, led to two different ones."""


def record(world, stimulus, description):
    """Run the whole stimulus (arrays by name); return the answer with its arrays, named ``batch.output``.

    Episodes are stepped on past termination: what a release does there is part of what it does.
    """
    arrays = {"spaces": _text(description["spaces"])}
    steps = 0
    if world.evidence == "table":
        arrays.update(("forced." + name, array) for name, array in world.transitions().items())
        arrays["structure"] = _text("table")
        steps = len(arrays["forced.reward"])
    batches = [name for name in BATCHES if name + ".actions" in stimulus]
    if batches:
        starts = {name: starts_of(world, stimulus, name, description["layout"]["state_size"]) for name in batches}
        step, observation = try_out(world, starts[batches[0]], stimulus[batches[0] + ".actions"])
        arrays["structure"] = _text(_described(observation))
        for name in batches:
            actions = stimulus[name + ".actions"]
            recorded = record_batch(world, step, starts[name], actions, as_array(observation))
            if name == "forced" and world.evidence == "forced":
                repeat(world, step, starts[name], actions, recorded)
            if name == "nudged":
                del recorded["imposed"]
            arrays.update((name + "." + output, array) for output, array in recorded.items())
            steps += actions.shape[0] * actions.shape[1]
    if "reset.seeds" in stimulus:
        for name, array in _record_resets(world, stimulus["reset.seeds"].tolist()).items():
            arrays["reset." + name] = array
    description["steps"] = steps
    return Answer("ok", "", arrays=arrays, meta=description)


class Starts:
    """Where the trajectories of a batch begin: in given states, or at a seed where states cannot be imposed."""

    def __init__(self, values, begin):
        self.values = values
        self.begin = begin

    def __len__(self):
        return len(self.values)


def starts_of(world, stimulus, batch, size):
    """Where a batch of the stimulus begins; its states must have the world's ``size``."""
    if batch + ".seeds" in stimulus:
        return Starts(stimulus[batch + ".seeds"].tolist(), world.reset)
    states = stimulus[batch + ".states"]
    if states.shape[1] != size:
        raise Incomparable("its state has %d entries, the stimulus %d" % (size, states.shape[1]))
    return Starts(states, world.impose)


def try_out(world, starts, actions):
    """Find out how to step and what an observation looks like, and that imposing a state has an effect.

    An environment may publish a `state` that it does not step from. Reading it back would not tell. So two different
    states are stepped with the same action: if nothing differs, neither was imposed.
    """
    starts.begin(starts.values[0])
    step = world.stepper(first_action(actions))
    starts.begin(starts.values[0])
    observation = step(first_action(actions))[0]
    if world.evidence == "forced":
        outcome = world.read().tobytes(), as_array(observation).tobytes()
        starts.begin(_another(starts.values))
        observation = step(first_action(actions))[0]
        if outcome == (world.read().tobytes(), as_array(observation).tobytes()):
            raise Incomparable("imposing a state has no effect: two different ones led to the same")
    return step, observation


def _another(states):
    """A state unlike the first: the next of the stimulus that differs, else the first one moved."""
    for state in states[1:]:
        if not np.array_equal(state, states[0]):
            return state
    return states[0] * 0.5 + 0.01


def first_action(actions):
    """A copy: a release may change the action that it is given, and the stimulus must stay what it is."""
    return as_arguments(actions[0].copy())[0]


def record_batch(world, step, starts, actions, observation):
    """Begin at each start and take its actions; every output of every step, and what was read before the first."""
    arrays = _allocate(len(starts), actions.shape[1], len(world.read()), observation)
    for index in range(len(starts)):
        starts.begin(starts.values[index])
        arrays["imposed"][index] = world.read()
        _follow(world, step, as_arguments(actions[index]), [arrays[name][index] for name in OUTPUTS])
    return arrays


def _allocate(trajectories, steps, size, observation):
    return {
        "imposed": np.empty((trajectories, size), dtype=np.float64),
        "state": np.empty((trajectories, steps, size), dtype=np.float64),
        "observation": np.empty((trajectories, steps) + observation.shape, dtype=observation.dtype),
        "reward": np.empty((trajectories, steps), dtype=np.float64),
        "terminated": np.empty((trajectories, steps), dtype=np.bool_),
        "truncated": np.empty((trajectories, steps), dtype=np.bool_),
    }


def _follow(world, step, actions, outputs):
    states, observations, rewards, terminations, truncations = outputs
    copy_state = world.copier(states)
    dtype, shape = observations.dtype, observations.shape[1:]
    k = 0
    try:
        for k, action in enumerate(actions):
            observation, rewards[k], terminations[k], truncations[k], _ = step(action)
            if type(observation) is not np.ndarray:
                observation = as_array(observation)
            if observation.dtype != dtype or observation.shape != shape:
                raise TypeError(
                    "the observation is %s%s at step %d and was %s%s before"
                    % (observation.dtype, observation.shape, k, dtype, shape)
                )
            observations[k] = observation
            copy_state(k)
    except Exception:
        if k == 0 or not (terminations[k - 1] or truncations[k - 1]):
            raise
        # The episode was over and the environment refuses to go on: the rest is recorded as what it is, nothing.
        states[k:], rewards[k:], terminations[k:], truncations[k:] = np.nan, np.nan, True, True
        observations[k:] = np.nan if dtype.kind == "f" else 0


def repeat(world, step, starts, actions, recorded):
    """Impose a sample of the states again, last first, and require the same bits.

    Whatever the previous state had left behind would be another's now.
    """
    sample = np.unique(np.linspace(len(starts) - 1, 0, REPEATED).astype(int))[::-1]
    again = record_batch(
        world, step, Starts(starts.values[sample], starts.begin), actions[sample], recorded["observation"][0, 0]
    )
    for name in OUTPUTS:
        if again[name].tobytes() != recorded[name][sample].tobytes():
            raise NotReproduced(
                "a state that was imposed again, in another order, led to another %s: the release does not reproduce "
                "itself, or keeps something of the state before" % name
            )


def _record_resets(world, seeds):
    """What each seed starts from."""
    states, observations = [], []
    for seed in seeds:
        observations.append(as_array(world.reset(seed)))
        states.append(world.read())
    return {"state": np.array(states), "observation": np.array(observations)}


def as_arguments(actions):
    """Discrete actions are handed over as plain integers, others as the rows of the array."""
    return actions.tolist() if actions.ndim == 1 and actions.dtype.kind == "i" else list(actions)


def as_array(observation):
    """One array: an observation of several parts is flattened, its structure is recorded beside it."""
    if isinstance(observation, dict):
        observation = tuple(observation[key] for key in sorted(observation))
    if isinstance(observation, tuple):
        return np.concatenate([np.ravel(as_array(part)).astype(np.float64) for part in observation])
    return np.asarray(observation)


def _text(value):
    """A description as an array of bytes, so that it is compared and kept like any other output."""
    return np.frombuffer(json.dumps(value, sort_keys=True).encode("utf-8"), dtype=np.uint8).copy()


def _described(observation):
    """Names, dtypes and shapes of an observation's parts: numbers in another structure are other ones."""
    if isinstance(observation, dict):
        return {str(key): _described(part) for key, part in observation.items()}
    if isinstance(observation, tuple):
        return [_described(part) for part in observation]
    array = np.asarray(observation)
    return "%s%s" % (array.dtype.str, array.shape)
