"""A large store made without a simulator: as many releases, environments and behaviours as a test or a person asks for.

``python -m tests.synthetic_store FILE --releases 1000 --environments 50 --behaviours 20`` writes one to look at.
"""

from __future__ import annotations

import argparse
import datetime
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from audit.failures import Failure, Status
from audit.storage.database import Database
from audit.storage.records import RunCell, RunEnvironment, RunRelease
from audit.storage.store import Store
from tests.stored_runs import RUN, exercised

OUTPUTS = ("state", "observation", "reward", "terminated", "truncated", "reset", "spaces")
VERDICTS = ("rounding", "amplified", "changed")
CURVE_STEPS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How large a store is to be."""

    releases: int = 1000
    environments: int = 50
    behaviours: int = 20
    """Distinct ones, of each environment."""
    missing: float = 0.02
    """Share of the cells that could not be dumped."""
    series: int = 1
    """In each the same requirements, as on another day."""
    seed: int = 0


def make(path: Path, size: Size) -> None:
    """Write a finished run of the matrix ``synthetic``; the same size makes the same rows."""
    draw = np.random.default_rng(size.seed)
    releases = [_release(place, size) for place in range(size.releases)]
    names = [f"Environment{place:02d}-v0" for place in range(size.environments)]
    cells = [cell for name in names for cell in _cells(name, releases, size, draw)]
    run = replace(RUN, run_id="synthetic", matrix="synthetic", matrix_text="name: synthetic")
    with Store(path) as store:
        store.begin_run(run)
        store.put_locks({_lock(place): (f"lock {place}", _packages(place)) for place in range(size.releases)})
        store.finish_run(run.run_id, 0, releases, cells, [_environment(name) for name in names], _failures(cells))
    database = Database(path)
    with database.transaction():
        for table, columns, rows in (*_tables(names, size, run.reads, draw), *_reasons(names, size), *_dumps(cells)):
            database.insert(table, columns, rows)
        database.execute("UPDATE internal.runs SET finished = ?", [run.started + datetime.timedelta(hours=1)])
    database.close()


def _release(place: int, size: Size) -> RunRelease:
    series, number = divmod(place, -(-size.releases // size.series))
    return RunRelease(
        release=f"simulator-{_version(number)}" + (f"-{series}" if series else ""),
        position=place,
        series=str(series or ""),
        requires=f"simulator=={_version(number)}",
        python="3.11.7",
        lock_digest=_lock(place),
        status=Status.READY,
        reason="",
    )


def _version(place: int) -> str:
    return f"{place // 100}.{place // 10 % 10}.{place % 10}"


def _lock(place: int) -> str:
    return f"lock{place:05d}"


def _packages(place: int) -> tuple[tuple[str, str], ...]:
    return ("numpy", f"2.{place // 200}.0"), ("simulator", _version(place))


def _behaviour(environment: str, place: int) -> str:
    return f"{environment}#{place:04d}"


def _cells(
    environment: str, releases: Sequence[RunRelease], size: Size, draw: np.random.Generator
) -> Iterator[RunCell]:
    """A behaviour lasts for some releases, then the next begins; now and then an earlier one comes back."""
    steps = draw.random(size.releases) < size.behaviours / max(1, size.releases)
    current = np.minimum(np.cumsum(steps), size.behaviours - 1)
    back = draw.random(size.releases) < 0.01
    shown = np.where(back, np.maximum(current - 1, 0), current)
    gone = draw.random(size.releases) < size.missing
    for release, behaviour, lost in zip(releases, shown, gone, strict=True):
        yield RunCell(
            environment=environment,
            release=release.release,
            position=release.position,
            cell_key=f"{release.release}/{environment}",
            status=Status.RAISED if lost else Status.OK,
            reason="ValueError: it does not step" if lost else "",
            behaviour=None if lost else _behaviour(environment, int(behaviour)),
            reused=False,
        )


def _environment(name: str) -> RunEnvironment:
    return exercised(name, baseline="simulator-0.0.0", states=520, coverage="520 states; 7 of 7 pairs touched")


def _failures(cells: Sequence[RunCell]) -> list[Failure]:
    return [
        Failure(subject=cell.identifier, stage="dump", status=cell.status, reason=cell.reason, seconds=1.0)
        for cell in cells
        if cell.behaviour is None
    ]


Rows = list[tuple[Any, ...]]


def _tables(
    names: Sequence[str], size: Size, reads: str, draw: np.random.Generator
) -> Iterator[tuple[str, list[str], Rows]]:
    """What the store keeps of behaviours and pairs of them: a table's name, columns and rows."""
    behaviours = [_behaviour(name, place) for name in names for place in range(size.behaviours)]
    yield (
        "behaviours",
        ["behaviour", "null_ratio"],
        [
            (each, float(ratio))
            for each, ratio in zip(behaviours, 10 ** draw.uniform(0, 2, len(behaviours)), strict=True)
        ],
    )
    pairs = [
        (_behaviour(name, first), _behaviour(name, second))
        for name in names
        for first, second in itertools.combinations(range(size.behaviours), 2)
    ]
    verdicts = draw.choice(VERDICTS, len(pairs), p=(0.5, 0.2, 0.3))
    judged = [_judged(pair, str(verdict), reads, draw) for pair, verdict in zip(pairs, verdicts, strict=True)]
    yield "comparisons", _COMPARISON, judged
    yield "evidence", _EVIDENCE, [row for each in judged for row in _evidence(each, draw)]
    amplified = [pair for pair, verdict in zip(pairs, verdicts, strict=True) if verdict == "amplified"]
    yield "certificates", _CERTIFICATE, [_certificate(pair, reads, draw) for pair in amplified]


