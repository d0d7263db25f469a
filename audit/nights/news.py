"""What is new tonight: versions that the index did not have, dependencies that moved, versions that were withdrawn.

Everything that earlier nights know is taken as it is, with the lock that it was given then. Nothing is installed here.
"""

from __future__ import annotations

import datetime
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from packaging.version import Version

from audit.asked.matrix import Matrix
from audit.asked.matrix_file import MatrixFile
from audit.asked.release_rows import ExplicitRow, GeneratedRow, Row
from audit.asked.releases import ReleaseRequest
from audit.asked.releases import request as request_of_row
from audit.errors import IndexUnreachable, MatrixError
from audit.failures import Failure, Status
from audit.installing import index, listing, locks
from audit.installing.index import Sighting
from audit.installing.locks import Lock, Release
from audit.nights import watched
from audit.nights.watched import Watch
from audit.storage.watched_release import Watched
from audit.tools import at_once

YANKS_LOOKED_AT = 3
"""Newest known versions of a package that are looked up for having been withdrawn, with a call of uv each. Packages are
withdrawn within days of their upload, or not at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierNights:
    """What earlier nights of the matrix left."""

    releases: Mapping[str, Watched]
    locks: Mapping[str, str]
    """Texts, by digest."""
    failed: Collection[str] = ()
    """Releases that the last audit could not install."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tonight:
    """What there is tonight."""

    releases: tuple[Watched, ...]
    """All of the matrix and all that appeared since, in order: old and new versions of a row together."""
    withdrawn: tuple[Watched, ...]
    """Releases that were found to be yanked tonight; no later night audits them."""
    notes: tuple[str, ...]


def look(file: MatrixFile, known: EarlierNights, night: str, day: datetime.date | None) -> Tonight:
    """Ask the index for what is new on the evening of ``day``, or now where there is none."""
    matrix = file.matrix
    watches = [_listed(file, place, known, night, day) for place in range(len(matrix.releases))]
    further = [_beyond(watch, known) for watch in watched.written_out(matrix)]
    ranges = [each for each in (*watches, *further) if each is not None]
    sighted = _sighted(ranges, day)
    placed = [
        (place, release)
        for place, row in enumerate(matrix.releases)
        for own in ([each for each in ranges if each.watch.row is row],)
        for release in (*_written(matrix, row, known, night, own), *_in_ranges(own, sighted, night, day))
    ]
    withdrawn, notes = _withdrawn(ranges, sighted, known, night)
    kept = _kept(file, placed, withdrawn, known)
    moved, unresolved = _dependencies(matrix, _tried_again(kept, known, day), known, night, day)
    return Tonight(releases=moved, withdrawn=withdrawn, notes=(*notes, *unresolved))


@dataclass(frozen=True, slots=True, kw_only=True)
class _KnownRange:
    """A range with what is known to be in it."""

    watch: Watch
    known: list[Watched]
    relisted: list[Watched] = field(default_factory=list)
    """Releases of a range that is new in the matrix, or was edited there."""
    edited: bool = False
    newest: Version | None = None
    """The newest that was known before an edit: what is above is new, the rest came with the edit."""

    def news(self, version: str) -> str:
        """What is new in a version that was not known, in words."""
        came_by_edit = self.edited and (self.newest is None or Version(version) <= self.newest)
        return "" if came_by_edit else f"{self.watch.package} {version}"

    @property
    def versions(self) -> list[str]:
        return [each.version for each in (*self.known, *self.relisted)]


def _there(known: EarlierNights) -> list[Watched]:
    return [each for each in known.releases.values() if each.yanked is None]


def _listed(
    file: MatrixFile, place: int, known: EarlierNights, night: str, day: datetime.date | None
) -> _KnownRange | None:
    """A generated row as earlier nights listed it; listed now where none did, or where its range is another."""
    row = file.matrix.releases[place]
    if not isinstance(row, GeneratedRow):
        return None
    watch = watched.generated(file.matrix, row)
    mine = watch.known(_there(known))
    if mine and all(each.listing == watch.listing for each in mine):
        return _KnownRange(watch=watch, known=mine)
    offered = index.versions(watch, watch.python, row.exclude_newer or file.matrix.exclude_newer or day)
    if not offered:
        where = file.at(("releases", place, "versions"))
        raise MatrixError(str(file.path), [f"{where}: the index has no {row.package} in {row.versions}"])
    here = [replace(each, listing=watch.listing) for each in mine]
    before = [each for each in known.releases.values() if watch.covers(each)]
    newest = max((Version(each.version) for each in before), default=None)
    listed = _KnownRange(watch=watch, known=here, edited=True, newest=newest)
    yanked = {each.version for each in before if each.yanked is not None}  # what is remembered of a day has them still
    there = {*listed.versions, *yanked}
    fresh = [watch.release(version, night, listed.news(version)) for version in offered if version not in there]
    return replace(listed, relisted=fresh)


