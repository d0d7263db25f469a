"""A question about two releases with what it takes to answer it, which is made only where the store has no answer."""

from __future__ import annotations

from functools import cached_property

from audit.comparisons import comparing
from audit.explanations import blaming
from audit.explanations.between import PairQuestion
from audit.explanations.blaming import Blame, Move
from audit.explanations.resolving import Resolver
from audit.explanations.session import Session
from audit.storage.records import BlameRecord
from audit.tools import Tools


class Inquiry:
    """The two releases, resolved; a session on them where one is needed; what is known of who brought a change."""

    def __init__(self, question: PairQuestion, tools: Tools, resolver: Resolver) -> None:
        self.question, self.tools, self._resolver = question, tools, resolver
        for request, lock in question.locks:
            resolver.give(request, lock)
        self.older, self.newer = resolver.ends([question.older, question.newer])

    @cached_property
    def session(self) -> Session:
        """Both releases at hand."""
        return Session(self.question, self.tools, self._resolver)

    @property
    def cells(self) -> tuple[str, str]:
        """Keys of what is asked of the two, as the audit has them that the question is about."""
        return self.question.known_cells or (self.session.key(self.older), self.session.key(self.newer))

    @property
    def suspects(self) -> tuple[Move, ...]:
        """All that differs between the two."""
        return blaming.suspects(self.older, self.newer)

    def known_blame(self) -> BlameRecord | None:
        """What a search for this very question came to."""
        return self.tools.store.explanations.blamed(self.cells, self._reads)

    def blame(self) -> Blame:
        """Search now, and keep what comes of it."""
        found = blaming.blame(self.session, self.question.newer, self.tools.reporter)
        self.tools.store.explanations.put_blame(self.cells, self._reads, found.record)
        return found

    @property
    def _reads(self) -> str:
        return comparing.reads_of(self.question.file.matrix)
