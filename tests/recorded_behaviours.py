"""Behaviours made up for tests: what releases recorded, without a release."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audit.failures import Status
from audit.storage.records import DumpRecord, NewDump, StoredArray
from audit.storage.store import Store

Arrays = dict[str, NDArray[Any]]

STATES, NUDGES, SEEDS = 6, 2, 3
SPACES = b'{"action": {"high": ["1.0"], "type": "Box"}, "observation": {"type": "Discrete"}}'


def text(value: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(value, dtype=np.uint8)


def steps(states: NDArray[np.float64]) -> Arrays:
    """What comes of states, shaped (rows, steps, 2)."""
    shape = states.shape[:2]
    return {
        "state": states,
        "observation": np.cos(states).astype(np.float32),
        "reward": states.sum(axis=2),
        "terminated": np.zeros(shape, np.bool_),
        "truncated": np.zeros(shape, np.bool_),
    }


def forced() -> Arrays:
    """Everything that a release records where states can be imposed."""
    generator = np.random.default_rng(0)
    imposed = generator.uniform(0.5, 1.0, (STATES, 2))
    nudges = np.concatenate([imposed + sign * np.spacing(imposed) for sign in (-1.0, 1.0)])
    batches = {
        "horizon": steps(generator.uniform(0.5, 1.0, (2, 5, 2))),
        "forced": steps(1.5 * imposed[:, None]),
        "nudged": steps(1.5 * nudges[:, None]),
    }
    arrays = {f"{name}.{output}": array for name, batch in batches.items() for output, array in batch.items()}
    return arrays | {
        "horizon.imposed": imposed[:2],
        "forced.imposed": imposed,
        "reset.state": imposed[:SEEDS],
        "reset.observation": np.cos(imposed[:SEEDS]).astype(np.float32),
        "structure": text(b'"<f4(2,)"'),
        "spaces": text(SPACES),
    }


def replayed() -> Arrays:
    """What a release records where it can only be started from a seed."""
    named = {name: array for name, array in forced().items() if not name.startswith(("forced", "nudged"))}
    return named | {
        "horizon.state": np.zeros((2, 5, 0)),
        "horizon.imposed": np.zeros((2, 0)),
        "reset.state": np.zeros((SEEDS, 0)),
    }


def table() -> Arrays:
    """What a release records that publishes all of its transitions."""
    named = ("structure", "spaces", "reset.state", "reset.observation")
    batch = steps(np.ones((4, 1, 2))) | {"imposed": np.zeros((4, 2)), "observation": np.ones((4, 1), np.int64)}
    return {name: forced()[name] for name in named} | {f"forced.{name}": array for name, array in batch.items()}


def keep(
    store: Store, behaviour: str, arrays: Mapping[str, NDArray[Any]], machine: str = "here", **more: Any
) -> NewDump:
    """Keep a behaviour as a dump that some release made."""
    outputs = {
        name: StoredArray(digest=store.arrays.put(array), dtype=str(array.dtype), shape=array.shape)
        for name, array in arrays.items()
    }
    whole: dict[str, Any] = {
        "record": DumpRecord(status=Status.OK, reason="", behaviour=behaviour),
        "key": f"key of {behaviour}",
        "machine": machine,
        "stimulus": "s",
        "outputs": outputs,
        "description": {},
        "steps": 6,
        "seconds": 0.0,
    }
    dump = NewDump(**(whole | more))
    store.put_dumps([dump])
    return dump
