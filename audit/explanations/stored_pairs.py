"""Changed pairs as the store has them: those that a run is to explain, and the one that a question is about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from audit.comparisons import run_pairs
from audit.storage.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPair:
    """A changed pair of a run, or of releases that were looked at now."""

    run_id: str
    """Empty where no run has it."""
    older_behaviour: str
    newer_behaviour: str
    verdict: str
    reason: str
    beyond: tuple[int, ...]
    states_forced: int
    ratio: float


def changed_neighbours(store: Store, run_id: str) -> list[tuple[str, str, str]]:
    """Environment, older and newer release of changed neighbours whose states can be imposed.

    Of neighbours with the same two behaviours, the oldest: one explanation holds for all of them.
    """
    found = run_pairs.neighbours(run_id).query(
        store,
        "SELECT environment, older, newer FROM pair WHERE verdict = 'changed' AND evidence = 'forced'"
        " QUALIFY row_number() OVER ("
        "   PARTITION BY environment, older_behaviour, newer_behaviour ORDER BY older_position, newer_position) = 1"
        " ORDER BY environment, older_position, newer_position",
    )
    return [(environment, older, newer) for environment, older, newer in found.rows]


_HAS_CELL = "SELECT run_id FROM internal.run_cells WHERE environment = ? AND release = ? AND ? IN (cell_key, '')"


def find(
    store: Store, environment: str, older: str, newer: str, *, run_id: str = "", cells: Sequence[str] = ("", "")
) -> StoredPair | None:
    """The pair as a run has it, or as the latest has that asked what these keys of cells say; nothing if none has."""
    found = store.query(
        "SELECT run_id, older_behaviour, newer_behaviour, verdict, reason, beyond, states_forced, first_step_ratio"
        " FROM pairs_history WHERE environment = ? AND older = ? AND newer = ? AND ? IN (run_id, '')"
        f" AND run_id IN ({_HAS_CELL}) AND run_id IN ({_HAS_CELL}) ORDER BY finished DESC LIMIT 1",
        [environment, older, newer, run_id, environment, older, cells[0], environment, newer, cells[1]],
    ).rows
    if not found:
        return None
    *texts, beyond, states, ratio = found[0]
    return StoredPair(
        run_id=texts[0],
        older_behaviour=texts[1] or "",
        newer_behaviour=texts[2] or "",
        verdict=texts[3] or "",
        reason=texts[4] or "",
        beyond=tuple(beyond or ()),
        states_forced=states or 0,
        ratio=ratio or 0.0,
    )
