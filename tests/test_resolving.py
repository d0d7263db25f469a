"""What requirements resolved to is remembered in the store, for as long as that is of use."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analysis.verdicts import Verdict
from audit.asked.release_rows import GeneratedRow
from audit.asked.releases import ReleaseRequest
from audit.asked.stimulus_spec import BankSpec
from audit.errors import UsageError
from audit.explanations import remembered_states
from audit.explanations.resolving import Resolver
from audit.failures import Failure
from audit.installing import index, locks
from audit.installing.interpreters import Interpreter
from audit.installing.locks import Lock, Release
from audit.planning import drawing
from audit.stimuli import stimulus
from audit.storage.store import Store
from tests import stored_runs
from tests.asked_releases import HERE, request
from tests.planned_cells import batch, drawn, planned

pytestmark = pytest.mark.usefixtures("own_cache")

OLDER, NEWER = (replace(request(f"six=={version}", day=None), id=version) for version in ("1.15.0", "1.16.0"))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "audit.duckdb") as opened:
        yield opened


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every request that uv is asked about, in the real way."""
    found: list[str] = []
    ask = locks.resolve

    def counted(each: ReleaseRequest) -> Release | Failure:
        found.append(each.id)
        return ask(each)

    monkeypatch.setattr(locks, "resolve", counted)
    return found


def age(store: Store, **by: float) -> None:
    store.query("UPDATE internal.index_answers SET answered = answered - ?", [datetime.timedelta(**by)])


def test_what_was_resolved_is_not_asked_again_in_one_command_or_the_next(store: Store, asked: list[str]) -> None:
    first = Resolver(store)
    older, newer = first.ends([OLDER, NEWER])
    assert (older.lock.packages, newer.lock.packages) == ((("six", "1.15.0"),), (("six", "1.16.0"),))
    assert first.resolve(replace(OLDER, id="called otherwise")) == replace(
        older, request=replace(OLDER, id="called otherwise")
    )
    assert first.as_of is None
    second = Resolver(store)
    assert second.ends([OLDER, NEWER]) == [older, newer]
    assert sorted(asked) == ["1.15.0", "1.16.0"]
    assert second.as_of is not None


def test_ends_that_are_known_are_told_however_old_and_with_their_time(store: Store, asked: list[str]) -> None:
    Resolver(store).ends([OLDER, NEWER])
    age(store, days=40)
    resolver = Resolver(store)
    resolver.ends([OLDER, NEWER])
    assert len(asked) == 2
    assert resolver.as_of is not None
    assert resolver.as_of < datetime.datetime.now() - datetime.timedelta(days=39)


def test_ends_of_different_days_are_not_mixed(store: Store, asked: list[str]) -> None:
    Resolver(store).ends([OLDER])
    age(store, days=2)
    resolver = Resolver(store)
    resolver.ends([OLDER, NEWER])
    assert sorted(asked) == ["1.15.0", "1.15.0", "1.16.0"]
    assert resolver.as_of is None


def test_a_search_goes_on_within_a_day_and_begins_anew_after_it(store: Store, asked: list[str]) -> None:
    Resolver(store).resolve(OLDER)
    age(store, hours=20)
    Resolver(store).resolve(OLDER)
    assert len(asked) == 1
    age(store, hours=20)
    Resolver(store).resolve(OLDER)
    assert len(asked) == 2


def test_fresh_asks_whatever_is_known(store: Store, asked: list[str]) -> None:
    Resolver(store).ends([OLDER, NEWER])
    fresh = Resolver(store, fresh=True)
    fresh.ends([OLDER, NEWER])
    fresh.resolve(OLDER)
    assert len(asked) == 4
    assert fresh.as_of is None


