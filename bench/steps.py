"""The dumper's recording against a bare loop, in one process inside a release's virtualenv.

``python -I steps.py DUMPER API ENVIRONMENT STIMULUS ROUNDS`` prints seconds of the bare loop and of the recording,
taken in turns; the least of each is what the machine can do when nobody disturbs it. The bare loop resets, imposes a
state and steps, with nothing recorded.
"""

import importlib
import importlib.util
import os
import sys
import time

import numpy as np


def load_dumper(folder):
    path = os.path.join(folder, "__init__.py")
    spec = importlib.util.spec_from_file_location("dumper", path, submodule_search_locations=[folder])
    sys.modules["dumper"] = importlib.util.module_from_spec(spec)


def bare(env, batches):
    unwrapped, step = env.unwrapped, env.step
    for states, actions in batches:
        for state, row in zip(states, actions):
            env.reset(seed=0)
            if hasattr(unwrapped, "set_state"):
                positions = unwrapped.model.nq
                unwrapped.set_state(state[:positions], state[positions:])
            else:
                unwrapped.state = np.array(state)
            for action in row:
                step(action)


def main(folder, api, identifier, stimulus_path, rounds):
    load_dumper(folder)
    record = importlib.import_module("dumper.record")
    world = importlib.import_module("dumper.registered").make(importlib.import_module(api), identifier, {})
    with np.load(stimulus_path) as file:
        stimulus = {name: file[name] for name in file.files}
    batches = [
        (
            stimulus[name + ".states"],
            [row.tolist() if row.ndim == 1 else list(row) for row in stimulus[name + ".actions"]],
        )
        for name in record.BATCHES
        if name + ".actions" in stimulus
    ]
    described = world.description()
    bare_seconds, recorded_seconds = [], []
    for _ in range(int(rounds)):
        began = time.perf_counter()
        bare(world.env, batches)
        middle = time.perf_counter()
        record.record(world, stimulus, dict(described))
        recorded_seconds.append(time.perf_counter() - middle)
        bare_seconds.append(middle - began)
    steps = sum(len(row) for _, actions in batches for row in actions)
    sys.stdout.write("RESULT %r %r %d\n" % (min(bare_seconds), min(recorded_seconds), steps))


if __name__ == "__main__":
    main(*sys.argv[1:])
