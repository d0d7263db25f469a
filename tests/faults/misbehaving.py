"""Versions of the tiny simulator that misbehave, one way each, and what an audit has to make of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests import tinysim
from tests.tinysim import Plant

_IMPORTS = "import tinydep\n"
_STEP = "        position, velocity = self.state\n"
_RESET = "        self.state = np.array([1.0, 0.0])\n"
_OBSERVE = "return self.state.copy()\n\n\n"
_REGISTERED = 'gymnasium.register("tinysim/Chaos-v0", entry_point=Chaos)\n'


@dataclass(frozen=True, slots=True, kw_only=True)
class Misbehaviour:
    """A version, what it does, and what becomes of its cell of Spring."""

    name: str
    replaced: dict[str, str]
    status: str = ""
    """Of the failure; empty where it is audited as if nothing had happened."""
    reason: str = ""
    """Part of what the failure's reason has to say."""
    verdict: str = "identical"
    """Of the pair with the baseline."""
    spares_others: bool = True
    """Whether Chaos, which misbehaves in nothing, is audited; it is not where the package harms its whole process."""


def in_step(code: str) -> dict[str, str]:
    """Run the code at each step of Spring."""
    return {_IMPORTS: "import os, signal, sys, time, tinydep\n", _STEP: f"        {code}\n{_STEP}"}


def at_import(code: str) -> dict[str, str]:
    """Run the code when the package is imported."""
    return {_IMPORTS: f"import os, signal, sys, threading, time, tinydep\n\n{code}\n"}


_DAEMON = """
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(3600)
    os._exit(0)
"""

_TRAMPLE = """
for place, _, files in os.walk("."):
    for file in files:
        with open(os.path.join(place, file), "wb") as opened:
            opened.write(b"garbage")
"""

_TAKE = """
import resource
resource.setrlimit(resource.RLIMIT_DATA, (1 << 29, resource.getrlimit(resource.RLIMIT_DATA)[1]))
taken = []
while True:
    taken.append(b"x" * (1 << 24))
"""
"""Within a limit of its own: that of the audit is most of a machine's memory."""

