"""The issue text of a reproducer, with what its script prints at either release."""

from __future__ import annotations

import math
from collections.abc import Sequence

from analysis.yardstick import THRESHOLD
from audit.asked.environment_rows import EnvironmentRow
from audit.explanations.reproducer_case import SCRIPT, Apart, Case, Side, apart, commands, labels, moved, same_python
from audit.explanations.reproducer_script import SCENE_FOLDER, arguments_of, has_files, script, watched

SHOWN_ENTRIES = 5
"""Entries of the outcome that the issue shows side by side: those that are furthest apart."""

LONGEST_SHOWN = 4000
"""Characters of a printed outcome that the issue shows unfolded: about two screens."""


def issue(case: Case) -> str:
    """The issue text, in Markdown."""
    older, newer = labels(case)
    parts = [
        f"# {case.environment.title}: one step from the same state ends differently with {older} and {newer}",
        _summary(case),
        _largest(case),
        _explained(case),
        _versions(case),
        "## To reproduce\n\n"
        f"`{SCRIPT}`{_beside(case)} imposes the state, takes one step and prints what comes of it. It needs "
        "nothing but `uv`, which installs the versions that are named.",
        *(_shown(case, side, command) for side, command in zip(case.sides, commands(case), strict=True)),
        _folded(f"<code>{SCRIPT}</code>", f"```python\n{script(case)}```"),
        "## How it was found\n\n"
        "By release-audit, which forces releases of a simulator into the same states, takes one step from each, and "
        "holds what differs against what the rounding of the last place alone can do.",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _summary(case: Case) -> str:
    older, newer = labels(case)
    made = _made(case.environment)
    different = apart(case)
    outputs = _joined(sorted({each.output for each in different}, key=list(case.older.outcome.outputs).index))
    return (
        f"The same state and the same action, one step of {made}: what comes of it differs between {older} and {newer} "
        f"in {outputs}. {_size(different[0])} "
        f"The two disagree beyond rounding in {case.states_beyond} of {case.states_forced} states from which a "
        f"single step was forced. {_meaning(case.ratio)}"
    )


def _made(row: EnvironmentRow) -> str:
    """The environment as others know it, which is by its id; a scene has none."""
    arguments = ", ".join(f"{name}={value!r}" for name, value in arguments_of(row).items())
    named = f"the scene `{row.title}`" if row.kind == "mjcf" else f"`{row.source}`"
    return f"{named} (with `{arguments}`)" if arguments else named


def _size(largest: Apart) -> str:
    if largest.entry is None:
        return f"With the one the {largest.output} has {largest.older:g} entries, with the other {largest.newer:g}."
    return f"In the step below they are up to {largest.size:.3g} apart (`{largest.place}`)."


def _meaning(ratio: float) -> str:
    if not math.isfinite(ratio):
        return "Rounding does not explain it: one of the two is not a number where the other is."
    told = "Rounding does not explain it" if ratio >= THRESHOLD else "Rounding may explain it"
    return (
        f"{told}: at most they are {ratio:.2g} times as far apart as one release's own outcomes are when every number "
        f"of the state is moved by one unit in the last place, and rounding stays below {THRESHOLD:g}."
    )


def _largest(case: Case) -> str:
    """The entries that differ most, side by side."""
    different = [each for each in apart(case) if each.entry is not None]
    if not different:
        return ""
    older, newer = labels(case)
    rows = [
        f"| `{each.place}` | {each.older!r} | {each.newer!r} | {each.size:.3g} |" for each in different[:SHOWN_ENTRIES]
    ]
    count = f"{len(different)} entries differ" if len(different) != 1 else "One entry differs"
    more = f"; the {SHOWN_ENTRIES} furthest apart" if len(different) > SHOWN_ENTRIES else ""
    return "\n".join(
        [f"{count}{more}:\n", f"| after the step | {older} | {newer} | apart |", "|---|---|---|---|", *rows]
    )


def _explained(case: Case) -> str:
    return "\n".join(["## What differs first\n", *(f"- {line}" for line in case.told)]) if case.told else ""


def _versions(case: Case) -> str:
    older, newer = case.sides
    lines = ["## Versions\n", f"| distribution | {older.name} | {newer.name} |", "|---|---|---|"]
    lines += [f"| {name} | {one or 'none'} | {other or 'none'} |" for name, one, other in moved(case)]
    if not same_python(case):
        lines.append(f"| Python | {older.python} | {newer.python} |")
    same = sorted(set(older.packages) & set(newer.packages))
    python = [f"Python {older.python}"] if same_python(case) else []
    shared = ", ".join([*python, *(f"{name} {version}" for name, version in same)])
    return "\n".join(lines) + (f"\n\nThe same in both: {shared}." if shared else "")


def _shown(case: Case, side: Side, command: str) -> str:
    text = f"```\n$ {command}\n{printed(case, side)}```"
    if len(text) <= LONGEST_SHOWN:
        return text
    label = labels(case)[case.sides.index(side)]
    return _folded(f"The whole output with {label}", text)


def _folded(summary: str, text: str) -> str:
    return f"<details><summary>{summary}</summary>\n\n{text}\n\n</details>"


def _beside(case: Case) -> str:
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
