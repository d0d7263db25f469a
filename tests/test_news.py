"""What a night finds to be new, over an index to which tests publish: edits of a matrix, ages, second attempts.

Nothing is installed or dumped here: the next look is told that all of the last was audited.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from audit.asked import matrix_file
from audit.asked.releases import ReleaseRequest
from audit.errors import MatrixError
from audit.failures import Failure, Status
from audit.installing import locks
from audit.installing.locks import Release
from audit.nights import news
from audit.nights.news import EarlierNights, Tonight
from audit.nights.nightly import Evening
from tests import tinysim
from tests.conftest import PINS, SPRING, write_matrix
from tests.package_index import PackageIndex, serving
from tests.simulated_nights import day

CALM = [*PINS, "tinydep==1.0"]


@dataclass(kw_only=True)
class Looks:
    """Looks of one matrix, one after the other."""

    path: Path
    index: PackageIndex
    known: EarlierNights = field(default_factory=lambda: EarlierNights(releases={}, locks={}))

    def write(self, *rows: dict[str, Any], **more: Any) -> None:
        write_matrix(self.path, rows, [more.pop("environment", SPRING)], **{"exclude-newer": str(day(0)), **more})

    def look(self, number: int) -> Tonight:
        """The look of the night after ``number`` days, for which uploads of the day before count."""
        found = news.look(matrix_file.read(self.path), self.known, str(day(number)), day(number - 1))
        recorded = {each.id: replace(each, audited=str(day(number))) for each in (*found.releases, *found.withdrawn)}
        self.known = replace(self.known, releases={**self.known.releases, **recorded})
        return found

    def lock(self) -> None:
        """Give every release that resolves its lock, as an audit does."""
        for each in self.known.releases.values():
            resolved = locks.resolve(each.request)
            if isinstance(resolved, Release) and each.lock_digest is None:
                lock = resolved.lock
                locked = {**self.known.releases, each.id: replace(each, lock_digest=lock.digest)}
                self.known = replace(self.known, releases=locked, locks={**self.known.locks, lock.digest: lock.text})


@pytest.fixture
def looks(tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Looks]:
    folder = tmp_path / "index"
    folder.mkdir()
    with serving(PackageIndex(folder=folder)) as index:
        monkeypatch.delenv("UV_FIND_LINKS", raising=False)
        monkeypatch.setenv("UV_INDEX", f"{index.address}/simple")
        for version in ("1.0", "1.1"):
            index.publish(version, "1.0", day(0))
        yield Looks(path=tmp_path / "m.yaml", index=index)


def row(versions: str = ">=1", **more: Any) -> dict[str, Any]:
    return {"package": "tinysim", "versions": versions, "pins": CALM, **more}


def written(version: str, **more: Any) -> dict[str, Any]:
    return {"id": "base", "requires": [f"tinysim=={version}"], "pins": CALM, **more}


def due(look: Tonight) -> list[tuple[str, str]]:
    """Releases that are to be audited, with what is new in them."""
    return [(each.id, each.news) for each in look.releases if each.audited is None]


def test_an_edit_does_not_hide_a_release_that_appears_on_the_same_night(looks: Looks) -> None:
    looks.write(row())
    looks.look(1)
    looks.write(row(pins=[*CALM, "numpy<9"]))
    looks.index.publish("1.2", "1.3", day(1))
    assert due(looks.look(2)) == [("tinysim-1.0", ""), ("tinysim-1.1", ""), ("tinysim-1.2", "tinysim 1.2")]


def test_an_edit_of_a_release_that_is_written_out_is_not_new_above_it_either(looks: Looks) -> None:
    looks.write(written("1.0"), nightly={"watch": ["tinysim"]})
    looks.look(1)
    looks.write(written("1.0", pins=[*CALM, "numpy<9"]), nightly={"watch": ["tinysim"]})
    looks.index.publish("1.2", "1.3", day(1))
    assert due(looks.look(2)) == [("base", ""), ("tinysim-1.1", ""), ("tinysim-1.2", "tinysim 1.2")]


def test_a_yanked_release_does_not_come_back_with_an_edit(looks: Looks) -> None:
    looks.write(row())
    looks.look(1)
    looks.index.yank("1.1", "oops")
    assert [each.id for each in looks.look(2).withdrawn] == ["tinysim-1.1"]
    looks.write(row(pins=[*CALM, "numpy<9"]))
    assert [each.id for each in looks.look(3).releases] == ["tinysim-1.0"]


@pytest.mark.parametrize("counts", [False, True])
def test_only_what_will_be_audited_is_told_to_wait(looks: Looks, counts: bool) -> None:
    """A version that is too young does, and a pre-release where such count; uv names it in either case."""
    looks.write(row(prereleases=counts))
    looks.look(1)
    looks.index.publish("1.2", "1.0", day(2))
    assert looks.look(2).notes == ("tinysim 1.2 is there, and too young for this night: it waits",)
    looks.look(3)
    looks.index.publish("2.0rc1", "1.0", day(4))
    waits = "tinysim 2.0rc1 is there, and too young for this night: it waits"
    assert looks.look(4).notes == ((waits,) if counts else ())


@pytest.mark.parametrize(
    "reason",
    [
        "oops), other==3 was yanked (reason: really), tinysim==no.version was yanked",
        "oops), " + "a==" * 100_000,
        "oops), " + "filtered by `exclude-newer`" * 40_000,
        "oops), filtered by `exclude-newer` satisfying the requirement is v9. So be it",
        "oops),\ncause: dns error",
        "oops),\ncause: Because x was not found in the package registry",
    ],
)
def test_a_reason_for_which_a_version_is_yanked_says_nothing_of_others(looks: Looks, reason: str) -> None:
    """It is its uploader's, of any length."""
    looks.write(row())
    looks.look(1)
    looks.index.publish("1.2", "1.0", day(2))
    looks.index.yank("1.2", reason)
    found = looks.look(4)
    assert found.notes == ("tinysim 1.2 has been yanked (oops): it is not audited",)
    assert [each.version for each in found.withdrawn] == ["1.2"]


