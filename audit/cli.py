"""The command line: verbs, options, exit codes. The only place that exits."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import NoReturn

import click

from analysis.yardstick import THRESHOLD
from audit import __version__, guard
from audit.asked import matrix_file
from audit.cluster import descendants
from audit.cluster.workers import Workers
from audit.comparisons import sensitivity as sensing
from audit.confining import protections
from audit.doctor import checks
from audit.errors import (
    EXIT_CHANGED,
    EXIT_COMPLETE,
    EXIT_INCOMPLETE,
    EXIT_INTERRUPTED,
    EXIT_USAGE,
    AuditError,
)
from audit.installing import uv
from audit.reports.summaries.outputs import Outputs
from audit.storage.store import Store
from audit.terminal import reproductions
from audit.terminal.screen import Screen
from audit.tools import Tools
from audit.verbs import (
    explain_verb,
    figure_verb,
    nightly_verb,
    options,
    preview,
    report_verb,
    results_verbs,
    running,
    search_verbs,
)
from audit.verbs.headings import Headings
from audit.verbs.running import RunOptions

PROGRAM = "release-audit"


@click.group(cls=Headings, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name=PROGRAM)
def commands() -> None:
    """Tell whether a new release of a simulator changed the physics, where, and who did it."""


@click.command(short_help="Audit the releases of a matrix.")
@click.argument("matrix")
@options.database
@options.check
@options.address
@options.jobs
@options.timeout
@options.explain
@click.option("--again", is_flag=True,
              help="Run a release again where it raised, or failed in several earlier runs.")  # fmt: skip
@options.waivers
@options.runs_releases
@options.summaries
def run(
    matrix: str, database: Path, check: bool, address: str | None, jobs: int | None, timeout: float, explain: bool,
    again: bool, waivers: Path | None, **summaries: Path | None,
) -> int:  # fmt: skip
    """Audit MATRIX: a path, or a name in matrices/."""
    file = matrix_file.read(matrix_file.find(matrix))
    wanted = Outputs.of(**summaries)
    wishes = RunOptions(
        database=database, check=check, address=address, jobs=jobs, timeout=timeout, explain=explain, again=again,
        waivers=waivers, outputs=wanted,
    )  # fmt: skip
    return running.run(file, wishes, Screen(on_standard_error=wanted.takes_standard_output))


@click.command(short_help="Show what a run would do, without doing it.")
@click.argument("matrix")
@options.database
def plan(matrix: str, database: Path) -> int:
    """Show what an audit of MATRIX would run and what is there already. Runs nothing."""
    file = matrix_file.read(matrix_file.find(matrix))
    screen = Screen()
    rows = preview.plan(file, database)
    screen.table(("release", "Python", "lock", "virtualenv", "dumped", "to dump"), [row.shown() for row in rows])
    missing = sum(row.missing for row in rows)
    screen.note(f"{len(rows)} releases, {sum(row.dumped for row in rows)} cells dumped, {missing} to dump")
    return EXIT_COMPLETE


@click.command(short_help="Measure how small a change would be seen.")
@click.argument("matrix")
@options.database
@options.address
@options.jobs
@options.timeout
@options.runs_releases
def sensitivity(matrix: str, database: Path, address: str | None, jobs: int | None, timeout: float) -> int:
    """Measure how small a change would be seen: plant faults in the baseline of MATRIX, from 1e-12 to 1e-1."""
    screen = Screen()
    file = matrix_file.read(matrix_file.find(matrix))
    with Store(database) as store, Workers(address, jobs) as runner:
        found = sensing.measure(file, Tools(store=store, runner=runner, reporter=screen, timeout=timeout))
    screen.table(
        ("environment", "constant", "seen from", *(f"{magnitude:.0e}" for magnitude in sensing.MAGNITUDES)),
        [
            (
                each.environment,
                each.constant or f"none: {each.reason}",
                each.seen_from,
                *("" if ratio is None else f"{ratio:.1e}" for ratio in each.ratios),
            )
            for each in found
        ],
    )
    screen.note(f"Ratios; from {THRESHOLD:g} on a change is seen. Kept in the view sensitivity")
    return EXIT_COMPLETE


@click.command(short_help="Find the law of physics that trajectories break.")
@click.argument("trajectories", type=click.Path(path_type=Path))
@click.option("--reference", required=True, metavar="NAME",
              help="Test the laws of this file: a name in matrices/laws, or a path.")  # fmt: skip
@click.option("--against", type=click.Path(path_type=Path), metavar="FILE",
              help="Compare with these trajectories, of a system that keeps the laws.")  # fmt: skip
@click.option("--unit", type=click.Choice(["trajectory", "block"]), default="trajectory", show_default=True,
              help="Count each trajectory as one observation, or each block of it. Blocks of one trajectory are not "
              "independent, so that `block` reports laws as broken that are not.")  # fmt: skip
@click.option("--check", is_flag=True, help="Exit with 1 if a law is broken or a constant is wrong, for use in CI.")
def diagnose(trajectories: Path, reference: str, against: Path | None, unit: str, check: bool) -> int:
    """Say which law of physics TRAJECTORIES break, and which constant is wrong.

    TRAJECTORIES is an npz file, a Parquet file or a Minari data set, from a simulator, a log or a world model.
    """
    from analysis.algebra.screening import Unit  # brings SymPy and SciPy, which few verbs need
    from audit.laws import diagnosing_files, reference_file

    screen = Screen()
    found = diagnosing_files.diagnose(reference_file.find(reference), trajectories, against, Unit(unit))
    screen.table(
        ("law", "", "residual", "there", "ratio", "p", "said"),
        [(each.law, each.kind, each.residual, each.against, each.ratio, each.p, each.said) for each in found.laws],
    )
    for attribution in found.attributions:
        screen.note(f"{attribution.law}: {attribution.told}")
    for note in found.notes:
        screen.note(note)
    return EXIT_CHANGED if check and found.found else EXIT_COMPLETE


@click.command(short_help="Measure the figures of the paper again.")
@click.argument("names", nargs=-1)
@options.database
@options.jobs
@options.timeout
@options.runs_releases
def reproduce(names: tuple[str, ...], database: Path, jobs: int | None, timeout: float) -> int:
    """Measure the paper's figures again: all experiments, or those of NAMES.

    Exits with 1 if a figure that should be exact disagrees.
    """
    from audit import reproducing  # brings SymPy and SciPy, which few verbs need

    began = time.monotonic()
    screen = Screen()
    reproducing.chosen(names)  # a wrong name is said before anything is opened
    with Store(database) as store, Workers(None, jobs) as runner:
        found = reproducing.reproduce(names, Tools(store=store, runner=runner, reporter=screen, timeout=timeout))
    reproductions.show(screen, found, time.monotonic() - began)
    return EXIT_CHANGED if any(each.wrong for each in found) else EXIT_COMPLETE


@click.command(short_help="Check this machine and its protections.")
@options.database
def doctor(database: Path) -> int:
    """Check Python, uv, the package index, the disk and the CPU.

    Also list what the code of a release can and cannot do on this machine.
    """
    screen = Screen()
    found = list(checks(database.parent))
    screen.table(("", "check", "found"), [("ok" if each.ok else "BAD", each.name, each.found) for each in found])
    screen.note("\nWhat a release's own code may do here (SECURITY.md says what that is worth):")
    rows = [("on" if each.on else "OFF", each.name, each.told) for each in protections.all_here()]
    screen.table(("", "protection", "how"), rows)
    return EXIT_COMPLETE if all(each.ok for each in found) else EXIT_INCOMPLETE


@click.command(short_help="Print the JSON schema of a matrix.")
def schema() -> int:
    """Print the JSON schema of a matrix, as it lies in matrices/schema.json."""
    click.echo(matrix_file.schema(), nl=False)
    return EXIT_COMPLETE


commands.put("Audit", run, search_verbs.diff, plan, sensitivity, reproduce)
commands.put("Explain", explain_verb.explain, search_verbs.blame, search_verbs.bisect, diagnose)
commands.put("Results", report_verb.report, results_verbs.query, figure_verb.figure, results_verbs.snapshot)
commands.put("Every night", nightly_verb.nightly, nightly_verb.scheduled)
commands.put("Set-up", doctor, schema)


_INTERRUPTIONS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Ctrl-C, a service manager, a terminal that is closed."""


