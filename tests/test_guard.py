"""Exit codes are the program's own: what ends its process from within or from outside is not taken for one of them."""

from __future__ import annotations

import contextlib
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path

import psutil
import pytest

from audit import folders
from tests.conftest import running, wait_until

INTERRUPTED = "release-audit: interrupted; what was dumped is stored, the same command continues from there\n"


def guarded(program: str, before: str = "") -> subprocess.Popen[str]:
    """A guard in front of some other program."""
    script = f"import os, signal, sys, time\nfrom audit import guard\n{before}\nguard._stand_guard()\n{program}"
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-c", script], cwd=folders.ROOT, stdout=pipe, stderr=pipe, text=True)


@pytest.mark.parametrize(
    ("program", "code", "said"),
    [
        ("guard.tell(0); sys.exit(0)", 0, ""),
        ("guard.tell(1); sys.exit(1)", 1, ""),
        ("guard.tell(2); os._exit(1)", 2, ""),
        ("os._exit(1)", 3, "release-audit: ended from within with exit code 1, as Ray does"),
        ("os._exit(0)", 3, "release-audit: ended from within with exit code 0"),
        ("os.abort()", 3, "release-audit: ended by SIGABRT; what was dumped is stored"),
        ("os.kill(os.getpid(), 40)", 3, "release-audit: ended by signal 40; what was dumped is stored"),
        (
            "os.kill(os.getpid(), signal.SIGKILL)",
            3,
            "release-audit: ended by SIGKILL, as the system does it where memory runs out; what was dumped is stored",
        ),
    ],
)
def test_only_what_was_told_is_an_exit_code(program: str, code: int, said: str) -> None:
    with guarded(program) as guard:
        _, errors = guard.communicate(timeout=300)
    assert (guard.returncode, errors.startswith(said), bool(errors)) == (code, True, bool(said)), errors


def test_a_program_that_does_not_heed_an_interruption_is_killed() -> None:
    ignore = "signal.signal(signal.SIGINT, signal.SIG_IGN)\nprint('deaf', flush=True)\ntime.sleep(600)"
    with guarded(ignore, before="guard._PATIENCE_SECONDS = 0.5") as guard:
        assert guard.stdout is not None
        assert guard.stdout.readline() == "deaf\n"
        guard.send_signal(signal.SIGINT)
        _, errors = guard.communicate(timeout=300)
    assert (guard.returncode, errors) == (130, INTERRUPTED)


def test_what_a_killed_program_had_started_is_ended_too() -> None:
    """A grandchild in a session of its own, as the parts of Ray are."""
    start = "import subprocess\nleft = subprocess.Popen(['sleep', '600'], start_new_session=True)"
    with guarded(f"{start}\nprint(left.pid, flush=True)\nos.kill(os.getpid(), signal.SIGKILL)") as guard:
        assert guard.stdout is not None
        left = int(guard.stdout.readline())
        guard.communicate(timeout=300)
    assert guard.returncode == 3
    wait_until(lambda: not running(left), "it ended")


def test_a_terminal_that_stops_who_writes_from_the_background_stops_nothing() -> None:
    """As after `stty tostop`: the program is in a group of its own, which is never in the foreground."""
    ours, theirs = pty.openpty()
    settings = termios.tcgetattr(theirs)
    settings[3] |= termios.TOSTOP
    termios.tcsetattr(theirs, termios.TCSANOW, settings)
    with subprocess.Popen(
        [sys.executable, "-c", _ON_A_TERMINAL, "schema"], cwd=folders.ROOT, stdin=theirs, stdout=theirs, stderr=theirs,
        start_new_session=True,
    ) as program:  # fmt: skip
        os.close(theirs)
        printed = _read_all(ours)
        assert program.wait(60) == 0
    assert printed.rstrip().endswith(b"}")


_ON_A_TERMINAL = """
import fcntl, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
from audit.guard import main
main()
"""


def _read_all(terminal: int) -> bytes:
    """All that is written to it until everybody has closed it, which a terminal tells as an error."""
    read = b""
    with os.fdopen(terminal, "rb", buffering=0) as file, contextlib.suppress(OSError):
        while select.select([file], [], [], 60)[0] and (more := file.read(2**16)):
            read += more
    return read


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_is_an_interruption(number: signal.Signals) -> None:
    program = "signal.signal(signal.SIGINT, lambda *_: (guard.tell(130), os._exit(130)))\nprint(1, flush=True)"
    with guarded(f"{program}\ntime.sleep(600)") as guard:
        assert guard.stdout is not None
        guard.stdout.readline()
        guard.send_signal(number)
        _, errors = guard.communicate(timeout=300)
    assert (guard.returncode, errors) == (130, "")


def test_who_interrupts_before_anything_began_is_told_so() -> None:
    with guarded("signal.signal(signal.SIGINT, signal.SIG_DFL)\nprint(1, flush=True)\ntime.sleep(600)") as guard:
        assert guard.stdout is not None
        guard.stdout.readline()
        guard.send_signal(signal.SIGINT)
        _, errors = guard.communicate(timeout=300)
    assert (guard.returncode, errors) == (130, INTERRUPTED)


def _under_nohup(number: signal.Signals) -> subprocess.CompletedProcess[str]:
    """A guarded program to which somebody sends a signal, started where interruptions and hang-ups are ignored."""
    script = (
        "import os, signal, time\nfrom audit import guard\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN); signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        f"parent = os.getpid()\nguard._stand_guard()\ntime.sleep(0.2)\nos.kill(parent, {int(number)})\n"
        "time.sleep(0.5)\nguard.tell(0)"
    )
    return subprocess.run(
        [sys.executable, "-c", script], cwd=folders.ROOT, capture_output=True, text=True, check=False, timeout=300
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_what_was_ignored_when_it_was_started_stays_ignored(number: signal.Signals) -> None:
    """``nohup release-audit run … &`` goes on when the terminal is closed."""
    assert _under_nohup(number).returncode == 0


def test_who_was_started_in_the_background_can_be_ended() -> None:
    ended = _under_nohup(signal.SIGTERM)
    assert (ended.returncode, ended.stderr) == (130, INTERRUPTED)


@pytest.mark.parametrize("seconds", [0.1, 0.2, 0.3, 0.5])
def test_who_interrupts_while_the_program_is_imported_reads_one_sentence(seconds: float) -> None:
    command = [sys.executable, "-m", "audit", "schema"]
    with subprocess.Popen(
        command, cwd=folders.ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as program:
        wait_until(lambda: psutil.Process(program.pid).children() or program.poll() is not None, "the guard stands")
        time.sleep(seconds)
        program.send_signal(signal.SIGINT)
        _, errors = program.communicate(timeout=300)
    assert (program.returncode, errors) in ((130, INTERRUPTED), (0, ""))  # it may have been quicker


def test_the_program_ends_with_its_guard_and_stops_with_it(tmp_path: Path) -> None:
    with guarded("print(os.getpid(), flush=True)\ntime.sleep(600)") as guard:
        assert guard.stdout is not None
        child = int(guard.stdout.readline())
        guard.send_signal(signal.SIGTSTP)
        wait_until(lambda: psutil.Process(child).status() == psutil.STATUS_STOPPED, "it stops")
        os.kill(guard.pid, signal.SIGCONT)
        wait_until(lambda: psutil.Process(child).status() != psutil.STATUS_STOPPED, "it goes on")
        guard.kill()
    wait_until(lambda: not running(child), "it ended with its guard")
