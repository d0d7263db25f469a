"""Measure on ``paper.yaml``, both harnesses on the same prepared virtualenvs, and print ratios.

Two noisy cores make seconds meaningless and ratios bearable: everything that is compared is run in turns.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import psutil

from audit.asked import attachments, matrix_file
from audit.asked.stimulus_spec import StimulusSpec
from audit.installing import listing, locks
from audit.installing.venvs import Recipe
from audit.planning import building, drawing, plan
from audit.planning.drawing import DrawnEnvironment
from audit.planning.plan import Cell
from audit.processes import dumper_request
from audit.stimuli import starts, stimulus
from audit.stimuli.stimulus import Stimulus
from audit.storage.store import Store
from audit.terminal.screen import Screen
from bench import algebra, attribution, queries, stages

HERE = Path(__file__).parent
WALL_TARGET = 0.45
STEPS_TARGET = 0.9
FORCED_TARGET = 0.8
FORCED_STATES = 512
SAME_BEHAVIOUR = ("21.0", "21.2", "21.3", "22.0", "23.0", "23.1", "23.2", "24.0", "24.1", "24.2", "25.0", "20.9")
"""Versions of a package that no environment imports."""
_STEP_ROUNDS = 7
_SAMPLE_SECONDS = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A matrix whose virtualenvs stand and whose stimuli are drawn."""

    cells: Sequence[Cell]
    drawn: Mapping[str, DrawnEnvironment]


