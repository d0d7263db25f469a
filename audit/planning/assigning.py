"""The assigning stage: each environment to one class of machines, on which all of its releases are dumped.

Instruction sets and the C library are suspects like any package, so that nothing is compared across classes. On one
machine there is one class and nothing to assign. On a cluster an environment stays where it was begun; the others are
spread so that all classes are done at about the same time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from audit import machine
from audit.planning.drawing import DrawnEnvironment
from audit.planning.plan import Cell, Recording
from audit.storage.store import Store
from audit.tools import Tools


def assign(cells: Sequence[Cell], drawn: Mapping[str, DrawnEnvironment], tools: Tools) -> tuple[Cell, ...]:
    """The cells, each with the class of its environment. Where all is known, no cluster is asked."""
    if not tools.runner.is_elsewhere:
        return tuple(cells)
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        if cell.environment.title in drawn:
            groups.setdefault(cell.environment.title, []).append(cell)
    begun = {title: begun_on(group, drawn[title], tools.store) for title, group in groups.items()}
    unfinished = [title for title, group in groups.items() if len(group) not in begun[title].values()]
    chosen = {title: max(begun[title], key=lambda each: begun[title][each]) for title in groups.keys() - {*unfinished}}
    if unfinished:
        steps = {title: drawn[title].stimulus.steps * len(groups[title]) for title in unfinished}
        here = machine.here().digest
        chosen |= spread(steps, {title: begun[title] for title in unfinished}, tools.runner.classes(), here)
    return tuple(replace(cell, machine=chosen.get(cell.environment.title, cell.machine)) for cell in cells)


def begun_on(cells: Sequence[Cell], drawn: DrawnEnvironment, store: Store) -> dict[str, int]:
    """How many of an environment's cells the store has, by class of machines."""
    keys = {
        each: [Recording(cell=replace(cell, machine=each), stimulus=drawn.stimulus).key for cell in cells]
        for each in store.machines(drawn.stimulus.digest)
    }
    found = store.dumps(key for of_class in keys.values() for key in of_class)
    counts = {each: sum(key in found for key in of_class) for each, of_class in keys.items()}
    return {each: count for each, count in counts.items() if count}


def spread(
    steps: Mapping[str, int], begun: Mapping[str, Mapping[str, int]], slots: Mapping[str, int], here: str
) -> dict[str, str]:
    """A class for every environment: the one that has most of it, else the one that would be done with it first.

    Between equals it is the orchestrator's own. One that was begun on a class that is not there any more begins anew.
    """
    if not slots:
        return {}
    load = dict.fromkeys(slots, 0)
    chosen: dict[str, str] = {}
    for title in sorted(steps, key=lambda title: (not begun[title].keys() & slots.keys(), -steps[title])):
        known = {each: count for each, count in begun[title].items() if each in slots}
        if known:
            best = max(known, key=lambda each: known[each])
        else:
            cost = steps[title]
            best = min(slots, key=lambda each: ((load[each] + cost) / slots[each], each != here, each))
        load[best] += steps[title]
        chosen[title] = best
    return chosen
