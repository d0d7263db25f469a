"""Releases of the tiny simulator that mean harm, one thing each, as real wheels.

They are versions of ``tinysim`` from 66.0 on. Each does its thing in the first step and, where it gets away with it,
goes on as version 1.0: a release whose attempt succeeded looks well-behaved. Some try it before, by what they require.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from pathlib import Path

from tests import tinysim, wheels

STEP = "        position, velocity = self.state\n"

PASSWORD = "UV_INDEX_PRIVATE_PASSWORD"
"""A variable that uv reads itself."""

MOST_FORKS = 3000
"""The bomb ends here by itself, wherever nothing else ends it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Targets:
    """What the attempts are aimed at, all of it on the machine that runs the tests."""

    port: int
    home: Path
    store: Path
    other_release: Path
    uv_cache: Path
    secret_file: Path
    terminal: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """A version, what it tries, and what the user reads of it."""

    name: str
    code: str
    status: str
    told: str
    """A pattern that the reason or the last lines of output match."""
    needs: str
    """The protection that prevents it, by doctor's name."""
    requires: str = ""
    """What else it says that it requires."""


def attempts(at: Targets) -> tuple[Attempt, ...]:
    """All of them."""
    token = "AUDIT_TEST_TOKEN"
    return (
        _raised("environment", "reads a token", f"os.environ[{token!r}]", f"KeyError: '{token}'"),
        _raised("other processes", "reads its parent's environment", _environment_of("os.getppid()"), _DENIED),
        _raised("other processes", "reads the first process's environment", _environment_of("1"), _DENIED),
        _raised("reading", "reads a file of the user's", f"open({str(at.secret_file)!r}).read()", _DENIED),
        _raised("reading", "reads the terminal", _READ_TERMINAL % at.terminal, _DENIED),
        _raised("network", "connects out", _CONNECT % at.port, _UNREACHED),
        _raised("network", "opens a way to the machine's host", "import socket; socket.socket(40, 1)", _REFUSED),
        _raised("writing", "writes to the home folder", f"open({str(at.home / 'owned')!r}, 'w')", _DENIED),
        _raised("writing", "writes to the store", f"open({str(at.store)!r}, 'r+b').write(b'x' * 4096)", _DENIED),
        _raised("writing", "writes to another release", f"open({str(at.other_release)!r}, 'a').write('#')", _DENIED),
        _raised("writing", "writes to its own release", "open(__file__, 'a').write('# owned')", _DENIED),
        _raised("writing", "writes to the cache of uv", f"open({str(at.uv_cache / 'owned')!r}, 'w')", _DENIED),
        _raised("processes", "forks a bomb", _BOMB, r"BlockingIOError.*temporarily unavailable"),
        _raised("limits", "makes a large file", "open('filler', 'wb').truncate(3 * 2**30)", r"OSError.*File too large"),
        _crashed("limits", "fills the disk", _FILL % "", "wrote more than 4 GiB"),
        _crashed("limits", "fills the disk without names", _FILL % "os.unlink(file.name)", "wrote more than 4 GiB"),
        _raised("limits", "returns an enormous array", _ENORMOUS, r"Unable to allocate"),
        _raised("other processes", "kills its parent", "os.kill(os.getppid(), 9)", _REFUSED),
        _raised("privileges", "traces its parent", _call("ptrace(16, os.getppid(), None, None)"), _REFUSED),
        _raised("privileges", "makes a namespace", _call("unshare(0x10000000)"), _REFUSED),
        _raised(
            "environment", "raises escape codes", f"raise RuntimeError({_ESCAPES!r})", r"^RuntimeError: plain text$"
        ),
        _raised("environment", "raises HTML and SQL", f"raise RuntimeError({_INJECTION!r})", r"<script>.*DROP TABLE"),
        _crashed("left behind", "leaves a daemon behind", _DAEMON, "left 1 processes behind"),
        _unresolved("has a token written into an address", token, r"\{AUDIT_TEST_TOKEN\}|%7BAUDIT_TEST_TOKEN%7D"),
        _unresolved("has a password written into an address", PASSWORD, r"127\.0\.0\.1:9/\*\*\*/x"),
        _damaged("answers with a link", f"os.symlink({str(at.store)!r}, name)", "cannot be read"),
        _damaged("answers with a long link", "os.symlink('a' * 300, name)", "cannot be read"),
        _damaged("answers with a pipe", "os.mkfifo(name)", "not a file"),
        _damaged("answers with a folder", "os.makedirs(os.path.join(name, 'in'))", "not a file"),
        _damaged("answers with a file that it holds", _LEASE, "held by a lease"),
        _damaged("answers with a zip bomb", _ZIP_BOMB, "packed"),
        _damaged("answers with an array that is not there", _FALSE_SHAPE, "bytes follow"),
    )


