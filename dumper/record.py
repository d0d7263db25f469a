"""Impose each state of the stimulus, take its actions, record every step."""

import numpy as np

from dumper.answers import Answer


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
    first = _as_arguments(actions[0])[0]
    environment.impose(states[0])
    step = environment.stepper(first)
    trajectories, steps = actions.shape[:2]
    environment.impose(states[0])
    arrays = _allocate(states, trajectories, steps, _as_array(step(first)[0]))
    for index in range(trajectories):
        environment.impose(states[index])
        environment.read(arrays["imposed"][index])
        _follow(environment, step, _as_arguments(actions[index]), [arrays[name][index] for name in OUTPUTS])
    description["steps"] = trajectories * steps
    return Answer("ok", "", arrays=arrays, meta=description)


OUTPUTS = ("state", "observation", "reward", "terminated", "truncated")


def _allocate(states, trajectories, steps, observation):
    """Make room for every output; the observation is one taken on trial, for its shape and dtype."""
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
    read = environment.read
    dtype, shape = observations.dtype, observations.shape[1:]
    for k, action in enumerate(actions):
        observation, rewards[k], terminations[k], truncations[k] = step(action)
        if type(observation) is not np.ndarray:
            observation = _as_array(observation)
        if observation.dtype != dtype or observation.shape != shape:
            raise TypeError(
                "the observation is %s%s at step %d and was %s%s before"
                % (observation.dtype, observation.shape, k, dtype, shape)
            )
        observations[k] = observation
        read(states[k])


def _as_arguments(actions):
    """Discrete actions are handed over as plain integers, others as the rows of the array."""
    return actions.tolist() if actions.ndim == 1 and actions.dtype.kind == "i" else list(actions)


def _as_array(observation):
    if isinstance(observation, dict):
        observation = tuple(observation[key] for key in sorted(observation))
    if isinstance(observation, tuple):
        return np.concatenate([np.ravel(_as_array(part)).astype(np.float64) for part in observation])
    return np.asarray(observation)
