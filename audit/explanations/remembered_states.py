"""States in which an audit saw two releases differ: a search between the same two begins from what is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from audit.installing.locks import Release
from audit.stimuli.stimulus import Batch
from audit.storage.store import Store

MOST = 16
"""States that are taken over: as many as an explanation looks into."""


def between(store: Store, environment: str, ends: tuple[Release, Release]) -> Batch | None:
    """Some of the states beyond the yardstick, of the latest audit that has the two; nothing where none has.

    What was resolved on another day is the same here, if everything that the user named is at the same versions: a
    state decides nothing, it is only looked at.
    """
    rows = store.query(
        """
        SELECT pair.older_behaviour, pair.beyond,
            (SELECT map_from_entries(list((package, version))) FROM internal.lock_packages AS each
             WHERE each.lock_digest = older.lock_digest),
            (SELECT map_from_entries(list((package, version))) FROM internal.lock_packages AS each
             WHERE each.lock_digest = newer.lock_digest)
        FROM pairs_history AS pair
        JOIN internal.run_releases AS older ON older.run_id = pair.run_id AND older.release = pair.older
        JOIN internal.run_releases AS newer ON newer.run_id = pair.run_id AND newer.release = pair.newer
        WHERE pair.environment = ? AND pair.verdict = 'changed' AND pair.evidence = 'forced' AND len(pair.beyond) > 0
        ORDER BY pair.finished DESC, pair.older_position, pair.newer_position
        """,
        [environment],
    ).rows
    for behaviour, beyond, *packages in rows:
        if any(_are(packages, order) for order in (ends, ends[::-1])):
            return _some(store, behaviour, beyond)
    return None


def _are(packages: Sequence[Mapping[str, str] | None], ends: Sequence[Release]) -> bool:
    return all(end.required.items() <= (installed or {}).items() for installed, end in zip(packages, ends, strict=True))


def _some(store: Store, behaviour: str, beyond: Sequence[int]) -> Batch | None:
    given = store.stimulus_of(behaviour)
    if "forced.states" not in given:
        return None
    chosen = np.array(beyond)[np.linspace(0, len(beyond) - 1, min(MOST, len(beyond))).astype(np.int64)]
    return Batch(starts=given["forced.states"][chosen], actions=given["forced.actions"][chosen])