def build(folder: Path, made: tuple[Attempt, ...]) -> None:
    """Write a wheel for each."""
    for number, attempt in enumerate(made):
        code = textwrap.indent(textwrap.dedent(attempt.code).strip(), " " * 8)
        source = tinysim.SOURCE.replace(STEP, f"        import os\n{code}\n{STEP}", 1)
        compile(source, attempt.name, "exec")
        files = {"tinysim/__init__.py": source}
        requires = "gymnasium", "tinydep", attempt.requires
        wheels.write(folder, "tinysim", f"66.{number}", files, tuple(filter(None, requires)))


LIARS = {
    "67.0": 'if "spaces" in arrays: arrays["spaces"] = np.frombuffer(b"[" * 100_000, np.uint8)',
    "67.1": 'if arrays and "reset.state" not in arrays: arrays.update(wider(arrays))',
}
"""Versions whose answers are valid, and odd: spaces nested without measure; an entry more for whoever asks again."""


def build_liars(folder: Path) -> None:
    """Write a wheel for each."""
    for version, code in LIARS.items():
        source = tinysim.SOURCE + _LYING.replace("LIE", code)
        wheels.write(folder, "tinysim", version, {"tinysim/__init__.py": source}, ("gymnasium", "tinydep"))


def _raised(needs: str, name: str, code: str, told: str) -> Attempt:
    return Attempt(name=name, code=code, status="raised", told=told, needs=needs)


def _crashed(needs: str, name: str, code: str, told: str) -> Attempt:
    return Attempt(name=name, code=code, status="crashed", told=told, needs=needs)


def _unresolved(name: str, variable: str, told: str) -> Attempt:
    """Uv fills in variables in an address and says it, as it fails."""
    requires = f"x @ http://127.0.0.1:9/${{{variable}}}/x-1.0-py3-none-any.whl"
    return Attempt(name=name, code="", status="unresolved", told=told, needs="environment", requires=requires)


def _damaged(name: str, code: str, told: str) -> Attempt:
    """Put something else where the answer is awaited, and wait."""
    code = f"name = '0.answer.npz'\n{code}\nimport time\ntime.sleep(60)"
    return Attempt(name=name, code=code, status="damaged", told=told, needs="environment")


def _environment_of(process: str) -> str:
    return f"open('/proc/%d/environ' % {process}, 'rb').read()"


def _call(call: str) -> str:
    return f"""
        import ctypes
        library = ctypes.CDLL(None, use_errno=True)
        if library.{call} < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    """


_DENIED = r"PermissionError|Read-only file system|FileNotFoundError"
_REFUSED = r"PermissionError|Operation not permitted"
_UNREACHED = r"ConnectionRefusedError|unreachable|Operation not permitted"
_ESCAPES = "\x1b[2J\x1b]0;owned\x07\x1b[31mplain\u202e\u061c \x9btext\x1b[0m"
_INJECTION = "<script>alert(1)</script>'; DROP TABLE internal.runs; --"

_READ_TERMINAL = "os.read(os.open(%r, os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK), 100)"
_CONNECT = "import socket; socket.create_connection(('127.0.0.1', %d), 5)"
_ENORMOUS = "return np.zeros(40 * 2**30, np.uint8), 0.0, False, False, {}"

_BOMB = f"""
    import signal
    for _ in range({MOST_FORKS}):
        if os.fork() == 0:
            signal.pause()
"""

_FILL = """
    import time
    held = []
    for size in (2**31, 2**31, 2**20):
        file = open('filler%%d' %% len(held), 'wb')
        held.append(file)
        os.posix_fallocate(file.fileno(), 0, size)
        %s
    time.sleep(60)
"""
"""Takes the room without writing it, which would take a slow disk minutes."""

_DAEMON = """
    import time
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execv("/bin/sleep", ["hostile-daemon", "777"])
        os._exit(0)
    os.wait()
    os._exit(7)
"""

_LEASE = """
import fcntl, signal
signal.signal(signal.SIGIO, signal.SIG_IGN)
file = open(name + '.part', 'w')
fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
os.rename(name + '.part', name)
"""

_ZIP_BOMB = """
with open(name + '.part', 'wb') as file:
    np.savez_compressed(file, meta=np.zeros(2**24, np.uint8))
os.rename(name + '.part', name)
"""

_FALSE_SHAPE = """
import io, zipfile
header = io.BytesIO()
np.lib.format.write_array_header_1_0(header, {'descr': '<f8', 'fortran_order': False, 'shape': (2**40,)})
with zipfile.ZipFile(name + '.part', 'w') as archive:
    archive.writestr('meta.npy', header.getvalue())
os.rename(name + '.part', name)
"""

_LYING = """
from dumper import answers

honest = answers.write


def wider(arrays):
    wide = {name for name in arrays if name.partition(".")[2] in ("state", "imposed", "observation")}
    return {name: np.concatenate([arrays[name], arrays[name][..., :1]], axis=-1) for name in wide}


def write(path, environment, answer):
    arrays = answer.arrays
    LIE
    honest(path, environment, answer)


answers.write = write
"""
