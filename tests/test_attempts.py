"""A package's own failure is tried again a few times, and not for ever; the machine's always."""

from __future__ import annotations

import pytest

from audit.failures import MOST_RUNS, Failure, Status
from audit.storage.store import Store
from audit.storage.stored_attempts import Attempt


def failure(status: str) -> Failure:
    return Failure(subject="r/E", stage="dump", status=Status(status), reason="it died", signal=11, stderr_tail="oh")


def given_up(store: Store, *keys: str, timeout: float = 5.0) -> dict[Attempt, Failure]:
    asked = [Attempt(key=key, subject=f"{key}/E", stage="probe") for key in keys]
    return store.attempts.given_up(asked, timeout)


def fail(store: Store, status: str, times: int, timeout: float = 5.0) -> None:
    for _ in range(times):
        store.attempts.count({"key": failure(status)}, [], timeout)


@pytest.mark.parametrize("status", ["crashed", "timeout", "damaged"])
def test_it_is_given_up_after_several_runs(store: Store, status: str) -> None:
    fail(store, status, MOST_RUNS - 1)
    assert given_up(store, "key") == {}
    fail(store, status, 1)
    ((asked, found),) = given_up(store, "key", "other").items()
    assert (asked.key, found.subject, found.stage) == ("key", "key/E", "probe")
    assert (found.status, found.signal, found.stderr_tail) == (status, 11, "oh")
    assert found.reason == f"it died; so it did in {MOST_RUNS} runs, and is not tried again (--again tries it)"


@pytest.mark.parametrize("status", ["worker-lost", "disk-full", "unreachable", "no-python", "no-sandbox"])
def test_the_machine_is_never_blamed(store: Store, status: str) -> None:
    fail(store, status, 5 * MOST_RUNS)
    assert given_up(store, "key") == {}


def test_more_time_is_another_chance_for_what_hung(store: Store) -> None:
    fail(store, "timeout", MOST_RUNS)
    assert given_up(store, "key", timeout=6.0) == {}
    assert len(given_up(store, "key", timeout=4.0)) == 1


def test_more_time_does_not_help_what_crashed(store: Store) -> None:
    fail(store, "crashed", MOST_RUNS)
    assert len(given_up(store, "key", timeout=600.0)) == 1


def test_of_questions_that_are_the_same_each_is_told_by_its_own_name(store: Store) -> None:
    fail(store, "crashed", MOST_RUNS)
    asked = [Attempt(key="key", subject=f"{name}/E", stage="dump") for name in ("r", "s")]
    assert [each.subject for each in store.attempts.given_up(asked, 5.0).values()] == ["r/E", "s/E"]


def test_an_answer_clears_it(store: Store) -> None:
    fail(store, "crashed", MOST_RUNS - 1)
    store.attempts.count({}, ["key"], 5.0)
    fail(store, "crashed", MOST_RUNS - 1)
    assert given_up(store, "key") == {}
