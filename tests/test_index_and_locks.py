"""Against the configured package index, through the real uv, with small packages of pure Python."""

from __future__ import annotations

import datetime
import json
import re
import shutil
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from audit.asked import matrix_file
from audit.asked.release_rows import GeneratedRow
from audit.asked.releases import ReleaseRequest
from audit.errors import IndexUnreachable, MatrixError
from audit.explanations.session import Quiet
from audit.failures import Failure, Status
from audit.installing import index, listing, locks
from audit.installing.interpreters import Interpreter
from audit.installing.locks import Lock, Release
from audit.planning import releasing
from tests.asked_releases import DAY, HERE, files, request, resolved

pytestmark = pytest.mark.usefixtures("own_cache")


def row(package: str, versions: str, **more: object) -> GeneratedRow:
    return GeneratedRow.model_validate({"package": package, "versions": versions, **more})


# The index


def test_versions_in_a_range_come_oldest_first_and_are_remembered(own_cache: Path) -> None:
    question = row("six", ">=1.13,<1.17")
    assert index.versions(question, HERE, DAY) == ("1.13.0", "1.14.0", "1.15.0", "1.16.0")
    (memory,) = files(own_cache / "versions")
    assert json.loads(memory.read_text()) == ["1.13.0", "1.14.0", "1.15.0", "1.16.0"]
    memory.write_text('["0.1"]')
    assert index.versions(question, HERE, DAY) == ("0.1",), "the second time the index is not asked"


def test_versions_of_another_day_or_range_are_another_question(own_cache: Path) -> None:
    assert index.versions(row("six", ">=1.15"), HERE, datetime.date(2021, 5, 4)) == ("1.15.0",)
    assert index.versions(row("six", ">=1.15"), HERE, datetime.date(2021, 5, 5)) == ("1.15.0", "1.16.0")
    assert len(files(own_cache / "versions")) == 2


def test_without_a_day_nothing_is_remembered(own_cache: Path) -> None:
    assert index.versions(row("six", "==1.16.0"), HERE, None) == ("1.16.0",)
    assert files(own_cache) == []


def test_the_base_of_a_post_release_is_listed_beside_it() -> None:
    assert index.versions(row("python-dateutil", ">=2.8.2,<3"), HERE, DAY) == ("2.8.2", "2.9.0", "2.9.0.post0")


def test_pre_releases_count_when_asked_for() -> None:
    day = datetime.date(2025, 4, 1)
    assert index.versions(row("typing-extensions", ">=4.12.2,<4.13.1"), HERE, day) == ("4.12.2", "4.13.0")
    with_them = index.versions(row("typing-extensions", ">=4.12.2,<4.13.1", prereleases=True), HERE, day)
    assert with_them == ("4.12.2", "4.13.0rc1", "4.13.0")


def test_nothing_in_the_range_is_an_empty_answer_that_is_not_remembered(own_cache: Path) -> None:
    assert index.versions(row("six", ">=99"), HERE, DAY) == ()
    assert files(own_cache) == []


