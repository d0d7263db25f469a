"""The verb `explain`: everything that is known of one change, looked into now if it has not been."""

from __future__ import annotations

import datetime
from pathlib import Path

import click

from analysis.verdicts import Judgement
from audit import named_files
from audit.errors import EXIT_COMPLETE, AuditError, UsageError
from audit.explanations import account, between, blaming, explaining, reproducer, showing, stored_pairs
from audit.explanations.account import Account
from audit.explanations.between import QuestionOptions
from audit.explanations.inquiry import Inquiry
from audit.explanations.resolving import Resolver
from audit.explanations.session import Inline, ReleaseBehaviour
from audit.explanations.stored_pairs import StoredPair
from audit.failures import Failure
from audit.installing import changelogs
from audit.storage.store import Store
from audit.terminal.screen import Screen
from audit.tools import Tools
from audit.verbs import options
from audit.verbs.questions import question_options


@click.command(short_help="Say why two releases differ.")
@click.argument("environment")
@click.argument("older")
@click.argument("newer")
@question_options
@click.option("--blame/--no-blame", "search", default=True, show_default=True,
              help="If several packages differ, search for the one that brought the change.")  # fmt: skip
@options.fresh
@options.timeout
@options.runs_releases
@click.option("--json", "place", type=options.OUTPUT_FILE, metavar="FILE",
              help="Write the explanation as JSON to this file; - is standard output.")  # fmt: skip
@options.database
def explain(
    environment: str, older: str, newer: str, given: QuestionOptions, search: bool, fresh: bool, timeout: float,
    place: Path | None, database: Path,
) -> int:  # fmt: skip
    """Say why ENVIRONMENT differs between OLDER and NEWER: stage, constants, law, package.

    Each is the id of a release in the database, or requirements such as 'mujoco==3.1.6'. Where an audit has them with
    ENVIRONMENT, which is its title there, all that the matrix says of it holds.
    """
    screen = Screen(on_standard_error=place == named_files.STANDARD_OUTPUT)
    with Store(database) as store:
        tools = Tools(store=store, runner=Inline(), reporter=screen, timeout=timeout)
        resolver = Resolver(store, fresh=fresh)
        inquiry = Inquiry(between.ask(store, environment, (older, newer), given), tools, resolver)
        told = _explain(inquiry, search, resolver.as_of)
    if place is not None:
        named_files.put(place, told.as_json())
    if place != named_files.STANDARD_OUTPUT:
        for line in told.lines():
            screen.note(line)
    return EXIT_COMPLETE


def _explain(inquiry: Inquiry, search: bool, as_of: datetime.datetime | None) -> Account:
    store, names = inquiry.tools.store, inquiry.question.names
    pair = _stored_pair(inquiry)
    if pair is None or not _is_explained(store, pair):
        pair = _looked_into(inquiry)
    packages, searched = _packages(inquiry, search)
    ends = inquiry.older, inquiry.newer
    folder = showing.folder_of(store, names, (pair.older_behaviour, pair.newer_behaviour))
    return account.of_pair(
        store,
        names,
        pair,
        packages=packages,
        searched=searched,
        change_log=changelogs.of_the_later(ends, packages[0].split()[0]) if searched and packages else "",
        reproducer=reproducer.told(folder),
        as_of=as_of,
    )


def _stored_pair(inquiry: Inquiry) -> StoredPair | None:
    """The pair as the audit has it that the question is about, or another one that asked the very same."""
    store, question = inquiry.tools.store, inquiry.question
    if question.run_id:
        return stored_pairs.find(store, *question.names, run_id=question.run_id)
    return stored_pairs.find(store, *question.names, cells=inquiry.cells)


def _is_explained(store: Store, pair: StoredPair) -> bool:
    return (pair.older_behaviour, pair.newer_behaviour) in store.explanations.explained()


def _looked_into(inquiry: Inquiry) -> StoredPair:
    """Run both releases now, and look into what differs."""
    session, question, tools = inquiry.session, inquiry.question, inquiry.tools
    shown = [session.show(request) for request in (question.older, question.newer)]
    for each in shown:
        if isinstance(each, Failure):
            raise UsageError(f"{each.subject} cannot be looked at: {each.reason}")
    older, newer = (each for each in shown if isinstance(each, ReleaseBehaviour))
    judgement = session.judge(older, newer)
    if judgement is None or not session.changed(older, newer):
        told = "the same to the last bit" if judgement is None else _told(judgement)
        raise UsageError(f"there is nothing to explain: {question.older.id} and {question.newer.id} are {told}")
    pair = explaining.pair(
        tools.store,
        session.cell(older.release),
        session.cell(newer.release),
        (older.behaviour, newer.behaviour),
        judgement.beyond,
    )
    stored = StoredPair(
        run_id=question.run_id,
        older_behaviour=older.behaviour,
        newer_behaviour=newer.behaviour,
        verdict=str(judgement.verdict),
        reason=judgement.reason,
        beyond=judgement.beyond,
        states_forced=judgement.states_forced or 0,
        ratio=judgement.first_step_ratio or 0.0,
    )
    with tools.reporter.stage("explaining", 1) as done:
        kind, ends = session.drawn.known.layout.kind, (pair.older, pair.newer)
        lost = explaining.explain(
            [pair], session.tools, lambda found: showing.reproduce(tools.store, ends, stored, kind, found.lines)
        )
        done(question.title)
    for each in lost:
        raise AuditError(f"{each.subject}: {each.reason}")
    return stored


def _told(judgement: Judgement) -> str:
    """What a pair is that did not change, and why, where there is anything to say."""
    return f"{judgement.verdict}: {judgement.reason}" if judgement.reason else str(judgement.verdict)


def _packages(inquiry: Inquiry, search: bool) -> tuple[list[str], bool]:
    """What brings the change, and whether that is known or only what differs."""
    suspects = [move.told for move in inquiry.suspects]
    pythons = [each.interpreter.version for each in (inquiry.older, inquiry.newer)]
    if pythons[0] != pythons[1]:
        return [blaming.python_told(*pythons), *suspects], not suspects
    known = inquiry.known_blame() if len(suspects) > 1 else None
    if known is not None:
        return list(known.blamed), True
    if len(suspects) < 2 or not search:
        return suspects, len(suspects) < 2
    return list(inquiry.blame().record.blamed), True
