"""What an audit came to: verdicts, changes and what explains them, what is missing, what was exercised."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from analysis.verdicts import SIGNS, Verdict
from audit.dumps.counts import DumpCounts
from audit.failures import readable
from audit.reports.summary import Group, PairLine, Summary
from audit.storage.records import PlantedFault, Repeated
from audit.terminal.screen import Part, Screen

_VERDICTS = {
    Verdict.IDENTICAL: ("green", "the same bits"),
    Verdict.ROUNDING: ("cyan", "no further apart than rounding the input would put them, at every forced step"),
    Verdict.AMPLIFIED: ("yellow", "rounding at every forced step, which the dynamics then amplified"),
    Verdict.CHANGED: (
        "bold red",
        "beyond the yardstick after a state that both were handed, or another reset or space",
    ),
    Verdict.NONDETERMINISTIC: ("magenta", "a release does not reproduce itself"),
    Verdict.INCOMPARABLE: ("magenta", "the two did not start from the same state"),
    Verdict.UNAVAILABLE: ("dim", "one of the two does not have it, or cannot run it"),
}
"""Verdict: style, meaning."""

_COLUMN_WIDTH = 3
"""Of a boundary: two digits and a space."""

_LISTED = 12
"""Lines of a kind that are printed before the store is referred to."""


def show(screen: Screen, summary: Summary, counts: DumpCounts, *, seconds: float, program: str, database: str) -> None:
    """Print what a run came to; ``program`` and ``database`` are how to ask on, on a command line."""
    screen.note("")
    for group in summary.groups:
        _show_verdicts(screen, summary, group)
    signs = [verdict for verdict in _VERDICTS if summary.counts.get(verdict)]
    for verdict in signs:
        style, meaning = _VERDICTS[verdict]
        screen.note((f"  {SIGNS[verdict]} {verdict}", style), f": {meaning}")
    _show_changes(screen, summary, f"{program} explain{database}")
    _show_unexplained(screen, summary)
    _show_missing(screen, summary)
    _show_exercised(screen, summary)
    counted = ", ".join(f"{summary.counts[verdict]} {verdict}" for verdict in signs) or "none"
    total = sum(summary.counts.values())
    screen.note((f"\n{total} pair{'s' if total != 1 else ''}", "bold"), f": {counted}")
    if summary.silent_differences:
        screen.note(
            f"{summary.silent_differences} of the identical pairs differ in outputs that this matrix's verdict "
            "does not read: see the view separations"
        )
    screen.note(f"{counts.told}, {seconds:.1f} s")
    _show_next(screen, summary, program, database)


def _show_verdicts(screen: Screen, summary: Summary, group: Group) -> None:
    """Print environments against boundaries, as many of these beside each other as the screen has room for.

    Boundaries at which all of the environments are identical are counted, not shown.
    """
    name_width = max(len("environment"), *map(len, group.environments))
    room = max(1, (screen.width - name_width) // _COLUMN_WIDTH)
    shown = summary.eventful(group)
    for start in range(0, len(shown), room):
        block = dict(enumerate(shown[start : start + room], start + 1))
        rows: list[Sequence[Part]] = []
        for environment in group.environments:
            verdicts = [Verdict(summary.verdict(environment, boundary)) for boundary in block.values()]
            rows.append((environment, *((SIGNS[verdict], _VERDICTS[verdict][0]) for verdict in verdicts)))
        screen.grid({"environment": name_width, **{str(number): _COLUMN_WIDTH - 1 for number in block}}, rows)
        for number, (older, newer) in block.items():
            screen.note((f"  {number:>3}  {older} → {newer}", "dim"))
    quiet = len(group.boundaries) - len(shown)
    if quiet:
        pairs = f"{quiet} {'other ' if shown else ''}pair{'s' if quiet > 1 else ''}"
        screen.note(f"identical at {pairs} of neighbouring releases: {', '.join(group.environments)}")
    screen.note("")


def _show_changes(screen: Screen, summary: Summary, explain: str) -> None:
    changed = summary.urgent_first
    if changed:
        screen.note("\n", ("Changed", "bold red"), " between neighbouring releases:")
    for line in changed[:_LISTED]:
        screen.note(f"  {line.environment}: {line.older} → {line.newer}: {readable(line.reason)}")
        finds_out = f": `{explain} {_named(summary, line)}` finds out" if line.open else ""
        for told in filter(None, (line.laws, line.explained + finds_out)):
            screen.note(f"    {told}")
    if len(changed) > _LISTED:
        screen.note(f"  and {len(changed) - _LISTED} more: see the page, or `query --named changes`")


def _show_unexplained(screen: Screen, summary: Summary) -> None:
    if summary.unexplained:
        screen.note("\n", ("Amplified, and no twin explains it", "bold yellow"), ": look at these:")
    for line in summary.unexplained[:_LISTED]:
        screen.note(f"  {line.environment}: {line.older} → {line.newer}: {_short(line.reason)}")
    if len(summary.unexplained) > _LISTED:
        screen.note(f"  and {len(summary.unexplained) - _LISTED} more: query the view certificates")


def _show_missing(screen: Screen, summary: Summary) -> None:
    if summary.missing:
        screen.note(("\nNot audited:", "bold"))
    for each in summary.missing[:_LISTED]:
        broke = ", and an older release can" if each.broke else ""
        screen.note(f"  {each.subject}: {each.status}{broke}: {_short(each.reason)}")
    if len(summary.missing) > _LISTED:
        screen.note(f"  and {len(summary.missing) - _LISTED} more: query the views dumps and failures")


def _show_exercised(screen: Screen, summary: Summary) -> None:
    """Print what identical and rounding claim, and no more than that."""
    if summary.exercised:
        screen.note(("\nExercised", "bold"), " (a verdict claims no more):")
    for each in summary.exercised:
        screen.note(f"  {each.environment}: {readable(each.coverage, 400)}")
    for each in summary.exercised:
        if each.planted == PlantedFault.MISSED:
            screen.note((f"  BLIND: {each.environment}: a fault planted in {each.constant} was not seen", "bold red"))
        if each.planted == PlantedFault.UNKNOWN:
            told = f"  {each.environment}: no fault was planted, so that nothing shows one would be seen: "
            screen.note(told + _short(each.reason))
        if each.reproduced == Repeated.NO:
            told = f"  {each.environment}: the baseline does not reproduce itself: {_short(each.reason)}"
            screen.note((told, "bold red"))


def _show_next(screen: Screen, summary: Summary, program: str, database: str) -> None:
    """Print what to call next: the page, why the newest change came about, and SQL to begin with."""
    lines = [f"{program} report{database}"]
    if summary.changed:
        lines.append(f"{program} explain{database} {_named(summary, summary.urgent_first[0])}")
    sql = (
        f"SELECT environment, older, newer, verdict, reason FROM pairs WHERE matrix = '{summary.matrix}'"
        " AND verdict <> 'identical' ORDER BY first_step_separation DESC LIMIT 20"
    )
    lines += [f'{program} query{database} "{sql}"', f"{program} query{database} --named list"]
    screen.note("\nNext:")
    for line in lines:
        screen.note(f"  {line}")


def _named(summary: Summary, line: PairLine) -> str:
    """A pair as a command takes it; another matrix in the database may have the same names."""
    return shlex.join(["--matrix", summary.matrix, line.environment, line.older, line.newer])


def _short(text: str, limit: int = 240) -> str:
    text = " ".join(readable(text).split())
    return text if len(text) <= limit else text[: limit - 1] + "…"
