"""The command line: verbs, options, exit codes. The only place that exits."""

from __future__ import annotations

import contextlib
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
from audit.asked import matrix_file, preview
from audit.cluster import descendants
from audit.cluster.workers import Workers
from audit.comparisons import sensitivity as sensing
from audit.console import Screen
from audit.doctor import checks
from audit.dumps import protections
from audit.errors import (
    EXIT_CHANGED,
    EXIT_COMPLETE,
    EXIT_INCOMPLETE,
    EXIT_INTERRUPTED,
    EXIT_USAGE,
    AuditError,
)
from audit.installing import uv
from audit.reports.summaries import outputs
from audit.reports.summaries.outputs import Outputs
from audit.storage.store import Store
from audit.tools import Tools
from audit.verbs import explain_verb, figure_verb, nightly_verb, report_verb, results_verbs, running, search_verbs
from audit.verbs.running import DATABASE, Wishes
from audit.verbs.trust_options import require_sandbox

_database = click.option(
    "--db", "database", type=click.Path(path_type=Path, dir_okay=False), default=DATABASE, show_default=True,
    help="The database; its arrays lie beside it.",
)  # fmt: skip

_timeout = click.option(
    "--timeout", type=click.FloatRange(min=0.1), default=300.0, show_default=True,
    help="Seconds that one cell may take.",
)  # fmt: skip


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="release-audit")
def commands() -> None:
    """Tell whether a new release of a simulator changed the physics, where, and who did it."""


@commands.command()
@click.argument("matrix")
@_database
@click.option("--check", is_flag=True, help="Exit with 1 when something changed or broke, for CI.")
@click.option("--address", help="A running Ray cluster; default: RAY_ADDRESS, else a local one.")
@click.option("--jobs", type=click.IntRange(min=1), help="Releases dumped at the same time; default: one a core.")
@_timeout
@click.option("--explain/--no-explain", default=True, show_default=True,
              help="Whether changed neighbours are looked into: stages of the step, constants.")  # fmt: skip
@click.option("--again", is_flag=True, help="Try cells whose process failed in several runs before.")
@click.option("--waivers", type=click.Path(path_type=Path, dir_okay=False),
              help="Accepted changes; default: waivers.yaml beside the matrix.")  # fmt: skip
@require_sandbox
@outputs.options
def run(
    matrix: str, database: Path, check: bool, address: str | None, jobs: int | None, timeout: float, explain: bool,
    again: bool, waivers: Path | None, require_sandbox: bool, **summaries: str | None,
) -> int:  # fmt: skip
    """Audit MATRIX: a path, or a name in matrices/."""
    file = matrix_file.read(matrix_file.find(matrix))
    wanted = Outputs.of(**summaries)
    wishes = Wishes(
        database=database, check=check, address=address, jobs=jobs, timeout=timeout, explain=explain, again=again,
        waivers=waivers, require_sandbox=require_sandbox, outputs=wanted,
    )  # fmt: skip
    return running.run(file, wishes, Screen(quiet=wanted.takes_standard_output))


@commands.command()
@click.argument("matrix")
@_database
def plan(matrix: str, database: Path) -> int:
    """Show what an audit of MATRIX would run and what is there already. Runs nothing."""
    file = matrix_file.read(matrix_file.find(matrix))
    screen = Screen()
    rows = preview.plan(file, database)
    screen.table(("release", "Python", "lock", "virtualenv", "dumped", "to dump"), [row.shown() for row in rows])
    missing = sum(row.missing for row in rows)
    screen.note(f"{len(rows)} releases, {sum(row.dumped for row in rows)} cells dumped, {missing} to dump")
    return EXIT_COMPLETE


@commands.command()
@click.argument("matrix")
@_database
@_timeout
def sensitivity(matrix: str, database: Path, timeout: float) -> int:
    """Show how small a change would be seen: plant faults in the baseline of MATRIX, from 1e-12 to 1e-1."""
    screen = Screen()
    file = matrix_file.read(matrix_file.find(matrix))
    with Store(database) as store, Workers(None, None) as runner:
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


@commands.command()
@click.argument("trajectories", type=click.Path(path_type=Path))
@click.option("--reference", required=True, help="A reference set: a name in matrices/laws, or a path.")
@click.option("--against", type=click.Path(path_type=Path), help="Trajectories of a system that keeps the laws.")
@click.option("--unit", type=click.Choice(["trajectory", "block"]), default="trajectory", show_default=True,
              help="What counts as one observation; blocks alarm falsely.")  # fmt: skip
