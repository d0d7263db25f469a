"""Measure how planning, storing, comparing and reading grow with releases: ``python -m bench.scale``.

Every stage is the audit's own; only what a simulator would have recorded is made up. Each size runs in a process of its
own, so that its largest memory is its own too. Exponents are fitted to the time that its threads computed: on cores
that others use as well, that is what repeats.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from audit import pipeline, run_rows
from audit.comparisons import comparing, controls
from audit.dumps import dumping
from audit.explanations import stored_pairs
from audit.installing import listing
from audit.pipeline import Planned, Recorded
from audit.planning import plan
from audit.planning.drawing import DrawnEnvironment, Stimuli
from audit.planning.probing import Layouts
from audit.planning.releasing import ResolvedReleases
from audit.reports import summary
from audit.storage.store import Store
from audit.terminal.screen import Screen
from audit.tools import Tools
from bench import synthetic
from bench.synthetic import ENVIRONMENTS, Answering, Silent, Size, Watch

SIZES = (10, 100, 1_000, 10_000)
FITTED_FROM = 100
"""Below, what is fixed outweighs what grows."""
CONSTANT = 5
"""Behaviours of each environment in the series in which they stay as many."""

EXPONENT_TARGET, SECONDS_TARGET, BYTES_TARGET = 1.1, 120.0, 2 * 2**30
HELD = ("storing", "comparing", "reading")
"""Parts whose growth is held to a target."""
PARTS = ("planning", *HELD, "again")


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One size."""

    releases: int
    behaviours: int
    seconds: Mapping[str, float]
    computed: Mapping[str, float]
    """Seconds of computing, over all threads."""
    bytes: Mapping[str, int]
    """The process's largest memory by the end of each part."""
    database: int
    arrays: int

    @property
    def total(self) -> float:
        """Seconds of one whole audit; what a second one takes comes on top."""
        return sum(seconds for part, seconds in self.seconds.items() if part != "again")

    @property
    def peak(self) -> int:
        """Bytes of memory."""
        return max(self.bytes.values())


def main() -> None:
    """Run both series and print what they grow like."""
    parser = argparse.ArgumentParser(prog="bench.scale", description=__doc__)
    parser.add_argument("--largest", type=int, default=SIZES[-1])
    parser.add_argument(
        "--one", nargs=2, type=int, metavar=("RELEASES", "BEHAVIOURS"), help="measure this one, as JSON"
    )
    arguments = parser.parse_args()
    if arguments.one:
        found = measure(Size(releases=arguments.one[0], behaviours=arguments.one[1]))
        sys.stdout.write(json.dumps({name: getattr(found, name) for name in found.__dataclass_fields__}))
        return
    screen = Screen()
    sizes = [each for each in SIZES if each <= arguments.largest]
    ok = series(screen, "constant behaviours", [Size(releases=each, behaviours=CONSTANT) for each in sizes], held=True)
    rooted = [Size(releases=each, behaviours=max(2, math.isqrt(each))) for each in sizes]
    series(screen, "behaviours as the root of releases", rooted)
    sys.exit(0 if ok else 1)


def series(screen: Screen, title: str, sizes: Sequence[Size], *, held: bool = False) -> bool:
    """Measure each size, print it, fit; say whether the targets are met where there are some."""
    screen.note(f"{title}, {ENVIRONMENTS} environments")
    found = [_apart(size) for size in sizes]
    columns = ["releases", "behaviours", *(f"{part} s" for part in PARTS), "total s", "computed s", "MiB", "store MiB"]
    screen.table(columns, [_row(each) for each in found])
    fitted = [each for each in found if each.releases >= FITTED_FROM]
    if len(fitted) < 2:
        return True
    exponents = {part: exponent(fitted, part) for part in PARTS}
    screen.note("exponents: " + ", ".join(f"{part} {value:.2f}" for part, value in exponents.items()))
    if not held:
        return True
    largest = found[-1]
    screen.note(
        f"targets: exponents of {', '.join(HELD)} at most {EXPONENT_TARGET}; {largest.releases} releases in "
        f"{largest.total:.0f} s (at most {SECONDS_TARGET:.0f}) and {largest.peak / 2**30:.2f} GiB (at most "
        f"{BYTES_TARGET / 2**30:.0f})"
    )
    grows = max(exponents[part] for part in HELD) <= EXPONENT_TARGET
    return grows and largest.total <= SECONDS_TARGET and largest.peak <= BYTES_TARGET


