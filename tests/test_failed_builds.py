"""Builds that fail by themselves: they are remembered, and not done for ever."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from audit import folders
from audit.confining import protections
from audit.failures import MOST_RUNS, Failure
from audit.installing import failed_builds, locks, source_builds, source_cache, uv, uv_turns, venvs
from audit.installing.locks import Release
from audit.installing.uv import Answer
from audit.installing.venvs import Recipe
from tests.source_distributions import PLANTING, is_on, request, write_sdist

InRun = Callable[..., Failure]


@pytest.fixture(autouse=True)
def parted() -> None:
    if not is_on("builds"):
        pytest.skip("builds are not apart from fetching here, as doctor says")


@pytest.fixture
def in_run(builds: list[str], monkeypatch: pytest.MonkeyPatch) -> InRun:
    """What becomes of the release in the run of that number."""

    def resolved(number: int, *, week: str = "2026-45", again: bool = False) -> Failure:
        monkeypatch.setattr(failed_builds, "_run", "")  # and back to what it was
        failed_builds.take_part(str(number), again=again)
        monkeypatch.setattr(source_builds, "_week", lambda _: week)
        builds.clear()
        found = locks.resolve(request("tinysource"))
        assert isinstance(found, Failure)
        assert found.status == "unresolved", found
        return found

    return resolved


def test_what_never_builds_is_built_once_in_each_of_a_few_runs(sources: Path, builds: list[str], in_run: InRun) -> None:
    write_sdist(sources, PLANTING.replace("PLANT", "raise RuntimeError('never')"))
    for number in range(MOST_RUNS):
        for once_more in (False, True):
            assert in_run(number).reason.endswith("RuntimeError: never")
            assert builds == ([] if once_more else ["tinysource==1.0"])
    found = in_run(MOST_RUNS)
    assert builds == []
    assert f"RuntimeError: never; so it did in {MOST_RUNS} runs, and is not tried again" in found.reason
    assert "RuntimeError: never" in found.stderr_tail


def test_what_may_have_changed_is_built_again(sources: Path, builds: list[str], in_run: InRun) -> None:
    write_sdist(sources, PLANTING.replace("PLANT", "raise RuntimeError('never')"))
    for number in range(MOST_RUNS + 1):
        in_run(number)
    assert builds == []
    in_run(MOST_RUNS, week="2026-46")
    assert builds == ["tinysource==1.0"], "what it needs may have a newer version"
    in_run(MOST_RUNS + 1, again=True)
    assert builds == ["tinysource==1.0"], "the user wants it"
    in_run(MOST_RUNS + 1, again=True)
    assert builds == [], "it has been done again in this run"
    write_sdist(sources, PLANTING.replace("PLANT", "pass"))
    failed_builds.take_part("last", again=True)
    assert isinstance(locks.resolve(request("tinysource")), Release)
    assert not list((folders.cache() / failed_builds.FOLDER).glob("*.json"))


def test_a_build_of_another_version_than_its_own_is_remembered_too(
    sources: Path, builds: list[str], in_run: InRun
) -> None:
    """As without the files of git from which it would tell its version. Uv then says nothing of a backend."""
    write_sdist(sources, PLANTING.replace("Version: 1.0", "Version: 0.0").replace("PLANT", "pass"))
    for number in range(MOST_RUNS):
        in_run(number)
        assert builds
    assert "not tried again" in in_run(MOST_RUNS).reason
    assert builds == []


def test_what_a_build_prints_does_not_become_the_machines_fault_where_it_is_remembered(
    sources: Path, in_run: InRun
) -> None:
    said = (
        "print('x' * 2**17, flush=True); print('error: x\\n  cause: No space left on device (os error 28)', flush=True)"
    )
    write_sdist(sources, PLANTING.replace("PLANT", f"{said}; raise RuntimeError"))
    for number in range(MOST_RUNS + 1):
        found = in_run(number)
    assert "not tried again" in found.reason


def test_what_was_ended_for_writing_too_much_is_done_again(
    sources: Path, builds: list[str], in_run: InRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others may have written that: the cache of sources is theirs too."""
    monkeypatch.setattr(uv_turns, "LARGEST_BUILD_BYTES", 2**24)
    filling = "open(folder + '/filler', 'wb').write(b'x' * 2**26); __import__('time').sleep(3600)"
    write_sdist(sources, PLANTING.replace("PLANT", filling))
    for number in range(MOST_RUNS + 1):
        assert in_run(number).reason.startswith("it wrote more than")
        assert builds == ["tinysource==1.0"]


