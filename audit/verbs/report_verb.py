"""The verb `report`: the results of a store as one page for people."""

from __future__ import annotations

from pathlib import Path

import click

from analysis.report.rendering import TooLarge, render
from audit import named_files
from audit.errors import EXIT_COMPLETE, UsageError
from audit.named_files import STANDARD_OUTPUT
from audit.reports import report_collecting
from audit.storage.store import Store
from audit.terminal.screen import Screen
from audit.verbs import options

_PAGE = Path("results/report.html")


@click.command(short_help="Write the results as one HTML page.")
@options.database
@options.output(f"Write the page to this file. Default: {_PAGE}, or for another database its own name and .html.")
@click.option("--matrix", "matrices", multiple=True, metavar="NAME",
              help="Show only the matrix of this name. May be given again. Default: all.")  # fmt: skip
def report(database: Path, output: Path | None, matrices: tuple[str, ...]) -> int:
    """Write the results as one HTML file that opens from disk, without network."""
    with Store(database, read_only=True) as store:
        page = report_collecting.collect(store, matrices)
    try:
        text = render(page)
    except TooLarge as error:
        raise UsageError(f"{error}: choose fewer matrices with --matrix") from None
    output = output or (_PAGE if database == options.DATABASE else database.with_suffix(".html"))
    named_files.put(output, text)
    listed = ", ".join(each.name for each in page.matrices)
    Screen(on_standard_error=output == STANDARD_OUTPUT).note(f"{output}: {listed} ({len(text.encode()) / 1e6:.2f} MB)")
    return EXIT_COMPLETE
