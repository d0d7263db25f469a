"""What the nights of a matrix watch: ranges of versions of a package."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from audit.asked import releases
from audit.asked.matrix import Matrix
from audit.asked.matrix_file import PINNED
from audit.asked.release_rows import ExplicitRow, GeneratedRow
from audit.asked.releases import ReleaseRequest
from audit.digests import digest
from audit.storage.watched_release import Watched


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """A range of versions of a package, each of which would be a release."""

    matrix: Matrix
    row: ExplicitRow | GeneratedRow
    package: str
    versions: str
    prereleases: bool
    template: str
    """Id of a release, with a place for the version."""
    requires: tuple[str, ...]
    """With a place for the version."""

    @property
    def python(self) -> str:
        """The Python that a version must be for."""
        return self.row.python or self.matrix.python

    @property
    def sources(self) -> tuple[str, ...]:
        """The packages that may be built."""
        return self.row.sources

    @property
    def listing(self) -> str:
        """Digest of what decides which versions there are."""
        day = self.row.exclude_newer or self.matrix.exclude_newer
        return digest(self.package, self.versions, str(self.prereleases), self.python, str(day), *self.sources)

    def request(self, version: str) -> ReleaseRequest:
        """The release with that version, as the matrix would ask for it."""
        requires = tuple(text.replace("{version}", version) for text in self.requires)
        return releases.request(self.matrix, self.row, self.template.replace("{version}", version), requires)

    def release(self, version: str, night: str, news: str = "") -> Watched:
        """The release with that version, met on that night."""
        request = self.request(version)
        asked, listing = asked_digest(request), self.listing
        return Watched(
            request=request, asked=asked, listing=listing, package=self.package, version=version, news=news, found=night
        )

    def known(self, watched: Sequence[Watched]) -> list[Watched]:
        """Those of the releases that belong to this range as it is now, in version order."""
        own = [replace(each, request=self._in_series(each)) for each in watched if self._owns(each)]
        return sorted(own, key=lambda each: Version(each.version))

    def covers(self, each: Watched) -> bool:
        """Whether a release is a version in this range, whoever asked for it and with whatever beside it."""
        within = each.package == self.package and not each.request.like
        return within and SpecifierSet(self.versions).contains(each.version, prereleases=True)

    def _owns(self, each: Watched) -> bool:
        if not self.covers(each):
            return False
        expected = self.request(each.version)
        return each.id == expected.id and each.asked == asked_digest(expected)

    def _in_series(self, each: Watched) -> ReleaseRequest:
        """The series is the row's: it decides nothing about the lock, so that it may be edited."""
        return replace(each.request, series=self.row.series)


def asked_digest(request: ReleaseRequest) -> str:
    """Everything that the matrix says about a release and that decides its lock, or what is edited in it."""
    day, edits = str(request.exclude_newer), json.dumps(dict(request.edits), sort_keys=True)
    return digest(digest(*request.requires), digest(*request.pins), request.python, day, edits, *request.source)


def on(request: ReleaseRequest, day: datetime.date | None) -> ReleaseRequest:
    """The same, resolved as on another day."""
    return replace(request, exclude_newer=day)


def generated(matrix: Matrix, row: GeneratedRow) -> Watch:
    """The range that a generated row is."""
    return Watch(
        matrix=matrix,
        row=row,
        package=row.package,
        versions=row.versions,
        prereleases=row.prereleases or matrix.nightly.prereleases,
        template=row.id_template,
        requires=(f"{row.package}=={{version}}", *row.with_),
    )


def written_out(matrix: Matrix) -> Iterator[Watch]:
    """For each package under ``watch``: what is above its newest version that is written out.

    Versions below are not looked for: whoever writes releases out has chosen among them.
    """
    for name in matrix.nightly.watch:
        rows = [(version, row) for row in matrix.releases if (version := pinned_version(row, name)) is not None]
        version, row = max(reversed(rows), key=lambda each: Version(each[0]))  # of equal ones the last
        assert isinstance(row, ExplicitRow)
        template = row.id.replace(version, "{version}")
        yield Watch(
            matrix=matrix,
            row=row,
            package=name,
            versions=f">={version},!={version}",  # `>1.0` would shut out 1.0.post1
            prereleases=matrix.nightly.prereleases,
            template=template if "{version}" in template else f"{name}-{{version}}",
            requires=tuple(_with_place(text, name) for text in row.requires),
        )


def pinned_version(row: ExplicitRow | GeneratedRow, package: str) -> str | None:
    """The version at which a row that is written out holds a package."""
    if isinstance(row, GeneratedRow):
        return None
    found = (PINNED.match(text) for text in row.requires if releases.names(text, package))
    return next((match["version"] for match in found if match is not None), None)


def _with_place(text: str, package: str) -> str:
    match = PINNED.match(text)
    if match is None or canonicalize_name(match["name"]) != canonicalize_name(package):
        return text
    return f"{match['name']}{match['extras'] or ''}=={{version}}"
