"""What is new tonight: versions that the index did not have, dependencies that moved, versions that were withdrawn.

Everything that earlier nights know is taken as it is, with the lock that it was given then. Nothing is installed here.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from audit.asked.matrix import Matrix
from audit.asked.matrix_file import MatrixFile
from audit.asked.release_rows import ExplicitRow, GeneratedRow
from audit.asked.releases import request as request_of_row
from audit.errors import IndexUnreachable, MatrixError
from audit.failures import Failure
from audit.installing import index, locks
from audit.installing.index import Sighting
from audit.installing.locks import Lock
from audit.nights import watched
from audit.nights.watched import Watch, Watched
from audit.tools import at_once

YANKS_LOOKED_AT = 3
"""Newest known versions of a package that are looked up for having been withdrawn, with a call of uv each. Packages are
withdrawn within days of their upload, or not at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What earlier nights of the matrix left."""

    releases: Mapping[str, Watched]
    locks: Mapping[str, str]
    """Texts, by digest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What there is tonight."""

    releases: tuple[Watched, ...]
    """All of the matrix and all that appeared since, in order: old and new versions of a row together."""
    withdrawn: tuple[Watched, ...]
    """Releases that were found to be yanked tonight; no later night audits them."""
    notes: tuple[str, ...]


def look(file: MatrixFile, known: Known, night: str, day: datetime.date | None) -> Look:
    """Ask the index for what is new on the evening of ``day``, or now where there is none."""
    matrix = file.matrix
    watches = [_listed(file, place, known, night, day) for place in range(len(matrix.releases))]
    further = [
        _Listed(watch=watch, known=watch.known(_there(known)), relisted=[]) for watch in watched.written_out(matrix)
    ]
    ranges = [each for each in (*watches, *further) if each is not None]
    sighted = _sighted(ranges, day)
    first = not known.releases
    releases: list[Watched] = []
    for row, listed in zip(matrix.releases, watches, strict=True):
        if isinstance(row, ExplicitRow):
            releases.append(_written(matrix, row, known, night))
            after = [each for each in further if each.watch.row is row]
        else:
            after = [listed] if listed is not None else []
        for each in after:
            releases += _in_range(each, sighted[id(each)], night, day, first=first)
    withdrawn, notes = _withdrawn(ranges, sighted, known, night)
    gone = {each.id for each in withdrawn}
    kept = _once([each for each in releases if each.id not in gone])
    moved, unresolved = _dependencies(matrix, kept, known, night, day)
    return Look(releases=moved, withdrawn=withdrawn, notes=(*notes, *unresolved))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listed:
    """A range with what is known to be in it."""

    watch: Watch
    known: list[Watched]
    relisted: list[Watched]
    """Releases of a range that is new in the matrix, or was edited there."""

    @property
    def versions(self) -> list[str]:
        return [each.version for each in (*self.known, *self.relisted)]


def _there(known: Known) -> list[Watched]:
    return [each for each in known.releases.values() if each.yanked is None]


def _listed(file: MatrixFile, place: int, known: Known, night: str, day: datetime.date | None) -> _Listed | None:
    """A generated row as earlier nights listed it; listed now where none did, or where its range is another."""
    row = file.matrix.releases[place]
    if not isinstance(row, GeneratedRow):
        return None
    watch = watched.generated(file.matrix, row)
    mine = watch.known(_there(known))
    if mine and all(each.listing == watch.listing for each in mine):
        return _Listed(watch=watch, known=mine, relisted=[])
    offered = index.versions(row, watch.python, row.exclude_newer or file.matrix.exclude_newer or day)
    if not offered:
        where = file.at(("releases", place, "versions"))
        raise MatrixError(str(file.path), [f"{where}: the index has no {row.package} in {row.versions}"])
    newest = max((Version(each.version) for each in mine), default=None)
    still = SpecifierSet(row.versions)
    mine = [each for each in mine if still.contains(each.version, prereleases=True)]
    here = {each.version: replace(each, listing=watch.listing) for each in mine}
    fresh = [
        watch.release(version, night, f"{row.package} {version}" if newest and Version(version) > newest else "")
        for version in offered
        if version not in here
    ]
    return _Listed(watch=watch, known=list(here.values()), relisted=fresh)


def _sighted(ranges: Sequence[_Listed], day: datetime.date | None) -> dict[int, Sighting]:
    def ask(listed: _Listed) -> Sighting:
        return index.unknown(listed.watch, listed.watch.python, day, listed.versions)

    return {id(listed): sighting for listed, sighting in at_once(ask, ranges)}


def _written(matrix: Matrix, row: ExplicitRow, known: Known, night: str) -> Watched:
    """A release that is written out, as it is known or anew."""
    request = request_of_row(matrix, row, row.id, row.requires)
    asked = watched.asked_digest(request)
    there = known.releases.get(row.id)
    if there is not None and there.asked == asked:
        return replace(there, request=request)
    return Watched(request=request, asked=asked, found=night)


def _in_range(
    listed: _Listed, sighting: Sighting, night: str, day: datetime.date | None, *, first: bool
) -> list[Watched]:
    """The releases of a range in version order."""
    watch = listed.watch
    added = bool(listed.relisted) and not listed.known  # a row that somebody wrote into the matrix is no news
    words = "" if first or added else f"{watch.package} {{}}"
    new = [watch.release(version, night, words.format(version)) for version in sighting.versions]
    new = [replace(each, request=watched.on(each.request, day)) for each in new]
    return sorted((*listed.known, *listed.relisted, *new), key=lambda each: Version(each.version))


def _once(releases: Sequence[Watched]) -> list[Watched]:
    """Each id once: what the matrix writes out comes before what a night had found under the same name."""
    written = {each.id for each in releases if not each.package}
    return [each for each in releases if not each.package or each.id not in written]


def _withdrawn(
    ranges: Sequence[_Listed], sighted: Mapping[int, Sighting], known: Known, night: str
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
        if sighting.young:
            notes.append(f"{watch.package} {sighting.young} is there, and younger than `min-age`: it waits")
    for each, reason in _yanked_since(ranges):
        found.append(replace(each, yanked=night))
        notes.append(
            f"{each.package} {each.version} has been yanked since{_because(reason)}: its results stay,"
            " and no later release is compared with it"
        )
    return tuple(found), tuple(notes)


def _yanked_since(ranges: Sequence[_Listed]) -> list[tuple[Watched, str]]:
    questions = [(listed.watch, each) for listed in ranges for each in listed.known[-YANKS_LOOKED_AT:] if listed.known]

    def ask(question: tuple[Watch, Watched]) -> str | None:
        watch, each = question
        return index.withdrawn(each.package, each.version, watch.python)

    return [(each, reason) for (_, each), reason in at_once(ask, questions) if reason is not None]


def _because(reason: str) -> str:
    return f" ({reason})" if reason else ""


def _dependencies(
    matrix: Matrix, releases: Sequence[Watched], known: Known, night: str, day: datetime.date | None
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
    for newest in _newest_of_series(matrix, ordered, night):
        moved = _moved(newest, known, night, day)
        if isinstance(moved, Watched):
            ordered.insert(ordered.index(newest) + 1, moved)
        elif moved:
            notes.append(moved)
    return tuple(ordered), tuple(notes)


def _newest_of_series(matrix: Matrix, releases: Sequence[Watched], night: str) -> list[Watched]:
    """The last of each series that was resolved on an earlier night; not those whose own day is their point."""
    on_their_day = {row.id for row in matrix.releases if isinstance(row, ExplicitRow) and row.exclude_newer}
    last = {each.request.series: each for each in releases}
    locked = {each.request.series: each for each in releases if each.lock_digest}
    return [
        locked[series]
        for series, each in last.items()
        if each.found != night and series in locked and locked[series].request.known_as not in on_their_day
    ]


def _moved(newest: Watched, known: Known, night: str, day: datetime.date | None) -> Watched | str:
    """The newest release as it resolves tonight, where that is another lock; or why it does not resolve; or nothing."""
    base = newest.request.known_as
    request = replace(watched.on(newest.request, day), id=f"{base}@{night}", like=base)
    resolved = locks.resolve(request)
    if isinstance(resolved, Failure):
        if resolved.is_infrastructure:
            raise IndexUnreachable.because(resolved.reason)
        return f"{base} does not resolve any more: {resolved.reason}"
    before = dict(Lock.from_text(known.locks[str(newest.lock_digest)]).packages)
    words = moves(before, dict(resolved.lock.packages))
    if not words:
        return ""
    return Watched(request=request, asked=newest.asked, news=f"{', '.join(words)} under {base}", found=night)


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
