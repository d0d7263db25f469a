"""The dumper's recording against a bare loop of ``env.step``, in one process inside a release's virtualenv.

``python -I steps.py DUMPER API ENVIRONMENT STIMULUS ROUNDS`` prints seconds of the bare loop and of the recording,
taken in turns; the least of each is what the machine can do when nobody disturbs it.
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


def bare(environment, states, actions):
    step = environment.env.step
    for state, row in zip(states, actions):
        environment.impose(state)
        for action in row:
            step(action)


def main(folder, api, identifier, stimulus_path, rounds):
    load_dumper(folder)
    describe = importlib.import_module("dumper.describe")
    record = importlib.import_module("dumper.record")
    made = importlib.import_module("dumper.environment").make(importlib.import_module(api), identifier, {})
    stimulus = np.load(stimulus_path)
    states = stimulus["states"]
    actions = [row.tolist() if row.ndim == 1 else list(row) for row in stimulus["actions"]]
    described = describe.description(made)
    bare_seconds, recorded_seconds = [], []
    for _ in range(int(rounds)):
        began = time.perf_counter()
        bare(made, states, actions)
        middle = time.perf_counter()
        record.record(made, stimulus_path, described)
        recorded_seconds.append(time.perf_counter() - middle)
        bare_seconds.append(middle - began)
    sys.stdout.write("RESULT %r %r %d\n" % (min(bare_seconds), min(recorded_seconds), sum(map(len, actions))))


if __name__ == "__main__":
    main(*sys.argv[1:])
