"""Options about what the releases' own code may do here, and what is said where this system cannot prevent it."""

from __future__ import annotations

import click

from audit.confining import protections
from audit.console import Screen
from audit.errors import UsageError

allow_source = click.option(
    "--allow-source", is_flag=True, help="Build source distributions where there is no wheel, which runs their code."
)
require_sandbox = click.option(
    "--require-sandbox", is_flag=True, help="Refuse to run where a protection is missing (see doctor)."
)


def check(screen: Screen, *, required: bool) -> None:
    """Say loudly what cannot be prevented here.

    Raises:
        UsageError: where that is not accepted.
    """
    missing = protections.missing()
    if missing and required:
        told = "; ".join(f"{each.name}: {each.told}" for each in missing)
        raise UsageError(f"--require-sandbox, and on this system {told}")
    for each in missing:
        screen.warning(f"NOT PROTECTED: {each.name}: {each.told}")
