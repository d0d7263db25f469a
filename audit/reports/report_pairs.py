"""What the page shows of one pair: evidence, growth, explanation, laws. Read per environment, by behaviours."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np

from analysis.report.model import Details, Explanation, Growth, Number, Output, Pair
from analysis.verdicts import SIGNS, Verdict
from audit.explanations import showing
from audit.explanations.account import constant_told, shortened
from audit.explanations.explaining import MOST_CONSTANTS
from audit.explanations.reproducer import CASE
from audit.explanations.reproducer_case import SCRIPT
from audit.laws import law_lines
from audit.reports.report_grid import Grid, Run
from audit.storage.store import Store

MOST_POINTS = 160
"""Of a curve: more than a screen shows in the width that it has."""

MOST_STAGES = 12
"""Quantities within a step; what comes after them follows from them."""

Ends = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """What the store has of an environment's behaviours."""

    details: Details
    signs: Mapping[Ends, str]
    """Of pairs of behaviours, the lesser first."""
    null_ratios: tuple[Number, ...]


def number(value: float | None) -> Number:
    """As JSON can hold it."""
    return value if value is None or math.isfinite(value) else str(value)


def read(store: Store, run: Run, grid: Grid) -> Read:
    """All of it, as a run reads it."""
    places = {behaviour: place for place, behaviour in enumerate(grid.behaviours)}
    asked, near = [run.reads, list(places), list(places)], grid.near
    pairs: dict[Ends, Pair] = {}
    signs: dict[Ends, str] = {}
    for first, second, verdict, *rest in store.query(_COMPARISONS, asked).rows:
        ends = _ends(places, first, second)
        signs[ends] = SIGNS[Verdict(verdict)]
        pairs[ends] = _pair(rest, near=ends in near)
    for (first, second), rows in groupby(store.query(_EVIDENCE, asked).rows, key=lambda row: row[:2]):
        ends = _ends(places, first, second)
        pairs[ends] = replace(pairs[ends], outputs=tuple(_output(row[2:]) for row in rows))
    for first, second, *rest in store.query(_CERTIFICATES, asked).rows:
        ends = _ends(places, first, second)
        pairs[ends] = replace(pairs[ends], growth=_growth(*rest))
    nulls = dict(store.query(_NULLS, [list(places)]).rows)
    return Read(
        details=Details(
            pairs={f"{low}-{high}": pair for (low, high), pair in pairs.items()},
            explanations=_explanations(store, run, grid, places),
        ),
        signs=signs,
        null_ratios=tuple(number(nulls.get(each)) for each in grid.behaviours),
    )


_OF_THESE = "WHERE reads = ? AND first IN (SELECT unnest(?::VARCHAR[])) AND second IN (SELECT unnest(?::VARCHAR[]))"
_COMPARISONS = f"""
    SELECT first, second, verdict, reason, paper_verdict, first_step_separation, first_step_ulps, first_step_ratio,
        horizon_separation, states_forced, states_beyond, outputs_changed
    FROM internal.comparisons {_OF_THESE}"""
_EVIDENCE = f"""
    SELECT first, second, output, same_bits, first_step_separation, first_step_ratio, states_beyond,
        horizon_separation, interface
    FROM internal.evidence {_OF_THESE} ORDER BY first, second, rowid"""
_CERTIFICATES = f"""
    SELECT first, second, certificate, reason, steps_per_decade, twin_slowest, twin_fastest, curve, twin_curves
    FROM internal.certificates {_OF_THESE}"""
_NULLS = "SELECT behaviour, null_ratio FROM internal.behaviours WHERE behaviour IN (SELECT unnest(?::VARCHAR[]))"
_DIRECTED = (
    "WHERE older_behaviour IN (SELECT unnest(?::VARCHAR[])) AND newer_behaviour IN (SELECT unnest(?::VARCHAR[]))"
)


def _ends(places: Mapping[str, int], first: str, second: str) -> Ends:
    one, other = places[first], places[second]
    return min(one, other), max(one, other)


def _pair(row: Sequence[Any], *, near: bool) -> Pair:
    reason, paper, separation, ulps, ratio, horizon, forced, beyond, changed = row
    return Pair(
        reason=reason,
        paper=paper or "",
        separation=number(separation),
        ulps=number(ulps),
        ratio=number(ratio),
        horizon=number(horizon),
        forced=forced,
        beyond=beyond,
        changed=changed or "",
        near=near,
    )


def _output(row: Sequence[Any]) -> Output:
    output, same_bits, separation, ratio, beyond, horizon, interface = row
    return Output(
        output=output,
        same_bits=same_bits,
        separation=number(separation),
        ratio=number(ratio),
        beyond=beyond,
        horizon=number(horizon),
        interface=interface,
    )


