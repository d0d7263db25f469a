"""Verbs that search: what differs between two releases, which version brought it, which distribution did."""

from __future__ import annotations

import datetime
from pathlib import Path

import click
from packaging.version import Version

from audit.asked.matrix_file import MatrixFile
from audit.errors import EXIT_COMPLETE, UsageError
from audit.explanations import adhoc, between, bisecting, registries
from audit.explanations.between import PairQuestion, QuestionOptions
from audit.explanations.bisecting import Bisection
from audit.explanations.blaming import Blame
from audit.explanations.inquiry import Inquiry
from audit.explanations.resolving import Resolver
from audit.explanations.session import Inline, Session
from audit.installing import changelogs, listing
from audit.planning import releasing
from audit.planning.releasing import ResolvedReleases
from audit.reports.summaries.outputs import Outputs
from audit.storage.records import BlameRecord
from audit.storage.store import Store
from audit.terminal.screen import Screen
from audit.tools import Tools
from audit.verbs import options, running
from audit.verbs.questions import question_options
from audit.verbs.running import RunOptions


@click.command(short_help="Find the version that brought a change.")
@click.argument("environment", required=False)
@click.option("--package", required=True, metavar="NAME", help="Search the versions of this package.")
@click.option("--good", required=True, metavar="VERSION", help="A version that behaves as it should.")
@click.option("--bad", required=True, metavar="VERSION", help="A version that does not.")
@options.beside
@options.mjcf
@options.python
@options.exclude_newer
@click.option("--all", "every", is_flag=True,
              help="Look at every version, which also finds changes that a later version takes back.")  # fmt: skip
@click.option("--prereleases", is_flag=True, help="Search pre-releases too.")
@options.fresh
@options.timeout
@options.allow_source
@options.runs_releases
@options.database
def bisect(
    environment: str | None, package: str, good: str, bad: str, beside: tuple[str, ...], mjcf: Path | None,
    python: str | None, day: datetime.datetime | None, every: bool, prereleases: bool, fresh: bool, timeout: float,
    allow_source: bool, database: Path,
) -> int:  # fmt: skip
    """Find the version of a package that changed ENVIRONMENT, over the versions that the index has."""
    screen = Screen()
    row = adhoc.release_row([f"{package}=={good}"], beside, day.date() if day else None)
    file = adhoc.matrix("bisect", [row], [adhoc.environment_row(environment, mjcf)], python, source=allow_source)
    with Store(database) as store:
        resolver = Resolver(store, fresh=fresh)
        with screen.stage("listing", 1) as done:
            versions = bisecting.versions(
                package, good, bad, file.matrix.python, day.date() if day else None, resolver,
                prereleases=prereleases, source=allow_source,
            )  # fmt: skip
            done(f"{len(versions)} versions of {package}")
        older = listing.expand(file)[0]
        newer = bisecting.moved(older, package, versions[-1])
        tools = Tools(store=store, runner=Inline(), reporter=screen, timeout=timeout)
        session = Session(PairQuestion(file=file, older=older, newer=newer, baseline=older), tools, resolver)
        search = bisecting.Search(session, package, versions, screen)
        found = search.look_at_all() if every else search.halve()
        address = _change_log(found)
    _tell_bisection(found, address, screen)
    return EXIT_COMPLETE


def _change_log(found: Bisection) -> str:
    """The address that the version has which brought the last change, or the nearest to it that has one.

    Old metadata often has none.
    """
    versions = [probe.version for probe in found.probes]
    ends = [found.boundaries[-1].last, found.boundaries[-1].first] if found.boundaries else versions
    place = versions.index(max(ends, key=Version))
    near = sorted(found.probes, key=lambda probe: abs(versions.index(probe.version) - place))
    shown = (probe.shown for probe in near if probe.shown is not None)
    return next(filter(None, (changelogs.address(each.release, found.package) for each in shown)), "")


def _tell_bisection(found: Bisection, address: str, screen: Screen) -> None:
    screen.table(
        ("versions", "of them looked at", "behaviour"),
        [(each.told, each.versions, each.behaviour[:12]) for each in found.classes],
    )
    for probe in found.skipped:
        screen.note(f"skipped {found.package} {probe.version}: {probe.reason}")
    for each in found.boundaries:
        unknown = f", or in {', '.join(each.between)}, which could not be looked at" if each.between else ""
        screen.note(f"changed between {found.package} {each.last} and {each.first}{unknown}")
    if not found.boundaries:
        screen.note(f"all {len(found.versions)} versions are the same but for rounding")
    screen.note(
        f"{len(found.probes)} of {len(found.versions)} versions looked at" + (f"; {address}" if address else "")
    )


