"""Resolve what is asked for on the command line, each request once, and remember in the store what came of it.

Without a day, requirements may resolve to another lock tomorrow. A search that goes on must not mix locks of different
days, and an explanation that is there already need not ask the index at all.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from audit.asked.release_rows import GeneratedRow
from audit.asked.releases import ReleaseRequest
from audit.digests import digest
from audit.errors import IndexUnreachable, UsageError
from audit.failures import Failure, Status
from audit.installing import index, interpreters, locks, uv
from audit.installing.locks import Lock, Release
from audit.storage.records import now
from audit.storage.store import Store
from audit.storage.stored_answers import IndexAnswer
from audit.tools import at_once

TOGETHER = datetime.timedelta(days=1)
"""Answers of the index that are no further apart belong together: a search is interrupted for a night at most."""


class Resolver:
    """Resolves requests of one command. ``fresh`` asks the index whatever is known."""

    def __init__(self, store: Store, *, fresh: bool = False) -> None:
        self._store, self._fresh = store, fresh
        self._moment = now()
        self._done: dict[str, Release | Failure] = {}
        self._of_audits: dict[tuple[str, str], str] = {}
        self._recalled = False

    @property
    def as_of(self) -> datetime.datetime | None:
        """When the index was asked, where that was before this command."""
        return self._moment if self._recalled else None

    def give(self, request: ReleaseRequest, lock: str) -> None:
        """The lock of a release of an audit: it is what ran there, whatever the index has now."""
        self._of_audits[request.id, _name(request)] = lock

    def resolve(self, request: ReleaseRequest) -> Release | Failure:
        """One request; a failure is remembered as long as the command runs."""
        return self._all([request])[0]

    def ends(self, requests: Sequence[ReleaseRequest]) -> list[Release]:
        """The releases that a question is about, of any day if all of them are known, both asked for at once if not.

        Raises:
            UsageError: where one cannot be resolved.
            IndexUnreachable: where the index does not answer.
        """
        known = [self._answer(request) for request in requests]
        times = [answer.answered for answer in known if answer is not None]
        if times and not self._fresh and max(times) - min(times) <= TOGETHER and self._complete(requests, known):
            self._moment, self._recalled = max(times), True
        self._all(requests)
        return [self.required(request) for request in requests]

    def required(self, request: ReleaseRequest) -> Release:
        """One request that has to resolve, or the same is raised as above."""
        found = self.resolve(request)
        if isinstance(found, Failure):
            if found.status is Status.UNREACHABLE:
                raise IndexUnreachable.because(found.reason)
            raise UsageError(f"{request.text} cannot be resolved: {found.reason}")
        return found

    def versions(self, row: GeneratedRow, python: str, day: datetime.date | None) -> tuple[str, ...]:
        """The versions of a package, as the index has them, or had them within a day."""
        if not _moves(day):
            return index.versions(row, python, day)
        asked = digest(
            "versions", uv.settings_digest(), row.package, row.versions, str(row.prereleases), python, *row.sources
        )
        known = self._store.answers.get(asked)
        if known is not None and self._is_near(known):
            return tuple(known.text.split(","))
        found = index.versions(row, python, day)
        if found:
            self._store.answers.put(asked, ",".join(found))
        return found

    def _complete(self, requests: Sequence[ReleaseRequest], known: Sequence[IndexAnswer | None]) -> bool:
        """Whether nothing would have to be asked."""
        return all(
            answer is not None or self._given(request) is not None or locks.remembered(request) is not None
            for request, answer in zip(requests, known, strict=True)
        )

    def _all(self, requests: Sequence[ReleaseRequest]) -> list[Release | Failure]:
        missing = {}
        for request in requests:
            if self._key(request) not in self._done:
                known = self._known(request)
                if known is None:
                    missing[self._key(request)] = request
                else:
                    self._done[self._key(request)] = known
        for request, found in at_once(locks.resolve, list(missing.values())):
            self._done[self._key(request)] = found
            if isinstance(found, Release):
                self._keep(found)
        return [_called(self._done[self._key(request)], request) for request in requests]

    def _given(self, request: ReleaseRequest) -> str | None:
        """The text of the lock that an audit has of the release, which later nights may have asked for anew."""
        return self._of_audits.get((request.id, _name(request)))

    def _key(self, request: ReleaseRequest) -> str:
        return digest(_name(request), self._given(request) or "")

    def _known(self, request: ReleaseRequest) -> Release | None:
        text = self._given(request)
        answer = self._answer(request)
        if text is None and answer is not None and not self._fresh and self._is_near(answer):
            text = self._store.answers.lock_text(answer.text)
        if text is None:
            return None
        try:
            interpreter = interpreters.find(request.python)
        except interpreters.NoInterpreter:
            return None
        return Release(request=request, interpreter=interpreter, lock=Lock.from_text(text))

    def _keep(self, release: Release) -> None:
        lock = release.lock
        self._store.put_locks({lock.digest: (lock.text, lock.packages)})
        if _moves(release.request.exclude_newer):
            self._store.answers.put(_question(release.request), lock.digest)

    def _answer(self, request: ReleaseRequest) -> IndexAnswer | None:
        return self._store.answers.get(_question(request)) if _moves(request.exclude_newer) else None

    def _is_near(self, answer: IndexAnswer) -> bool:
        return not self._fresh and abs(answer.answered - self._moment) <= TOGETHER


def _moves(day: datetime.date | None) -> bool:
    """Whether the index may answer otherwise tomorrow; where it may not, the answer is among the files of its cache."""
    return day is None or day >= datetime.datetime.now(datetime.UTC).date()


def _question(request: ReleaseRequest) -> str:
    return digest("lock", uv.settings_digest(), _name(request))


def _name(request: ReleaseRequest) -> str:
    """Everything that decides the lock."""
    requires, pins = digest(*sorted(request.requires)), digest(*sorted(request.pins))
    return digest(requires, pins, request.python, str(request.exclude_newer), *request.source)


def _called(found: Release | Failure, request: ReleaseRequest) -> Release | Failure:
    """Two requests may differ in nothing but their name, or what is edited in them."""
    if isinstance(found, Failure):
        return found
    return Release(request=request, interpreter=found.interpreter, lock=found.lock)
