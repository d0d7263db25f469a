"""Verbs under headings, so that a newcomer finds the one to begin with."""

from __future__ import annotations

from typing import Any

import click


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
