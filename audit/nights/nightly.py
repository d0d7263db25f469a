"""The way a night goes, in the order in which it goes.

::

    known ─▶ look ─▶ releases ─▶ audit ─▶ standings ─▶ summary ─▶ night
    (store)  (index)  (locks)    (pipeline) (new? accepted?)       (store)

Where nothing is new it ends after the look. What a night did not get to record is still new on the next one.
"""

from __future__ import annotations

import datetime
import json
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from audit import pipeline
from audit.asked.matrix_file import MatrixFile
from audit.asked.releases import selected
from audit.digests import digest
from audit.errors import EXIT_CHANGED, EXIT_COMPLETE, AuditError, StoreError
from audit.failures import Failure, Status
from audit.installing import interpreters
from audit.installing.locks import Lock, Release
from audit.nights import news, standings
from audit.nights.news import EarlierNights, Tonight
from audit.nights.standings import Question
from audit.nights.waivers import Waivers
from audit.pipeline import AuditResult
from audit.planning import releasing
from audit.planning.releasing import ResolvedReleases
from audit.reports.summaries import plain
from audit.reports.summaries.value import AuditSummary
from audit.storage.records import NightRecord, Standing
from audit.storage.watched_release import Watched
from audit.tools import Tools


@dataclass(frozen=True, slots=True, kw_only=True)
class Evening:
    """When it is, as far as the night is concerned."""

    today: datetime.date
    past: bool = False
    """Whether it is an evening that was missed, and later uploads do not count."""

    def day(self, min_age: int) -> datetime.date | None:
        """The last day whose uploads count; nothing where all do, also those whose day no index tells.

        All of that day's have lasted ``min_age`` times 24 hours at the last midnight: today is not over yet.
        """
        if not min_age and not self.past:
            return None
        return self.today - datetime.timedelta(days=min_age if self.past else min_age + 1)


def night(
    file: MatrixFile, tools: Tools, waivers: Waivers, evening: Evening, *, explained: bool = True
) -> AuditSummary:
    """Look for what is new, audit that, and record what it came to."""
    began = time.monotonic()
    nights, name = tools.store.nights, file.matrix.name
    first = nights.is_first(name)
    identifier = nights.begin(name, evening.today, question(file))
    blank = AuditSummary(matrix=name, night=identifier, exit_code=EXIT_COMPLETE, first=first)
    done: Sequence[Watched] = ()
    try:
        found = _look(file, tools, evening, blank)
        blank = replace(blank, releases=len(found.look.releases), news=found.news(), notes=found.look.notes)
        if found.due or found.edited:
            blank, done = _audit(file, found, waivers, tools, blank, explained=explained)
    except StoreError:
        raise  # there is nowhere to record it
    except AuditError as error:
        blank = replace(blank, exit_code=error.exit_code, trouble=str(error))
    met = {(each.environment, each.older, each.newer) for each in blank.changes}
    notes = (*blank.notes, *waivers.notes({*nights.reported(), *met}))
    told = nights.last_summary(name)
    repeated = tuple(each for each in notes if plain.note(each) in told)
    summary = replace(blank, notes=notes, repeated=repeated, seconds=time.monotonic() - began)
    nights.finish(_record(summary), summary.changes, [each.id for each in done])
    return summary


