"""Where a package says what it changed, as far as its own metadata tells."""

from __future__ import annotations

import contextlib
import email
import re

from packaging.utils import canonicalize_name
from packaging.version import Version

from audit import folders
from audit.failures import readable
from audit.installing.locks import Release
from audit.installing.source_builds import LARGEST_METADATA
from audit.installing.venvs import Recipe

_LIKELY = ("changelog", "changes", "releasenotes", "releases", "history", "whatsnew")
_ELSE = ("documentation", "homepage", "repository", "source")
"""Labels of addresses, without what is neither letter nor digit: the rule by which labels are the same."""


def address(release: Release, package: str) -> str:
    """The address of a package's change log, or the nearest that its metadata has; empty where it has none."""
    headers = email.message_from_string(_metadata(release, package))
    given = [entry.partition(",") for entry in headers.get_all("Project-URL", [])]
    addresses = {re.sub(r"[^a-z0-9]", "", label.lower()): link.strip() for label, _, link in given}
    for wanted in (*_LIKELY, *_ELSE):
        if wanted in addresses:
            return readable(addresses[wanted])
    return readable(str(headers.get("Home-page", "") or ""))


def of_the_later(ends: tuple[Release, Release], package: str) -> str:
    """The address that the release has which has the later version of the package: only that one can tell."""
    name = canonicalize_name(package)
    having = [each for each in ends if name in dict(each.lock.packages)]
    later = max(having, key=lambda each: Version(dict(each.lock.packages)[name]), default=ends[1])
    return address(later, package)


def _metadata(release: Release, package: str) -> str:
    """Of the release's virtualenv, which stands there once it has been run; a build may have put anything in it."""
    site = Recipe.of(release).executable.parent.parent / "lib"
    found = site.glob("python*/site-packages/*.dist-info/METADATA")
    name = canonicalize_name(package)
    for path in found:
        if canonicalize_name(path.parent.name.partition("-")[0]) == name:
            with contextlib.suppress(OSError):
                return folders.read_plain(path, LARGEST_METADATA).decode("utf-8", errors="replace")
    return ""