def shelve(folder: Path, versions: tuple[str, ...]) -> None:
    """Wheels of a package that has nothing in it, in a folder that uv can use as an index."""
    for version in versions:
        with zipfile.ZipFile(folder / f"nothing_of_release_audit-{version}-py3-none-any.whl", "w") as wheel:
            information = f"nothing_of_release_audit-{version}.dist-info"
            wheel.writestr(
                f"{information}/METADATA",
                f"Metadata-Version: 2.1\nName: nothing-of-release-audit\nVersion: {version}\n",
            )
            wheel.writestr(f"{information}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            wheel.writestr(f"{information}/RECORD", "")


@pytest.mark.timeout(10)
@pytest.mark.parametrize(
    ("prereleases", "there", "expected"),
    [
        (False, ("1.9", "1.10", "1.0.post1", "1.0.post2", "1.0"), ("1.0", "1.0.post1", "1.0.post2", "1.9", "1.10")),
        (False, ("1.0rc1", "1.0", "2.0a1"), ("1.0",)),
        (True, ("2.0a1", "2.0.dev1", "1.0"), ("1.0", "2.0.dev1", "2.0a1")),
        (True, ("1.0rc1", "1.0rc2", "1.0"), ("1.0rc1", "1.0rc2", "1.0")),
        (True, ("1.0rc1.post1", "1.0rc1", "1.1"), ("1.0rc1", "1.0rc1.post1", "1.1")),
        (True, ("1.0rc1.post1", "1.0"), ("1.0rc1.post1", "1.0")),
        (False, ("1!0.5.post1", "1!0.5", "2.0"), ("2.0", "1!0.5", "1!0.5.post1")),
        (False, ("1.0+cpu", "1.0", "0.9"), ("0.9", "1.0", "1.0+cpu")),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_every_version_is_listed_once_in_order(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    prereleases: bool,
    there: tuple[str, ...],
    expected: tuple[str, ...],
) -> None:
    shelve(tmp_path, there)
    monkeypatch.setenv("UV_FIND_LINKS", str(tmp_path))
    assert index.versions(row("nothing-of-release-audit", "", prereleases=prereleases), HERE, None) == expected


def test_the_day_ends_at_midnight_utc() -> None:
    assert index.until(None) == []
    assert index.until(datetime.date(2024, 2, 29)) == ["--exclude-newer", "2024-03-01T00:00:00Z"]


def test_rows_are_written_out_in_version_order(tmp_path: Path) -> None:
    path = tmp_path / "matrix.yaml"
    path.write_text(
        f'name: m\npython: "{HERE}"\nexclude-newer: 2024-06-01\npins: [attrs]\nreleases:\n'
        '  - {package: six, versions: ">=1.15,<2", with: [toml], pins: [packaging], series: s}\n'
        '  - {id: own, requires: [six], exclude-newer: 2021-01-01, python: "3.12"}\n'
        "environments: [{id: E}]\n"
    )
    first, second, own = listing.expand(matrix_file.read(path))
    assert (first.id, second.id) == ("six-1.15.0", "six-1.16.0")
    assert first == ReleaseRequest(
        id="six-1.15.0",
        requires=("six==1.15.0", "toml"),
        pins=("attrs", "packaging"),
        python=HERE,
        exclude_newer=DAY,
        series="s",
    )
    assert (own.python, own.exclude_newer) == ("3.12", datetime.date(2021, 1, 1))


def test_a_row_without_versions_and_a_selector_without_releases_name_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "matrix.yaml"
    text = (
        f'name: m\npython: "{HERE}"\nexclude-newer: 2024-06-01\nreleases:\n'
        '  - package: six\n    versions: ">=1.16,<2"\n'
        "environments:\n  - id: E\n    releases: [six-1.15.0]\npairs: {against: six-2}\n"
    )
    path.write_text(text)
    with pytest.raises(MatrixError) as caught:
        listing.expand(matrix_file.read(path))
    assert caught.value.problems == (
        "environments[0].releases[0], line 9: 'six-1.15.0' matches no release",
        "pairs.against, line 10: 'six-2' is not the id of a release",
    )
    path.write_text(text.replace(">=1.16,<2", ">=99"))
    with pytest.raises(MatrixError, match=r"releases\[0\]\.versions, line 6: the index has no six in >=99"):
        listing.expand(matrix_file.read(path))


# Locks


def test_a_lock_has_hashes_for_every_package_and_no_place(own_cache: Path) -> None:
    release = resolved("python-dateutil==2.9.0.post0", pins=("six<1.16",))
    assert release.lock.packages == (("python-dateutil", "2.9.0.post0"), ("six", "1.15.0"))
    for entry in re.split(r"\n(?=\S)", release.lock.text.strip()):
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", entry), entry
    assert not re.search(r"://|index|find-links|@ |/", release.lock.text)
    assert release.lock.version_of("Python_DateUtil") == "2.9.0.post0"
    assert release.lock.version_of("numpy") is None


def test_a_lock_holds_no_address_of_an_index_whatever_uv_is_set_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = resolved("six==1.16.0")
    settings = "emit-index-url = true\nemit-find-links = true\nemit-index-annotation = true\n"
    (tmp_path / "uv.toml").write_text(f"[pip]\n{settings}", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert resolved("six==1.16.0").lock == plain.lock


def test_the_same_request_is_the_same_release_and_asks_the_index_once(own_cache: Path) -> None:
    first = resolved("six==1.16.0")
    (memory,) = files(own_cache / "locks")
    assert memory.read_text() == first.lock.text
    memory.write_text("six==1.15.0 \\\n    --hash=sha256:00\n")
    assert resolved("six==1.16.0").lock.packages == (("six", "1.15.0"),), "the second time the index is not asked"
    shutil.rmtree(own_cache)
    again = resolved("six==1.16.0")
    assert (again.lock.digest, again.key) == (first.lock.digest, first.key)


def test_what_is_asked_decides_the_memory() -> None:
    asked = request("six==1.16.0")
    assert locks.remembered(asked) is None
    locks.resolve(asked)
    assert locks.remembered(asked) is not None
    assert locks.remembered(replace(asked, id="other", series="s")) is not None
    assert locks.remembered(replace(asked, pins=("six<2",))) is None
    assert locks.remembered(replace(asked, requires=("six",))) is None
    assert locks.remembered(replace(asked, exclude_newer=datetime.date(2024, 6, 2))) is None
    assert locks.remembered(replace(asked, exclude_newer=None)) is None


def test_another_lock_or_python_is_another_release() -> None:
    interpreter = Interpreter(path=Path("/p"), implementation="CPython", version="3.11.7")
    lock = Lock.from_text("six==1.16.0 \\\n    --hash=sha256:00\n")
    release = Release(request=request("six"), interpreter=interpreter, lock=lock)
    other_lock = replace(release, lock=Lock.from_text("six==1.15.0 \\\n    --hash=sha256:00\n"))
    other_python = replace(release, interpreter=replace(interpreter, version="3.11.8"))
    elsewhere = replace(release, interpreter=replace(interpreter, path=Path("/q")), request=request("six", pins=("x",)))
    assert len({release.key, other_lock.key, other_python.key}) == 3
    assert elsewhere.key == release.key


def test_required_names_what_was_asked_for_at_its_locked_version() -> None:
    lock = Lock.from_text("gymnasium==1.0.0 \\\n    --hash=sha256:00\nmy-package==2\nnumpy==1.26.4\n")
    interpreter = Interpreter(path=Path("/p"), implementation="CPython", version="3.11.7")
    asked = request("gymnasium[mujoco]>=1", "My_Package", "absent; python_version<'3'")
    release = Release(request=asked, interpreter=interpreter, lock=lock)
    assert release.required == {"gymnasium": "1.0.0", "my-package": "2"}


def test_what_does_not_resolve_is_a_failure_with_the_resolvers_reason(own_cache: Path) -> None:
    failure = locks.resolve(request("six==99.0"))
    assert isinstance(failure, Failure)
    assert (failure.subject, failure.stage, failure.status) == ("r", "resolve", "unresolved")
    assert "six==99.0" in failure.reason
    assert "unsatisfiable" in failure.reason
    assert "\n" not in failure.reason
    assert failure.exit_code not in (None, 0)
    assert failure.stderr_tail
    assert failure.seconds > 0
    assert not failure.is_infrastructure
    assert files(own_cache) == [], "a failure is not remembered"


def test_pins_that_contradict_are_the_resolvers_reason_too() -> None:
    failure = locks.resolve(request("six==1.16.0", pins=("six<1.16",)))
    assert isinstance(failure, Failure)
    assert "six" in failure.reason


def test_an_index_that_does_not_answer_is_the_machines_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    monkeypatch.setenv("UV_NO_CACHE", "1")
    failure = locks.resolve(request("six==1.16.0"))
    assert isinstance(failure, Failure)
    assert failure.status == "unreachable"
    assert failure.is_infrastructure


def test_an_index_that_is_away_is_told_by_its_own_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not by that of a release that failed for itself, and was done first."""
    failures = {
        "own": Failure(subject="own", stage="resolve", status=Status.UNRESOLVED, reason="there is no wheel"),
        "away": Failure(subject="away", stage="resolve", status=Status.UNREACHABLE, reason="dns error"),
    }
    monkeypatch.setattr(releasing, "at_once", lambda _, asked: [(each, failures[each.id]) for each in asked])
    with pytest.raises(IndexUnreachable, match="cannot be reached: dns error"):
        releasing.resolve([replace(request("six"), id=name) for name in failures], Quiet())
