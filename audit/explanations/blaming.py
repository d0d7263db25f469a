"""Which distribution brought a change: two locks differ in several, and the smallest set whose move alone brings it.

Mixtures of the two locks are resolved by uv. One that does not resolve, or cannot be run, says nothing. What a user did
not upgrade moves too, because a resolver moved it: everything that differs is a suspect.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from analysis import searching
from analysis.searching import Answer
from audit.asked.releases import EDITS, ReleaseRequest, edits_told
from audit.errors import UsageError
from audit.explanations.session import ReleaseBehaviour, Session
from audit.failures import Failure
from audit.installing.locks import Lock, Release
from audit.storage.records import BlameRecord
from audit.tools import Reporter


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A distribution that is at another version, or only in one of the two; or what is edited."""

    package: str
    older: str | None
    newer: str | None

    @property
    def told(self) -> str:
        """``imageio 2.34.0 → 2.34.1``."""
        return f"{self.package} {self.older or 'absent'} → {self.newer or 'absent'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mixture:
    """A mixture that was tried."""

    moved: tuple[Move, ...]
    answer: Answer
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blame:
    """What a search came to."""

    suspects: tuple[Move, ...]
    blamed: tuple[Move, ...]
    """The smallest set found whose move alone brings the change."""
    tried: tuple[Mixture, ...]

    @property
    def record(self) -> BlameRecord:
        """As the store keeps it."""
        blamed = tuple(move.told for move in self.blamed)
        return BlameRecord(blamed=blamed, suspects=len(self.suspects), tried=len(self.tried))


def moves(older: Lock, newer: Lock, likely: Sequence[str]) -> tuple[Move, ...]:
    """What differs between two locks: what came new first, then the distributions that the user named.

    A distribution brings along what it newly requires, so that what came along is suspected before it.
    """
    one, other = dict(older.packages), dict(newer.packages)
    first = {canonicalize_name(Requirement(text).name) for text in likely}
    found = [
        Move(package=name, older=one.get(name), newer=other.get(name))
        for name in sorted({*one, *other})
        if one.get(name) != other.get(name)
    ]
    return tuple(sorted(found, key=lambda move: (move.older is not None, move.package not in first)))


def suspects(older: Release, newer: Release) -> tuple[Move, ...]:
    """All that may bring a change between two releases: what is installed, and what is edited in it."""
    found = moves(older.lock, newer.lock, newer.request.requires)
    one, other = (edits_told(each.request.edits) for each in (older, newer))
    return found if one == other else (*found, Move(package=EDITS, older=one or None, newer=other or None))


def python_told(older: str, newer: str) -> str:
    """That two releases ran on different Pythons: nobody searches over these."""
    return f"Python {older} → {newer}"


def blame(session: Session, newer: ReleaseRequest, reporter: Reporter) -> Blame:
    """Search between the session's reference and another release.

    Raises:
        UsageError: where the two do not differ, or not in their distributions.
    """
    ends = session.show(session.reference.request), session.show(newer)
    for end in ends:
        if isinstance(end, Failure):
            raise UsageError(f"{end.subject} cannot be looked at: {end.reason}")
    older_end, newer_end = (end for end in ends if isinstance(end, ReleaseBehaviour))
    if not session.changed(older_end, newer_end):
        raise UsageError(f"{older_end.release.id} and {newer_end.release.id} are the same but for rounding")
    search = _Search(session, older_end, newer_end)
    suspected = suspects(older_end.release, newer_end.release)
    _require_suspects(older_end.release, newer_end.release, suspected)
    with reporter.stage("blaming", len(suspected)) as done:
        found = searching.smallest_set(suspected, lambda chosen: search.answer(chosen, done))
    return Blame(suspects=suspected, blamed=found, tried=tuple(search.tried))


def _require_suspects(older: Release, newer: Release, suspected: Sequence[Move]) -> None:
    one, other = older.interpreter.version, newer.interpreter.version
    if one != other:
        raise UsageError(f"{older.id} ran on Python {one} and {newer.id} on {other}: give both as requirements")
    if not suspected:
        raise UsageError(f"{older.id} and {newer.id} differ, but not in their distributions: nothing can be blamed")


class _Search:
    def __init__(self, session: Session, older: ReleaseBehaviour, newer: ReleaseBehaviour) -> None:
        self._session, self._older, self._newer = session, older, newer
        self.tried: list[Mixture] = []

    def answer(self, chosen: Sequence[Move], done: Callable[[str], None]) -> Answer:
        names = ", ".join(move.told for move in chosen)
        if set(chosen) == set(suspects(self._older.release, self._newer.release)):
            return Answer.CHANGED
        found = self._session.show(self._mixture(chosen))
        if isinstance(found, Failure):
            answer, reason = Answer.UNRESOLVED, found.reason
        else:
            answer = Answer.CHANGED if self._session.changed(self._older, found) else Answer.SAME
            reason = ""
        self.tried.append(Mixture(moved=tuple(chosen), answer=answer, reason=reason))
        done(f"{names}: {answer}")
        return answer

    def _mixture(self, chosen: Sequence[Move]) -> ReleaseRequest:
        """The older release with some distributions of the newer one: the user's own pinned, the rest constrained.

        What came new is asked for if it was chosen. What is gone is not, and stays where something still requires it.
        """
        older, newer = self._older.release, self._newer.release
        edited = any(move.package == EDITS for move in chosen)
        chosen = [move for move in chosen if move.package != EDITS]
        moved_to = {move.package: move.newer for move in chosen if move.newer is not None}
        gone = {move.package for move in chosen if move.newer is None}
        there = {**dict(older.lock.packages), **moved_to}
        versions = {**dict(newer.lock.packages), **there}
        came = tuple(f"{move.package}=={move.newer}" for move in chosen if move.older is None)
        named = (*came, *newer.request.requires, *older.request.requires)
        wanted = _wanted(named, {name: version for name, version in there.items() if name not in gone})
        moved = [f"{move.package}-{move.newer or 'absent'}" for move in chosen]
        return replace(
            older.request,
            id="+".join([older.id, *moved, *(["edited"] if edited else [])]),
            requires=wanted,
            pins=tuple(f"{name}=={version}" for name, version in sorted(versions.items())),
            exclude_newer=_later(older.request.exclude_newer, newer.request.exclude_newer),
            source=tuple(sorted({*older.request.source, *newer.request.source})),
            edits=newer.request.edits if edited else older.request.edits,
            like=older.request.known_as,
        )


def _later(one: datetime.date | None, other: datetime.date | None) -> datetime.date | None:
    """The day on which the index has what both releases are made of."""
    return max(one, other) if one is not None and other is not None else None


def _wanted(named: Sequence[str], versions: Mapping[str, str]) -> tuple[str, ...]:
    """What the user of either asked for, with its extras, as far as it is in the mixture, at the mixture's versions."""
    found = {}
    for text in named:
        parsed = Requirement(text)
        name = canonicalize_name(parsed.name)
        if name in versions:
            extras = f"[{','.join(sorted(parsed.extras))}]" if parsed.extras else ""
            found[name] = f"{parsed.name}{extras}=={versions[name]}"
    return tuple(found.values())