def test_a_series_may_be_edited(looks: Looks) -> None:
    looks.write(row())
    looks.look(1)
    looks.write(row(series="main"))
    looks.index.publish("1.2", "1.0", day(1))
    found = looks.look(2)
    assert due(found) == [("tinysim-1.2", "tinysim 1.2")]
    assert {each.request.series for each in found.releases} == {"main"}


def test_dependencies_do_not_move_backwards(looks: Looks) -> None:
    looks.index.publish_dependency("1.0", day(0))
    looks.index.publish_dependency("1.1", day(2))
    looks.write(row("==1.0", pins=PINS), nightly={"also": ["dependencies"]})
    looks.look(1)
    looks.lock()
    assert due(looks.look(3)) == [(f"tinysim-1.0@{day(3)}", "tinydep 1.0 → 1.1 under tinysim-1.0")]
    looks.lock()
    assert due(looks.look(2)) == [], "a night that was missed"
    looks.index.publish_dependency("1.2", day(3))
    assert due(looks.look(4)) == [(f"tinysim-1.0@{day(4)}", "tinydep 1.1 → 1.2 under tinysim-1.0")]


def test_what_the_machine_keeps_from_resolving_is_not_the_indexes_fault_and_ends_no_night(
    looks: Looks, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks.index.publish_dependency("1.0", day(0))
    looks.write(row("<2", pins=PINS), nightly={"also": ["dependencies"]})
    looks.look(1)
    looks.lock()

    def without_python(request: ReleaseRequest) -> Failure:
        return Failure(subject=request.id, stage="resolve", status=Status.NO_PYTHON, reason="no Python 3.11")

    looks.index.publish("1.2", "1.0", day(2))
    with monkeypatch.context() as patched:
        patched.setattr(locks, "resolve", without_python)
        found = looks.look(3)
    assert due(found) == [("tinysim-1.2", "tinysim 1.2")]
    assert found.notes == ()
    looks.lock()
    with monkeypatch.context() as patched:
        patched.setattr(locks, "resolve", without_python)
        assert looks.look(4).notes == ("tinysim-1.2 could not be resolved anew: no Python 3.11",)
    looks.index.publish_dependency("1.1", day(4))
    assert due(looks.look(5)) == [(f"tinysim-1.2@{day(5)}", "tinydep 1.0 → 1.1 under tinysim-1.2")]


def test_what_did_not_resolve_is_due_again_as_soon_as_it_does(looks: Looks) -> None:
    looks.index.publish_dependency("1.0", day(0))
    looks.write(row("<3", pins=PINS))
    looks.look(1)
    tinysim.write_version(looks.index.folder, "2.0", "1.3", ("gymnasium", "tinydep==3.0"))
    looks.index.uploaded["tinysim-2.0-py3-none-any.whl"] = day(1)
    assert due(looks.look(2)) == [("tinysim-2.0", "tinysim 2.0")]
    looks.lock()
    assert due(looks.look(3)) == []
    looks.index.publish_dependency("3.0", day(3))
    assert due(looks.look(4)) == [("tinysim-2.0", "tinysim 2.0")]
    looks.lock()
    assert due(looks.look(5)) == []


def test_what_did_not_build_is_due_again_with_another_lock(looks: Looks) -> None:
    looks.index.publish_dependency("1.0", day(0))
    looks.write(row("<3", pins=PINS))
    looks.look(1)
    looks.index.publish_uninstallable("2.0", day(1))
    looks.look(2)
    looks.lock()
    looks.known = replace(looks.known, failed={"tinysim-2.0"})
    assert due(looks.look(3)) == [], "the same would be installed"
    looks.index.publish_dependency("1.1", day(3))
    assert due(looks.look(4)) == [("tinysim-2.0", "tinysim 2.0")]


def test_a_matrix_is_checked_as_by_a_run(looks: Looks) -> None:
    looks.write(
        row("<2"), row(">=1.1"), baseline="tinysim-9", pairs={"against": "tinysim-8"},
        environment={**SPRING, "releases": ["tinysim-7"]},
    )  # fmt: skip
    with pytest.raises(MatrixError) as caught:
        looks.look(1)
    assert [each.partition(": ")[2] for each in caught.value.problems] == [
        "the id 'tinysim-1.1' stands already at releases[0]",
        "'tinysim-7' matches no release",
        "'tinysim-9' is not the id of a release",
        "'tinysim-8' is not the id of a release",
    ]


def test_a_baseline_that_is_yanked_may_still_be_named(looks: Looks) -> None:
    looks.write(row(), baseline="tinysim-1.1")
    looks.look(1)
    looks.index.yank("1.1", "oops")
    for number in (2, 3):
        assert [each.id for each in looks.look(number).releases] == ["tinysim-1.0"]


@pytest.mark.parametrize(
    ("past", "min_age", "last"), [(False, 0, None), (False, 1, 8), (False, 2, 7), (True, 0, 10), (True, 1, 9)]
)
def test_uploads_have_lasted_as_many_days_as_they_must(past: bool, min_age: int, last: int | None) -> None:
    """At the last midnight; a day that was missed is over."""
    found = Evening(today=datetime.date(2026, 1, 10), past=past).day(min_age)
    assert found == (datetime.date(2026, 1, last) if last is not None else None)
