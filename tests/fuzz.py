"""Fuzz the readers of files that others write: ``python -m tests.fuzz --seconds 600 [matrix|laws|answers]``.

Whatever is in a file, it is read or refused with the program's own error, within seconds and bounded memory. The first
example that is not ends the run and is shown.
"""

from __future__ import annotations

import argparse
import resource
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from audit.storage.store import Store
from tests import fuzzed_answers, fuzzed_matrices

SECONDS_EACH = 20
"""Of computing that one file may take; the slowest shipped one takes two."""

MORE_BYTES = 2 * 2**30
"""Of address space, beyond what the process has when it begins."""

LEAST = 20
"""Examples, however little of the time is left on a busy machine."""

_ROUND = 200

Check = Callable[[Any], bool]


class _Rang(BaseException):
    """Not an ``Exception``, so that nobody catches it on the way."""


@contextmanager
def within(seconds: int) -> Iterator[None]:
    def ring(*_: object) -> None:
        raise _Rang

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds)  # of computing: others may use the cores as well
    try:
        yield
    except _Rang:
        raise AssertionError(f"it took more than {seconds} seconds") from None
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def fuzz(strategy: st.SearchStrategy[Any], check: Check, *, seconds: float, first_seed: int = 0) -> Counter[str]:
    """Rounds of examples, each with another seed, until the time is over; how many were read and refused.

    There are always a few of them.
    """
    counts: Counter[str] = Counter()
    end = time.monotonic() + seconds
    number = first_seed

    @settings(
        max_examples=_ROUND,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def one_round(content: Any) -> None:
        if counts.total() < LEAST or time.monotonic() < end:
            with within(SECONDS_EACH):
                counts["read" if check(content) else "refused"] += 1

    while time.monotonic() < end:
        seed(number)(one_round)()
        number += 1
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(prog="tests.fuzz", description=__doc__)
    parser.add_argument("readers", nargs="*", help="matrix, laws, answers; default: all")
    parser.add_argument("--seconds", type=float, default=600.0, help="for each of them")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    warnings.simplefilter("error")
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    with tempfile.TemporaryDirectory(prefix="release-audit-fuzz-") as name, Store(Path(name) / "f.duckdb") as store:
        resource.setrlimit(resource.RLIMIT_AS, (used + MORE_BYTES, resource.RLIM_INFINITY))
        folder = Path(name)
        readers: dict[str, tuple[st.SearchStrategy[Any], Check]] = {
            "matrix": (
                fuzzed_matrices.contents(fuzzed_matrices.MATRICES),
                lambda content: fuzzed_matrices.matrix_is_read_or_refused(folder, content),
            ),
            "laws": (
                fuzzed_matrices.contents(fuzzed_matrices.LAWS),
                lambda content: fuzzed_matrices.laws_are_read_or_refused(folder, content),
            ),
            "answers": (
                fuzzed_answers.contents(),
                lambda both: fuzzed_answers.answer_is_read_or_damaged(folder / "a.npz", store, *both),
            ),
        }
        for reader in arguments.readers or readers:
            strategy, check = readers[reader]
            counts = fuzz(strategy, check, seconds=arguments.seconds, first_seed=arguments.seed)
            sys.stdout.write(
                f"{reader}: {sum(counts.values())} files, {counts['read']} read, {counts['refused']} refused\n"
            )
            sys.stdout.flush()


if __name__ == "__main__":
    main()
