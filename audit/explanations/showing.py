"""Write down how to show an explained change to somebody else: a script, the numbers, the text of an issue."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis import distance
from analysis.yardstick import THRESHOLD
from audit.comparisons import comparing
from audit.explanations import reproducer
from audit.explanations.reproducer_case import CannotReproduce, Case, Outcome, Reset, Side, Step
from audit.explanations.stored_pairs import StoredPair
from audit.planning.plan import Cell
from audit.storage.store import Store

FOLDER = "reproducers"
"""Beside the database."""

_OF_A_STEP = ("state", "observation", "reward")
_OF_A_RESET = ("state", "observation")


def reproduce(store: Store, cells: tuple[Cell, Cell], pair: StoredPair, kind: str, told: Sequence[str]) -> str:
    """Write a reproducer of one forced step, or one reset, that shows the change; return where, or why there is none.

    Of the states or seeds that show it, the one whose outcomes are furthest apart is taken.
    """
    older, newer = cells
    names = older.environment.title, older.release.id, newer.release.id
    folder = folder_of(store, names, (pair.older_behaviour, pair.newer_behaviour))
    try:
        case = _case(store, cells, pair, kind, tuple(told))
        return str(reproducer.write(folder, case))
    except CannotReproduce as error:
        sentence = f"no script: {error}"
        reproducer.write_why_not(folder, sentence)
        return sentence


def _case(store: Store, cells: tuple[Cell, Cell], pair: StoredPair, kind: str, told: tuple[str, ...]) -> Case:
    _check_names(cells)
    if pair.beyond and "forced.states" in store.stimulus_of(pair.older_behaviour):
        return _step(store, cells, pair, kind, told)
    return _reset(store, cells, pair, kind, told)


def _check_names(cells: tuple[Cell, Cell]) -> None:
    """One script makes one environment."""
    names = [cell.environment.source_in(cell.release.request.known_as) for cell in cells]
    if names[0] != names[1]:
        raise CannotReproduce(f"{cells[0].environment.title} is {names[0]} in one release and {names[1]} in the other")


def _step(store: Store, cells: tuple[Cell, Cell], pair: StoredPair, kind: str, told: tuple[str, ...]) -> Case:
    behaviours = pair.older_behaviour, pair.newer_behaviour
    given = store.stimulus_of(behaviours[0])
    state = _furthest(pair.beyond, *(_array(store, each, "forced.state") for each in behaviours))
    actions = given["forced.actions"][state, 0]
    older, newer = (
        _side(cell, {name: _array(store, each, f"forced.{name}")[state, 0] for name in _OF_A_STEP})
        for cell, each in zip(cells, behaviours, strict=True)
    )
    return Case(
        environment=cells[0].environment,
        kind=kind,
        older=older,
        newer=newer,
        given=Step(
            state=tuple(given["forced.states"][state].tolist()),
            action=int(actions) if actions.ndim == 0 else tuple(np.ravel(actions).astype(float).tolist()),
            action_dtype=str(given["forced.actions"].dtype),
        ),
        beyond=len(pair.beyond),
        tried=pair.states_forced,
        ratio=pair.ratio,
        attached=cells[0].attachment,
        told=told,
    )


def _reset(store: Store, cells: tuple[Cell, Cell], pair: StoredPair, kind: str, told: tuple[str, ...]) -> Case:
    behaviours = pair.older_behaviour, pair.newer_behaviour
    evidence = comparing.resets(store, behaviours)
    seeds = store.stimulus_of(behaviours[0]).get("reset.seeds", np.empty(0, dtype=np.int64))
    ratios = evidence.reading.ratios if evidence.reading is not None else np.full(len(seeds), np.inf)
    if evidence.same_bits or not (ratios >= THRESHOLD).any():
        raise CannotReproduce("no forced step and no reset shows it: it is in spaces, or on the way of a trajectory")
    place = int(np.argmax(ratios))
    older, newer = (
        _side(cell, {name: _array(store, each, f"reset.{name}")[place] for name in _OF_A_RESET})
        for cell, each in zip(cells, behaviours, strict=True)
    )
    return Case(
        environment=cells[0].environment,
        kind=kind,
        older=older,
        newer=newer,
        given=Reset(seed=int(seeds[place])),
        beyond=int((ratios >= THRESHOLD).sum()),
        tried=len(seeds),
        ratio=float(ratios.max()),
        attached=cells[0].attachment,
        told=told,
    )


def _array(store: Store, behaviour: str, name: str) -> NDArray[Any]:
    return store.arrays.get(store.outputs(behaviour)[name].digest)


def _furthest(beyond: Sequence[int], older: NDArray[Any], newer: NDArray[Any]) -> int:
    if older.shape != newer.shape:
        return int(beyond[0])
    apart = distance.apart(older[list(beyond)], newer[list(beyond)])
    return int(beyond[int(np.argmax(apart.max(axis=tuple(range(1, apart.ndim)), initial=0.0)))])


def _side(cell: Cell, outcome: dict[str, NDArray[Any]]) -> Side:
    values = {name: tuple(np.ravel(array).astype(np.float64).tolist()) for name, array in outcome.items()}
    release = cell.release
    return Side(
        name=release.id,
        requires=release.request.requires,
        packages=release.lock.packages,
        python=release.interpreter.version,
        outcome=Outcome(
            state=values["state"],
            observation=values["observation"],
            reward=values["reward"][0] if "reward" in values else None,
        ),
        edits=cell.edits,
    )


def folder_of(store: Store, names: tuple[str, str, str], behaviours: tuple[str, str]) -> Path:
    """Where the script of a pair (environment, older, newer) lies, or why there is none."""
    return store.path.parent / FOLDER / reproducer.folder_name(*names, behaviours)
