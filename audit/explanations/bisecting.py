"""Which version of a package brought a change: by halving the range, or by looking at all of it."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from packaging.requirements import Requirement
from packaging.version import InvalidVersion, Version
from pydantic import ValidationError

from analysis import searching
from analysis.searching import Answer, Boundary
from audit.asked import releases
from audit.asked.release_rows import GeneratedRow
from audit.asked.releases import ReleaseRequest
from audit.errors import UsageError
from audit.explanations.resolving import Resolver
from audit.explanations.session import ReleaseBehaviour, Session
from audit.failures import Failure
from audit.tools import Reporter


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """A version that was looked at."""

    version: str
    shown: ReleaseBehaviour | None
    reason: str = ""
    """Why nothing was shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BehaviourClass:
    """Versions next to each other that are the same but for rounding."""

    first: str
    last: str
    versions: int
    behaviour: str
    """Of the first of them."""

    @property
    def told(self) -> str:
        """``3.0.0 to 3.1.6``."""
        return self.first if self.first == self.last else f"{self.first} to {self.last}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bisection:
    """What a search over versions came to."""

    package: str
    versions: tuple[str, ...]
    probes: tuple[Probe, ...]
    """In the order of versions."""
    boundaries: tuple[Boundary[str], ...]
    classes: tuple[BehaviourClass, ...]

    @property
    def skipped(self) -> tuple[Probe, ...]:
        """Versions that could not be looked at."""
        return tuple(probe for probe in self.probes if probe.shown is None)


class Search:
    """A range of versions on a session whose reference is the good end."""

    def __init__(self, session: Session, package: str, versions: Sequence[str], reporter: Reporter) -> None:
        self._session, self._package, self._versions, self._reporter = session, package, tuple(versions), reporter
        self._probes: dict[str, Probe] = {}

    def halve(self) -> Bisection:
        """Find one boundary with as few probes as there are doublings in the range."""
        good, bad = self._versions[0], self._versions[-1]
        with self._reporter.stage("bisecting", len(self._versions)) as done:
            ends = [self._probe(version, done) for version in (good, bad)]
            for probe in ends:
                if probe.shown is None:
                    raise UsageError(f"{self._package} {probe.version} cannot be looked at: {probe.reason}")
            if self._answer(bad, done) is Answer.SAME:
                raise UsageError(
                    f"{self._package} {good} and {bad} are the same but for rounding on this environment: there is "
                    "nothing to find, or it cancels out (try --all)"
                )
            found = searching.boundary(self._versions, lambda version: self._answer(version, done))
        return self._bisection([found])

    def look_at_all(self) -> Bisection:
        """Look at every version and find every boundary, also those that cancel out."""
        with self._reporter.stage("bisecting", len(self._versions)) as done:
            probes = [self._probe(version, done) for version in self._versions]
        shown = [probe for probe in probes if probe.shown is not None]
        found = [
            Boundary(last=one.version, first=other.version, between=self._between(one, other), probes=len(probes))
            for one, other in pairwise(shown)
            if one.shown is not None and other.shown is not None and self._session.changed(one.shown, other.shown)
        ]
        return self._bisection(found)

    def _probe(self, version: str, done: Callable[[str], None]) -> Probe:
        if version not in self._probes:
            found = self._session.show(self._request(version))
            failed = isinstance(found, Failure)
            self._probes[version] = Probe(
                version=version,
                shown=None if isinstance(found, Failure) else found,
                reason=found.reason if isinstance(found, Failure) else "",
            )
            done(f"{self._package} {version}{': cannot be looked at' if failed else ''}")
        return self._probes[version]

    def _answer(self, version: str, done: Callable[[str], None]) -> Answer:
        good, probe = self._probe(self._versions[0], done), self._probe(version, done)
        if probe.shown is None or good.shown is None:
            return Answer.UNRESOLVED
        return Answer.CHANGED if self._session.changed(good.shown, probe.shown) else Answer.SAME

    def _between(self, one: Probe, other: Probe) -> tuple[str, ...]:
        places = [self._versions.index(each.version) for each in (one, other)]
        return self._versions[places[0] + 1 : places[1]]

    def _bisection(self, boundaries: Sequence[Boundary[str]]) -> Bisection:
        probes = tuple(self._probes[version] for version in self._versions if version in self._probes)
        return Bisection(
            package=self._package,
            versions=self._versions,
            probes=probes,
            boundaries=tuple(boundaries),
            classes=tuple(self._classes(probes)),
        )

    def _classes(self, probes: Sequence[Probe]) -> list[BehaviourClass]:
        groups: list[list[Probe]] = []
        for probe in probes:
            if probe.shown is None:
                continue
            last = groups[-1][-1].shown if groups else None
            if last is not None and not self._session.changed(last, probe.shown):
                groups[-1].append(probe)
            else:
                groups.append([probe])
        return [
            BehaviourClass(
                first=group[0].version,
                last=group[-1].version,
                versions=len(group),
                behaviour=group[0].shown.behaviour if group[0].shown is not None else "",
            )
            for group in groups
        ]

    def _request(self, version: str) -> ReleaseRequest:
        return moved(self._session.reference.request, self._package, version)


def moved(request: ReleaseRequest, package: str, version: str) -> ReleaseRequest:
    """The same release with a package at another version, and with the extras that were asked of it."""
    own = [Requirement(text) for text in request.requires if releases.names(text, package)]
    beside = [text for text in request.requires if not releases.names(text, package)]
    extras = ",".join(sorted({extra for each in own for extra in each.extras}))
    pinned = f"{package}[{extras}]=={version}" if extras else f"{package}=={version}"
    return replace(request, id=f"{package}-{version}", requires=(pinned, *beside))


def versions(
    package: str,
    good: str,
    bad: str,
    python: str,
    day: datetime.date | None,
    resolver: Resolver,
    *,
    prereleases: bool,
    source: bool = False,
) -> tuple[str, ...]:
    """The versions that the index has from the good one to the bad one, in order; backwards where bad is older.

    Raises:
        UsageError: where one of the two is not there, or they are the same.
    """
    low, high = sorted((good, bad), key=_version)
    try:
        row = GeneratedRow.model_validate(
            {"package": package, "versions": f">={low},<={high}", "prereleases": prereleases, "source": source}
        )
    except ValidationError:
        raise UsageError(f"{package!r} is not the name of a package; extras go into --with") from None
    found = resolver.versions(row, python, day)
    for wanted in (good, bad):
        if not any(Version(each) == Version(wanted) for each in found):
            told = f"from {found[0]} to {found[-1]}" if found else "none in that range"
            hidden = "; pre-releases count with --prereleases" if Version(wanted).is_prerelease else ""
            raise UsageError(
                f"the index has no {package} {wanted} for Python {python}: it has {told}{'' if prereleases else hidden}"
            )
    if len(found) < 2:
        raise UsageError(f"{package} {good} to {bad} is one version: there is nothing to search")
    return found if low == good else tuple(reversed(found))


def _version(text: str) -> Version:
    try:
        return Version(text)
    except InvalidVersion:
        raise UsageError(f"{text!r} is not a version; write it like '3.1.6'") from None
