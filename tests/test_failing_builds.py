"""A build that fails, or does not end by itself: whose fault it is, how often it is done, and what is left of it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from audit.asked.release_rows import GeneratedRow
from audit.confining import protections, weighing
from audit.confining.confinement import Bounds
from audit.confining.weighing import Weight
from audit.failures import Failure, Status
from audit.installing import (
    index,
    interpreters,
    locks,
    source_builds,
    source_cache,
    uv,
    uv_turns,
    venvs,
)
from audit.installing.locks import Release
from audit.installing.uv import Answer
from audit.installing.venvs import Recipe
from tests.small_disks import small_disk
from tests.source_distributions import PLANTING, is_on, request, write_sdist


@pytest.mark.parametrize("said", ["Failed to fetch a model: dns error", "No space left on device (os error 28)"])
def test_a_build_does_not_pass_off_its_failure_as_the_machines(sources: Path, builds: list[str], said: str) -> None:
    write_sdist(sources, PLANTING.replace("PLANT", f"print({said!r}, flush=True); raise RuntimeError({said!r})"))
    found = locks.resolve(request("tinysource"))
    assert isinstance(found, Failure)
    assert (found.status, said in found.stderr_tail) == ("unresolved", True), found
    assert builds in (["tinysource==1.0"], []), "it would fail in the same way once more"


@pytest.mark.parametrize(
    ("limit", "most", "plant"),
    [
        ("LARGEST_BUILD_BYTES", 2**24, "open(os.path.join(folder, 'filler'), 'wb').write(b'x' * 2**26)"),
        ("MOST_FILES", 500, "[open(os.path.join(folder, str(number)), 'w').close() for number in range(2000)]"),
        ("LARGEST_BUILD_BYTES", 2**24, "open(os.environ['HOME'] + '/filler', 'wb').write(b'x' * 2**26)"),
    ],
)
def test_a_build_that_writes_without_end_is_ended(
    sources: Path, builds: list[str], monkeypatch: pytest.MonkeyPatch, limit: str, most: int, plant: str
) -> None:
    write_sdist(sources, PLANTING.replace("PLANT", f"{plant}; __import__('time').sleep(3600)"))
    if not is_on("builds"):
        return  # doctor says so
    monkeypatch.setattr(uv_turns, limit, most)
    found = locks.resolve(request("tinysource"))
    assert isinstance(found, Failure)
    assert (found.status, found.reason.startswith("it wrote more than")) == ("unresolved", True), found
    assert builds == ["tinysource==1.0"], "it would do the same once more"
    assert not source_cache.place().with_suffix(".unfinished").exists()
    assert list(source_cache.place().iterdir()) == [], "else what is left of builds adds up"


def test_a_build_that_takes_too_long_is_done_once(
    sources: Path, builds: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_sdist(sources, PLANTING.replace("PLANT", "__import__('time').sleep(3600)"))
    if not is_on("builds"):
        return  # doctor says so
    monkeypatch.setattr(uv_turns, "LONGEST_BUILD_SECONDS", 5)
    found = locks.resolve(request("tinysource"))
    assert isinstance(found, Failure)
    assert (found.status, found.reason) == ("unresolved", "it was not done within 5 s and was ended")
    assert builds == ["tinysource==1.0"]
    assert list(source_cache.place().iterdir()) == []


def test_a_build_that_takes_too_long_is_told_where_it_is_not_apart_from_fetching(
    sources: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_sdist(sources, PLANTING.replace("PLANT", "__import__('time').sleep(60)"))
    interpreters.find("3.11")  # which asks uv too
    monkeypatch.setattr(protections, "parts_builds", lambda: False)
    monkeypatch.setattr(uv, "TIMEOUT_SECONDS", 3)
    found = locks.resolve(request("tinysource"))
    assert isinstance(found, Failure)
    told = "it was ended by this program, as it was not done within 3 s"
    assert (found.status, found.reason) == ("unresolved", told)


def test_what_an_ended_build_left_stays_as_long_as_others_build(own_cache: Path) -> None:
    with source_cache.in_use():
        with source_cache.in_use():
            (source_cache.place() / "left").touch()
            source_cache.begun()
        assert (source_cache.place() / "left").exists(), "somebody builds"
    assert not (source_cache.place() / "left").exists()
    with source_cache.in_use():
        (source_cache.place() / "kept").touch()
    assert (source_cache.place() / "kept").exists()


def test_what_is_left_where_its_last_user_was_killed_goes_before_the_next_build(own_cache: Path) -> None:
    (source_cache.place() / "left").touch()
    source_cache.begun()
    with source_cache.in_use():
        assert not (source_cache.place() / "left").exists()


def test_a_build_that_hides_what_it_writes_is_ended_and_the_next_is_seen_again(
    sources: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dig = "os.chdir(folder)\n    for _ in range(30): os.mkdir('d' * 250); os.chdir('d' * 250)\n    "
    write_sdist(sources, PLANTING.replace("PLANT", f"{dig}__import__('time').sleep(3600)"))
    if not is_on("builds"):
        return  # doctor says so
    found = locks.resolve(request("tinysource"))
    assert isinstance(found, Failure)
    assert (found.status, found.reason) == ("unresolved", "it wrote where nobody can look, and was ended")
    filling = "open(folder + '/filler', 'wb').write(b'x' * 2**26); __import__('time').sleep(3600)"
    write_sdist(sources, PLANTING.replace("PLANT", filling))
    monkeypatch.setattr(uv_turns, "LARGEST_BUILD_BYTES", 2**24)
    found = locks.resolve(request("tinysource"))
    assert isinstance(found, Failure)
    assert found.reason.startswith("it wrote more than"), found


def test_folders_too_deep_to_be_removed_at_once_are_the_packages_fault(sources: Path) -> None:
    dig = "os.chdir(asked[asked.index('--target') + 1])\n    for _ in range(3000): os.mkdir('d'); os.chdir('d')\n    "
    write_sdist(sources, PLANTING.replace("PLANT", f"{dig}raise RuntimeError"))
    if not is_on("builds"):
        return  # doctor says so
    found = locks.resolve(request("tinysource"))
    assert isinstance(found, Failure)
    assert found.status == "unresolved"


def test_what_a_build_calls_its_folders_can_be_stored(sources: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has no say in whether a run can be recorded, also where it is not apart from fetching."""
    plant = """
    here, name = os.getcwd(), b"\\x1b[31mdeep\\xff" + b"d" * 240
    if "sync" in asked:
        os.chdir(os.path.dirname(os.path.dirname(asked[asked.index("--python") + 1])))
        for _ in range(30): os.mkdir(name); os.chdir(name)
        os.chdir(here)"""
    monkeypatch.setattr(protections, "parts_builds", lambda: False)
    monkeypatch.setenv("UV_NO_CACHE", "1")  # else the wheel that was built to be resolved is installed
    write_sdist(sources, PLANTING.replace("PLANT", plant))
    release = locks.resolve(request("tinysource"))
    assert isinstance(release, Release)
    failure = venvs.ensure(Recipe.of(release), "r")
    assert failure is not None
    assert failure.reason.startswith("it installs what nobody can look into: deepd"), failure


