"""A matrix to releases: its rows written out, each resolved to a hashed lock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from audit.asked.matrix_file import MatrixFile
from audit.asked.releases import ReleaseRequest
from audit.errors import IndexUnreachable
from audit.failures import Failure, Status
from audit.installing import listing, locks
from audit.installing.locks import Release
from audit.tools import Reporter, at_once


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedReleases:
    """The releases of an audit: what was asked for, and what that is tonight."""

    requests: tuple[ReleaseRequest, ...]
    resolved: Mapping[str, Release]
    unresolved: tuple[Failure, ...]


def ask(file: MatrixFile, reporter: Reporter) -> ResolvedReleases:
    """The matrix as it stands today."""
    requests = expand(file, reporter)
    resolved, unresolved = resolve(requests, reporter)
    return ResolvedReleases(requests=requests, resolved=resolved, unresolved=tuple(unresolved))


def expand(file: MatrixFile, reporter: Reporter) -> tuple[ReleaseRequest, ...]:
    """Rows of the matrix to releases, with the versions that the index has."""
    with reporter.stage("listing", 1) as done:
        requests = listing.expand(file)
        done(f"{len(requests)} releases")
    return requests


def resolve(requests: Sequence[ReleaseRequest], reporter: Reporter) -> tuple[dict[str, Release], list[Failure]]:
    """Releases to hashed locks."""
    resolved: dict[str, Release] = {}
    failures: list[Failure] = []
    with reporter.stage("resolving", len(requests)) as done:
        for request, outcome in at_once(locks.resolve, requests):
            if isinstance(outcome, Failure):
                failures.append(outcome)
                done(f"{request.id}: {outcome.status}")
            else:
                resolved[request.id] = outcome
                done(request.id)
    unreachable = [each for each in failures if each.status is Status.UNREACHABLE]
    if unreachable and not resolved:
        raise IndexUnreachable.because(unreachable[0].reason)
    return resolved, failures
