"""What the store keeps of what the index answered, so that a search that goes on does not ask everything again."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

from audit.storage.database import Database
from audit.storage.records import now


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexAnswer:
    """An answer, and when it was given (UTC)."""

    text: str
    answered: datetime.datetime


class StoredAnswers:
    """Answers of the index by question: the last that was given to each."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, question: str) -> IndexAnswer | None:
        """The last answer to a question."""
        found = self._database.rows(
            "SELECT answer, answered FROM internal.index_answers WHERE question = ?", [question]
        )
        return IndexAnswer(text=found[0][0], answered=found[0][1]) if found else None

    def put(self, question: str, answer: str) -> IndexAnswer:
        """Keep an answer that was given just now."""
        given = IndexAnswer(text=answer, answered=now())
        with self._database.transaction():
            self._database.replace("index_answers", (question, answer, given.answered))
        return given

    def lock_text(self, digest: str) -> str | None:
        """The lock of that digest."""
        found = self._database.rows("SELECT text FROM internal.locks WHERE lock_digest = ?", [digest])
        return str(found[0][0]) if found else None