def _growth(
    certificate: str, reason: str, own: float | None, slowest: float | None, fastest: float | None,
    curve: Sequence[float], twins: Sequence[Sequence[float]],
) -> Growth:  # fmt: skip
    """Curves thinned to what a screen shows; of the twins the lowest and the highest at each step."""
    steps = np.unique(np.linspace(0, max(0, len(curve) - 1), min(len(curve), MOST_POINTS)).round().astype(int))
    each = [np.asarray(twin, dtype=np.float64)[: len(curve)] for twin in twins if len(twin) >= len(curve)]
    together = np.stack(each)[:, steps] if each and len(steps) else np.empty((0, len(steps)))
    return Growth(
        certificate=certificate,
        reason=reason,
        steps_per_decade=number(own),
        twin_slowest=number(slowest),
        twin_fastest=number(fastest),
        steps=tuple(steps.tolist()),
        curve=_drawn(np.asarray(curve, dtype=np.float64)[steps]),
        twin_low=_drawn(together.min(axis=0)) if len(together) else (),
        twin_high=_drawn(together.max(axis=0)) if len(together) else (),
    )


def _drawn(values: Any) -> tuple[float, ...]:
    """Three digits are more than a pixel; what is not finite stands above everything."""
    return tuple(float(f"{value:.3g}") for value in np.nan_to_num(values, nan=1e300, posinf=1e300).tolist())


# Why


def _explanations(store: Store, run: Run, grid: Grid, places: Mapping[str, int]) -> dict[str, Explanation]:
    """By the older and the newer behaviour, in the order in which they were looked into."""
    asked = [list(places), list(places)]
    found: dict[Ends, Explanation] = {}
    constants, stages = _constants(store, asked), _stages(store, asked)
    for older, newer, *rest in store.query(
        "SELECT older_behaviour, newer_behaviour, stage, fields, before, states, ratio, interface, reason"
        f" FROM internal.explanations {_DIRECTED}",
        asked,
    ).rows:
        stage, fields, before, states, ratio, interface, left_open = rest
        found[places[older], places[newer]] = Explanation(
            stage=stage,
            fields=fields,
            before=tuple(filter(None, [shortened(before)])),
            states=states,
            ratio=number(ratio),
            interface=interface,
            left_open=left_open,
            constants=constants.get((older, newer), ())[:MOST_CONSTANTS],
            more_constants=max(0, len(constants.get((older, newer), ())) - MOST_CONSTANTS),
            stages=stages.get((older, newer), ()),
        )
    for (older, newer), told in law_lines.of_behaviours(store, run.run_id, list(places)).items():
        ends = places[older], places[newer]
        found[ends] = replace(found.get(ends, Explanation()), laws=told)
    for ends, (script, commands) in _scripts(store, grid).items():
        found[ends] = replace(found.get(ends, Explanation()), script=script, commands=commands)
    return {f"{older}-{newer}": each for (older, newer), each in found.items()}


def _constants(store: Store, asked: Sequence[Any]) -> dict[tuple[str, str], tuple[str, ...]]:
    rows = store.query(
        "SELECT older_behaviour, newer_behaviour, kind, field, entry, older_value, newer_value"
        f" FROM internal.constant_differences {_DIRECTED} AND kind = 'changed' ORDER BY ALL",
        asked,
    ).rows
    return {key: tuple(constant_told(*row[2:]) for row in each) for key, each in groupby(rows, lambda row: row[:2])}


def _stages(store: Store, asked: Sequence[Any]) -> dict[tuple[str, str], tuple[tuple[str, str, int, Number], ...]]:
    rows = store.query(
        "SELECT older_behaviour, newer_behaviour, stage, field, states, ratio"
        f" FROM internal.stage_differences {_DIRECTED} ORDER BY older_behaviour, newer_behaviour, place",
        asked,
    ).rows
    return {
        key: tuple(
            (stage, field, states, number(ratio)) for _, _, stage, field, states, ratio in list(each)[:MOST_STAGES]
        )
        for key, each in groupby(rows, lambda row: row[:2])
    }


def _scripts(store: Store, grid: Grid) -> dict[Ends, tuple[str, tuple[str, ...]]]:
    """Where reproducers of neighbours lie, beside the database, and how each is run."""
    folder = store.path.parent / showing.FOLDER
    if not folder.is_dir():
        return {}
    found = {}
    for older, newer in grid.neighbours:
        ends = grid.cells[older], grid.cells[newer]
        names = grid.environment, grid.releases[older].name, grid.releases[newer].name
        shown = showing.folder_of(store, names, (grid.behaviours[ends[0]], grid.behaviours[ends[1]]))
        script = shown / SCRIPT
        if ends[0] != ends[1] and script.is_file():
            found[ends] = str(script.relative_to(store.path.parent)), _commands(script.with_name(CASE))
    return found


def _commands(path: Any) -> tuple[str, ...]:
    if not path.is_file():
        return ()
    case = json.loads(path.read_text(encoding="utf-8"))
    return tuple(str(case[side]["command"]) for side in ("older", "newer"))