def _beyond(watch: Watch, known: EarlierNights) -> _KnownRange:
    """What is watched above a release that is written out; what is there when that begins, or is edited, is not new."""
    assert isinstance(watch.row, ExplicitRow)
    mine = watch.known(_there(known))
    template = known.releases.get(watch.row.id)
    is_same = len(mine) == sum(watch.covers(each) for each in _there(known))
    if is_same and template is not None and watch.listing in template.listing.split():
        return _KnownRange(watch=watch, known=mine)
    found = [Version(each.version) for each in known.releases.values() if each.package == watch.package]
    return _KnownRange(watch=watch, known=mine, edited=True, newest=max(found, default=None))


def _sighted(ranges: Sequence[_KnownRange], day: datetime.date | None) -> dict[int, Sighting]:
    def ask(listed: _KnownRange) -> Sighting:
        return index.unknown(listed.watch, listed.watch.python, day, listed.versions)

    return {id(listed): sighting for listed, sighting in at_once(ask, ranges)}


def _written(matrix: Matrix, row: Row, known: EarlierNights, night: str, after: Sequence[_KnownRange]) -> list[Watched]:
    """The release that a row writes out, if it does, as it is known or anew, with what is watched ``after`` it."""
    if isinstance(row, GeneratedRow):
        return []
    watching = " ".join(each.watch.listing for each in after)
    request = request_of_row(matrix, row, row.id, row.requires)
    asked = watched.asked_digest(request)
    there = known.releases.get(row.id)
    if there is not None and there.asked == asked:
        return [replace(there, request=request, listing=watching, package="", version="")]
    return [Watched(request=request, asked=asked, listing=watching, found=night)]


def _in_ranges(
    ranges: Sequence[_KnownRange], sighted: Mapping[int, Sighting], night: str, day: datetime.date | None
) -> Iterator[Watched]:
    """The releases of the ranges of a row, each in version order."""
    for listed in ranges:
        versions = sighted[id(listed)].versions
        new = [listed.watch.release(version, night, listed.news(version)) for version in versions]
        new = [replace(each, request=watched.on(each.request, day)) for each in new]
        yield from sorted((*listed.known, *listed.relisted, *new), key=lambda each: Version(each.version))


def _kept(
    file: MatrixFile, placed: Sequence[tuple[int, Watched]], withdrawn: Sequence[Watched], known: EarlierNights
) -> list[Watched]:
    """Those that are not withdrawn, each id once: what is written out comes before what a night had found.

    Raises:
        MatrixError: where rows overlap, or something names a release that is not there, and never was.
    """
    gone = {each.id for each in withdrawn}
    written = {each.id for _, each in placed if not each.package}
    kept = [
        (place, each) for place, each in placed if each.id not in gone and (not each.package or each.id not in written)
    ]
    left = gone | {each.id for each in known.releases.values() if each.yanked is not None}
    listing.check(file, [each.id for _, each in kept], [place for place, _ in kept], left)
    return [each for _, each in kept]


def _tried_again(releases: Sequence[Watched], known: EarlierNights, day: datetime.date | None) -> list[Watched]:
    """The same, with those due again that could not be installed when they were new, and tonight have another lock.

    A dependency of theirs was still too young, or a wheel was uploaded after the source.
    """
    waiting = {
        each.id: each
        for each in releases
        if each.news and each.audited is not None and (each.lock_digest is None or each.id in known.failed)
    }
    found: dict[str, Watched] = {}
    for request, resolved in at_once(_resolved, [watched.on(each.request, day) for each in waiting.values()]):
        each = waiting[request.id]
        if isinstance(resolved, Release) and resolved.lock.digest != each.lock_digest:
            found[each.id] = replace(each, request=request, lock_digest=None, audited=None)
    return [found.get(each.id, each) for each in releases]


def _withdrawn(
    ranges: Sequence[_KnownRange], sighted: Mapping[int, Sighting], known: EarlierNights, night: str
) -> tuple[tuple[Watched, ...], tuple[str, ...]]:
    """Versions that were yanked: known ones since they were audited, unknown ones before anybody could."""
    told_before = {each.id for each in known.releases.values() if each.yanked is not None}
    found: list[Watched] = []
    notes: list[str] = []
    for listed in ranges:
        watch, sighting = listed.watch, sighted[id(listed)]
        for version, reason in sighting.yanked.items():
            release = watch.release(version, night)
            if release.id not in told_before and Version(version).is_prerelease <= watch.prereleases:
                found.append(replace(release, yanked=night))
                notes.append(f"{watch.package} {version} has been yanked{_because(reason)}: it is not audited")
        if sighting.young and Version(sighting.young).is_prerelease <= watch.prereleases:
            notes.append(f"{watch.package} {sighting.young} is there, and too young for this night: it waits")
    for each, reason in _yanked_since(ranges):
        found.append(replace(each, yanked=night))
        notes.append(
            f"{each.package} {each.version} has been yanked since{_because(reason)}: its results stay,"
            " and no later release is compared with it"
        )
    return tuple(found), tuple(notes)


