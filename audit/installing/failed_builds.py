"""Builds that failed by themselves, so that one which always does is not done for ever.

They are remembered in the cache, by what was built and with what: whoever needs it comes here, for an audit as well as
for a search, on every machine that builds.
"""

from __future__ import annotations

import contextlib
import json
import secrets
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from audit import folders
from audit.digests import digest
from audit.failures import MOST_RUNS, readable
from audit.installing import uv, uv_turns, uv_variables
from audit.installing.uv import Answer

FOLDER = "failed-builds"

_run = secrets.token_hex(8)
"""The audit or search that is made: what several releases of it need fails once for all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Failed:
    """A build, as it is remembered. It may be shown to others: there are no credentials in it."""

    runs: int
    last: str
    """The run in which it failed last."""
    reason: str
    errors: str
    exit_code: int

    @property
    def answer(self) -> Answer:
        """What it would come to once more."""
        given_up = (
            f"; so it did in {self.runs} runs, and is not tried again "
            f"(run --again tries it, and so does who deletes `{FOLDER}` in the cache)"
        )
        known = self.reason + (given_up if self.runs >= MOST_RUNS and self.last != _run else "")
        return Answer(ok=False, output="", errors=self.errors, exit_code=self.exit_code, known=known)


def run() -> str:
    """The name of this run, for workers in processes of their own."""
    return _run


def take_part(name: str, *, again: bool) -> None:
    """Work for the run of that name; ``again`` where it is to forget what failed before."""
    global _run  # a worker learns it when it starts, and has no other
    _run = name
    if again:
        forget()


def patiently(build: Callable[[], Answer], *what: str) -> Answer:
    """Do a build that is described by ``what``, unless it failed in this run or in too many; remember how it failed."""
    place = _place(what)
    with folders.locked(place.with_suffix(".lock")):  # who needs the same meanwhile waits for what it comes to
        failed = _read(place)
        if failed is not None and (failed.last == _run or failed.runs >= MOST_RUNS):
            return failed.answer
        answer = build()
        with contextlib.suppress(OSError):  # what cannot be remembered is done again
            if answer.ok:
                place.unlink(missing_ok=True)
            elif answer.is_own_fault:
                runs = 1 if failed is None else failed.runs + 1
                folders.write_whole(place, json.dumps(asdict(_remembered(answer, runs))).encode())
    return answer


def forget() -> None:
    """Have all of them done again, but what has failed in this run."""
    for place in (folders.cache() / FOLDER).glob("*.json"):
        failed = _read(place)
        if failed is None or failed.last != _run:
            place.unlink(missing_ok=True)


def _place(what: tuple[str, ...]) -> Path:
    compilers = (text for pair in sorted(uv_turns.toolchain().items()) for text in pair)
    return folders.cache() / FOLDER / f"{digest(uv.settings_digest(), *compilers, *what)}.json"


def _remembered(answer: Answer, runs: int) -> _Failed:
    told = readable(uv_variables.without(answer.secrets, answer.errors))
    return _Failed(runs=runs, last=_run, reason=readable(answer.reason), errors=told, exit_code=answer.exit_code)


def _read(place: Path) -> _Failed | None:
    try:
        return _Failed(**json.loads(place.read_bytes()))
    except (OSError, ValueError, TypeError):  # there is none, or it is from another version
        return None