MISBEHAVIOURS = (
    Misbehaviour(name="hangs-in-step", replaced=in_step("time.sleep(3600)"), status="timeout",
                 reason="no answer within"),
    Misbehaviour(name="spins-in-step", replaced=in_step("while True: pass"), status="timeout",
                 reason="no answer within"),
    Misbehaviour(name="stops-itself", replaced=in_step("os.kill(os.getpid(), signal.SIGSTOP)"), status="timeout",
                 reason="no answer within"),
    Misbehaviour(name="hangs-at-import", replaced=at_import("time.sleep(3600)"), status="timeout",
                 reason="no answer within", spares_others=False),
    Misbehaviour(name="hangs-at-exit", replaced=at_import("import atexit\natexit.register(time.sleep, 3600)")),
    Misbehaviour(name="has-a-thread-without-end",
                 replaced=at_import("threading.Thread(target=time.sleep, args=(3600,)).start()")),
    Misbehaviour(name="dies-by-segmentation-fault", replaced=in_step("os.kill(os.getpid(), signal.SIGSEGV)"),
                 status="crashed", reason="SIGSEGV"),
    Misbehaviour(name="aborts", replaced=in_step("os.abort()"), status="crashed", reason="SIGABRT"),
    Misbehaviour(name="is-killed", replaced=in_step("os.kill(os.getpid(), signal.SIGKILL)"), status="crashed",
                 reason="SIGKILL"),
    Misbehaviour(name="exits-in-step", replaced=in_step("os._exit(0)"), status="crashed", reason="exit code 0"),
    Misbehaviour(name="exits-at-import", replaced=at_import("sys.exit(0)"), status="crashed", reason="exit code 0",
                 spares_others=False),
    Misbehaviour(name="raises-in-step", replaced=in_step("raise RuntimeError('the spring snapped')"), status="raised",
                 reason="RuntimeError: the spring snapped"),
    Misbehaviour(name="raises-in-reset", replaced={_RESET: "        raise ValueError('no start')\n"}, status="raised",
                 reason="ValueError: no start"),
    Misbehaviour(name="raises-an-interrupt", replaced=in_step("raise KeyboardInterrupt"), status="crashed",
                 reason="ended by SIGINT"),
    Misbehaviour(name="recurs-without-end",
                 replaced=at_import("def down():\n    return down()") | {_STEP: f"        down()\n{_STEP}"},
                 status="raised", reason="RecursionError"),
    Misbehaviour(name="asks-for-more-than-there-is", replaced=in_step("_ = bytearray(1 << 50)"), status="raised",
                 reason="MemoryError"),
    Misbehaviour(name="runs-out-of-memory", replaced=in_step("exec(TAKE)") | {
                     _REGISTERED: f"TAKE = {_TAKE!r}\n{_REGISTERED}"}, status="raised", reason="MemoryError"),
    Misbehaviour(name="prints-without-measure",
                 replaced=in_step("os.write(1, b'x' * 65536); os.write(2, b'\\x1b[2J' * 9999)")),
    Misbehaviour(name="closes-its-output", replaced=at_import("os.close(1)\nos.close(2)")),
    Misbehaviour(name="forks-and-stays",
                 replaced=at_import("if os.fork() == 0:\n    time.sleep(3600)\n    os._exit(0)")),
    Misbehaviour(name="forks-and-goes-on", replaced=at_import("os.fork()")),
    Misbehaviour(name="leaves-a-daemon", replaced=at_import(_DAEMON)),
    Misbehaviour(name="changes-its-answer", replaced={
                     "        velocity = velocity + self.dt * force\n":
                     "        velocity = velocity + self.dt * force + 1e-9 * np.random.default_rng().uniform()\n"},
                 verdict="nondeterministic"),
    Misbehaviour(name="depends-on-its-process", replaced=at_import("SALT = 1e-7 * os.urandom(1)[0]") | {
                     "damping = 0.3": "damping = 0.3 + SALT"}, verdict="nondeterministic"),
    Misbehaviour(name="writes-garbage-where-it-works", spares_others=False,
                 replaced=in_step("exec(TRAMPLE)") | {_REGISTERED: f"TRAMPLE = {_TRAMPLE!r}\n{_REGISTERED}"}),
    Misbehaviour(name="spoils-how-files-are-written", replaced=at_import(
                     "def spoilt(file, *_, **__):\n    file = getattr(file, 'write', None) and file\n"
                     "    file.write(b'garbage')\n\nnp.savez = np.lib.npyio.savez = spoilt"),
                 status="damaged", reason="does not end as an npz", spares_others=False),
    Misbehaviour(name="observes-text", replaced={_OBSERVE: "return np.array(['one', 'two'])\n\n\n"}, status="damaged",
                 reason="dtype"),
    Misbehaviour(name="observes-another-shape-each-step",
                 replaced={_OBSERVE: "self.n = getattr(self, 'n', 0) + 1\n        return np.zeros(self.n)\n\n\n"},
                 status="raised"),
    Misbehaviour(name="observes-not-a-number", replaced={_OBSERVE: "return np.array([self.state[0], np.nan])\n\n\n"},
                 verdict="changed"),
    Misbehaviour(name="makes-warnings-errors",
                 replaced=at_import("import warnings\nwarnings.simplefilter('error')\nnp.seterr(all='raise')")),
    Misbehaviour(name="leaves-its-folder", replaced=at_import("os.chdir('/')\nos.umask(0o777)")),
    Misbehaviour(name="claims-another-version", replaced=at_import("__version__ = '9.9'"), status="raised",
                 reason="9.9", spares_others=False),
    Misbehaviour(name="says-that-the-disk-is-full", replaced=in_step("raise OSError(28, 'No space left on device')"),
                 status="crashed", reason="No space left on device"),
)  # fmt: skip

_HIDE = """
while True:
    handle = os.memfd_create("taken")
    for _ in range(64):
        os.write(handle, b"x" * (1 << 24))
"""

_SHARE = """
import mmap
taken = []
while True:
    taken.append(mmap.mmap(-1, 1 << 24))
    taken[-1].write(b"x" * (1 << 24))
"""

EATERS = {
    "in-files-without-a-name": in_step("exec(EAT)") | {_REGISTERED: f"EAT = {_HIDE!r}\n{_REGISTERED}"},
    "in-shared-memory": in_step("exec(EAT)") | {_REGISTERED: f"EAT = {_SHARE!r}\n{_REGISTERED}"},
}
"""Versions that take memory of which no limit of a process knows, until the system ends somebody."""

FIRST = 100
"""Minor version of the first of them; the others follow."""


def version(misbehaviour: Misbehaviour) -> str:
    """The version of tinysim that behaves so."""
    return f"3.{FIRST + MISBEHAVIOURS.index(misbehaviour)}"


def eater(name: str) -> str:
    """The version of tinysim that takes memory in that way."""
    return f"4.{list(EATERS).index(name)}"


def build(folder: Path) -> None:
    """Write their wheels into the folder."""
    for name, replaced in EATERS.items():
        tinysim.write_plant(folder, Plant(version=eater(name), what=name, replaced=replaced))
    for each in MISBEHAVIOURS:
        tinysim.write_plant(folder, Plant(version=version(each), what=each.name, replaced=each.replaced))
