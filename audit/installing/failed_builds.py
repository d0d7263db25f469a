"""Builds that failed by themselves, so that one which always does is not done for ever.

They are remembered in the cache, by what was built and with what: whoever needs it comes here, for an audit as well as
for a search, on every machine that builds.
"""

from __future__ import annotations

import contextlib
import json
import secrets
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from audit import folders
from audit.digests import digest
from audit.failures import MOST_RUNS, given_up
from audit.installing import uv, uv_turns
from audit.installing.uv import Answer

_RUN = secrets.token_hex(8)
"""This process: what several releases of an audit need fails once for all of them."""

_LONGEST_ERRORS = 2**16
"""Characters of what was said that are kept: more than is ever shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Failed:
    """A build, as it is remembered."""

    runs: int
    last: str
    """The run in which it failed last."""
    reason: str
    errors: str
    exit_code: int

    @property
    def answer(self) -> Answer:
        """What it would come to once more."""
        return Answer(
            ok=False, output="", errors=self.errors, exit_code=self.exit_code, known=given_up(self.reason, self.runs),
            offline=True,
        )  # fmt: skip


def patiently(build: Callable[[], Answer], *what: str) -> Answer:
    """Do a build that is described by ``what``, unless it failed in too many runs; remember what it came to."""
    compilers = (text for pair in sorted(uv_turns.toolchain().items()) for text in pair)
    place = _place() / f"{digest(uv.settings_digest(), *compilers, *what)}.json"
    failed = _read(place)
    if failed is not None and failed.runs >= MOST_RUNS:
        return failed.answer
    answer = build()
    with contextlib.suppress(OSError):  # what cannot be remembered is done again
        if answer.ok:
            place.unlink(missing_ok=True)
        elif answer.has_failed_to_build:
            folders.write_whole(place, json.dumps(asdict(_once_more(failed, answer))).encode())
    return answer


def forget() -> None:
    """Have all of them done again."""
    folders.remove(_place())


def _place() -> Path:
    return folders.cache() / "failed-builds"


def _once_more(failed: _Failed | None, answer: Answer) -> _Failed:
    if failed is not None and failed.last == _RUN:
        return failed
    now = _Failed(
        runs=1, last=_RUN, reason=answer.reason, errors=answer.errors[-_LONGEST_ERRORS:], exit_code=answer.exit_code
    )
    return now if failed is None else replace(now, runs=failed.runs + 1)


def _read(place: Path) -> _Failed | None:
    try:
        return _Failed(**json.loads(place.read_bytes()))
    except (OSError, ValueError, TypeError):  # there is none, or it is from another version
        return None
