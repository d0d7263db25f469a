"""Everything that can go wrong in a way a user can act on. The command line turns each into one sentence and an exit.

A traceback is a bug in this program.
"""

from __future__ import annotations

from collections.abc import Sequence

EXIT_COMPLETE = 0
EXIT_CHANGED = 1
EXIT_USAGE = 2
EXIT_INCOMPLETE = 3
EXIT_INTERRUPTED = 130


MOST_TOLD = 50
"""Problems of one file that are told; nobody reads two thousand, of a list in which every entry is wrong."""
LONGEST_TOLD = 1000
"""Characters of each: some quote what they are about."""


class AuditError(Exception):
    """The audit itself could not be completed."""

    exit_code = EXIT_INCOMPLETE


class UsageError(AuditError):
    """The user asked for something that cannot be done as asked."""

    exit_code = EXIT_USAGE


class MatrixError(UsageError):
    """A matrix is wrong; carries every problem that was found."""

    def __init__(self, source: str, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        count = f"{len(problems)} problem{'s' if len(problems) != 1 else ''}"
        told = [
            f"  {problem if len(problem) <= LONGEST_TOLD else problem[:LONGEST_TOLD] + '…'}" for problem in problems
        ]
        left_out = [f"  and {len(problems) - MOST_TOLD} more"] if len(problems) > MOST_TOLD else []
        super().__init__("\n".join([f"{source} has {count}:", *told[:MOST_TOLD], *left_out]))


class StoreError(AuditError):
    """The database cannot be used: another version, in use, damaged, refused by the system, or the disk is full."""


class DamagedStore(StoreError):
    """A file that DuckDB is handed, and cannot make a database of."""


class NobodyReads(AuditError):
    """The program behind a pipe has ended, as in ``release-audit run … | head``."""

    def __init__(self) -> None:
        super().__init__("nobody reads any more what is printed; what was dumped is stored, the same command continues")


class IndexUnreachable(AuditError):
    """The package index did not answer."""

    @classmethod
    def because(cls, reason: str) -> IndexUnreachable:
        """With what uv said, and what to do."""
        return cls(
            f"the package index cannot be reached: {reason}. Check the network and uv's index settings, then run the "
            "same command again"
        )


class ToolMissing(AuditError):
    """A program that the audit is built on is not there."""
