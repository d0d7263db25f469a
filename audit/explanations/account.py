"""One screen on one change: what differs, where in the step it begins, which constants, which law, which package."""

from __future__ import annotations

import datetime
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from audit.errors import UsageError
from audit.explanations.explaining import MOST_CONSTANTS
from audit.explanations.stored_pairs import StoredPair
from audit.laws import law_lines
from audit.storage.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """All that is known of why two releases differ on an environment."""

    environment: str
    older: str
    newer: str
    verdict: str
    reason: str
    stage: str
    fields: str
    states: int
    ratio: float | None
    before: tuple[str, ...]
    """Stages before it in which nothing differs."""
    interface: str
    """What became of the entries of an observation, where there are more or fewer of them."""
    constants: tuple[str, ...]
    more_constants: int
    laws: str
    packages: tuple[str, ...]
    """What brings it, or, where nobody searched, what differs."""
    searched: bool
    change_log: str
    reproducer: str
    left_open: str
    """What could not be looked into."""
    as_of: str
    """When the index was asked, where it was not now and could answer otherwise."""

    def lines(self) -> list[str]:
        """For a person."""
        told = [f"{self.environment}: {self.older} → {self.newer}: {self.verdict}", f"  {self.reason}"]
        if self.stage:
            ratio = f", ratio up to {self.ratio:.1e}" if self.ratio is not None else ""
            states = f"{self.states} state{'s' if self.states != 1 else ''}"
            told.append(f"first differs in  {self.stage}: {self.fields} ({states}{ratio})")
        if self.before:
            told.append(f"the same before   {shortened(self.before)}")
        if self.interface:
            told.append(f"interface change  {self.interface}")
        label = "constants differ  " if self.constants else "constants         "
        for each in self.constants:
            told.append(f"{label}{each}")
            label = " " * len(label)
        if self.more_constants:
            told.append(f"{label}and {self.more_constants} more: query the view constant_differences")
        if not self.constants:
            told.append(f"{label}none differs")
        if self.laws:
            told.append(f"laws              {self.laws}")
        brought = "brought by        " if self.searched else "one or more of    "
        told.append(f"{brought}{', '.join(self.packages) or 'nothing that is installed differs'}")
        if self.change_log:
            told.append(f"its change log    {self.change_log}")
        if self.reproducer:
            told.append(f"to show it        {self.reproducer}")
        if self.left_open:
            told.append(f"not looked into   {self.left_open}")
        if self.as_of:
            told.append(f"as installed at   {self.as_of}: --fresh asks the index again")
        return told

    def as_json(self) -> str:
        """For a machine."""
        return json.dumps(asdict(self), indent=1, default=str) + "\n"


def shortened(before: Sequence[str]) -> str:
    """Each stage once, and, where it comes again in evaluations and substeps, how far they go.

    >>> shortened(["kinematics", "solution", "kinematics in substep 2"])
    'kinematics, solution: all of them up to kinematics in substep 2'
    """
    names = ", ".join(dict.fromkeys(stage.partition(" in ")[0] for stage in before))
    return f"{names}: all of them up to {before[-1]}" if before and " in " in before[-1] else names


def of_pair(
    store: Store,
    names: tuple[str, str, str],
    pair: StoredPair,
    *,
    packages: Sequence[str],
    searched: bool,
    change_log: str,
    reproducer: str,
    as_of: datetime.datetime | None = None,
) -> Account:
    """Put together what the store has of a pair.

    Raises:
        UsageError: where it has not been explained.
    """
    behaviours = [pair.older_behaviour, pair.newer_behaviour]
    rows = store.query(
        "SELECT stage, fields, before, states, ratio, interface, reason FROM internal.explanations"
        " WHERE older_behaviour = ? AND newer_behaviour = ?",
        behaviours,
    ).rows
    if not rows:
        raise UsageError(f"{names[0]}: {names[1]} → {names[2]} has not been explained")
    stage, fields, before, states, ratio, interface, left_open = rows[0]
    constants = store.query(
        "SELECT kind, field, entry, older_value, newer_value FROM internal.constant_differences"
        " WHERE older_behaviour = ? AND newer_behaviour = ? AND kind = 'changed' ORDER BY place",
        behaviours,
    ).rows
    return Account(
        environment=names[0],
        older=names[1],
        newer=names[2],
        verdict=pair.verdict,
        reason=pair.reason,
        stage=stage,
        fields=fields,
        states=states,
        ratio=ratio,
        before=tuple(before),
        interface=interface,
        constants=tuple(constant_told(*row) for row in constants[:MOST_CONSTANTS]),
        more_constants=max(0, len(constants) - MOST_CONSTANTS),
        laws=law_lines.line(store, pair.run_id, names) if pair.run_id else "",
        packages=tuple(packages),
        searched=searched,
        change_log=change_log,
        reproducer=reproducer,
        left_open=left_open,
        as_of=f"{as_of:%Y-%m-%d %H:%M} UTC" if as_of is not None else "",
    )


def constant_told(kind: str, field: str, entry: str, older: str, newer: str) -> str:
    """A constant that differs, on one line."""
    name = f"{field}[{entry}]" if entry else field
    return f"{name}: {older} → {newer}" if kind == "changed" else f"{name} {kind}"
