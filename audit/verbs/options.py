"""Options that several verbs share, each declared once, and what is checked before a release's code is run."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from audit import named_files
from audit.confining import protections
from audit.errors import UsageError
from audit.named_files import STANDARD_OUTPUT
from audit.terminal.screen import Screen
from audit.tools import CELL_SECONDS

DATABASE = Path("results/audit.duckdb")
DAY = "YYYY-MM-DD"

FILE = click.Path(path_type=Path, dir_okay=False)
DATE = click.DateTime(["%Y-%m-%d"])


class _OutputFile(click.Path):
    """A file to be written: a mistake in its name is told before any work, and a missing folder is none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        if path != STANDARD_OUTPUT:
            named_files.check(path)
        return path


OUTPUT_FILE = _OutputFile(dir_okay=False)

Verb = TypeVar("Verb", bound=Callable[..., Any])

database = click.option(
    "--db", "database", type=FILE, default=DATABASE, show_default=True, metavar="FILE",
    help="The database of the results. Its arrays are stored beside it.",
)  # fmt: skip
timeout = click.option(
    "--timeout", type=click.FloatRange(min=0.1), default=CELL_SECONDS, show_default=True, metavar="SECONDS",
    help="Stop a release that takes longer than this on one environment.",
)  # fmt: skip
jobs = click.option(
    "--jobs", type=click.IntRange(min=1), metavar="N",
    help="Run this many releases at the same time. Default: one per core.",
)  # fmt: skip
address = click.option(
    "--address", help="Use the Ray cluster at this address. Default: RAY_ADDRESS, or else a local cluster."
)
check = click.option("--check", is_flag=True, help="Exit with 1 if something changed or broke, for use in CI.")
explain = click.option(
    "--explain/--no-explain", default=True, show_default=True,
    help="Look into each change between neighbouring releases: where in the step it begins, which constants differ.",
)  # fmt: skip
waivers = click.option(
    "--waivers", type=FILE, metavar="FILE",
    help="Read the accepted changes from this file. Default: waivers.yaml beside the matrix.",
)  # fmt: skip
matrix = click.option(
    "--matrix", metavar="NAME",
    help="Take the releases and the environment from this audit, if several audits have these names.",
)  # fmt: skip
beside = click.option(
    "--with", "beside", multiple=True, metavar="REQUIREMENT",
    help="Install this too, such as 'gymnasium==1.3.0'. It stays the same in all releases. May be given again.",
)  # fmt: skip
python = click.option(
    "--python", metavar="VERSION", help="Run the releases on this Python. Default: the Python of this program."
)
exclude_newer = click.option(
    "--exclude-newer", "day", type=DATE, metavar=DAY,
    help="Resolve requirements as on the evening of this day (UTC).",
)  # fmt: skip
fresh = click.option("--fresh", is_flag=True, help="Ask the package index again, even if an earlier answer is known.")
mjcf = click.option(
    "--mjcf", type=click.Path(path_type=Path, exists=True, dir_okay=False), metavar="FILE",
    help="Take this MuJoCo scene as the environment.",
)  # fmt: skip
allow_source = click.option(
    "--allow-source", is_flag=True, help="Build packages that have no wheel from source, which runs their code."
)


def output(told: str, default: Path | None = None) -> Callable[[Verb], Verb]:
    """The option ``--output`` of a verb that writes a file."""
    return click.option(
        "--output", type=OUTPUT_FILE, default=default, show_default=default is not None, metavar="FILE", help=told
    )


def summaries(verb: Verb) -> Verb:
    """Give a verb the options ``--markdown``, ``--json`` and ``--junit``."""
    for form, what in (("junit", "JUnit XML"), ("json", "JSON"), ("markdown", "Markdown")):
        told = f"Write a summary as {what} to this file; - is standard output."
        verb = click.option(f"--{form}", form, type=OUTPUT_FILE, metavar="FILE", help=told)(verb)
    return verb


def runs_releases(verb: Callable[..., int]) -> Callable[..., int]:
    """Give ``--require-sandbox`` to a verb that runs a release's code, and check protections before it begins."""

    @click.option("--require-sandbox", is_flag=True, help="Refuse to run if a protection is missing that doctor lists.")
    @functools.wraps(verb)
    def protected(*arguments: Any, require_sandbox: bool, **options: Any) -> int:
        _check_protections(Screen(), required=require_sandbox)
        return verb(*arguments, **options)

    return protected


def _check_protections(screen: Screen, *, required: bool) -> None:
    """Say loudly what a release's code could do here.

    Raises:
        UsageError: where that is not accepted.
    """
    missing = protections.missing()
    if missing and required:
        told = "; ".join(f"{each.name}: {each.told}" for each in missing)
        raise UsageError(f"--require-sandbox, and on this system {told}")
    for each in missing:
        screen.warning(f"NOT PROTECTED: {each.name}: {each.told}")
