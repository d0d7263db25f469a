"""The obvious harness's cell: one process, one environment, a compressed npz. Runs inside a release's virtualenv.

``python -I obvious.py API ENVIRONMENT STIMULUS OUTPUT``
"""

import importlib
import inspect
import sys

import numpy as np


def make(api, identifier):
    gym = importlib.import_module(api)
    accepted = inspect.signature(gym.make).parameters
    keywords = {name: True for name in ("disable_env_checker", "new_step_api") if name in accepted}
    return gym.make(identifier, **keywords)


def impose(env, state):
    env.reset(seed=0)
    unwrapped = env.unwrapped
    if hasattr(unwrapped, "set_state"):
        positions = unwrapped.model.nq
        unwrapped.set_state(state[:positions], state[positions:])
        return lambda: np.concatenate([unwrapped.data.qpos, unwrapped.data.qvel])
    unwrapped.state = np.array(state)
    return lambda: np.array(unwrapped.state, dtype=float)


def main(api, identifier, stimulus_path, output):
    stimulus = np.load(stimulus_path)
    env = make(api, identifier)
    recorded = {"state": [], "observation": [], "reward": [], "done": []}
    for state, actions in zip(stimulus["horizon.states"], stimulus["horizon.actions"]):
        read = impose(env, state)
        for action in actions:
            observation, reward, done = env.step(action)[:3]
            recorded["state"].append(read())
            recorded["observation"].append(np.array(observation))
            recorded["reward"].append(float(reward))
            recorded["done"].append(bool(done))
    np.savez_compressed(output, **recorded)


if __name__ == "__main__":
    main(*sys.argv[1:])
