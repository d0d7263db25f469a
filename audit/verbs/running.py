"""Run an audit from the command line and tell what it came to."""

from __future__ import annotations

import contextlib
import datetime
import shlex
import sys
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path

from audit import pipeline
from audit.asked.matrix_file import MatrixFile
from audit.cluster.workers import Workers
from audit.errors import EXIT_CHANGED, EXIT_COMPLETE, EXIT_INCOMPLETE
from audit.installing import failed_builds
from audit.nights import standings, waivers
from audit.nights.standings import Question
from audit.nights.waivers import Waivers
from audit.pipeline import AuditResult
from audit.planning.releasing import ResolvedReleases
from audit.reports import summary
from audit.reports.summaries.outputs import Outputs
from audit.reports.summaries.value import AuditSummary, counted
from audit.reports.summary import Summary
from audit.storage.store import Store
from audit.terminal import run_summary
from audit.terminal.screen import Screen
from audit.tools import CELL_SECONDS, Tools
from audit.verbs.options import DATABASE

_MEANINGS = {
    EXIT_COMPLETE: "The audit is complete",
    EXIT_CHANGED: "The audit is complete, and something changed or broke",
    EXIT_INCOMPLETE: "The audit is not complete: run the same command again, it continues where this one was",
}

_BLIND = "The audit is blind: a fault that was planted was not seen, so what it calls the same may not be"

_RELEASES = "SELECT release FROM internal.run_releases WHERE run_id = ?"

_EMPTY = "Nothing could be audited: no release could be dumped on any environment"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How an audit is to be run."""

    database: Path = DATABASE
    check: bool = False
    """Whether a change is a failure."""
    address: str | None = None
    jobs: int | None = None
    timeout: float = CELL_SECONDS
    explain: bool = True
    again: bool = False
    """Whether releases are asked again what they failed at too often before, or what they raised at."""
    waivers: Path | None = None
    """Accepted changes; nothing for those beside the matrix."""
    outputs: Outputs = field(default_factory=Outputs)


def run(file: MatrixFile, wishes: RunOptions, screen: Screen, *, asked: ResolvedReleases | None = None) -> int:
    """Audit what the matrix stands for, or what is ``asked``; print the summary, return the exit code."""
    began = time.monotonic()
    accepted = waivers.beside(file.path, wishes.waivers, today())
    if wishes.again:
        failed_builds.forget()
    workers = Workers(wishes.address, wishes.jobs, screen.note, again=wishes.again)
    with Store(wishes.database) as store, workers as runner:
        tools = Tools(store=store, runner=runner, reporter=screen, timeout=wishes.timeout, again=wishes.again)
        result = pipeline.audit(file, tools, asked=asked, explained=wishes.explain)
        told = summary.summarise(store, result.run_id)
        met = met_by(file, result, accepted, store)
        nodes = runner.told()
    seconds = time.monotonic() - began
    run_summary.show(
        screen, told, result.counts,
        seconds=seconds, program=_program(), database=_database_option(wishes.database),
    )  # fmt: skip
    for line in ("\nWhich node of the cluster did what:", *(f"  {line}" for line in nodes)) if nodes else ():
        screen.note(line)
    for note in (*_accepted(met), *met.notes):
        screen.note(note)
    code = result.exit_code
    if code == EXIT_COMPLETE and wishes.check and is_alarming(told, met):
        code = EXIT_CHANGED
    meaning = _BLIND if result.blind else _EMPTY if result.empty else _MEANINGS[code]
    screen.note(f"\n{meaning} (exit code {code})")
    trouble = meaning if result.exit_code != EXIT_COMPLETE else ""
    seconds = time.monotonic() - began
    wishes.outputs.write([replace(met, exit_code=code, trouble=trouble, seconds=seconds)])
    return code


def today() -> datetime.date:
    """The day, in UTC as all days here."""
    return datetime.datetime.now(datetime.UTC).date()


def met_by(file: MatrixFile, result: AuditResult, accepted: Waivers, store: Store) -> AuditSummary:
    """What changed between neighbours; new is what no earlier run of the matrix met."""
    name = file.matrix.name
    before = standings.met_before(store, name, result.run_id)
    question = Question(run_id=result.run_id, outputs=file.matrix.outputs, reported=before, waivers=accepted)
    met = standings.meet(store, question)
    boundaries = {(each.environment, each.older, each.newer) for each in met.changes}
    return AuditSummary(
        matrix=name,
        exit_code=result.exit_code,
        run_id=result.run_id,
        empty=result.empty,
        releases=len({row[0] for row in store.query(_RELEASES, [result.run_id]).rows}),
        dumped=result.counts.dumped,
        shared=result.counts.shared,
        reused=result.counts.reused,
        changes=met.changes,
        not_audited=met.not_audited,
        notes=accepted.notes({*boundaries, *before, *store.nights.reported()}),
    )


def _accepted(met: AuditSummary) -> list[str]:
    """Each waiver that holds, and how many of the changes above it excuses: why the exit code is not 1."""
    found = Counter(each.waiver for each in met.changes if each.waiver is not None)
    return [f"{counted(number, 'change')} accepted: {waiver}" for waiver, number in found.items()]


def is_alarming(told: Summary, met: AuditSummary) -> bool:
    """Whether something changed or broke that nobody accepted.

    Where a change on an environment is accepted, its other pairs follow from those between neighbours, and from those
    with the baseline that no step between neighbours shows: each of these has to be accepted. Everywhere else any pair
    counts, also one that is neither.
    """
    accepted = {each.environment for each in met.changes if each.waiver is not None}
    alarming = told.changed_in | {each.environment for each in told.broken}
    return any(each.waiver is None for each in met.changes) or bool(alarming - accepted)


def _program() -> str:
    """How to call this program from here."""
    program = Path(sys.argv[0])
    is_module = program.name == "__main__.py"  # of `python -m audit`, and no program by itself
    program = Path(sys.executable) if is_module else program
    with contextlib.suppress(ValueError):
        program = program.relative_to(Path.cwd())
    called = shlex.quote(str(program))
    return f"{called} -m audit" if is_module else called


def _database_option(database: Path) -> str:
    return "" if database == DATABASE else f" --db {shlex.quote(str(database))}"