def test_what_takes_too_long_is_not_done_for_ever(
    sources: Path, builds: list[str], in_run: InRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uv_turns, "LONGEST_BUILD_SECONDS", 3)
    write_sdist(sources, PLANTING.replace("PLANT", "__import__('time').sleep(3600)"))
    for number in range(MOST_RUNS):
        assert in_run(number).reason == "it was not done within 3 s and was ended"
    assert "not tried again" in in_run(MOST_RUNS).reason
    assert builds == []


def test_an_interrupted_build_leaves_no_cache(sources: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    write_sdist(sources, PLANTING.replace("PLANT", "pass"))
    monkeypatch.setattr(uv_turns, "_await", interrupt)
    with pytest.raises(KeyboardInterrupt):
        locks.resolve(request("tinysource"))
    assert list(source_cache.place().iterdir()) == []


def test_without_builds_apart_no_credential_is_remembered(
    sources: Path, in_run: InRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protections, "parts_builds", lambda: False)
    monkeypatch.setenv("UV_INDEX_MINE_PASSWORD", "open sesame")
    write_sdist(sources, PLANTING.replace("PLANT", "raise RuntimeError(os.environ['UV_INDEX_MINE_PASSWORD'])"))
    for number in range(MOST_RUNS + 1):
        found = in_run(number)
        assert "RuntimeError: ***" in found.reason + found.stderr_tail
        assert "sesame" not in found.reason + found.stderr_tail
    assert "not tried again" in found.reason
    (remembered,) = (folders.cache() / failed_builds.FOLDER).glob("*.json")
    assert "sesame" not in remembered.read_text(encoding="utf-8")


def test_without_builds_apart_another_python_is_another_build(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def fail(*arguments: str, **_: object) -> Answer:
        asked.append(arguments[arguments.index("--python") + 1])
        return Answer(ok=False, output="", errors="error: The build backend returned an error\n", exit_code=1)

    monkeypatch.setattr(protections, "parts_builds", lambda: False)
    monkeypatch.setattr(uv, "call", fail)
    for python in ("/one/python", "/other/python") * 2:
        options = "compile", "-", "--python", python
        source_builds.resolve("pip", *options, source=[":all:"], python=Path(python), given="tinysource\n")
    assert asked == ["/one/python", "/other/python"]


def test_what_never_installs_is_not_built_for_ever(sources: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_sdist(sources, PLANTING.replace("PLANT", "assert not os.environ.get('CFLAGS'), 'never'"))
    release = locks.resolve(request("tinysource"))
    assert isinstance(release, Release)
    monkeypatch.setenv("CFLAGS", "-O1")
    folders.remove(source_cache.place())
    reasons = []
    for number in range(MOST_RUNS + 1):
        monkeypatch.setattr(failed_builds, "_run", str(number))
        failure = venvs.ensure(Recipe.of(release), "r")
        assert failure is not None
        assert failure.status == "unbuilt", failure
        reasons.append(failure.reason)
    assert ["not tried again" in each for each in reasons] == [False] * MOST_RUNS + [True]
    monkeypatch.delenv("CFLAGS")
    assert venvs.ensure(Recipe.of(release), "r") is None, "with other settings it is another build"


def test_who_lacks_the_index_is_not_remembered(sources: Path, in_run: InRun, monkeypatch: pytest.MonkeyPatch) -> None:
    write_sdist(sources, PLANTING.replace("PLANT", "pass"), requires="no-such-backend-of-release-audit")
    assert uv.settings_digest()
    for number in range(MOST_RUNS + 1):
        assert "not tried again" not in in_run(number).reason
