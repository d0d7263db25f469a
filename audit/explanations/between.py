"""A question about one environment on two releases: as an audit had them, or as given on the command line."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass, field

from audit.asked import attachments
from audit.asked.attachments import Attachment
from audit.asked.matrix_file import MatrixFile
from audit.asked.releases import ReleaseRequest
from audit.errors import UsageError
from audit.explanations import adhoc, audited
from audit.explanations.audited import Audited
from audit.installing import listing
from audit.storage.store import Store

NAME = "between"
"""Of the matrix that stands for a question without one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionOptions:
    """What a user says besides the names. Of a release of an audit, the audit has said it all."""

    matrix: str | None = None
    """The audit that is meant, where several have the names."""
    beside: tuple[str, ...] = ()
    python: str | None = None
    day: datetime.date | None = None
    source: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PairQuestion:
    """The question."""

    file: MatrixFile
    """A matrix whose only environment is the one that is asked about."""
    older: ReleaseRequest
    newer: ReleaseRequest
    baseline: ReleaseRequest
    """Whom to ask what its states look like, and for a bank of them."""
    locks: tuple[tuple[ReleaseRequest, str], ...] = field(default=(), repr=False)
    """The texts of locks that audits have."""
    audited: Audited | None = None
    """The audit that the environment comes from."""

    @property
    def title(self) -> str:
        """The environment's name in results."""
        return self.file.matrix.environments[0].title

    @property
    def names(self) -> tuple[str, str, str]:
        """Environment, older and newer release."""
        return self.title, self.older.id, self.newer.id

    @property
    def run_id(self) -> str:
        """The run that has the environment with both releases; empty where none has."""
        return self.audited.run_id if self.audited is not None and self._cells is not None else ""

    @property
    def known_cells(self) -> tuple[str, str] | None:
        """The keys under which that run has its dumps; nothing where it has not."""
        cells = self._cells
        return (cells[0], cells[1]) if cells is not None and cells[0] is not None and cells[1] is not None else None

    @property
    def _cells(self) -> tuple[str | None, str | None] | None:
        known = self.audited.releases if self.audited is not None else {}
        older, newer = (known.get(each.id) for each in (self.older, self.newer))
        if older is None or newer is None or (older.request, newer.request) != (self.older, self.newer):
            return None
        return older.cell, newer.cell

    def attached(self) -> dict[str, Attachment]:
        """The files that the environment is made of, which are those that were audited.

        Raises:
            UsageError: where they are others now, or gone.
        """
        if self.audited is not None:
            self.audited.require_known_files()
        found = attachments.read(self.file)
        if self.audited is not None and attachments.digests(self.file, found).get(self.title, "") != self.audited.files:
            raise UsageError(
                f"{self.title} was audited with other files than there are now in {self.file.path.parent}: "
                "run the audit again, or bring them back"
            )
        return found


def ask(store: Store, environment: str, ends: Sequence[str], given: QuestionOptions) -> PairQuestion:
    """Find out what is meant by the names of an environment and two releases.

    Where an audit has the environment under this title with one of the releases, all that its matrix says of it holds.

    Raises:
        UsageError: where that is not clear, there is no such thing, or an audit has said already what is given too.
    """
    found = audited.find(store, environment, ends, given.matrix)
    if found is None:
        return _given(store, environment, ends, given)
    if ends[0] == ends[1]:
        raise adhoc.same_release(ends[0], ends[1])
    if all(each in found.releases for each in ends):
        _require_nothing_else(given, environment, found)
    locks = {name: (each.request, each.lock) for name, each in found.releases.items()}
    requests = {name: request for name, (request, _) in locks.items()}
    for text in ends:
        if text not in requests:
            requests[text], lock = _other(store, environment, text, ends, given, found)
            if lock is not None:
                locks[text] = requests[text], lock
    return PairQuestion(
        file=found.file,
        older=requests[ends[0]],
        newer=requests[ends[1]],
        baseline=requests.get(found.baseline, requests[ends[0]]),
        locks=tuple(locks.values()),
        audited=found,
    )


def _require_nothing_else(given: QuestionOptions, environment: str, found: Audited) -> None:
    """Refuse what would be passed over in silence: the answer would be about something else than was asked."""
    unused = {
        "--with": given.beside, "--python": given.python, "--exclude-newer": given.day, "--allow-source": given.source
    }  # fmt: skip
    named = [name for name, value in unused.items() if value]
    if named:
        raise UsageError(
            f"{environment} and both releases are taken as the audit of {found.file.matrix.name} had them, so that "
            f"{' and '.join(named)} would do nothing: leave that out, or write the releases as requirements"
        )


def _other(
    store: Store, environment: str, text: str, ends: Sequence[str], given: QuestionOptions, found: Audited
) -> tuple[ReleaseRequest, str | None]:
    """A release that the audit does not have, on the other's Python unless one is given; its lock if that is known."""
    named = adhoc.named(store, text, environment, given.beside, given.day)
    python = given.python or next(each.request.python for each in found.releases.values() if each.request.id in ends)
    file = adhoc.matrix(NAME, [named.row], [adhoc.environment_row(environment, None)], python, source=given.source)
    return listing.expand(file)[0], named.lock


def _given(store: Store, environment: str, ends: Sequence[str], given: QuestionOptions) -> PairQuestion:
    """No audit has the environment: it is an id, stepped from states as they are drawn without a matrix."""
    title = environment.partition("=")[0]
    named = [adhoc.named(store, text, title, given.beside, given.day) for text in ends]
    rows = adhoc.told_apart([each.row for each in named], [environment])
    row = adhoc.environment_row(environment, None, rows[1]["id"])
    file = adhoc.matrix(NAME, rows, [row], given.python, source=given.source)
    older, newer = listing.expand(file)
    known = [(request, each.lock) for request, each in zip((older, newer), named, strict=True)]
    return PairQuestion(
        file=file,
        older=older,
        newer=newer,
        baseline=older,
        locks=tuple((request, lock) for request, lock in known if lock is not None),
    )
