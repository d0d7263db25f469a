"""A source distribution is built only where that is allowed, and then without network, credentials or a way out."""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path

import pytest

from audit import folders
from audit.confining import confinement
from audit.failures import Failure
from audit.installing import locks, source_builds, uv_turns, uv_variables, venvs
from audit.installing.locks import Release
from audit.installing.uv import Answer
from audit.installing.venvs import Recipe
from tests import wheels
from tests.source_distributions import PLANTING, is_on, request, write_sdist

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
        ('http-proxy = "me:it\'s@host:3128"', 'http-proxy = "host:3128"'),
        ("uv = {\"https-proxy\"='s3cret@host'}", "uv = {\"https-proxy\"='host'}"),
        ('dependencies = ["x@https://host/x.whl"]', 'dependencies = ["x@https://host/x.whl"]'),
        ("https://host/files", "https://host/files"),
    ],
)
def test_nothing_of_a_password_is_left_in_an_address(address: str, left: str) -> None:
    assert uv_variables.redacted(address) == left
