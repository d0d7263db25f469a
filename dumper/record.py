"""Impose each state of the stimulus, take its actions, record every step."""

import json

import numpy as np

from dumper.answers import Answer

OUTPUTS = ("state", "observation", "reward", "terminated", "truncated")


class Incomparable(Exception):
    """The stimulus does not fit this release's environment, so nothing it did could be compared."""


def record(environment, stimulus_path, description):
    """Run the whole stimulus; return the answer with its arrays.

    Episodes are stepped on past termination: what a release does there is part of what it does.
    """
    with np.load(stimulus_path, allow_pickle=False) as stimulus:
        states = stimulus["states"]
        actions = stimulus["actions"]
    size = description["layout"]["state_size"]
    if states.shape[1] != size:
        raise Incomparable("its state has %d entries, the stimulus %d" % (size, states.shape[1]))
    step, observation = _try_out(environment, states, actions)
    trajectories, steps = actions.shape[:2]
    arrays = _allocate(states, trajectories, steps, _as_array(observation))
    arrays["structure"] = _structure(observation)
    for index in range(trajectories):
        environment.impose(states[index])
        arrays["imposed"][index] = environment.read()
        _follow(environment, step, _as_arguments(actions[index]), [arrays[name][index] for name in OUTPUTS])
    description["steps"] = trajectories * steps
    return Answer("ok", "", arrays=arrays, meta=description)


def _try_out(environment, states, actions):
    """Find out how to step and what an observation looks like, and that imposing a state has an effect.

    An environment may publish a `state` that it does not step from. Reading it back would not tell. So two different
    states are stepped with the same action: if nothing differs, neither was imposed.
    """
    environment.impose(states[0])
    step = environment.stepper(_first_action(actions))
    outcomes = []
    for state in (states[0], _another(states)):
        environment.impose(state)
        observation = step(_first_action(actions))[0]
        outcomes.append((environment.read().tobytes(), _as_array(observation).tobytes()))
    if outcomes[0] == outcomes[1]:
        raise Incomparable("imposing a state has no effect: two different ones led to the same")
    return step, observation


def _another(states):
    """A state unlike the first: the next of the stimulus that differs, else the first one moved."""
    for state in states[1:]:
        if not np.array_equal(state, states[0]):
            return state
    return states[0] * 0.5 + 0.01


def _first_action(actions):
    """A copy: a release may change the action that it is given, and the stimulus must stay what it is."""
    return _as_arguments(actions[0].copy())[0]


def _allocate(states, trajectories, steps, observation):
    return {
        "imposed": np.empty(states.shape, dtype=np.float64),
        "state": np.empty((trajectories, steps, states.shape[1]), dtype=np.float64),
        "observation": np.empty((trajectories, steps) + observation.shape, dtype=observation.dtype),
        "reward": np.empty((trajectories, steps), dtype=np.float64),
        "terminated": np.empty((trajectories, steps), dtype=np.bool_),
        "truncated": np.empty((trajectories, steps), dtype=np.bool_),
    }


def _follow(environment, step, actions, outputs):
    states, observations, rewards, terminations, truncations = outputs
    copy_state = environment.copier(states)
    dtype, shape = observations.dtype, observations.shape[1:]
    k = 0
    try:
        for k, action in enumerate(actions):
            observation, rewards[k], terminations[k], truncations[k], _ = step(action)
            if type(observation) is not np.ndarray:
                observation = _as_array(observation)
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


def _as_arguments(actions):
    """Discrete actions are handed over as plain integers, others as the rows of the array."""
    return actions.tolist() if actions.ndim == 1 and actions.dtype.kind == "i" else list(actions)


def _as_array(observation):
    """One array: an observation of several parts is flattened, its structure is recorded beside it."""
    if isinstance(observation, dict):
        observation = tuple(observation[key] for key in sorted(observation))
    if isinstance(observation, tuple):
        return np.concatenate([np.ravel(_as_array(part)).astype(np.float64) for part in observation])
    return np.asarray(observation)


def _structure(observation):
    """Names, dtypes and shapes of an observation's parts, as bytes: numbers in another structure are other ones."""
    text = json.dumps(_described(observation), sort_keys=True)
    return np.frombuffer(text.encode("utf-8"), dtype=np.uint8).copy()


def _described(observation):
    if isinstance(observation, dict):
        return {str(key): _described(part) for key, part in observation.items()}
    if isinstance(observation, tuple):
        return [_described(part) for part in observation]
    array = np.asarray(observation)
    return "%s%s" % (array.dtype.str, array.shape)
