"""A source distribution is built only where that is allowed, and then without network, credentials or a way out."""

from __future__ import annotations

import io
import json
import socket
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from audit import folders
from audit.asked.releases import ReleaseRequest
from audit.confining import confinement, protections, weighing
from audit.confining.weighing import Weight
from audit.failures import Failure, Status
from audit.installing import locks, source_builds, source_cache, uv, uv_turns, uv_variables, venvs
from audit.installing.locks import Release
from audit.installing.uv import Answer
from audit.installing.venvs import Recipe
from tests import wheels

BACKEND = """
import json, os, socket, zipfile

INFO = "tinysource-1.0.dist-info"


def tried(function):
    try:
        return repr(function())
    except Exception as error:
        return type(error).__name__


def build_wheel(folder, settings=None, metadata=None):
    seen = {
        "variables": sorted(key for key, value in os.environ.items() if "s3cret" in value),
        "connected": tried(lambda: socket.create_connection(("127.0.0.1", PORT), 5)),
        "wrote": tried(lambda: open(os.path.join("HOME_FOLDER", "owned-by-a-build"), "w")),
    }
    name = "tinysource-1.0-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(folder, name), "w") as wheel:
        wheel.writestr("tinysource.json", json.dumps(seen))
        wheel.writestr(INFO + "/METADATA", "Metadata-Version: 2.1\\nName: tinysource\\nVersion: 1.0\\n")
        wheel.writestr(INFO + "/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(INFO + "/RECORD", "")
    return name
"""


PLANTING = """
import os, zipfile

INFO = "tinysource-1.0.dist-info"


def build_wheel(folder, settings=None, metadata=None):
    asked = open("/proc/%d/cmdline" % os.getppid(), "rb").read().decode().split("\\0")
    PLANT
    name = "tinysource-1.0-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(folder, name), "w") as wheel:
        wheel.writestr("tinysource/owned.pth", "")
        wheel.writestr(INFO + "/METADATA", "Metadata-Version: 2.1\\nName: tinysource\\nVersion: 1.0\\n")
        wheel.writestr(INFO + "/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(INFO + "/RECORD", "")
    return name
"""
"""Puts something where uv is about to install."""


def write_sdist(folder: Path, backend: str, requires: str = "") -> None:
    required = f"requires = {[requires] if requires else []}"
    files = {
        "PKG-INFO": "Metadata-Version: 2.1\nName: tinysource\nVersion: 1.0\n",
        "pyproject.toml": f'[build-system]\n{required}\nbuild-backend = "backend"\nbackend-path = ["."]\n',
        "backend.py": backend,
    }
    with tarfile.open(folder / "tinysource-1.0.tar.gz", "w:gz") as archive:
        for name, text in files.items():
            info = tarfile.TarInfo(f"tinysource-1.0/{name}")
            info.size = len(text.encode())
            archive.addfile(info, io.BytesIO(text.encode()))


def is_on(name: str) -> bool:
    """Whether this system has a protection."""
    (found,) = [each for each in protections.all_here() if each.name == name]
    return found.on


def request(*source: str) -> ReleaseRequest:
    return ReleaseRequest(
        id="r", requires=("tinysource==1.0",), pins=(), python="3.11", exclude_newer=None, series="", source=source
    )


