"""Things are kept together when they come in faster than they can be kept, and none is lost or told too early."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest

from audit.dumps import keeping
from audit.dumps.keeping import Keeper
from audit.errors import StoreError


def no_size(_: int) -> int:
    return 0


def test_what_comes_in_while_something_is_kept_is_kept_together() -> None:
    kept: list[list[int]] = []
    first, released = threading.Event(), threading.Event()

    def keep(things: Sequence[int]) -> None:
        first.set()
        released.wait(10)
        kept.append(list(things))

    with Keeper(keep, no_size) as keeper:
        keeper.put(0)
        assert first.wait(10), "one alone does not wait for others"
        for thing in range(1, 6):
            keeper.put(thing)
        released.set()
    assert kept == [[0], [1, 2, 3, 4, 5]]


def test_everything_is_kept_on_leaving_however_that_comes_about() -> None:
    kept: list[int] = []

    def interrupted() -> None:
        with Keeper(kept.extend, no_size) as keeper:
            for thing in range(100):
                keeper.put(thing)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert kept == list(range(100))


def test_what_goes_wrong_is_raised_where_things_are_put() -> None:
    def full(_: Sequence[int]) -> None:
        raise StoreError("the disk is full")

    def many() -> None:
        with Keeper(full, no_size) as keeper:
            for thing in range(10 * keeping.MOST_WAITING):  # more than may wait: it must not wait for ever
                keeper.put(thing)

    with pytest.raises(StoreError, match="full"):
        many()


@pytest.mark.parametrize("size", [keeping.MOST_BYTES, keeping.MOST_BYTES // 4, 0])
def test_no_more_waits_than_memory_is_meant_for(size: int) -> None:
    largest = 0

    def keep(things: Sequence[int]) -> None:
        nonlocal largest
        largest = max(largest, len(things))

    with Keeper(keep, lambda _: size) as keeper:
        for thing in range(2 * keeping.MOST_WAITING if not size else 50):
            keeper.put(thing)
    assert 0 < largest <= (keeping.MOST_BYTES // size if size else keeping.MOST_WAITING)
