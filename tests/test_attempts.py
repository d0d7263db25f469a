"""A package's own failure is tried again a few times, and not for ever; the machine's always."""

from __future__ import annotations

import pytest

from audit.failures import Failure, Status
from audit.storage.store import Store
from audit.storage.stored_attempts import MOST_RUNS


def failure(status: str) -> Failure:
    return Failure(subject="r/E", stage="dump", status=Status(status), reason="it died", signal=11, stderr_tail="oh")


def fail(store: Store, status: str, times: int, timeout: float = 5.0) -> None:
    for _ in range(times):
        store.attempts.count({"key": failure(status)}, [], timeout)


@pytest.mark.parametrize("status", ["crashed", "timeout", "damaged"])
def test_it_is_given_up_after_several_runs(store: Store, status: str) -> None:
    fail(store, status, MOST_RUNS - 1)
    assert store.attempts.given_up(["key"], 5.0) == {}
    fail(store, status, 1)
    found = store.attempts.given_up(["key", "other"], 5.0)
    assert list(found) == ["key"]
    assert (found["key"].status, found["key"].signal, found["key"].stderr_tail) == (status, 11, "oh")
    assert found["key"].reason == f"it died; so it did in {MOST_RUNS} runs, and is not tried again (--again tries it)"


@pytest.mark.parametrize("status", ["worker-lost", "disk-full", "unreachable", "no-python", "no-sandbox"])
def test_the_machine_is_never_blamed(store: Store, status: str) -> None:
    fail(store, status, 5 * MOST_RUNS)
    assert store.attempts.given_up(["key"], 5.0) == {}


def test_more_time_is_another_chance_for_what_hung(store: Store) -> None:
    fail(store, "timeout", MOST_RUNS)
    assert store.attempts.given_up(["key"], 6.0) == {}
    assert list(store.attempts.given_up(["key"], 4.0)) == ["key"]


def test_more_time_does_not_help_what_crashed(store: Store) -> None:
    fail(store, "crashed", MOST_RUNS)
    assert list(store.attempts.given_up(["key"], 600.0)) == ["key"]


def test_an_answer_clears_it(store: Store) -> None:
    fail(store, "crashed", MOST_RUNS - 1)
    store.attempts.count({}, ["key"], 5.0)
    fail(store, "crashed", MOST_RUNS - 1)
    assert store.attempts.given_up(["key"], 5.0) == {}