@pytest.fixture
def listener(tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> socket.socket:
    """Somebody who could be called, a source distribution that does, and a secret for it to find."""
    listening = socket.create_server(("127.0.0.1", 0))
    listening.settimeout(0.1)
    (tmp_path / "sources").mkdir()
    port = str(listening.getsockname()[1])
    write_sdist(tmp_path / "sources", BACKEND.replace("PORT", port).replace("HOME_FOLDER", str(Path.home())))
    monkeypatch.setenv("UV_FIND_LINKS", str(tmp_path / "sources"))
    monkeypatch.setenv("UV_INDEX_PRIVATE_PASSWORD", "s3cret")
    monkeypatch.setenv("CLOUD_TOKEN", "s3cret")
    return listening


def test_nothing_is_built_unless_it_is_allowed(listener: socket.socket) -> None:
    with listener:
        found = locks.resolve(request())
    assert isinstance(found, Failure)
    assert found.status == "unresolved"
    assert "runs its uploader's code when it is built" in found.reason
    assert "`source: true`" in found.reason
    assert "--allow-source" in found.reason


@pytest.mark.parametrize("source", ["tinysource", ":all:"])
def test_what_is_built_is_confined(listener: socket.socket, own_cache: Path, source: str) -> None:
    owned = Path.home() / "owned-by-a-build"
    try:
        release = locks.resolve(request(source))
        assert isinstance(release, Release), release
        assert release.lock.packages == (("tinysource", "1.0"),)
        assert venvs.ensure(Recipe.of(release), "r") is None
        (file,) = Recipe.of(release).folder.glob("lib/python*/site-packages/tinysource.json")
        seen = json.loads(file.read_text())
        if not is_on("builds"):
            return  # doctor says so
        assert seen["variables"] == []
        assert seen["connected"] == "ConnectionRefusedError"
        assert seen["wrote"] in ("OSError", "PermissionError", "FileNotFoundError")
        assert not owned.exists()
        with pytest.raises(TimeoutError):
            listener.accept()
    finally:
        listener.close()
        owned.unlink(missing_ok=True)


def test_what_may_be_built_is_part_of_the_key(listener: socket.socket) -> None:
    with listener:
        one, other = locks.resolve(request("tinysource")), locks.resolve(request(":all:"))
    assert isinstance(one, Release)
    assert isinstance(other, Release)
    assert one.key != other.key


@pytest.fixture
def sources(tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that uv takes packages from."""
    (tmp_path / "sources").mkdir()
    monkeypatch.setenv("UV_FIND_LINKS", str(tmp_path / "sources"))
    return tmp_path / "sources"


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is built, as often as it is."""
    done: list[str] = []
    build = uv_turns.build

    def noted(asked: Sequence[str], *more: Any) -> Answer:
        done.extend(each for each in asked if "==" in each)
        return build(asked, *more)

    monkeypatch.setattr(uv_turns, "build", noted)
    return done


def test_uv_does_not_write_through_a_link_that_a_build_left(sources: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    link = 'if "--target" in asked: os.symlink("VICTIM", asked[asked.index("--target") + 1] + "/tinysource")'
    write_sdist(sources, PLANTING.replace("PLANT", link).replace("VICTIM", str(victim)))
    found = locks.resolve(request("tinysource"))
    if not is_on("builds"):
        return  # doctor says so
    assert list(victim.iterdir()) == []
    assert isinstance(found, Failure)
    assert (found.status, "tinysource" in found.reason) == ("unresolved", True), found


def test_a_build_does_not_choose_the_python_of_its_virtualenv(sources: Path, tmp_path: Path) -> None:
    """What lies around it may be read by the release."""
    (tmp_path / "other" / "bin").mkdir(parents=True)
    (tmp_path / "other" / "bin" / "python").symlink_to(sys.executable)
    swap = (
        'python = asked[asked.index("--python") + 1]\n'
        '    if "--target" not in asked: os.remove(python), os.symlink("OTHER", python)'
    )
    write_sdist(sources, PLANTING.replace("PLANT", swap).replace("OTHER", str(tmp_path / "other" / "bin" / "python")))
    release = locks.resolve(request("tinysource"))
    assert isinstance(release, Release), release
    # As on a machine that has not built it yet: what was built when it was resolved is in the cache.
    folders.remove(folders.cache() / "uv-source")
    failure = venvs.ensure(Recipe.of(release), "r")
    assert failure is not None
    assert (failure.status, failure.reason) == ("unbuilt", "it puts something else in the place of its Python")


@pytest.mark.parametrize("said", ["Failed to fetch a model: dns error", "No space left on device (os error 28)"])
def test_a_build_does_not_pass_off_its_failure_as_the_machines(sources: Path, builds: list[str], said: str) -> None:
    write_sdist(sources, PLANTING.replace("PLANT", f"print({said!r}, flush=True); raise RuntimeError({said!r})"))
    found = locks.resolve(request("tinysource"))
    assert isinstance(found, Failure)
    assert (found.status, said in found.stderr_tail) == ("unresolved", True), found
    assert builds in (["tinysource==1.0"], []), "it would fail in the same way once more"


ASKED_FOR = "DATA${CLOUD_TOKEN}/x-1.0-py3-none-any.whl"


def _silent(listener: socket.socket) -> bool:
    """Whether nobody has called."""
    try:
        listener.accept()[0].close()
    except TimeoutError:
        return True
    return False


def test_what_is_required_for_a_build_is_not_fetched_from_any_address(listener: socket.socket, tmp_path: Path) -> None:
    """In an address uv fills in the user's variables."""
    port = listener.getsockname()[1]
    write_sdist(tmp_path / "sources", BACKEND, requires=f"x @ http://127.0.0.1:{port}/{ASKED_FOR}")
    with listener:
        found = locks.resolve(request("tinysource"))
        if not is_on("builds"):
            return  # doctor says so
        assert _silent(listener)
    assert isinstance(found, Failure)
    assert (found.status, "`x @ http://127.0.0.1" in found.reason) == ("unresolved", True), found
    assert "s3cret" not in found.reason + found.stderr_tail


SAID = "Failed to install requirements from x\\n  cause: Failed to download `%s`"


@pytest.mark.parametrize(
    "asked", ["x @ http://127.0.0.1:PORT/" + ASKED_FOR, "--index-url=http://127.0.0.1:PORT/simple"]
)
def test_nobody_is_called_because_a_build_says_so(listener: socket.socket, tmp_path: Path, asked: str) -> None:
    said = SAID % asked.replace("PORT", str(listener.getsockname()[1]))
    write_sdist(tmp_path / "sources", PLANTING.replace("PLANT", f'raise SystemExit("{said}")'))
    with listener:
        found = locks.resolve(request("tinysource"))
        if not is_on("builds"):
            return  # doctor says so
        assert _silent(listener)
    assert isinstance(found, Failure)
    assert (found.status, "Failed to download" in found.stderr_tail) == ("unresolved", True), found


@pytest.mark.parametrize("missing", ["x @ http://h/x.whl", "--index-url http://h", "-r /etc/passwd", "-cx", "./x"])
def test_only_what_an_index_can_have_is_fetched(missing: str) -> None:
    own = f"  cause: Failed to install requirements from y\n  cause: Failed to download `{missing}`\n"
    own += f"  cause: No solution found when resolving: `{missing}`, `setuptools>=40, <60`, `wheel ; extra == 'x'`"
    answer = Answer(ok=False, output="", errors=f"{own}\n\n[stderr]\nother was not found in the cache\n", exit_code=1)
    assert source_builds._missing(answer) == {"setuptools>=40, <60", "wheel ; extra == 'x'"}


@pytest.mark.parametrize("said", ["a", "\\n", "a==1", "[stdout]", "\\nFailed to install requirements from"])
def test_a_build_may_say_much(sources: Path, said: str) -> None:
    """It took hours to look through a line of a million letters."""
    write_sdist(sources, PLANTING.replace("PLANT", f'raise SystemExit("{said}" * (2**21 // {len(said)}) + "the end")'))
    found = locks.resolve(request("tinysource"))
    assert isinstance(found, Failure)
    assert found.status == "unresolved"
    assert "Failed to" in found.reason
    assert "the end" in found.stderr_tail


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
    assert not source_cache.place().with_suffix(".lock").stat().st_size
    assert list(source_cache.place().iterdir()) == [], "else what is left of builds adds up"


def test_a_build_that_takes_too_long_is_done_once(
    sources: Path, builds: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_sdist(sources, PLANTING.replace("PLANT", "__import__('time').sleep(3600)"))
    if not is_on("builds"):
        return  # doctor says so
    monkeypatch.setattr(uv, "TIMEOUT_SECONDS", 5)
    found = locks.resolve(request("tinysource"))
    assert isinstance(found, Failure)
    assert (found.status, found.reason) == ("unresolved", "it was not done within 5 s and was ended")
    assert builds == ["tinysource==1.0"]
    assert list(source_cache.place().iterdir()) == []


def test_what_an_ended_build_left_stays_as_long_as_others_build(own_cache: Path) -> None:
    with source_cache.in_use():
        with source_cache.in_use():
            (source_cache.place() / "left").touch()
            source_cache.give_up()
        assert (source_cache.place() / "left").exists(), "somebody builds"
    assert not (source_cache.place() / "left").exists()
    with source_cache.in_use():
        (source_cache.place() / "kept").touch()
    assert (source_cache.place() / "kept").exists()


def test_what_is_left_where_its_last_user_was_killed_goes_before_the_next_build(own_cache: Path) -> None:
    (source_cache.place() / "left").touch()
    source_cache.give_up()
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
    answer = source_builds.install("pip", *options, "tinysource", source=[":all:"], python=python, writable=[sources])
    assert (answer.refused, len(turns)) == ("no-sandbox", 1)


def test_where_uv_cannot_be_confined_nothing_is_built(
    sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless the system has no means for it, which doctor says."""
    marker = tmp_path / "built"
    write_sdist(sources, PLANTING.replace("PLANT", f'open("{marker}", "w").close()'))
    launcher = tmp_path / "launcher.py"
    launcher.write_text("raise SystemExit('confine: out of order')", encoding="utf-8")
    monkeypatch.setattr(uv_turns, "LAUNCHER", launcher)
    monkeypatch.setattr(confinement, "mechanisms", lambda: {"landlock": ""})
    found = locks.resolve(request("tinysource"))
    assert isinstance(found, Failure)
    assert (found.status, "out of order" in found.reason, marker.exists()) == ("no-sandbox", True, False)
    monkeypatch.setattr(confinement, "mechanisms", lambda: {"landlock": "Function not implemented"})
    assert isinstance(locks.resolve(request("tinysource")), Release)
    assert marker.exists()


@pytest.mark.parametrize("name", ["UV_COMPILE_BYTECODE", "UV_NO_CACHE"])
@pytest.mark.parametrize("by_file", [False, True])
def test_nothing_of_a_wheel_runs_while_it_is_installed(
    sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, *, by_file: bool
) -> None:
    """A line of a ``.pth`` file is run by every Python that starts with it, as the one that compiles."""
    marker = tmp_path / "ran"
    files = {"tinysource.py": "", "tinysource.pth": f"import os; open({str(marker)!r}, 'w').close()\n"}
    wheels.write(sources, "tinysource", "1.0", files, ())
    monkeypatch.setenv(name, "1")
    if by_file:
        (tmp_path / "uv.toml").write_text("[pip]\ncompile-bytecode = true\n")
        monkeypatch.chdir(tmp_path)
    release = locks.resolve(request())
    assert isinstance(release, Release), release
    assert venvs.ensure(Recipe.of(release), "r") is None
    assert not marker.exists()
    assert list(Recipe.of(release).folder.glob("lib/python*/site-packages/tinysource.pth"))


@pytest.mark.parametrize(
    ("address", "left"),
    [
        ("https://user:p@ssw0rd@host/files", "https://host/files"),
        ("https://user:p@ssw0rd@host", "https://host"),
        ("https://user:it's@host:8080/a@b", "https://host:8080/a@b"),
        ("one=https://a:b@one,two=https://c:d@two/x", "one=https://one,two=https://two/x"),
        ('url = "https://t0ken@host/files"', 'url = "https://host/files"'),
        ("https://host/files", "https://host/files"),
    ],
)
def test_nothing_of_a_password_is_left_in_an_address(address: str, left: str) -> None:
    assert uv_variables.redacted(address) == left