def test_other_index_settings_are_another_question(
    store: Store, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Resolver(store).resolve(OLDER)
    monkeypatch.setenv("UV_PRERELEASE", "disallow")
    Resolver(store).resolve(OLDER)
    assert len(asked) == 2


def test_the_lock_of_an_audit_is_taken_as_it_is(store: Store, asked: list[str]) -> None:
    resolver = Resolver(store, fresh=True)
    resolver.give(OLDER, "six==1.0 \\\n    --hash=sha256:00\n")
    assert resolver.ends([OLDER])[0].lock.packages == (("six", "1.0"),)
    assert asked == []


def test_what_does_not_resolve_is_told_and_not_kept(store: Store, asked: list[str]) -> None:
    wrong = request("six==99.0", day=None)
    for _ in range(2):
        with pytest.raises(UsageError, match=r"six==99\.0 cannot be resolved"):
            Resolver(store).ends([OLDER, wrong])
    assert asked.count("r") == 2


def test_versions_are_remembered_for_a_day(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    row = GeneratedRow.model_validate({"package": "six", "versions": ">=1.15,<1.17"})
    found = Resolver(store).versions(row, HERE, None)
    assert found[:2] == ("1.15.0", "1.16.0")
    monkeypatch.setattr(index, "versions", lambda *_: ("asked again",))
    assert Resolver(store).versions(row, HERE, None) == found
    assert Resolver(store, fresh=True).versions(row, HERE, None) == ("asked again",)
    age(store, days=2)
    assert Resolver(store).versions(row, HERE, None) == ("asked again",)


# States of audits


def release(name: str, *required: str, **versions: str) -> Release:
    text = "".join(f"{package}=={version}\n" for package, version in versions.items())
    interpreter = Interpreter(path=Path("/p"), implementation="CPython", version="3.11.7")
    return Release(request=replace(request(*required), id=name), interpreter=interpreter, lock=Lock.from_text(text))


@pytest.fixture
def audited(store: Store) -> Any:
    """An audit in which two releases differ in two of four states."""
    ends = [release("old", "a==1", a="1", b="7"), release("new", "a==2", a="2", b="8")]
    store.put_locks({each.lock.digest: (each.lock.text, each.lock.packages) for each in ends})
    given = stimulus.assemble({"forced": batch(4, 1)}, resets=0)
    store.put_stimuli([given])
    rows = [
        replace(stored_runs.release(each.id, place), lock_digest=each.lock.digest) for place, each in enumerate(ends)
    ]
    cells = [stored_runs.cell(name, place, name) for place, name in enumerate(("old", "new"))]
    for each in cells:
        store.query(
            "INSERT INTO internal.dumps VALUES (?, 'ok', '', ?, 'm', ?, '{}', 1, 0, now()::TIMESTAMP)",
            [each.cell_key, each.behaviour, given.digest],
        )
    judged = replace(stored_runs.judgement(Verdict.CHANGED), beyond=(1, 3))
    store.comparisons.put_comparison("new", "old", stored_runs.RUN.reads, judged, [])
    stored_runs.finish(store, stored_runs.RUN, rows, cells)
    return ends


@pytest.mark.parametrize("backwards", [False, True])
def test_states_in_which_an_audit_saw_two_releases_differ(store: Store, audited: Any, backwards: bool) -> None:
    assert len(audited) == 2
    ends = release("other name", "a==1", a="1", b="99"), release("newer", "a>1", a="2", c="1")
    found = remembered_states.between(store, "E", (ends[1], ends[0]) if backwards else ends)
    assert found is not None
    assert np.array_equal(found.starts, batch(4, 1).starts[[1, 3]])


def test_other_versions_or_environments_have_no_states(store: Store, audited: Any) -> None:
    older, _ = audited
    assert remembered_states.between(store, "E", (older, release("x", "a", a="3"))) is None
    assert remembered_states.between(store, "F", tuple(audited)) is None


def test_states_are_added_where_they_fit() -> None:
    own = drawn(planned("r"), batch(2, 3), batch(5, 1))
    more = drawing.extended(own, batch(3, 1), BankSpec())
    assert more.forced is not None
    assert len(more.forced.starts) == len(more.source) == 8
    assert more.stimulus.digest != own.stimulus.digest
    wide = replace(batch(3, 1), starts=np.zeros((3, 9)))
    assert drawing.extended(own, wide, BankSpec()) is own