def main() -> NoReturn:
    """Run, and turn whatever happens into an exit code and at most one sentence."""
    _print_whatever_the_encoding_lacks()
    screen = Screen()
    try:
        for number in _INTERRUPTIONS:
            if signal.getsignal(number) != signal.SIG_IGN:  # as under `nohup`
                signal.signal(number, _interrupt)
        code = commands.main(prog_name=PROGRAM, standalone_mode=False)
    except (KeyboardInterrupt, click.exceptions.Abort) as interruption:
        _interrupted(screen, str(interruption.__cause__ or interruption))  # click puts one of its own before it
    except SystemExit as leaving:  # of click, where a shell asks it for completions
        code = _left_with(leaving, screen)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        code = EXIT_USAGE
    except click.ClickException as error:
        screen.error(f"release-audit: {error.format_message()} `{_called(error)} --help` tells more")
        code = EXIT_USAGE
    except AuditError as error:
        _leave_at_once(screen, str(error), error.exit_code)
    except OSError as error:
        _leave_at_once(screen, f"{_said(error)}; what was stored before is kept", EXIT_INCOMPLETE)
    except Exception:
        traceback.print_exc()  # a bug; Python would end with 1, which says that something changed
        code = EXIT_INCOMPLETE
    guard.tell(code or EXIT_COMPLETE)
    sys.exit(code or EXIT_COMPLETE)


def _print_whatever_the_encoding_lacks() -> None:
    """Write signs that a terminal or a log cannot hold by their numbers, as Python does on standard error."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _called(error: click.ClickException) -> str:
    """The program with the verb in whose call the mistake is, as far as it is known."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    return context.command_path if context is not None else PROGRAM


def _left_with(leaving: SystemExit, screen: Screen) -> int:
    """What it means that a library ended the program: its 1 is not ours, which says that something changed."""
    if not leaving.code:
        return EXIT_COMPLETE
    screen.error(f"release-audit: ended from within with {leaving.code}")
    return EXIT_INCOMPLETE


def _said(error: OSError) -> str:
    """What the system said, and of which file where it was one."""
    said = error.strerror or str(error) or type(error).__name__
    return said if error.filename is None else f"{said}: {error.filename}"


def _interrupt(*_: object) -> NoReturn:
    raise KeyboardInterrupt


def _interrupted(screen: Screen, told: str) -> NoReturn:
    for number in _INTERRUPTIONS:
        signal.signal(number, signal.SIG_IGN)  # once is enough
    told = told or "what was dumped is stored, the same command continues from there"
    _leave_at_once(screen, f"interrupted; {told}", EXIT_INTERRUPTED)


def _leave_at_once(screen: Screen, told: str, code: int) -> NoReturn:
    """End without waiting for threads, which may still be starting Ray; everything that they started is ended here."""
    uv.stop()
    descendants.end_all()
    screen.error(f"release-audit: {told}")
    guard.tell(code)
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    os._exit(code)
