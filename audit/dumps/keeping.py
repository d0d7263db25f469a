"""Keep things on a thread of its own: whatever waits is kept together, so that one transaction serves many.

A transaction costs milliseconds however little is in it. Where cells come in slowly each is committed as it comes in;
where they come in faster than that, those that came in meanwhile share the next one. Nothing is told as done before it
is committed, and nothing waits for a clock.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, Self, TypeVar

MOST_WAITING = 4096
"""Things that wait. A transaction of so many rows takes under a second."""

MOST_BYTES = 64 * 2**20
"""Of what waits: beyond it, whoever brings more waits too, so that memory stays bounded."""

Thing = TypeVar("Thing")


class Keeper(Generic[Thing]):
    """Use as a context manager: on leaving, all that was put has been kept, or the reason why not is raised."""

    def __init__(self, keep: Callable[[Sequence[Thing]], None], size: Callable[[Thing], int]) -> None:
        self._keep = keep
        self._size = size
        self._waiting: deque[Thing] = deque()
        self._bytes = 0
        self._closed = False
        self._error: BaseException | None = None
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._work, name="keeper", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join()
        self._raise()

    def put(self, thing: Thing) -> None:
        """Hand over; wait where too much waits already. Raises what went wrong with things that were put before."""
        with self._changed:
            self._changed.wait_for(lambda: self._error is not None or self._has_room())
            self._raise()
            self._waiting.append(thing)
            self._bytes += self._size(thing)
            self._changed.notify_all()

    def _has_room(self) -> bool:
        return len(self._waiting) < MOST_WAITING and self._bytes < MOST_BYTES

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error

    def _work(self) -> None:
        while things := self._taken():
            try:
                self._keep(things)
            except BaseException as error:  # of whatever kind: it is raised where things are put
                with self._changed:
                    self._error = error
                    self._changed.notify_all()
                return

    def _taken(self) -> list[Thing]:
        """All that waits; nothing when no more will come."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed)
            things = list(self._waiting)
            self._waiting.clear()
            self._bytes = 0
            self._changed.notify_all()
            return things