@click.option("--check", is_flag=True, help="Exit with 1 when a law is broken or a constant is named.")
def diagnose(trajectories: Path, reference: str, against: Path | None, unit: str, check: bool) -> int:
    """Say which law TRAJECTORIES break, and which constant is behind it.

    They are an npz, a Parquet file or a Minari data set: of a simulator, a log or a world model.
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


@commands.command()
@click.argument("names", nargs=-1)
@_database
@click.option("--jobs", type=click.IntRange(min=1), help="Parts measured at the same time; default: one a core.")
@_timeout
def reproduce(names: tuple[str, ...], database: Path, jobs: int | None, timeout: float) -> int:
    """Measure the paper's figures again: all experiments, or those of NAMES. Exits with 1 if an exact one disagrees."""
    from audit.laws import reproducing  # brings SymPy and SciPy, which nothing else on this command line needs

    began = time.monotonic()
    screen = Screen()
    reproducing.chosen(names)  # a wrong name is said before anything is opened
    with Store(database) as store, Workers(None, jobs) as runner:
        found = reproducing.reproduce(names, Tools(store=store, runner=runner, reporter=screen, timeout=timeout))
    screen.reproduced(found, time.monotonic() - began)
    return EXIT_CHANGED if any(each.wrong for each in found) else EXIT_COMPLETE


@commands.command()
@_database
def doctor(database: Path) -> int:
    """Check Python, uv, the package index, the disk and the CPU; list what cannot be prevented here."""
    screen = Screen()
    found = list(checks(database.parent))
    screen.table(("", "check", "found"), [("ok" if each.ok else "BAD", each.name, each.found) for each in found])
    screen.note("\nWhat a release's own code may do here (SECURITY.md says what that is worth):")
    rows = [("on" if each.on else "OFF", each.name, each.told) for each in protections.all_here()]
    screen.table(("", "protection", "how"), rows)
    return EXIT_COMPLETE if all(each.ok for each in found) else EXIT_INCOMPLETE


@commands.command()
def schema() -> int:
    """Print the JSON schema of a matrix, as it lies in matrices/schema.json."""
    click.echo(matrix_file.schema(), nl=False)
    return EXIT_COMPLETE


for _verb in (
    search_verbs.diff,
    search_verbs.bisect,
    search_verbs.blame,
    explain_verb.explain,
    figure_verb.figure,
    report_verb.report,
    results_verbs.query,
    results_verbs.snapshot,
    nightly_verb.nightly,
    nightly_verb.scheduled,
):
    commands.add_command(_verb)


_INTERRUPTIONS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Ctrl-C, a service manager, a terminal that is closed."""


def main() -> NoReturn:
    """Run, and turn whatever happens into an exit code and at most one sentence."""
    screen = Screen()
    try:
        for number in _INTERRUPTIONS:
            if signal.getsignal(number) != signal.SIG_IGN:  # as under `nohup`
                signal.signal(number, _interrupt)
        code = commands.main(prog_name="release-audit", standalone_mode=False)
    except (KeyboardInterrupt, click.exceptions.Abort) as interruption:
        _leave_at_once(screen, str(interruption))
    except SystemExit as leaving:  # of click, where a shell asks it for completions
        code = _left_with(leaving, screen)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        code = EXIT_USAGE
    except click.ClickException as error:
        screen.error(f"release-audit: {error.format_message()} `release-audit --help` tells more")
        code = EXIT_USAGE
    except AuditError as error:
        screen.error(f"release-audit: {error}")
        code = error.exit_code
    except OSError as error:
        screen.error(f"release-audit: {_said(error)}; what was stored before is kept")
        code = EXIT_INCOMPLETE
    except Exception:
        traceback.print_exc()  # a bug; Python would end with 1, which says that something changed
        code = EXIT_INCOMPLETE
    guard.tell(code or EXIT_COMPLETE)
    sys.exit(code or EXIT_COMPLETE)


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


def _leave_at_once(screen: Screen, told: str) -> NoReturn:
    """End without waiting for threads; everything that they started is ended here."""
    for number in _INTERRUPTIONS:
        signal.signal(number, signal.SIG_IGN)  # once is enough
    uv.stop()
    descendants.end_all()
    told = told or "what was dumped is stored, the same command continues from there"
    screen.error(f"release-audit: interrupted; {told}")
    guard.tell(EXIT_INTERRUPTED)
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    os._exit(EXIT_INTERRUPTED)
