"""The verb `explain`: everything that is known of one change, looked into now if it has not been."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from audit import named_files
from audit.asked import adhoc, releases
from audit.asked.matrix_file import MatrixFile
from audit.asked.releases import ReleaseRequest
from audit.console import Screen
from audit.errors import EXIT_COMPLETE, UsageError
from audit.explanations import blaming, explaining, reproducer, showing, telling
from audit.explanations.session import Inline, Session, Shown
from audit.explanations.telling import StoredPair, Told
from audit.failures import Failure
from audit.installing import changelogs
from audit.installing.locks import Release
from audit.installing.resolving import Resolver
from audit.storage.store import Store
from audit.tools import Tools
from audit.verbs import options


@click.command(short_help="Say why two releases differ.")
@click.argument("environment")
@click.argument("older")
@click.argument("newer")
@options.beside
@options.python
@options.exclude_newer
@click.option("--blame/--no-blame", "search", default=True, show_default=True,
              help="If several packages differ, search for the one that brought the change.")  # fmt: skip
@options.fresh
@options.timeout
@options.allow_source
@options.runs_releases
@click.option("--json", "place", type=options.OUTPUT_FILE, metavar="FILE",
              help="Write the explanation as JSON to this file; - is standard output.")  # fmt: skip
@options.database
def explain(
    environment: str, older: str, newer: str, beside: tuple[str, ...], python: str | None,
    day: datetime.datetime | None, search: bool, fresh: bool, timeout: float, allow_source: bool, place: Path | None,
    database: Path,
) -> int:  # fmt: skip
    """Say why ENVIRONMENT differs between OLDER and NEWER: stage, constants, law, package.

    Each is the id of a release in the database, or requirements such as 'mujoco==3.1.6'.
    """
    screen = Screen(on_standard_error=place == named_files.STANDARD_OUTPUT)
    with Store(database) as store:
        tools = Tools(store=store, runner=Inline(), reporter=screen, timeout=timeout)
        named = [
            adhoc.named(store, text, environment.partition("=")[0], beside, day.date() if day else None)
            for text in (older, newer)
        ]
        apart = adhoc.told_apart([each.row for each in named], [environment])
        asked = _Asked(environment=environment, rows=(apart[0], apart[1]), python=python, source=allow_source)
        resolver = Resolver(store, fresh=fresh)
        requests = releases.expand(asked.file)
        for request, each in zip(requests, named, strict=True):
            if each.lock is not None:
                resolver.give(request, each.lock)
        told = _explain(asked, (requests[0], requests[1]), search, tools, resolver)
    if place is not None:
        named_files.put(place, told.as_json())
    if place != named_files.STANDARD_OUTPUT:
        for line in told.lines():
            screen.note(line)
    return EXIT_COMPLETE


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What is to be explained."""

    environment: str
    rows: tuple[dict[str, Any], dict[str, Any]]
    python: str | None
    source: bool

    @property
    def names(self) -> tuple[str, str, str]:
        return self.environment.partition("=")[0], str(self.rows[0]["id"]), str(self.rows[1]["id"])

    @property
    def file(self) -> MatrixFile:
        environment = adhoc.environment_row(self.environment, None, str(self.rows[1]["id"]))
        return adhoc.matrix("explain", self.rows, [environment], self.python, source=self.source)


def _explain(
    asked: _Asked, requests: tuple[ReleaseRequest, ReleaseRequest], search: bool, tools: Tools, resolver: Resolver
) -> Told:
    older, newer = resolver.ends(requests)
    locked = older.lock.digest, newer.lock.digest
    pair = telling.stored_pair(tools.store, *asked.names, locks=locked)
    session = None
    if pair is None or not _is_explained(tools.store, pair):
        session = Session(asked.file, tools, resolver, requests[1])
        pair = _looked_into(asked, requests, session, tools)
    packages, searched = _packages(
        asked, (older, newer), search, lambda: session or Session(asked.file, tools, resolver, requests[1]), tools
    )
    return telling.tell(
        tools.store,
        asked.names,
        pair,
        packages=packages,
        searched=searched,
        change_log=changelogs.of_the_later((older, newer), packages[0].split()[0]) if searched and packages else "",
        reproducer=reproducer.told(showing.folder_of(tools.store, *asked.names)),
        as_of=resolver.as_of,
    )


def _is_explained(store: Store, pair: StoredPair) -> bool:
    return (pair.older_behaviour, pair.newer_behaviour) in store.explanations.explained()


def _looked_into(
    asked: _Asked, requests: tuple[ReleaseRequest, ReleaseRequest], session: Session, tools: Tools
) -> StoredPair:
    """Run both releases now, and look into what differs."""
    shown = [session.show(request) for request in requests]
    for each in shown:
        if isinstance(each, Failure):
            raise UsageError(f"{each.subject} cannot be looked at: {each.reason}")
    older, newer = (each for each in shown if isinstance(each, Shown))
    judgement = session.judge(older, newer)
    if judgement is None or not session.changed(older, newer):
        told = "the same to the last bit" if judgement is None else f"{judgement.verdict}: {judgement.reason}"
        raise UsageError(f"there is nothing to explain: {asked.names[1]} and {asked.names[2]} are {told}")
    pair = explaining.pair(
        tools.store,
        session.cell(older.release),
        session.cell(newer.release),
        (older.behaviour, newer.behaviour),
        judgement.beyond,
    )
    stored = StoredPair(
        run_id="",
        matrix="",
        older_behaviour=older.behaviour,
        newer_behaviour=newer.behaviour,
        verdict=str(judgement.verdict),
        reason=judgement.reason,
        beyond=judgement.beyond,
        states_forced=judgement.states_forced or 0,
        ratio=judgement.first_step_ratio or 0.0,
    )
    with tools.reporter.stage("explaining", 1) as done:
        for found in explaining.explain([pair], session.tools):
            kind = session.drawn.known.layout.kind
            showing.reproduce(tools.store, (pair.older, pair.newer), stored, kind, found.lines)
        done(asked.environment)
    return stored


def _packages(
    asked: _Asked, ends: tuple[Release, Release], search: bool, session: Callable[[], Session], tools: Tools
) -> tuple[list[str], bool]:
    """What brings the change, and whether that is known or only what differs."""
    locked = ends[0].lock.digest, ends[1].lock.digest
    suspects = blaming.moves(ends[0].lock, ends[1].lock, ends[1].request.requires)
    known = tools.store.explanations.blamed(asked.environment, *locked)
    if known is not None:
        return list(known.blamed), True
    if len(suspects) < 2 or not search:
        return [move.told for move in suspects], len(suspects) < 2
    found = blaming.blame(session(), ends[1].request, tools.reporter)
    tools.store.explanations.put_blame(asked.environment, locked, found.record)
    return list(found.record.blamed), True
