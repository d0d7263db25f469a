"""Write down how to show an explained change to somebody else: a script, the numbers, the text of an issue."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from audit.asked.plan import Cell
from audit.explanations.reproducer import folder_name, write
from audit.explanations.reproducer_case import CannotReproduce, Case, Outcome, Side
from audit.explanations.telling import StoredPair
from audit.installing.locks import Release
from audit.storage.store import Store

FOLDER = "reproducers"
"""Beside the database."""


def reproduce(store: Store, cells: tuple[Cell, Cell], pair: StoredPair, kind: str, told: Sequence[str]) -> str:
    """Write a reproducer of one forced step that shows the change; return where, or why there is none.

    Of the states that show it, the one whose outcomes are furthest apart is taken.
    """
    behaviours = pair.older_behaviour, pair.newer_behaviour
    given = store.stimulus_of(behaviours[0])
    if not pair.beyond or "forced.states" not in given:
        return ""
    state = _furthest(store, behaviours, pair.beyond)
    older, newer = cells
    actions = given["forced.actions"][state, 0]
    try:
        case = Case(
            environment=older.environment,
            kind=kind,
            older=_side(older.release, store, behaviours[0], state),
            newer=_side(newer.release, store, behaviours[1], state),
            state=tuple(given["forced.states"][state].tolist()),
            action=int(actions) if actions.ndim == 0 else tuple(np.ravel(actions).astype(float).tolist()),
            action_dtype=str(given["forced.actions"].dtype),
            states_beyond=len(pair.beyond),
            states_forced=pair.states_forced,
            ratio=pair.ratio,
            scene=older.attachment,
            told=tuple(told),
        )
        name = folder_name(older.environment.title, older.release.id, newer.release.id)
        return str(write(store.path.parent / FOLDER / name, case))
    except CannotReproduce as error:
        return f"no script: {error}"


def _furthest(store: Store, behaviours: tuple[str, str], beyond: Sequence[int]) -> int:
    older, newer = (
        store.arrays.get(store.outputs(behaviour)["forced.state"].digest)[list(beyond)] for behaviour in behaviours
    )
    if older.shape != newer.shape:
        return int(beyond[0])
    apart = np.nan_to_num(np.abs(older - newer).reshape(len(beyond), -1).max(axis=1), nan=np.inf)
    return int(beyond[int(np.argmax(apart))])


def _side(release: Release, store: Store, behaviour: str, state: int) -> Side:
    outputs = store.outputs(behaviour)
    values = {
        name: np.ravel(store.arrays.get(outputs[f"forced.{name}"].digest)[state, 0]).astype(np.float64)
        for name in ("state", "observation", "reward")
    }
    return Side(
        name=release.id,
        requires=release.request.requires,
        packages=release.lock.packages,
        python=release.interpreter.version,
        outcome=Outcome(
            state=tuple(values["state"].tolist()),
            observation=tuple(values["observation"].tolist()),
            reward=float(values["reward"][0]),
        ),
    )


def path_of(store: Store, environment: str, older: str, newer: str) -> Path:
    """Where the script of a pair lies, if it was written."""
    return store.path.parent / FOLDER / folder_name(environment, older, newer) / "reproduce.py"
