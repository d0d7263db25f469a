"""The verb `report`: the results of a store as one page for people."""

from __future__ import annotations

from pathlib import Path

import click

from analysis.report.rendering import TooLarge, render
from audit import folders
from audit.console import Screen
from audit.errors import EXIT_COMPLETE, UsageError
from audit.reports import report_collecting
from audit.storage.store import Store
from audit.verbs.running import DATABASE


@click.command()
@click.option("--db", "database", type=click.Path(path_type=Path, dir_okay=False), default=DATABASE, show_default=True)
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False), default=Path("results/report.html"),
              show_default=True)  # fmt: skip
@click.option("--matrix", "matrices", multiple=True, help="Only the matrix of that name; may be given again.")
def report(database: Path, output: Path, matrices: tuple[str, ...]) -> int:
    """Write the results as one HTML file that opens from disk, without network."""
    with Store(database, read_only=True) as store:
        page = report_collecting.collect(store, matrices)
    try:
        text = render(page).encode()
    except TooLarge as error:
        raise UsageError(f"{error}: choose fewer matrices with --matrix") from None
    folders.write_whole(output, text)
    listed = ", ".join(each.name for each in page.matrices)
    Screen().note(f"{output}: {listed} ({len(text) / 1e6:.2f} MB)")
    return EXIT_COMPLETE
