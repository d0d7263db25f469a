"""The issue text of a reproducer, with what its script prints at either release."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from analysis.yardstick import THRESHOLD
from audit.asked.environment_rows import EnvironmentRow
from audit.explanations import reproducer_edits
from audit.explanations.reproducer_case import (
    SCRIPT,
    Case,
    Gap,
    Reset,
    Side,
    apart,
    commands,
    labels,
    moved,
    same_python,
)
from audit.explanations.reproducer_script import ADAPTER, SCENE_FOLDER, arguments_of, has_files, script, watched
from audit.markup import escaped

SHOWN_ENTRIES = 5
"""Entries of the outcome that the issue shows side by side: those that are furthest apart."""

LONGEST_SHOWN = 4000
"""Characters of a printed outcome that the issue shows unfolded: about two screens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Words:
    """What is said of a step, and otherwise of a reset."""

    title: str
    given: str
    shown: str
    tries: str
    does: str
    found: str
    yardstick: str


_AFTER_A_STEP = _Words(
    title="one step from the same state ends differently",
    given="The same state and the same action, one step of",
    shown="step",
    tries="states from which a single step was forced",
    does="imposes the state, takes one step",
    found="forces releases of a simulator into the same states, takes one step from each",
    yardstick="one release's own outcomes are when every number of the state is moved by one unit in the last place",
)
_AFTER_A_RESET = _Words(
    title="a reset from the same seed starts elsewhere",
    given="The same seed, one reset of",
    shown="reset",
    tries="seeds",
    does="resets a new environment from the seed",
    found="resets releases of a simulator from the same seeds",
    yardstick="one unit in the last place puts such numbers",
)


def _is_reset(case: Case) -> bool:
    return isinstance(case.given, Reset)


def issue(case: Case) -> str:
    """The issue text, in Markdown."""
    older, newer = labels(case)
    words = _AFTER_A_RESET if _is_reset(case) else _AFTER_A_STEP
    parts = [
        f"# {case.environment.title}: {words.title} with {older} and {newer}",
        _summary(case, words),
        reproducer_edits.sentence(case),
        _largest(case),
        _explained(case),
        _versions(case),
        "## To reproduce\n\n"
        f"`{SCRIPT}`{_beside(case)} {words.does} and prints what comes of it. It needs "
        "nothing but `uv`, which installs the versions that are named.",
        *(_shown(case, side, command) for side, command in zip(case.sides, commands(case), strict=True)),
        _folded(f"<code>{SCRIPT}</code>", f"```python\n{script(case)}```"),
        "## How it was found\n\n"
        f"By release-audit, which {words.found}, and "
        "holds what differs against what the rounding of the last place alone can do.",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _summary(case: Case, words: _Words) -> str:
    older, newer = labels(case)
    made = _made(case.environment)
    different = apart(case)
    outputs = _joined(sorted({each.output for each in different}, key=list(case.older.outcome.outputs).index))
    return (
        f"{words.given} {made}: what comes of it differs between {older} and {newer} "
        f"in {outputs}. {_size(different[0], words.shown)} "
        f"The two disagree beyond rounding in {case.beyond} of {case.tried} {words.tries}. "
        f"{_meaning(case.ratio, words.yardstick)}"
    )


def _made(row: EnvironmentRow) -> str:
    """The environment as others know it, which is by its id; a scene has none."""
    arguments = ", ".join(f"{name}={value!r}" for name, value in arguments_of(row).items())
    own = {"mjcf": f"the scene `{row.title}`", "adapter": f"`{row.title}` (through the adapter `{ADAPTER}.py`)"}
    named = own.get(row.kind, f"`{row.source}`")
    return f"{named} (with `{arguments}`)" if arguments else named


def _size(largest: Gap, shown: str) -> str:
    if largest.entry is None:
        return f"With the one the {largest.output} has {largest.older:g} entries, with the other {largest.newer:g}."
    return f"In the {shown} below they are up to {largest.size:.3g} apart (`{largest.place}`)."


def _meaning(ratio: float, as_far_as: str) -> str:
    if not math.isfinite(ratio):
        return "Rounding does not explain it: one of the two is not a number where the other is."
    told = "Rounding does not explain it" if ratio >= THRESHOLD else "Rounding may explain it"
    return (
        f"{told}: at most they are {ratio:.2g} times as far apart as {as_far_as}, and rounding stays below "
        f"{THRESHOLD:g}."
    )


def _largest(case: Case) -> str:
    """The entries that differ most, side by side."""
    different = [each for each in apart(case) if each.entry is not None]
    if not different:
        return ""
    older, newer = labels(case)
    shown = "reset" if _is_reset(case) else "step"
    rows = [
        f"| `{each.place}` | {each.older!r} | {each.newer!r} | {each.size:.3g} |" for each in different[:SHOWN_ENTRIES]
    ]
    count = f"{len(different)} entries differ" if len(different) != 1 else "One entry differs"
    more = f"; the {SHOWN_ENTRIES} furthest apart" if len(different) > SHOWN_ENTRIES else ""
    return "\n".join(
        [f"{count}{more}:\n", f"| after the {shown} | {older} | {newer} | apart |", "|---|---|---|---|", *rows]
    )


def _explained(case: Case) -> str:
    return "\n".join(["## What differs first\n", *(f"- {escaped(line)}" for line in case.told)]) if case.told else ""


def _versions(case: Case) -> str:
    older, newer = case.sides
    rows = [f"| {name} | {one or 'none'} | {other or 'none'} |" for name, one, other in moved(case)]
    if not same_python(case):
        rows.append(f"| Python | {older.python} | {newer.python} |")
    table = [f"| distribution | {older.name} | {newer.name} |", "|---|---|---|", *rows] if rows else []
    same = sorted(set(older.packages) & set(newer.packages))
    python = [f"Python {older.python}"] if same_python(case) else []
    shared = ", ".join([*python, *(f"{name} {version}" for name, version in same)])
    parts = ["## Versions", "\n".join(table), f"The same in both: {shared}." if shared else ""]
    return "\n\n".join(filter(None, parts))


def _shown(case: Case, side: Side, command: str) -> str:
    text = f"```\n$ {command}\n{printed(case, side)}```"
    if len(text) <= LONGEST_SHOWN:
        return text
    label = labels(case)[case.sides.index(side)]
    return _folded(f"The whole output with {label}", text)


def _folded(summary: str, text: str) -> str:
    return f"<details><summary>{summary}</summary>\n\n{text}\n\n</details>"


def _beside(case: Case) -> str:
    if case.environment.kind == "adapter":
        return f", with the adapter `{ADAPTER}.py` beside it,"
    return f", with the folder `{SCENE_FOLDER}` beside it," if has_files(case) else ""


def printed(case: Case, side: Side) -> str:
    """What the script prints with a side's versions, where it comes out as recorded."""
    have = dict(side.packages)
    versions = [f"{name} {have.get(name, 'not installed')}" for name in watched(case)]
    lines = [", ".join([f"python {side.python}", *versions])]
    lines += [f"{name} {list(values)}" for name, values in side.outcome.outputs.items()]
    older, newer = labels(case)
    own, other = (older, newer) if side is case.older else (newer, older)
    largest = apart(case)[0]
    return "\n".join([*lines, f"as recorded with {own}; off {other} by {largest.size!r} at {largest.place}"]) + "\n"


def _joined(words: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))
