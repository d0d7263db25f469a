"""The verbs for every night: audit what is new, and print what makes a machine do so."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path

import click

from audit import folders
from audit.asked import matrix_file
from audit.asked.matrix_file import MatrixFile
from audit.cluster.workers import Workers
from audit.console import Screen
from audit.errors import EXIT_CHANGED, EXIT_COMPLETE, StoreError, UsageError
from audit.nights import hook, schedule, waivers
from audit.nights import nightly as nights
from audit.nights.nightly import Evening
from audit.nights.schedule import Plan
from audit.reports.summaries import markdown, outputs, plain
from audit.reports.summaries.outputs import Outputs
from audit.reports.summaries.value import AuditSummary
from audit.storage.store import Store
from audit.tools import Tools
from audit.verbs import running
from audit.verbs.running import DATABASE

_database = click.option(
    "--db", "database", type=click.Path(path_type=Path, dir_okay=False), default=DATABASE, show_default=True,
    help="The database; its arrays lie beside it.",
)  # fmt: skip


@click.command()
@click.argument("matrices", nargs=-1, required=True, metavar="MATRIX...")
@_database
@click.option("--waivers", "waiver_file", type=click.Path(path_type=Path, dir_okay=False),
              help="Accepted changes; default: waivers.yaml beside each matrix.")  # fmt: skip
@click.option("--notify", metavar="CMD", help="Shell command that gets the summary as Markdown when there is news.")
@click.option("--day", type=click.DateTime(["%Y-%m-%d"]), help="As on that evening (UTC): for nights that were missed.")
@click.option("--address", help="A running Ray cluster; default: RAY_ADDRESS, else a local one.")
@click.option("--jobs", type=click.IntRange(min=1), help="Releases dumped at the same time; default: one a core.")
@click.option("--timeout", type=click.FloatRange(min=0.1), default=300.0, show_default=True,
              help="Seconds that one cell may take.")  # fmt: skip
@click.option("--explain/--no-explain", default=True, show_default=True, help="Whether changes are looked into.")
@outputs.options
def nightly(
    matrices: tuple[str, ...], database: Path, waiver_file: Path | None, notify: str | None,
    day: datetime.datetime | None, address: str | None, jobs: int | None, timeout: float, explain: bool,
    **summaries: str | None,
) -> int:  # fmt: skip
    """Audit what is new since the last night in each MATRIX. Exits with 1 for changes that are new and not accepted."""
    wanted = Outputs.of(**summaries)
    screen = Screen(quiet=wanted.takes_standard_output)
    files = _read(matrices)
    evening = Evening(today=day.date() if day else running.today(), past=day is not None)
    accepted = [waivers.beside(file.path, waiver_file, evening.today) for file in files]
    busy = (
        f"another nightly audit works on {database}, process {{}}: this one is not needed, or wait until that has ended"
    )
    told: list[AuditSummary] = []
    with folders.held(database.with_name(f"{database.name}.nightly"), busy):
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
            _hand_on(told, wanted, notify, screen)
    code = _exit_code(told)
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


def _exit_code(told: Sequence[AuditSummary]) -> int:
    """That of the gravest: a change that is new, then a mistake or an audit that is not complete."""
    codes = {each.exit_code for each in told}
    return EXIT_CHANGED if EXIT_CHANGED in codes else max(codes, default=EXIT_COMPLETE)


def _hand_on(told: Sequence[AuditSummary], wanted: Outputs, notify: str | None, screen: Screen) -> None:
    """Write the summaries, then hand those with news to the hook: it may want the files."""
    if told:
        wanted.write(told)
    news = [each for each in told if not each.is_quiet]
    if notify and news and (trouble := hook.tell(notify, markdown.render(news))):
        screen.error(f"release-audit: {trouble}")


@click.command("schedule")
@click.argument("matrices", nargs=-1, required=True, metavar="MATRIX...")
@click.option("--cron", "form", flag_value="cron", help="A line for crontab.")
@click.option("--systemd", "form", flag_value="systemd", help="A service and a timer.")
@click.option("--github", "form", flag_value="github", help="A workflow of GitHub Actions.")
@click.option("--at", default="03:30", show_default=True, help="The time of the night; GitHub's clock is UTC.")
@click.option("--notify", metavar="CMD", help="Handed on to `nightly`.")
@_database
@click.option("--output", type=click.Path(path_type=Path, file_okay=False), help="Folder to write the files into.")
def scheduled(
    matrices: tuple[str, ...], form: str | None, at: str, notify: str | None, database: Path, output: Path | None
) -> int:
    """Print the file that makes this machine, or GitHub, run `nightly` on each MATRIX every night."""
    if form is None:
        raise UsageError("say what for: --cron, --systemd or --github")
    paths = [matrix_file.find(name).absolute() for name in matrices]
    for path in paths:
        matrix_file.read(path)
    plan = Plan(matrices=tuple(paths), at=schedule.time_of_day(at), database=database.absolute(), notify=notify or "")
    files = schedule.files(form, plan)
    if here := schedule.variables():
        Screen().error(f"release-audit: set these there too, where they are needed: {', '.join(here)}")
    if form == "systemd":
        plan.database.parent.mkdir(parents=True, exist_ok=True)  # systemd opens the log before it starts anything
    if output is None:
        click.echo(schedule.together(files), nl=False)
        return EXIT_COMPLETE
    for name, text in files.items():
        folders.write_whole(output / name, text.encode())
        Screen().note(f"written: {output / name}")
    return EXIT_COMPLETE