@click.command(short_help="Find the package that brought a change.")
@click.argument("environment")
@click.argument("older")
@click.argument("newer")
@question_options
@options.fresh
@options.timeout
@options.runs_releases
@options.database
def blame(
    environment: str, older: str, newer: str, given: QuestionOptions, fresh: bool, timeout: float, database: Path
) -> int:
    """Find the distribution that changed ENVIRONMENT between OLDER and NEWER.

    Each is the id of a release in the database, or requirements such as 'mujoco==3.1.6'. Where an audit has them with
    ENVIRONMENT, which is its title there, all that the matrix says of it holds.
    """
    screen = Screen()
    with Store(database) as store:
        tools = Tools(store=store, runner=Inline(), reporter=screen, timeout=timeout)
        resolver = Resolver(store, fresh=fresh)
        inquiry = Inquiry(between.ask(store, environment, (older, newer), given), tools, resolver)
        known = None if fresh else inquiry.known_blame()
        if known is None:
            found = inquiry.blame()
            known = found.record
            _tell_tried(found, screen)
    _tell_blame(known, resolver.as_of, screen)
    return EXIT_COMPLETE


def _tell_tried(found: Blame, screen: Screen) -> None:
    screen.table(
        ("moved", "", "reason"),
        [(", ".join(move.package for move in each.moved), str(each.answer), each.reason) for each in found.tried],
    )


def _tell_blame(known: BlameRecord, as_of: datetime.datetime | None, screen: Screen) -> None:
    when = f" (as installed at {as_of:%Y-%m-%d %H:%M} UTC: --fresh asks the index again)" if as_of is not None else ""
    screen.note(f"of {known.suspects} distributions or edits that differ, what brings the change{when}:")
    for told in known.blamed:
        screen.note(f"  {told}")


@click.command(short_help="Compare two releases without a matrix.")
@click.argument("older")
@click.argument("newer")
@options.beside
@click.option("--env", "identifiers", multiple=True, metavar="ENV",
              help="Compare this environment. May be given again. Default: all that both releases have.")  # fmt: skip
@options.mjcf
@options.python
@options.exclude_newer
@options.check
@options.address
@options.jobs
@options.timeout
@options.allow_source
@options.runs_releases
@options.database
@options.summaries
def diff(
    older: str, newer: str, beside: tuple[str, ...], identifiers: tuple[str, ...], mjcf: Path | None,
    python: str | None, day: datetime.datetime | None, check: bool, address: str | None, jobs: int | None,
    timeout: float, allow_source: bool, database: Path, **summaries: Path | None,
) -> int:  # fmt: skip
    """Compare two releases without a matrix: OLDER and NEWER are requirements such as 'mujoco==3.1.6'.

    If the newer release has another name for an environment, give both: --env Reacher-v4=Reacher-v5.
    """
    wanted = Outputs.of(**summaries)
    screen = Screen(on_standard_error=wanted.takes_standard_output)
    rows = [adhoc.release_row(text.split(), beside, day.date() if day else None) for text in (older, newer)]
    rows = adhoc.told_apart(rows, identifiers)
    environments = [adhoc.environment_row(each, None, rows[1]["id"]) for each in identifiers]
    if mjcf is not None:
        environments.append(adhoc.environment_row(None, mjcf))
    with Store(database) as store:
        found = environments or registries.shared(rows, python, Tools(
            store=store, runner=Inline(), reporter=screen, timeout=timeout), source=allow_source)  # fmt: skip
    file = adhoc.matrix(f"{adhoc.DIFF}{rows[0]['id']}-{rows[1]['id']}", rows, found, python, source=allow_source)
    wishes = RunOptions(
        database=database, check=check, address=address, jobs=jobs, timeout=timeout, outputs=wanted
    )  # fmt: skip
    return running.run(file, wishes, screen, asked=_resolved(file, screen))


def _resolved(file: MatrixFile, screen: Screen) -> ResolvedReleases:
    """Both releases: one that does not exist is a mistake here, and not a result.

    Raises:
        UsageError: where one cannot be resolved.
    """
    asked = releasing.ask(file, screen)
    for failure in asked.unresolved:
        if not failure.is_infrastructure:
            raise UsageError(f"{failure.subject} cannot be resolved: {failure.reason}")
    return asked
