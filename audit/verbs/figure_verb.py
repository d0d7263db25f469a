"""The verb `figure`: pictures of a matrix's results, for papers and slides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import click
import numpy as np

from analysis.yardstick import THRESHOLD
from audit import named_files
from audit.asked import matrix_file
from audit.errors import EXIT_COMPLETE, UsageError
from audit.storage.store import Store
from audit.terminal.screen import Screen
from audit.verbs import options

# Matplotlib takes a second to import, and no other verb needs it: what draws is imported where it is called.


@click.command(short_help="Draw the results as SVG or PNG.")
@click.argument("matrix")
@options.database
@click.option("--env", "environments", multiple=True, metavar="ENV",
              help="Draw only this environment. May be given again. Default: all.")  # fmt: skip
@click.option(
    "--kind", type=click.Choice(["separation", "ratios", "timeline"]), default="separation", show_default=True,
    help="Draw how amplified pairs separate step by step, or the ratios of all pairs beside those of the releases' own "
    "copies, or which releases behave alike.",
)  # fmt: skip
@options.output("Write the figure to this file, which ends in .svg or .png.", Path("results/figure.svg"))
def figure(matrix: str, database: Path, environments: tuple[str, ...], kind: str, output: Path) -> int:
    """Draw the results of MATRIX."""
    from analysis import figures

    if output.suffix not in figures.SUFFIXES:
        raise UsageError(f"{output} must end in {' or '.join(figures.SUFFIXES)}")
    name = matrix_file.read(matrix_file.find(matrix)).matrix.name
    draw: dict[str, Callable[[Store, str, Sequence[str], Path], str]] = {
        "separation": _separation,
        "ratios": _ratios,
        "timeline": _timeline,
    }
    with Store(database, read_only=True) as store:
        _require(store, name, environments)
        named_files.make_folder(output)
        drawn = draw[kind](store, name, environments, output)
    Screen().note(f"{drawn} drawn into {output}")
    return EXIT_COMPLETE


def _require(store: Store, matrix: str, environments: Sequence[str]) -> None:
    """Raise where an environment is asked for that the matrix does not have."""
    known = [row[0] for row in store.query("SELECT DISTINCT environment FROM dumps WHERE matrix = ?", [matrix]).rows]
    for environment in environments:
        if known and environment not in known:
            raise UsageError(f"{matrix} has no environment {environment!r}; it has {', '.join(sorted(known))}")


_CHOSEN = "matrix = $1 AND (len($2::VARCHAR[]) = 0 OR environment IN (SELECT unnest($2::VARCHAR[])))"


def _separation(store: Store, matrix: str, environments: Sequence[str], output: Path) -> str:
    from analysis import figures

    rows = store.query(
        f"SELECT environment, older, newer, curve, adjacent FROM certificates WHERE {_CHOSEN}"
        " ORDER BY environment, older_position, newer_position",
        [matrix, list(environments)],
    ).rows
    if not rows:
        raise UsageError(f"no pair of {matrix} is amplified there: there is nothing to draw")
    neighbours = any(adjacent for *_, adjacent in rows)  # there are none where all are compared with one release
    curves = [
        figures.Curve(environment=environment, pair=f"{older} → {newer}", separation=np.array(curve))
        for environment, older, newer, curve, adjacent in rows
        if adjacent or not neighbours
    ]
    figures.separation_figure(curves, output)
    return f"{len(curves)} pairs"


def _ratios(store: Store, matrix: str, environments: Sequence[str], output: Path) -> str:
    from analysis.ratio_figure import Ratios, ratio_figure

    chosen = [matrix, list(environments)]
    rows = store.query(
        f"""
        WITH shown AS (SELECT environment, behaviour FROM behaviours WHERE {_CHOSEN})
        SELECT pair.verdict, pair.first_step_ratio
        FROM shown AS one
        JOIN shown AS other USING (environment)
        JOIN internal.comparisons AS pair ON pair.first = one.behaviour AND pair.second = other.behaviour
        JOIN internal.latest_runs AS run ON run.reads = pair.reads AND run.matrix = $1
        WHERE pair.first_step_ratio IS NOT NULL
        ORDER BY ALL
        """,
        chosen,
    ).rows
    nulls = store.query(
        f"SELECT null_ratio FROM behaviours WHERE {_CHOSEN} AND null_ratio IS NOT NULL ORDER BY 1", chosen
    ).rows
    if not rows and not nulls:
        raise UsageError(f"no pair of {matrix} was read by the yardstick there: there is nothing to draw")
    pairs: dict[str, list[float]] = {}
    for verdict, ratio in rows:
        pairs.setdefault(verdict, []).append(ratio)
    ratio_figure(Ratios(pairs=pairs, nulls=[row[0] for row in nulls], threshold=THRESHOLD), output)
    return f"{len(rows)} pairs of behaviours and {len(nulls)} nulls"


def _timeline(store: Store, matrix: str, environments: Sequence[str], output: Path) -> str:
    from analysis.timeline_figure import Stretch, Timeline, timeline_figure

    chosen = [matrix, list(environments)]
    releases = [
        row[0] for row in store.query("SELECT release FROM releases WHERE matrix = ? ORDER BY position", [matrix]).rows
    ]
    places = {release: place for place, release in enumerate(releases)}
    found: dict[str, list[Stretch]] = {}
    numbers: dict[tuple[str, str], int] = {}
    for environment, behaviour, first, last in store.query(
        f"SELECT environment, behaviour, first, last FROM stretches WHERE {_CHOSEN}"
        " ORDER BY environment, first_position",
        chosen,
    ).rows:
        stretches = found.setdefault(environment, [])
        known = len({each.behaviour for each in stretches})
        number = numbers.setdefault((environment, behaviour), known)
        stretches.append(Stretch(first=places[first], last=places[last], behaviour=number))
    if not found:
        raise UsageError(f"no release of {matrix} could be dumped there: there is nothing to draw")
    boundaries: dict[str, list[tuple[int, str]]] = {}
    for environment, newer, verdict in store.query(
        f"SELECT environment, newer, verdict FROM neighbours WHERE {_CHOSEN} AND verdict IS NOT NULL", chosen
    ).rows:
        boundaries.setdefault(environment, []).append((places[newer], verdict))
    timelines = [
        Timeline(environment=name, stretches=each, boundaries=boundaries.get(name, ())) for name, each in found.items()
    ]
    timeline_figure(_shortened(releases), timelines, output)
    return f"{len(timelines)} environments"


def _shortened(releases: Sequence[str]) -> list[str]:
    """Without what all names begin with, up to a dash: versions alone."""
    begin = releases[0][: releases[0].rfind("-") + 1]
    shared = all(release.startswith(begin) for release in releases)
    return [release.removeprefix(begin) for release in releases] if shared else list(releases)
