"""The verbs for every night: audit what is new, and print what makes a machine do so."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path

import click

from audit import folders, named_files
from audit.asked import matrix_file
from audit.asked.matrix_file import MatrixFile
from audit.cluster.workers import Workers
from audit.errors import EXIT_CHANGED, EXIT_COMPLETE, EXIT_INCOMPLETE, AuditError, StoreError, UsageError
from audit.nights import hook, schedule
from audit.nights import nightly as nights
from audit.nights import waivers as accepting
from audit.nights.nightly import Evening
from audit.nights.schedule import Plan
from audit.reports.summaries import markdown, plain
from audit.reports.summaries.outputs import Outputs
from audit.reports.summaries.value import AuditSummary
from audit.storage.store import Store
from audit.terminal.screen import Screen
from audit.tools import Tools
from audit.verbs import options, running


@click.command(short_help="Audit what is new since the last night.")
@click.argument("matrices", nargs=-1, required=True, metavar="MATRIX...")
@options.database
@options.waivers
@click.option("--notify", metavar="COMMAND",
              help="Run this shell command when there is news, with the summary as Markdown on its standard "
              "input.")  # fmt: skip
@click.option("--day", type=options.DATE, metavar=options.DAY,
              help="Audit as on the evening of this day (UTC), for a night that was missed.")  # fmt: skip
@options.address
@options.jobs
@options.timeout
@options.explain
@options.runs_releases
@options.summaries
def nightly(
    matrices: tuple[str, ...], database: Path, waivers: Path | None, notify: str | None,
    day: datetime.datetime | None, address: str | None, jobs: int | None, timeout: float, explain: bool,
    **summaries: Path | None,
) -> int:  # fmt: skip
    """Audit what is new since the last night in each MATRIX.

    Exits with 1 if something changed that is new and that nobody has accepted.
    """
    files = _read(matrices)
    wanted = Outputs.of(**summaries)
    screen = Screen(on_standard_error=wanted.takes_standard_output)
    evening = _evening(day.date() if day else running.today())
    accepted = [accepting.beside(file.path, waivers, evening.today) for file in files]
    told: list[AuditSummary] = []
    untold = False
    with folders.held(database.with_name(f"{database.name}.nightly"), lambda process: _busy(database, process)):
        try:
            with Store(database) as store, Workers(address, jobs, screen.note) as runner:
                tools = Tools(store=store, runner=runner, reporter=screen, timeout=timeout)
                for file, waived in zip(files, accepted, strict=True):
                    told.append(nights.night(file, tools, waived, evening, explained=explain))
                    for line in plain.lines(told[-1]):
                        screen.note(line)
        except StoreError as error:
            if _exit_code(told) != EXIT_CHANGED:
                raise
            screen.error(f"release-audit: {error}")  # that is told again tomorrow, and the change is not
        finally:  # also when a later matrix is interrupted: what has been recorded is not told on another night
            untold = not _hand_on(told, wanted, notify, screen)
    code = EXIT_INCOMPLETE if untold and _exit_code(told) != EXIT_CHANGED else _exit_code(told)
    screen.note(f"exit code {code}")
    return code


def _read(names: Sequence[str]) -> list[MatrixFile]:
    """All matrices, before anything is done with one."""
    files = [matrix_file.read(matrix_file.find(name)) for name in names]
    called = [file.matrix.name for file in files]
    for name in called:
        if called.count(name) > 1:
            raise UsageError(f"two of the matrices are called {name}: their nights would be mixed up")
    return files


def _evening(day: datetime.date) -> Evening:
    if day > running.today():
        raise UsageError(f"--day {day} is still to come: what will be new on that evening is not known")
    return Evening(today=day, past=day < running.today())


def _busy(database: Path, process: str) -> str:
    works = f"another nightly audit works on {database}, process {process}"
    return f"{works}: this one is not needed, or wait until that has ended"


def _readable(waiver_file: Path | None) -> Path | None:
    """The file with its whole path; what is wrong in it is told now, and not at night."""
    if waiver_file is None:
        return None
    accepting.read(waiver_file, running.today())
    return waiver_file.absolute()


def _exit_code(told: Sequence[AuditSummary]) -> int:
    """That of the gravest: a change that is new, then a mistake or an audit that is not complete."""
    codes = {each.exit_code for each in told}
    return EXIT_CHANGED if EXIT_CHANGED in codes else max(codes, default=EXIT_COMPLETE)


def _hand_on(told: Sequence[AuditSummary], wanted: Outputs, notify: str | None, screen: Screen) -> bool:
    """Write the summaries, then hand those with news to the hook: it may want the files. Whether all were written."""
    written = True
    try:
        if told:
            wanted.write(told)
    except AuditError as error:  # the night is recorded, and no other one tells of it
        written = False
        screen.error(f"release-audit: {error}")
    news = [each for each in told if not each.is_quiet]
    if notify and news and (trouble := hook.tell(notify, markdown.render(news))):
        screen.error(f"release-audit: {trouble}")
    return written


@click.command("schedule", short_help="Print the files that start nightly every night.")
@click.argument("matrices", nargs=-1, required=True, metavar="MATRIX...")
@click.option("--cron", is_flag=True, help="Print a line for crontab.")
@click.option("--systemd", is_flag=True, help="Print a service and a timer for systemd.")
@click.option("--github", is_flag=True, help="Print a workflow for GitHub Actions.")
@click.option("--at", default="03:30", show_default=True, metavar="HH:MM",
              help="Start at this time of day. GitHub's clock is UTC.")  # fmt: skip
@click.option("--notify", metavar="COMMAND", help="Pass this option on to nightly, like the next five.")
@click.option("--waivers", type=options.FILE, metavar="FILE", help="Read the accepted changes from this file.")
@options.jobs
@click.option("--timeout", type=click.FloatRange(min=0.1), metavar="SECONDS", help="Stop a release that takes longer.")
@options.address
@click.option("--require-sandbox", is_flag=True, help="Refuse to run if a protection is missing.")
@options.database
@click.option("--output", type=click.Path(path_type=Path, file_okay=False), metavar="FOLDER",
              help="Write the files into this folder instead of printing them.")  # fmt: skip
def scheduled(
    matrices: tuple[str, ...], cron: bool, systemd: bool, github: bool, at: str, notify: str | None,
    waivers: Path | None, require_sandbox: bool, database: Path, output: Path | None, **handed_on: str | float | None,
) -> int:  # fmt: skip
    """Print the file that makes this machine, or GitHub, run `nightly` on each MATRIX every night."""
    forms = [name for name, wanted in (("cron", cron), ("systemd", systemd), ("github", github)) if wanted]
    if len(forms) != 1:
        raise UsageError("say what for: either --cron, --systemd or --github")
    sandbox = ["--require-sandbox"] if require_sandbox else []
    plan = Plan(
        matrices=tuple(file.path.absolute() for file in _read(matrices)),
        at=schedule.time_of_day(at),
        database=database.absolute(),
        waivers=_readable(waivers),
        notify=notify or "",
        options=(*(f"--{name}={value}" for name, value in handed_on.items() if value is not None), *sandbox),
    )
    files = schedule.files(forms[0], plan)
    if here := schedule.variables():
        Screen().error(f"release-audit: set these there too, where they are needed: {', '.join(here)}")
    if systemd:
        plan.database.parent.mkdir(parents=True, exist_ok=True)  # systemd opens the log before it starts anything
    if output is None:
        click.echo(schedule.together(files), nl=False)
        return EXIT_COMPLETE
    for name, text in files.items():
        named_files.put(output / name, text)
        Screen().note(f"written: {output / name}")
    return EXIT_COMPLETE