def _yanked_since(ranges: Sequence[_KnownRange]) -> list[tuple[Watched, str]]:
    questions = [(listed.watch, each) for listed in ranges for each in listed.known[-YANKS_LOOKED_AT:] if listed.known]

    def ask(question: tuple[Watch, Watched]) -> str | None:
        watch, each = question
        return index.withdrawn(each.package, each.version, watch.python)

    return [(each, reason) for (_, each), reason in at_once(ask, questions) if reason is not None]


def _because(reason: str) -> str:
    return f" ({reason})" if reason else ""


def _dependencies(
    matrix: Matrix, releases: Sequence[Watched], known: EarlierNights, night: str, day: datetime.date | None
) -> tuple[tuple[Watched, ...], tuple[str, ...]]:
    """The releases with later resolutions behind those they are of, a new one where dependencies moved tonight."""
    variants = [each for each in _there(known) if each.request.like]
    ordered: list[Watched] = []
    for each in releases:
        ordered.append(each)
        ordered += [replace(v, request=replace(v.request, series=each.request.series)) for v in variants
                    if v.request.like == each.id and v.asked == each.asked]  # fmt: skip
    if "dependencies" not in matrix.nightly.also:
        return tuple(ordered), ()
    notes: list[str] = []
    for newest in _newest_of_series(matrix, ordered, day):
        moved = _moved(newest, known, night, day)
        if isinstance(moved, Watched):
            ordered.insert(ordered.index(newest) + 1, moved)
        elif moved:
            notes.append(moved)
    return tuple(ordered), tuple(notes)


def _newest_of_series(matrix: Matrix, releases: Sequence[Watched], day: datetime.date | None) -> list[Watched]:
    """The last of each series that is not resolved as of tonight anyhow; not those whose own day is their point."""
    on_their_day = {row.id for row in matrix.releases if isinstance(row, ExplicitRow) and row.exclude_newer}
    last = {each.request.series: each for each in releases}
    locked = {each.request.series: each for each in releases if each.lock_digest}
    due = {series: each for series, each in last.items() if each.audited is None and each.lock_digest is None}
    asked = [each for each in {**locked, **due}.values() if each.request.known_as not in on_their_day]
    return [each for each in asked if each.lock_digest is not None or each.request.exclude_newer != day]


def _moved(newest: Watched, known: EarlierNights, night: str, day: datetime.date | None) -> Watched | str:
    """The newest release as it resolves tonight, where that is another lock; or why it does not resolve; or nothing.

    What moved between the matrix's day and the night on which a release is recorded is recorded with it, and not new.
    """
    if day is not None and day < _resolved_on(newest):
        return ""  # `min-age` was raised, or it is a night that was missed: dependencies do not move backwards
    base = newest.request.known_as
    before = _first_lock(newest, known)
    if before is None:
        return ""  # the audit tells why
    request = replace(watched.on(newest.request, day), id=f"{base}@{night}", like=base)
    resolved = _resolved(request)
    if isinstance(resolved, Failure):
        told = "could not be resolved anew" if resolved.is_infrastructure else "does not resolve any more"
        return f"{base} {told}: {resolved.reason}"
    words = moves(dict(before.packages), dict(resolved.lock.packages))
    if not words:
        return ""
    is_news = newest.lock_digest is not None or newest.news
    told = f"{', '.join(words)} under {base}" if is_news else ""
    return Watched(request=request, asked=newest.asked, news=told, found=night)


def _resolved_on(release: Watched) -> datetime.date:
    """The day whose index a release was resolved with."""
    return release.request.exclude_newer or datetime.date.fromisoformat(release.found[:10])


def _first_lock(release: Watched, known: EarlierNights) -> Lock | None:
    """The lock that a release was given, or is given tonight."""
    if release.lock_digest is not None:
        return Lock.from_text(known.locks[release.lock_digest])
    resolved = _resolved(release.request)
    return None if isinstance(resolved, Failure) else resolved.lock


def _resolved(request: ReleaseRequest) -> Release | Failure:
    """A lock, or why there is none; without an index there is no night."""
    resolved = locks.resolve(request)
    if isinstance(resolved, Failure) and resolved.status is Status.UNREACHABLE:
        raise IndexUnreachable.because(resolved.reason)
    return resolved


def moves(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """What differs between two locks, in words.

    >>> moves({"numpy": "2.4.0", "six": "1.0"}, {"numpy": "2.4.1", "toml": "1.1"})
    ['numpy 2.4.0 → 2.4.1', 'without six', 'with toml 1.1']
    """
    told = [
        f"{name} {before[name]} → {after[name]}" for name in before.keys() & after.keys() if before[name] != after[name]
    ]
    told += [f"without {name}" for name in before.keys() - after.keys()]
    return sorted(told) + sorted(f"with {name} {after[name]}" for name in after.keys() - before.keys())