def question(file: MatrixFile) -> str:
    """Digest of all that a matrix asks but for its releases: with another, what is known is looked at again."""
    apart = {"releases", "nightly", "description", "exclude_newer"}
    return digest(json.dumps(file.matrix.model_dump(mode="json", exclude=apart, warnings=False), sort_keys=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    """What is there tonight, beside what was there before."""

    look: Tonight
    known: EarlierNights
    edited: bool
    """Whether the matrix asks something else than on the last night that audited it."""

    @property
    def due(self) -> list[Watched]:
        """Releases that no night has done with yet."""
        return [each for each in self.look.releases if each.audited is None]

    @property
    def relisted(self) -> bool:
        """Whether somebody edited which versions there are: told apart from what is new tonight, and never again."""
        known = self.known.releases
        return any(each.id in known and each.listing != known[each.id].listing for each in self.look.releases)

    @property
    def retried(self) -> set[str]:
        """Releases that could not be installed on an earlier night, which told so."""
        known = self.known.releases
        again = (each for each in self.due if each.id in known and known[each.id].asked == each.asked)
        return {each.id for each in again if known[each.id].audited is not None}

    @property
    def packages(self) -> dict[str, str]:
        """The package that each release is a version of, also where it is a later resolution."""
        named = {each.id: each.package for each in self.look.releases}
        return {each.id: named.get(each.request.known_as, "") for each in self.look.releases}

    def news(self, but: Collection[str] = ()) -> tuple[str, ...]:
        """What is new, but for some releases."""
        return tuple(dict.fromkeys(each.news for each in self.due if each.news and each.id not in but))

    @property
    def may_alarm(self) -> set[str]:
        """Releases that appeared since the matrix was recorded, and of which nothing has been told yet."""
        unseen = {each.id for each in self.due} | set(self.known.failed)
        return {each.id for each in self.look.releases if each.news and each.id in unseen}


def _look(file: MatrixFile, tools: Tools, evening: Evening, blank: AuditSummary) -> _Work:
    nights, name = tools.store.nights, file.matrix.name
    releases = nights.known(name)
    known = EarlierNights(
        releases=releases,
        locks=nights.locks(each.lock_digest or "" for each in releases.values()),
        failed=nights.failed(name),
    )
    with tools.reporter.stage("looking", 1) as done:
        look = news.look(file, known, blank.night, evening.day(file.matrix.nightly.min_age))
        edited = nights.last_question(name) != question(file)
        found = _Work(look=look, known=known, edited=edited)
        done(f"{len(found.due)} of {len(look.releases)} releases of {name} to audit")
    nights.keep(name, (*(look.releases if found.relisted else ()), *look.withdrawn))
    return found


def _audit(
    file: MatrixFile, found: _Work, waivers: Waivers, tools: Tools, blank: AuditSummary, *, explained: bool
) -> tuple[AuditSummary, Sequence[Watched]]:
    """Audit the matrix with all that is known and new; the releases given back need no other night."""
    asked = _resolve(file.matrix.name, found, tools)
    result = pipeline.audit(file, tools, asked=asked, explained=explained)
    everything = Question(
        run_id=result.run_id,
        outputs=file.matrix.outputs,
        reported=tools.store.nights.reported(file.matrix.name),
        waivers=waivers,
    )
    if blank.first:
        met = standings.as_known(standings.meet(tools.store, everything))
    else:
        due = replace(everything, due=found.may_alarm, nightly=True, packages=found.packages)
        met = standings.meet(tools.store, due)
    told_before = found.retried & {each.subject for each in result.failures}
    summary = replace(
        blank,
        run_id=result.run_id,
        news=found.news(but=told_before),
        dumped=result.counts.dumped,
        shared=result.counts.shared,
        reused=result.counts.reused,
        changes=met.changes,
        not_audited=tuple(each for each in met.not_audited if each.subject not in told_before),
        empty=result.empty,
        exit_code=EXIT_CHANGED if met.of(Standing.NEW) else result.exit_code,  # a change is told once, the rest again
        trouble=_trouble(result),
    )
    return summary, _finished(file, found, asked, result)


def _resolve(matrix: str, found: _Work, tools: Tools) -> ResolvedReleases:
    """Every release with the lock that it was given once, and with tonight's where it has none yet."""
    releases, texts = found.look.releases, found.known.locks
    known = [_frozen(each, texts[each.lock_digest]) for each in releases if each.lock_digest is not None]
    frozen = {each.id: each for each in known if isinstance(each, Release)}
    gone = [each for each in known if isinstance(each, Failure)]
    requests = tuple(each.request for each in releases)
    fresh, unresolved = releasing.resolve([each.request for each in releases if not each.lock_digest], tools.reporter)
    tools.store.put_locks({each.lock.digest: (each.lock.text, each.lock.packages) for each in fresh.values()})
    given = [replace(each, lock_digest=fresh[each.id].lock.digest) if each.id in fresh else each for each in releases]
    tools.store.nights.keep(matrix, given)
    return ResolvedReleases(requests=requests, resolved={**frozen, **fresh}, unresolved=(*gone, *unresolved))


def _frozen(known: Watched, lock: str) -> Release | Failure:
    """A release with its lock; a failure of this machine where it has lost the Python."""
    try:
        interpreter = interpreters.find(known.request.python)
    except interpreters.NoInterpreter as error:
        return Failure(subject=known.id, stage="resolve", status=Status.NO_PYTHON, reason=str(error))
    return Release(request=known.request, interpreter=interpreter, lock=Lock.from_text(lock))


def _finished(file: MatrixFile, found: _Work, asked: ResolvedReleases, result: AuditResult) -> list[Watched]:
    """Releases that need no other night: none where the machine failed at what they are held against."""
    if any(_is_unfinished(each.id, result.failures) for each in found.look.releases if each.audited is not None):
        return []
    unseen = _unseen(file, asked, result)
    return [each for each in found.due if each.id not in unseen and not _is_unfinished(each.id, result.failures)]


def _unseen(file: MatrixFile, asked: ResolvedReleases, result: AuditResult) -> set[str]:
    """Releases that are still due because nothing was seen of them, or no fault would have been on an environment."""
    if result.empty:
        return {each.id for each in asked.requests}
    rows = [row for row in file.matrix.environments if row.title in result.blind]
    return {each.id for row in rows for each in selected(asked.requests, row.releases)}


def _is_unfinished(release: str, failures: Sequence[Failure]) -> bool:
    """Whether the machine failed at it: then it is still due on the next night."""
    subjects = {each.subject for each in failures if each.is_infrastructure}
    return any(subject == release or subject.startswith(f"{release}/") for subject in subjects)


def _trouble(result: AuditResult) -> str:
    machine = [each for each in result.failures if each.is_infrastructure]
    if machine:
        first = f"{machine[0].subject}: {machine[0].reason}"
        return f"Not complete: {first}; what is missing is tried again on the next night"
    if result.empty:
        return "Nothing could be audited: no release could be dumped on any environment"
    if result.blind:
        return f"Blind on {', '.join(result.blind)}: a fault that was planted was not seen"
    return ""


def _record(summary: AuditSummary) -> NightRecord:
    return NightRecord(
        matrix=summary.matrix,
        night=summary.night,
        exit_code=summary.exit_code,
        run_id=summary.run_id,
        news=summary.news,
        new_changes=len(summary.of(Standing.NEW)),
        waived_changes=len(summary.of(Standing.WAIVED)),
        known_changes=len(summary.of(Standing.KNOWN)),
        not_audited=len(summary.not_audited),
        summary=plain.text(summary),
    )