def _apart(size: Size) -> Measured:
    asked = [str(size.releases), str(size.behaviours)]
    command = [sys.executable, "-m", "bench.scale", "--one", *asked]
    return Measured(**json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout))


def _row(each: Measured) -> list[str]:
    stored = (each.database + each.arrays) / 2**20
    seconds = (f"{each.seconds[part]:.2f}" for part in PARTS)
    return [
        str(each.releases),
        str(each.behaviours),
        *seconds,
        f"{each.total:.1f}",
        f"{sum(each.computed[part] for part in PARTS if part != 'again'):.1f}",
        f"{each.peak / 2**20:.0f}",
        f"{stored:.1f}",
    ]


def exponent(found: Sequence[Measured], part: str) -> float:
    """The slope of computing over releases, both as logarithms."""
    counts, seconds = ([math.log(value) for value in values] for values in zip(*_points(found, part), strict=True))
    return float(np.polyfit(counts, seconds, 1)[0])


def _points(found: Sequence[Measured], part: str) -> list[tuple[float, float]]:
    return [(each.releases, each.computed[part]) for each in found]


def measure(size: Size) -> Measured:
    """One audit of that size, and a second one that finds everything there."""
    watch = Watch(lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
    with tempfile.TemporaryDirectory(prefix="release-audit-scale-") as folder:
        path = Path(folder) / "scale.duckdb"
        with Store(path) as store:
            tools = Tools(store=store, runner=Answering(size=size), reporter=Silent(), timeout=60.0)
            audit(size, tools, watch)
        database = path.stat().st_size
        arrays = sum(each.stat().st_size for each in (path.parent / "arrays").rglob("*") if each.is_file())
    return Measured(
        releases=size.releases,
        behaviours=size.behaviours,
        seconds=watch.seconds,
        computed=watch.computed,
        bytes=watch.bytes,
        database=database,
        arrays=arrays,
    )


def audit(size: Size, tools: Tools, watch: Watch) -> None:
    """The stages in the order of ``audit.pipeline.audit``, but for those that need a simulator or an index."""
    file, store = size.file, tools.store
    run = run_rows.begun(file)
    store.begin_run(run)
    with watch.part("planning"):
        requests = listing.expand(file)
    resolved = synthetic.resolved(requests)
    with watch.part("planning"):
        cells = plan.cells(file.matrix, requests, resolved, {})
    drawn = synthetic.drawn(cells)
    with watch.part("planning"):
        recordings = [*plan.recordings(cells, {title: each.stimulus for title, each in drawn.items()})]
        own = frozenset(each.identifier for each in recordings)
        baselines = controls.baselines(cells, drawn)
        recordings += controls.recordings(baselines, drawn)
        known = dumping.known(recordings, store)
        plan.jobs([(each.cell, each.asked()) for each in recordings], tools.timeout)
    assert not known
    with watch.part("storing"):
        store.put_locks({each.lock.digest: (each.lock.text, each.lock.packages) for each in resolved.values()})
        store.put_stimuli(each.stimulus for each in drawn.values())
        dumps = dumping.record(recordings, tools)
    planned = Planned(
        file=file,
        run=run,
        releases=ResolvedReleases(requests=requests, resolved=resolved, unresolved=()),
        cells=cells,
        layouts=Layouts(known={}, failures=(), unbuilt={}),
        stimuli=Stimuli(drawn=drawn, undrawable={}),
    )
    with watch.part("comparing"):
        rows = run_rows.cell_rows(file.matrix, requests, dumps.dumped, ())
        recorded = Recorded(own=own, baselines=baselines, dumped=dumps.dumped, rows=rows, failures=())
        judged = pipeline.judge(planned, recorded, tools)
    with watch.part("storing"):
        pipeline.finish(planned, recorded, judged, store)
    with watch.part("reading"):
        found = summary.summarise(store, run.run_id)
        stored_pairs.changed_neighbours(store, run.run_id)
    with watch.part("again"):
        assert len(dumping.known(recordings, store)) == len(recordings)
        wanted = comparing.wanted(rows, run.pairing, run.against)
    _check(size, found.counts, len(wanted), drawn)


def _check(size: Size, counts: Mapping[str, int], wanted: int, drawn: Mapping[str, DrawnEnvironment]) -> None:
    """A measurement of something else would be quick, too."""
    assert sum(counts.values()) == math.comb(size.releases, 2) * len(drawn), counts
    assert wanted == math.comb(size.behaviours, 2) * len(drawn), wanted
    assert set(counts) == {"identical", "rounding", "changed"}, counts


if __name__ == "__main__":
    main()
