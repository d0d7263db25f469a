"""Where summaries go: into files, or to standard output. The options of the command line for it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from audit.errors import AuditError, UsageError
from audit.reports.summaries import as_json, junit, markdown
from audit.reports.summaries.value import AuditSummary

STANDARD_OUTPUT = "-"

RENDERERS: dict[str, Callable[[Sequence[AuditSummary]], str]] = {
    "markdown": markdown.render,
    "json": as_json.render,
    "junit": junit.render,
}

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Outputs:
    """What is wanted in which form, and where: the path of a file, or ``-``."""

    wanted: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, **places: str | None) -> Outputs:
        """From the values of the options.

        Raises:
            UsageError: where two of them would be mixed on standard output, or a file cannot be written.
        """
        wanted = tuple((form, place) for form, place in places.items() if place is not None)
        if sum(place == STANDARD_OUTPUT for _, place in wanted) > 1:
            raise UsageError("only one summary can go to standard output: give the others a file, as in --json=FILE")
        for form, place in wanted:
            if place != STANDARD_OUTPUT and (trouble := _trouble(Path(place))):
                raise UsageError(f"--{form}={place} cannot be written: {trouble}")
        return cls(wanted=wanted)

    @property
    def takes_standard_output(self) -> bool:
        """Whether what people read has to go elsewhere."""
        return any(place == STANDARD_OUTPUT for _, place in self.wanted)

    def write(self, summaries: Sequence[AuditSummary]) -> None:
        """Write all of them, also where one cannot be written.

        Raises:
            AuditError: which could not, and why.
        """
        troubles = []
        for form, place in self.wanted:
            try:
                _write(RENDERERS[form](summaries), place)
            except OSError as error:
                troubles.append(f"the summary --{form}={place} could not be written: {error.strerror}")
        if troubles:
            raise AuditError("; ".join(troubles))


def _write(text: str, place: str) -> None:
    if place == STANDARD_OUTPUT:
        click.echo(text, nl=False)
        return
    path = Path(place)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _trouble(path: Path) -> str:
    """Why a file could not be written, as far as that can be seen before; nothing where it could."""
    if path.is_dir():
        return "it is a folder"
    there = next(each for each in (path, *path.absolute().parents) if each.exists())
    if there != path and not there.is_dir():
        return f"{there} is no folder"
    return "" if os.access(there, os.W_OK) else f"{there} is not yours to write"


def options(command: Command) -> Command:
    """Give a verb the options ``--markdown``, ``--json`` and ``--junit``."""
    for form, what in (("junit", "JUnit XML"), ("json", "JSON"), ("markdown", "Markdown")):
        command = click.option(
            f"--{form}", form, is_flag=False, flag_value=STANDARD_OUTPUT, metavar="[FILE]", callback=_not_a_matrix,
            help=f"A summary as {what}: into a file (--{form}=FILE), else to standard output.",
        )(command)  # fmt: skip
    return command


def _not_a_matrix(_: click.Context, option: click.Parameter, value: str | None) -> str | None:
    """Refuse to overwrite a matrix: ``--json mujoco.yaml`` would take it for the file to write."""
    if value is not None and Path(value).suffix in (".yaml", ".yml"):
        raise UsageError(f"--{option.name} {value} would write the summary into {value}: put --{option.name} last, or "
                         f"write --{option.name}=FILE")  # fmt: skip
    return value
