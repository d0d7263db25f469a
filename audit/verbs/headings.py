"""Verbs under headings, so that a newcomer finds the one to begin with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from audit.errors import NobodyReads


class Headings(click.Group):
    """A group that lists its verbs by what they are for, in the order in which they were put."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.headings: dict[str, tuple[str, ...]] = {}

    def put(self, heading: str, *verbs: click.Command) -> None:
        """Add verbs under a heading."""
        for verb in verbs:
            self.add_command(verb)
        self.headings[heading] = tuple(str(verb.name) for verb in verbs)

    def make_context(self, *arguments: Any, **options: Any) -> click.Context:
        """Read the command line, which may print help."""
        with _somebody_reads():
            return super().make_context(*arguments, **options)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a verb."""
        with _somebody_reads():
            return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All verbs, also for a shell that completes them."""
        del ctx
        return [name for names in self.headings.values() for name in names]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write each heading with its verbs and what they do, all in the same columns."""
        width = max(map(len, self.list_commands(ctx)))
        for heading, names in self.headings.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), self.commands[name].get_short_help_str()) for name in names])


@contextmanager
def _somebody_reads() -> Iterator[None]:
    """Say so where nobody does: click would end the program with 1, which here means that something changed."""
    try:
        yield
    except BrokenPipeError:
        raise NobodyReads from None
