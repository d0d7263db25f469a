"""Measure named queries on a store of 1,000 releases × 50 environments, which has 25 million pairs."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from audit.storage import named_queries
from audit.storage.store import Store
from audit.terminal.screen import Screen
from tests import synthetic_store
from tests.synthetic_store import Size
from tests.test_neighbours import define_pairs_as_before

QUERY_TARGET = 2.0
GROWTH_TARGET = 3.0
"""Of twice as many releases: linear is 2, and all pairs would be 4."""
LARGE = Size(releases=1000, environments=50, series=2)
HALF = Size(releases=500, environments=50, series=2)
_ROUNDS = 3
_COUNTS = "SELECT verdict, count(*) FROM {} WHERE adjacent GROUP BY ALL ORDER BY ALL"


def measure(screen: Screen) -> None:
    """Print every query's seconds beside the target, and how they grow."""
    with tempfile.TemporaryDirectory(prefix="release-audit-bench-") as folder:
        stores = {}
        for name, size in (("large", LARGE), ("half", HALF)):
            began = time.perf_counter()
            synthetic_store.make(Path(folder) / f"{name}.duckdb", size)
            screen.note(f"{size.releases} × {size.environments} written in {time.perf_counter() - began:.1f} s")
            stores[name] = Store(Path(folder) / f"{name}.duckdb")
        with stores["large"] as large, stores["half"] as half:
            compare_sizes(large, half, screen)
            compare_definitions(large, screen)


def compare_sizes(large: Store, half: Store, screen: Screen) -> None:
    """Every named query on both stores, in turns."""
    rows = []
    for query in named_queries.every():
        values = query.values([])
        seconds, fewer = _in_turns(
            lambda: large.query(query.sql, values),  # noqa: B023 called before the next one
            lambda: half.query(query.sql, values),  # noqa: B023
        )
        found = len(large.query(query.sql, values).rows)
        rows.append((query.name, found, f"{seconds:.2f}", f"{seconds / fewer:.2f}"))
    screen.table(("query", "rows", "seconds", "over half as many releases"), rows)
    slowest = max(float(seconds) for _, _, seconds, _ in rows)
    growth = max(float(ratio) for *_, ratio in rows)
    screen.note(f"slowest named query: {slowest:.2f} s (target at most {QUERY_TARGET})")
    screen.note(f"steepest growth with twice as many releases: {growth:.2f} (target at most {GROWTH_TARGET})")


def compare_definitions(store: Store, screen: Screen) -> None:
    """Neighbours by their places, and as they were: all pairs joined, then filtered."""
    define_pairs_as_before(store)
    ours, before = _in_turns(
        lambda: store.query(_COUNTS.format("pairs_history")),
        lambda: store.query(_COUNTS.format("before_pairs_history")),
    )
    same = store.query(_COUNTS.format("pairs_history")) == store.query(_COUNTS.format("before_pairs_history"))
    screen.note(
        f"neighbours by place over neighbours among all pairs: {ours / before:.3f} ({ours:.2f} s and {before:.1f} s), "
        f"the answers are {'the same' if same else 'NOT the same'}"
    )


def _in_turns(one: Callable[[], object], other: Callable[[], object]) -> tuple[float, float]:
    """The least seconds of both: what the machine can do when nobody disturbs it."""
    seconds: tuple[list[float], list[float]] = ([], [])
    for _ in range(_ROUNDS):
        for run, taken in zip((one, other), seconds, strict=True):
            began = time.perf_counter()
            run()
            taken.append(time.perf_counter() - began)
    return min(seconds[0]), min(seconds[1])