_COMPARISON = [
    "first", "second", "reads", "verdict", "reason", "first_step_separation", "first_step_ulps", "horizon_separation",
    "paper_verdict", "first_step_ratio", "states_forced", "states_beyond", "outputs_changed", "beyond",
]  # fmt: skip
_EVIDENCE = [
    "first", "second", "reads", "output", "same_bits", "first_step_separation", "first_step_ulps", "horizon_separation",
    "horizon_ulps", "interface", "first_step_ratio", "states_beyond",
]  # fmt: skip
_CERTIFICATE = [
    "first", "second", "reads", "certificate", "reason", "steps_per_decade", "twin_slowest", "twin_fastest", "curve",
    "twin_curves",
]  # fmt: skip


def _judged(pair: tuple[str, str], verdict: str, reads: str, draw: np.random.Generator) -> tuple[Any, ...]:
    changed = verdict == "changed"
    ratio = float(10 ** (draw.uniform(6, 15) if changed else draw.uniform(-2, 1)))
    beyond = int(draw.integers(1, 500)) if changed else 0
    apart = float(10 ** draw.uniform(-16, 0))
    told = (
        f"state, reward beyond the yardstick in {beyond} of 520 states, ratio up to {ratio:.1e}" if changed else verdict
    )
    return (
        *pair, reads, verdict, told, apart, apart / 2.2e-16, apart * 10, verdict, ratio, 520, beyond,
        "state, reward" if changed else "", list(range(beyond)),
    )  # fmt: skip


def _evidence(judged: tuple[Any, ...], draw: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    first, second, reads, _, _, apart, ulps, horizon, _, ratio, _, beyond, *_ = judged
    for output, share in zip(OUTPUTS, draw.random(len(OUTPUTS)).tolist(), strict=True):
        yield (
            first, second, reads, output, False, apart * share, ulps * share, horizon * share, ulps, "", ratio * share,
            beyond,
        )  # fmt: skip


def _certificate(pair: tuple[str, str], reads: str, draw: np.random.Generator) -> tuple[Any, ...]:
    steps = np.arange(CURVE_STEPS)
    decade = float(draw.uniform(20, 60))
    curves = [np.minimum(10 ** (-16 + steps / rate), 1.0).tolist() for rate in decade * draw.uniform(0.8, 1.2, 4)]
    return (*pair, reads, "holds", "twins part as fast", decade, decade * 1.2, decade * 0.8, curves[0], curves[1:])


def _reasons(names: Sequence[str], size: Size) -> Iterator[tuple[str, list[str], Rows]]:
    """Why behaviours that follow each other differ: a stage and a constant each."""
    pairs = [
        (name, _behaviour(name, place), _behaviour(name, place + 1))
        for name in names
        for place in range(size.behaviours - 1)
    ]
    explained = [(*pair, name, "key", 16, "constraint", "efc_R", [], 1e9, "", 1, [], "") for name, *pair in pairs]
    yield "explanations", _EXPLANATION, explained
    constants = [
        (*pair, 0, "changed", "body_mass", f"part{number % 7}", "1", "1.1", 0.1)
        for number, (_, *pair) in enumerate(pairs)
    ]
    yield "constant_differences", _CONSTANT, constants


def _dumps(cells: Sequence[RunCell]) -> Iterator[tuple[str, list[str], Rows]]:
    """What the cells did, and how long it took: the longer, the newer."""
    there = [cell for cell in cells if cell.behaviour is not None]
    rows = [
        (cell.cell_key, "ok", "", cell.behaviour, RUN.machine, "s", "{}", 4000, cell.position / 100.0, RUN.started)
        for cell in there
    ]
    yield "dumps", _DUMP, rows
    shown = sorted({str(cell.behaviour) for cell in there})
    yield (
        "behaviour_outputs",
        ["behaviour", "output", "array_digest", "dtype", "shape"],
        [(each, "forced.state", f"array {each}", "float64", "[520, 1, 12]") for each in shown],
    )


_EXPLANATION = [
    "older_behaviour", "newer_behaviour", "environment", "key", "states", "stage", "fields", "before", "ratio",
    "interface", "constants", "unsteady", "reason",
]  # fmt: skip
_CONSTANT = [
    "older_behaviour", "newer_behaviour", "place", "kind", "field", "entry", "older_value", "newer_value", "size",
]  # fmt: skip
_DUMP = [
    "cell_key", "status", "reason", "behaviour", "machine", "stimulus_digest", "description", "steps", "seconds",
    "dumped",
]  # fmt: skip


def main() -> None:
    """Write one from the command line."""
    parser = argparse.ArgumentParser(description="Write a large store made without a simulator.")
    parser.add_argument("file", type=Path)
    for name, default in (("releases", 1000), ("environments", 50), ("behaviours", 20)):
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    make(given.file, Size(releases=given.releases, environments=given.environments, behaviours=given.behaviours))


if __name__ == "__main__":
    main()