@pytest.mark.parametrize(("written", "status"), [(0, "disk-full"), (2**24, "unresolved")])
def test_a_build_that_finds_a_full_disk_is_not_at_fault_unless_it_has_filled_it(
    sources: Path, monkeypatch: pytest.MonkeyPatch, written: int, status: str
) -> None:
    filling = f"open(os.environ['HOME'] + '/filler', 'wb').write(b'x' * {written})"
    write_sdist(sources, PLANTING.replace("PLANT", f"{filling}; raise OSError(28, 'No space left on device')"))
    if not is_on("builds"):
        return  # doctor says so
    monkeypatch.setattr(Weight, "left_at", lambda _: Weight(size=weighing.LEAST_ROOM_BYTES - 2**22, files=10**6))
    found = locks.resolve(request("tinysource"))
    assert isinstance(found, Failure)
    assert found.status == status, found


@pytest.mark.parametrize("at_fault", [False, True])
def test_a_build_is_not_at_fault_for_a_disk_because_it_wrote_to_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, at_fault: bool
) -> None:
    monkeypatch.setattr(weighing, "LEAST_ROOM_BYTES", 2**23)
    roomy = tmp_path / "roomy"
    roomy.mkdir()
    with small_disk(tmp_path / "small", str(2**23 + 2**21)):
        bounds = Bounds(folder=tmp_path / "small", writable=(roomy,), cpu_seconds=1)
        if not at_fault:
            (bounds.folder / "of others").write_bytes(b"x" * 2**22)
        written = uv_turns._WriteGauge(bounds, ())
        ((bounds.folder if at_fault else roomy) / "filler").write_bytes(b"x" * 2**22)
        assert Weight.left_at(bounds.folder).is_no_room
        assert written.lacks_room == (not at_fault)


def test_a_launcher_that_fails_once_is_not_the_packages_fault(sources: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    turns: list[object] = []

    def refused(*asked: object, **__: object) -> Answer:
        turns.append(asked)
        return Answer(ok=False, output="", errors="out of order", exit_code=1, refused=Status.NO_SANDBOX)

    write_sdist(sources, PLANTING)
    if not is_on("builds"):
        return  # doctor says so
    monkeypatch.setattr(uv_turns, "build", refused)
    found = locks.resolve(request("tinysource"))
    assert isinstance(found, Failure)
    assert (found.status, found.reason, len(turns)) == ("no-sandbox", "out of order", 1)
    turns.clear()
    python = Path(sys.executable)
    options = "install", "--python", str(python), "--target", str(sources)
    answer = source_builds.install(
        "pip", *options, "tinysource", source=[":all:"], python=python, writable=[sources], key="k"
    )
    assert (answer.refused, len(turns)) == ("no-sandbox", 1)


@pytest.mark.parametrize("source", [True, ["tinysource"]])
def test_a_source_that_does_not_build_is_listed_beside_the_others(
    sources: Path, builds: list[str], source: bool | list[str]
) -> None:
    """Else one bad version would end the audit of all: as a release it fails by itself."""
    write_sdist(sources, PLANTING.replace("PLANT", "raise RuntimeError"))
    (sources / "tinysource-2.0.tar.gz").write_bytes(b"not even an archive")
    row = GeneratedRow.model_validate({"package": "tinysource", "versions": ">=1", "source": source})
    assert index.versions(row, "3.11", None) == ("1.0", "2.0")
    assert index.unknown(row, "3.11", None, ["1.0"]).versions == ("2.0",)
    assert builds == []
