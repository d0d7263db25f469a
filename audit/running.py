"""Run an audit from the command line and tell what it came to."""

from __future__ import annotations

import contextlib
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from audit import pipeline, summary
from audit.console import Screen
from audit.errors import EXIT_CHANGED, EXIT_COMPLETE, EXIT_INCOMPLETE
from audit.matrix_file import MatrixFile
from audit.store import Store
from audit.tools import Tools
from audit.workers import Workers

DATABASE = Path("results/audit.duckdb")

_MEANINGS = {
    EXIT_COMPLETE: "The audit is complete",
    EXIT_CHANGED: "The audit is complete, and something changed or broke",
    EXIT_INCOMPLETE: "The audit is not complete: run the same command again, it continues where this one was",
}

_BLIND = "The audit is blind: a fault that was planted was not seen, so what it calls the same may not be"

_EMPTY = "Nothing could be audited: no release could be dumped on any environment"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """How an audit is to be run."""

    database: Path = DATABASE
    check: bool = False
    """Whether a change is a failure."""
    address: str | None = None
    jobs: int | None = None
    timeout: float = 300.0
    explain: bool = True


def run(file: MatrixFile, wishes: Wishes, screen: Screen) -> int:
    """Audit, print the summary, return the exit code."""
    began = time.monotonic()
    with Store(wishes.database) as store, Workers(wishes.address, wishes.jobs) as runner:
        tools = Tools(store=store, runner=runner, reporter=screen, timeout=wishes.timeout)
        result = pipeline.audit(file, tools, explained=wishes.explain)
        told = summary.summarise(store, result.run_id)
    counts = {"dumped": result.dumped, "reused": result.reused, "checked": result.checked}
    screen.summary(told, **counts, seconds=time.monotonic() - began, query=_query_command(wishes.database))
    code = result.exit_code
    if code == EXIT_COMPLETE and wishes.check and (told.counts.get("changed") or told.broken):
        code = EXIT_CHANGED
    meaning = _BLIND if result.blind else _EMPTY if result.empty else _MEANINGS[code]
    screen.note(f"\n{meaning} (exit code {code})")
    return code


def _query_command(database: Path) -> str:
    """How to call this program's `query` from here, on this database."""
    program = Path(sys.argv[0])
    with contextlib.suppress(ValueError):
        program = program.relative_to(Path.cwd())
    other = "" if database == DATABASE else f" --db {database}"
    return f"{program} query{other}"
