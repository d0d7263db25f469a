"""Audits in a loop while processes are killed at random: nothing leaks, nothing is lost, no verdict is wrong.

``make soak`` runs it for an hour. Each round is an audit on one of two stores: a fresh one, or that of the last round
with a release more or less. A round may be left alone, interrupted, killed, or lose a dumper or a part of Ray. After
each disturbed round the same command is run undisturbed, and what it says is held against a reference that was made
before anything was disturbed.

Memory is the largest that the driver of an undisturbed round took, each in a process of its own, while the two stores
grow: it shows what grows with a store, and not what leaks within one long audit.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from tests import tinysim
from tests.conftest import CHAOS, SPRING, pairs, release, rows, write_matrix
from tests.faults.conftest import SMALL, STEADY

LARGEST_GROWTH = 1.10
"""Of the driver's memory, the last quarter of the undisturbed rounds over the first."""

_LAST_LINES = 12
"""Of what was printed until a fault was found: the folder with all of it goes with the soak."""

_LOOK_SECONDS = 0.05
_LONGEST_ROUND_SECONDS = 600.0

EXIT_CODES = {
    "nothing": {0},
    "interrupt": {0, 130},
    "kill": {0, -signal.SIGKILL},
    "kill-dumper": {0},
    "kill-worker": {0},
    "kill-raylet": {0, 3},
}
"""How a round may end, by what was done to it; 0 also where it was done before anything was struck."""

TARGETS = {"kill-dumper": "dumper/__main__.py", "kill-worker": "ray::_Worker", "kill-raylet": "raylet/raylet"}
"""What stands on the command line of those that are struck; in other rounds it is the program itself."""

_TARGET_SECONDS = 5.0
"""For one of them to be there: an audit that has all of its dumps starts none."""

COUNTS = (2, 3)
"""Releases of an audit."""

GONE_SECONDS, GONE_AFTER_KILL_SECONDS = 10.0, 60.0
"""For processes to be gone after a round. Who is killed cannot end what it started: workers of Ray that were just
starting then look for their node for half a minute before they end by themselves."""