def main() -> None:
    """Run all measurements."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--matrix", default="paper.yaml")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--only", choices=["algebra", "attribution", "queries", "harness"])
    parser.add_argument("--seed", type=int, default=0, help="of the systems that attribution is asked about")
    arguments = parser.parse_args()
    screen = Screen()
    parts: dict[str, Callable[[Screen], None]] = {
        "algebra": algebra.measure,
        "attribution": partial(attribution.measure, seed=arguments.seed),
        "queries": queries.measure,
    }
    for name, measure in parts.items():
        if arguments.only in (None, name):
            measure(screen)
    if arguments.only not in (None, "harness"):
        return
    with tempfile.TemporaryDirectory(prefix="release-audit-bench-") as folder:
        prepared = prepare(arguments.matrix, Path(folder), screen)
        compare_harnesses(arguments.matrix, prepared, Path(folder), arguments.rounds, screen)
        horizons = {
            title: stimulus.assemble({"horizon": each.horizon}, resets=0)
            for title, each in prepared.drawn.items()
            if each.horizon is not None
        }
        forced = {title: forced_steps(each) for title, each in prepared.drawn.items()}
        compare_steps("trajectories", horizons, STEPS_TARGET, prepared, Path(folder), screen)
        compare_steps("forced steps", forced, FORCED_TARGET, prepared, Path(folder), screen)
        stages.compare(prepared.cells, prepared.drawn, screen)
        compare_doubling(Path(folder), arguments.rounds, screen)


def prepare(matrix: str, folder: Path, screen: Screen) -> Prepared:
    """Run the matrix twice: the first builds virtualenvs, the second is watched for its memory, which slows it."""
    run_ours(matrix, folder / "build.duckdb")
    largest = run_ours(matrix, folder / "prepare.duckdb", watch=True)
    screen.note(f"largest memory of the whole audit: {largest / 2**30:.2f} GiB (target below 2)")
    file = matrix_file.read(matrix_file.find(matrix))
    requests = listing.expand(file)
    resolved = {request.id: locks.resolve(request) for request in requests}
    ready = {name: release for name, release in resolved.items() if isinstance(release, locks.Release)}
    cells = plan.cells(file.matrix, requests, ready, attachments.read(file))
    building.build([cell.release for cell in cells], screen)
    with Store(folder / "prepare.duckdb", read_only=True) as store:
        drawn = drawing.known_stimuli(file, cells, store).drawn
    for title, each in drawn.items():
        stimulus_path(folder, title).write_bytes(each.stimulus.payload)
    return Prepared(cells=cells, drawn=drawn)


def forced_steps(drawn: DrawnEnvironment) -> Stimulus:
    """As many forced steps, with nudged copies, as a bank of the default size gives."""
    spec = StimulusSpec(trajectories=FORCED_STATES, steps=1, actions="uniform")
    forced = starts.horizon(spec, drawn.known.cell.environment, drawn.known.layout)
    return stimulus.assemble({"forced": forced, "nudged": stimulus.nudged(forced, 4, 0)}, resets=0)


def compare_harnesses(matrix: str, prepared: Prepared, folder: Path, rounds: int, screen: Screen) -> None:
    """The obvious harness and this one, in turns."""
    obvious, ours = [], []
    for number in range(rounds):
        began = time.perf_counter()
        verdicts = run_obvious(prepared, folder / f"obvious-{number}")
        obvious.append(time.perf_counter() - began)
        began = time.perf_counter()
        run_ours(matrix, folder / f"ours-{number}.duckdb")
        ours.append(time.perf_counter() - began)
        screen.note(f"round {number + 1}: obvious {obvious[-1]:.1f} s ({verdicts}), this {ours[-1]:.1f} s")
    ratio = sum(ours) / sum(obvious)
    screen.note(f"wall time of this harness over the obvious one: {ratio:.2f} (target at most {WALL_TARGET})")


def compare_steps(
    what: str, given: Mapping[str, Stimulus], target: float, prepared: Prepared, folder: Path, screen: Screen
) -> None:
    """The dumper and a bare loop, environment by environment, on its newest release."""
    newest = {cell.environment.title: cell for cell in prepared.cells}
    rows, bare_total, recorded_total = [], 0.0, 0.0
    for title, cell in newest.items():
        path = folder / f"{title}.steps.npz"
        path.write_bytes(given[title].payload)
        bare, recorded, steps = measure_steps(cell, path)
        bare_total, recorded_total = bare_total + bare, recorded_total + recorded
        rows.append((title, f"{steps / bare:,.0f}", f"{steps / recorded:,.0f}", f"{bare / recorded:.2f}"))
    screen.table((what, "bare steps/s", "dumper steps/s", "ratio"), rows)
    ratio = bare_total / recorded_total
    screen.note(f"the dumper's {what} per second over the bare loop's: {ratio:.2f} (target at least {target})")


def compare_doubling(folder: Path, rounds: int, screen: Screen) -> None:
    """As many releases and twice as many, all with one behaviour: they differ in a package that no step imports."""
    seconds = dict.fromkeys((len(SAME_BEHAVIOUR) // 2, len(SAME_BEHAVIOUR)), 0.0)
    for number in range(rounds + 1):
        for count in seconds:
            matrix = folder / f"same-{count}.yaml"
            matrix.write_text(json.dumps(same_behaviour(count)), encoding="utf-8")
            began = time.perf_counter()
            run_ours(str(matrix), folder / f"same-{count}-{number}.duckdb")
            if number:  # the first round builds virtualenvs
                seconds[count] += time.perf_counter() - began
    few, many = seconds.values()
    screen.note(
        f"time of {len(SAME_BEHAVIOUR)} releases over half as many, one behaviour: {many / few:.2f} (at most 2)"
    )


def same_behaviour(count: int) -> dict[str, object]:
    """A matrix of releases that behave alike."""
    return {
        "name": f"same-{count}",
        "python": "3.11",
        "exclude-newer": "2026-11-01",
        "releases": [
            {"id": version, "requires": ["gymnasium==1.2.3", f"packaging=={version}"], "pins": ["numpy<2.4"]}
            for version in SAME_BEHAVIOUR[:count]
        ],
        "environments": [{"id": "CartPole-v1"}, {"id": "Pendulum-v1"}, {"id": "Acrobot-v1"}],
    }


def measure_steps(cell: Cell, given: Path) -> tuple[float, float, int]:
    """Seconds of the bare loop, seconds of the recording, steps."""
    script = [
        str(HERE / "steps.py"),
        str(dumper_request.DUMPER),
        plan.api_of(cell.release),
        cell.environment.source,
        str(given),
    ]
    output = run_in_venv(cell, [*script, str(_STEP_ROUNDS)])
    line = next(line for line in output.splitlines() if line.startswith("RESULT "))
    bare, recorded, steps = line.split()[1:]
    return float(bare), float(recorded), int(steps)


def run_obvious(prepared: Prepared, folder: Path) -> str:
    """One process per cell, one after the other; then every pair, read from its two files."""
    folder.mkdir()
    files: dict[str, list[Path]] = {}
    for number, cell in enumerate(prepared.cells):
        output = folder / f"{number}.npz"
        given = stimulus_path(folder.parent, cell.environment.title)
        source = cell.environment.source
        run_in_venv(cell, [str(HERE / "obvious.py"), plan.api_of(cell.release), source, str(given), str(output)])
        files.setdefault(cell.environment.title, []).append(output)
    pairs = itertools.chain.from_iterable(itertools.combinations(group, 2) for group in files.values())
    counts = Counter(obvious_verdict(older, newer) for older, newer in pairs)
    return ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items()))


def obvious_verdict(older: Path, newer: Path) -> str:
    """The paper's rule on observations."""
    with np.load(older) as left, np.load(newer) as right:
        one, other = left["observation"], right["observation"]
    if one.tobytes() == other.tobytes():
        return "identical"
    apart = np.abs(one.astype(float) - other.astype(float)).reshape(8, -1)
    if apart[:, : apart.shape[1] // 500].max() >= 1e-13:
        return "changed"
    return "rounding" if apart.max() < 1e-13 else "amplified"


def run_ours(matrix: str, database: Path, *, watch: bool = False) -> int:
    """This harness, from its start to its end; return the largest memory of all its processes, when watched."""
    command = [sys.executable, "-m", "audit", "run", matrix, "--db", str(database)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as child:
        peak = _Peak(child.pid) if watch else None
        output, _ = child.communicate()
        largest = peak.stop() if peak else 0
    if child.returncode != 0:
        raise SystemExit(f"the audit failed:\n{output}")
    return largest


class _Peak(threading.Thread):
    """Samples the memory that a process and its descendants hold together; what they share counts once."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._root = psutil.Process(pid)
        self._over = threading.Event()
        self._largest = 0
        self.start()

    def run(self) -> None:
        """Sample until told to stop."""
        while not self._over.wait(_SAMPLE_SECONDS):
            self._largest = max(self._largest, sum(_memory_of_tree(self._root)))

    def stop(self) -> int:
        """The largest sum seen."""
        self._over.set()
        self.join()
        return self._largest


def _memory_of_tree(root: psutil.Process) -> Iterator[int]:
    try:
        family = [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return
    for process in family:
        try:
            yield process.memory_full_info().pss
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue


def run_in_venv(cell: Cell, command: Sequence[str]) -> str:
    """Run a script with a release's Python, isolated and on one thread, as the dumper runs."""
    python = str(Recipe.of(cell.release).executable)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "SDL_VIDEODRIVER": "dummy"}
    return subprocess.run([python, "-I", *command], env=environment, capture_output=True, text=True, check=True).stdout


def stimulus_path(folder: Path, title: str) -> Path:
    """Where an environment's stimulus lies during the measurements."""
    return folder / f"{title}.stimulus.npz"


if __name__ == "__main__":
    main()