@dataclass(kw_only=True)
class Soak:
    """What has been seen so far."""

    folder: Path
    environment: Mapping[str, str]
    choose: random.Random
    reference: dict[int, list[tuple[Any, ...]]] = field(default_factory=dict)
    rounds: Counter[str] = field(default_factory=Counter)
    hits: Counter[str] = field(default_factory=Counter)
    """Rounds in which somebody was struck."""
    codes: Counter[int] = field(default_factory=Counter)
    memory: list[int] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def round(self, number: int) -> None:
        """One audit, disturbed or not; then the same again, undisturbed, until it is as it should be."""
        count = self.choose.choice(COUNTS)
        matrix = self._matrix(count)
        database = self.folder / f"store-{self.choose.choice('ab')}" / "audit.duckdb"
        if self.choose.random() < 0.25:
            shutil.rmtree(database.parent, ignore_errors=True)
        kind = self.choose.choice(tuple(EXIT_CODES))
        before = _stored(database)
        code = self._run(matrix, database, kind)
        self.rounds[kind] += 1
        self.codes[code] += 1
        self._expect(code in EXIT_CODES[kind], number, f"{kind}: exit code {code}")
        self._expect(before.items() <= _stored(database).items(), number, f"{kind}: a row was lost")
        if kind != "nothing" or code:
            code = self._run(matrix, database, "nothing")
        self._expect(code == 0, number, f"after {kind}: exit code {code}")
        found = pairs(database, matrix.stem)
        self._expect(found == self.reference[count], number, f"after {kind}: another result")
        left = self._left_behind(GONE_AFTER_KILL_SECONDS if kind == "kill" else GONE_SECONDS)
        self._expect(not left, number, f"after {kind}: left behind {left}")

    def refer(self) -> None:
        """Audit once without a disturbance, on stores of their own."""
        for count in COUNTS:
            matrix, database = self._matrix(count), self.folder / f"reference-{count}" / "audit.duckdb"
            code = self._run(matrix, database, "nothing")
            self._expect(code == 0, -1, f"the reference ended with {code}")
            self.reference[count] = pairs(database, matrix.stem)

    def _matrix(self, count: int) -> Path:
        path = self.folder / f"soak-{count}.yaml"
        return write_matrix(path, list(map(release, STEADY[:count])), [SPRING, CHAOS], **SMALL)

    def _run(self, matrix: Path, database: Path, kind: str) -> int:
        command = [sys.executable, "-m", "audit", "run", str(matrix), "--db", str(database)]
        with (self.folder / "output").open("ab") as output:
            process = subprocess.Popen(
                command, env=dict(self.environment), stdout=output, stderr=output, start_new_session=True
            )
        after = self.choose.uniform(0.5, 9.0)
        with _disturbed(process.pid, kind, after) as struck, _measured(process.pid) as peak:
            code = process.wait(_LONGEST_ROUND_SECONDS)
        self.hits[kind] += struck.is_set()
        if kind == "nothing":
            self.memory.append(peak[0])
        return code

    def _left_behind(self, within: float) -> list[str]:
        """Processes of the program or of its virtualenvs that are still there so many seconds later."""
        deadline = time.monotonic() + within
        while (found := _own(str(self.folder))) and time.monotonic() < deadline:
            time.sleep(0.2)
        return found

    def _expect(self, holds: bool, number: int, what: str) -> None:
        if not holds:
            printed = (self.folder / "output").read_text(encoding="utf-8", errors="replace").splitlines()
            self.faults.append("\n    ".join([f"round {number}: {what}; printed last:", *printed[-_LAST_LINES:]]))

    @property
    def growth(self) -> float:
        """Of the driver's memory: its median in the last quarter over that in the first."""
        quarter = max(1, len(self.memory) // 4)
        first, last = sorted(self.memory[:quarter]), sorted(self.memory[-quarter:])
        return last[len(last) // 2] / first[len(first) // 2]


@contextmanager
def _disturbed(parent: int, kind: str, after: float) -> Iterator[threading.Event]:
    """Do it to the process, or to one below it, after so many seconds; tell whether it was done."""
    struck, over = threading.Event(), threading.Event()

    def strike() -> None:
        deadline = time.monotonic() + _TARGET_SECONDS
        while kind != "nothing" and not over.is_set():
            if _strike(parent, kind):
                struck.set()
                return
            if time.monotonic() > deadline or over.wait(_LOOK_SECONDS):
                return

    timer = threading.Timer(after, strike)
    timer.start()
    try:
        yield struck
    finally:
        timer.cancel()
        over.set()
        timer.join()


def _strike(parent: int, kind: str) -> bool:
    """Hit the process, or one below it, if it is there."""
    try:
        if kind not in TARGETS:
            os.kill(parent, signal.SIGINT if kind == "interrupt" else signal.SIGKILL)
            return True
        for process in psutil.Process(parent).children(recursive=True):
            if TARGETS[kind] in " ".join(process.cmdline()):
                process.kill()
                return True
    except (psutil.Error, ProcessLookupError):
        pass  # it was quicker
    return False


@contextmanager
def _measured(pid: int) -> Iterator[list[int]]:
    """The largest memory of a process while it runs, in bytes."""
    peak, ended = [0], threading.Event()

    def look() -> None:
        while not ended.wait(_LOOK_SECONDS):
            try:
                program = psutil.Process(pid).children()  # the process itself is its guard
                peak[0] = max(peak[0], *(each.memory_info().rss for each in program), 0)
            except psutil.Error:
                return

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield peak
    finally:
        ended.set()
        thread.join()


def _own(place: str) -> list[str]:
    """Processes that name the place on their command line, as a dumper does, or in a variable, as parts of Ray do."""
    found = []
    for process in psutil.process_iter(["cmdline", "status", "environ"]):
        command = " ".join(process.info["cmdline"] or ())
        variables = (process.info["environ"] or {}).values()
        named = place in command or any(place in value for value in variables)
        if process.info["status"] != psutil.STATUS_ZOMBIE and named and process.pid != os.getpid():
            found.append(command[:120])
    return found


def _stored(database: Path) -> dict[str, str]:
    if not database.is_file():
        return {}
    try:
        return dict(rows(database, "SELECT cell_key, behaviour FROM internal.dumps WHERE behaviour IS NOT NULL"))
    except Exception as error:  # it was killed before its tables were there
        return {} if "does not exist" in str(error) else {"": str(error)}


def main() -> None:
    """Soak for a while, tell every minute, exit with 1 where anything was wrong."""
    parser = argparse.ArgumentParser(prog="soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="release-audit-soak-") as name:
        folder = Path(name)
        (folder / "wheels").mkdir()
        tinysim.build(folder / "wheels")
        own = {"UV_FIND_LINKS": str(folder / "wheels"), "RELEASE_AUDIT_CACHE": str(folder / "cache")}
        soak = Soak(folder=folder, environment={**os.environ, **own}, choose=random.Random(arguments.seed))
        soak.refer()
        began = told = time.monotonic()
        number = 0
        while time.monotonic() - began < arguments.seconds:
            soak.round(number)
            number += 1
            if time.monotonic() - told > 60 or soak.faults:
                told = time.monotonic()
                _say(f"{told - began:5.0f} s  {number} rounds  {len(soak.faults)} faults")
                for fault in soak.faults[-3:]:
                    _say(f"  {fault}")
        _say(f"{number} rounds: {dict(soak.rounds)}; struck {dict(soak.hits)}; exit codes {dict(soak.codes)}")
        _say(f"the driver's memory grew by a factor of {soak.growth:.3f} (at most {LARGEST_GROWTH})")
        for fault in soak.faults:
            _say(fault)
    sys.exit(bool(soak.faults) or soak.growth > LARGEST_GROWTH)


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
