"""Start a command in its confinement, wait for it, and end whatever it left behind.

Three processes where the system has process namespaces: the outermost waits for the command or for the orchestrator's
end, the first of the namespace reaps, the third becomes the command. When the first ends, the kernel ends all others of
the namespace, whatever they forked and whichever session they went to.
"""

from __future__ import annotations

import os
import resource
import select
import sys
import time

from confine import system
from confine.spec import Spec

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing these would take longer than anything else here
    from collections.abc import Callable, Sequence
    from typing import NoReturn

LINUX = sys.platform == "linux"
if LINUX:
    from confine import landlock, namespaces, seccomp

UNCONFINED_EXIT = 125
"""The launcher's own exit code, where the command could not be started as it was asked to."""

_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
"""Of all devices; shared memory is a folder of its own."""
_COUNT_SECONDS = 0.05
_LOOK_SECONDS = 0.02
_KILL, _LAST_SIGNAL = 9, 31  # the same on Linux and macOS; those above are nobody's
_STATUS_BYTES = 4


def run(arguments: list[str]) -> NoReturn:
    """Run the command as it is said, and end as it ended."""
    spec = Spec(arguments)
    system.let_all_signals_in()
    for handle in (spec.lifeline, spec.report):
        if handle > 2:
            os.set_inheritable(handle, False)
    if spec.executable:
        _run_trusted(spec)
    entered = namespaces.enter() if LINUX else {}
    for name, problem in entered.items():
        _tell(spec, f"new {name}", problem)
        if problem:
            _require_not(spec, f"new {name}", problem)
    receive, send = os.pipe()
    if LINUX:
        _attempt(spec, "orphans", system.adopt_orphans)
    child = os.fork()
    if child == 0:
        os.close(receive)
        if LINUX:
            _attempt(spec, "first victim", system.be_the_first_victim)
        if entered.get("processes") == "":
            _be_first(spec, entered, send)
        _become(spec, entered)
    os.close(send)
    status = _await(child, spec.lifeline)
    told = os.read(receive, _STATUS_BYTES)  # from the first of the namespace, where there is one
    status = int.from_bytes(told, "little") if told else status
    _end_orphans(spec)
    _end_as(status)


def _run_trusted(spec: Spec) -> NoReturn:
    """Execute it here, so that it can start nothing but what is listed, and write nowhere but where it is told to.

    The folders that it is told to write to may hold what a build left there: a link in them leads nowhere else.
    """
    try:
        system.gain_nothing()
        write, device = landlock.write_rights(), landlock.device_rights()
        rules = [(path, landlock.EXECUTE) for path in spec.executable]
        rules += [(path, write) for path in spec.writable] + [(path, device) for path in _DEVICES]
        landlock.restrict(rules, landlock.EXECUTE | write, alone=False)
    except (OSError, NameError) as error:
        _refuse(f"it cannot be kept from starting programs: {error}")
    _restore_signals()
    os.execv(spec.command[0], spec.command)


def _be_first(spec: Spec, entered: dict[str, str], send: int) -> NoReturn:
    """Be the first process of the namespace: reap all, tell how the command ended, and end all with it."""
    system.die_with_the_parent()
    # The files of the system are mounted anew before they become read-only, and the limit is one of these files.
    own = _attempt(spec, "proc", namespaces.own_proc if not entered["mounts"] else _no_mounts)
    limited = _attempt(spec, "pids", lambda: namespaces.limit_processes(spec.processes)) if spec.processes else True
    child = os.fork()
    if child == 0:
        os.close(send)
        _become(spec, entered)
    status = _reap(child, 0 if limited or _counts_by_user() or not own else spec.processes, spec)
    left = len(_others()) if own else 0  # else these are the machine's
    if left:
        _tell(spec, "left", str(left))
    os.write(send, status.to_bytes(_STATUS_BYTES, "little"))
    os._exit(0)


def _no_mounts() -> None:
    raise OSError("there is no mount namespace")


def _reap(child: int, most: int, spec: Spec) -> int:
    """Wait for the child and bury the others; where nothing else limits them, count them."""
    while True:
        ended, status = os.waitpid(-1, os.WNOHANG if most else 0)
        if ended == child:
            return status
        if most and not ended:
            time.sleep(_COUNT_SECONDS)
            if len(_others()) > most:
                _tell(spec, "bomb", str(most))
                return _KILL


def _others() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdecimal() and int(name) != os.getpid()]


def _counts_by_user() -> bool:
    """Whether the limit of a user's processes counts only those in here, and is not ignored."""
    own = namespaces.in_user_namespace() and system.kernel() >= namespaces.OWN_PROCESS_COUNT_SINCE
    return own and os.getuid() != 0


def _become(spec: Spec, entered: dict[str, str]) -> NoReturn:
    """Give up everything that the command does not need, and become it."""
    try:
        os.setsid()
        place = os.getcwd()
        _limit(spec)
        if LINUX:
            _give_up(spec, entered, place)
        _restore_signals()
        if spec.command:
            _execute(spec)
        os._exit(0)
    except BaseException as error:
        _refuse(f"{spec.command[0] if spec.command else 'it'} cannot be started: {error}")


def _execute(spec: Spec) -> None:
    """Tell that all is ready, which nobody could afterwards, and what the system says if it does not execute it."""
    _tell(spec, "launched", "")
    try:
        os.execv(spec.command[0], spec.command)
    except OSError as error:
        _tell(spec, "unexecuted", error.strerror or str(error))
        raise


def _give_up(spec: Spec, entered: dict[str, str], place: str) -> None:
    if entered["network"] == "":
        _attempt(spec, "loopback", system.raise_loopback)
    sealed = False
    if entered["mounts"] == "":
        needed = (*spec.needed, place)
        sealed = _attempt(spec, "mounts", lambda: namespaces.seal(spec.writable, needed, spec.hidden))
        os.chdir(place)
    system.gain_nothing()
    # Without mounts of its own, shared memory is the machine's.
    own = (*spec.writable, namespaces.SHARED_MEMORY) if sealed else spec.writable
    _attempt(spec, "landlock", lambda: _restrict(spec, own))
    _attempt(spec, "capabilities", system.drop_capabilities)
    _attempt(spec, "filter", lambda: seccomp.install(network=entered["network"] == ""))


def _restrict(spec: Spec, writable: Sequence[str]) -> None:
    write, device = landlock.write_rights(), landlock.device_rights()
    rules = [(path, landlock.READ) for path in (*spec.readable, *spec.needed)]
    rules += [(path, landlock.READ | write) for path in writable]
    rules += [(path, device) for path in _DEVICES]
    landlock.restrict(rules, landlock.READ | write | device)


def _limit(spec: Spec) -> None:
    limits = dict(spec.limits)
    if LINUX and spec.processes and _counts_by_user():
        limits["NPROC"] = spec.processes
    for name, most in limits.items():
        kind = getattr(resource, f"RLIMIT_{name}", None)
        if kind is None:
            continue
        _, hard = resource.getrlimit(kind)
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        try:
            resource.setrlimit(kind, (most, most))
        except (OSError, ValueError) as error:
            _tell(spec, f"limit {name}", str(error))


def _restore_signals() -> None:
    """Undo what Python and who started it did to signals: a command ends in the same way wherever it runs."""
    for number in range(1, _LAST_SIGNAL + 1):
        system.handle_as_usual(number)


def _await(child: int, lifeline: int) -> int:
    """Wait for the child's end; bring it about when the orchestrator is gone."""
    handle = os.pidfd_open(child) if LINUX else -1
    watched = [each for each in (handle, lifeline) if each >= 0]
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status
        ready, _, _ = select.select(watched, [], [], None if LINUX else _LOOK_SECONDS)
        if lifeline in ready and not os.read(lifeline, 1):
            os.kill(child, _KILL)
            return os.waitpid(child, 0)[1]


def _end_orphans(spec: Spec) -> None:
    """End what came to this process when its own parent ended, until nothing comes any more."""
    left = 0
    while orphans := _children():
        for each in orphans:
            os.kill(each, _KILL)  # nobody else can bury it, so that it is there
            os.waitpid(each, 0)
        left += len(orphans)
    if left:
        _tell(spec, "left", str(left))


def _children() -> list[int]:
    """The children of this process; none where the system does not hand orphans to it."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
            return [int(number) for number in file.read().split()]
    except OSError:
        return []


def _end_as(status: int) -> NoReturn:
    """End as the command ended, by the same signal if it was one."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        system.handle_as_usual(number)
        os.kill(os.getpid(), number)
    os._exit(os.waitstatus_to_exitcode(status) if not os.WIFSIGNALED(status) else UNCONFINED_EXIT)


def _attempt(spec: Spec, name: str, protect: Callable[[], None]) -> bool:
    """Try a protection; where the system does not have it, tell why and go on, unless it is required."""
    try:
        protect()
    except OSError as error:
        problem = error.strerror or str(error)
        _tell(spec, name, problem)
        _require_not(spec, name, problem)
        return False
    _tell(spec, name, "")
    return True


def _require_not(spec: Spec, name: str, problem: str) -> None:
    """End here where the protection that failed is required: a system may run out of what it needs."""
    if name in spec.required:
        _refuse(f"{name}: {problem}; it worked when it was tried")


def _tell(spec: Spec, name: str, told: str) -> None:
    if spec.report >= 0:
        try:
            os.write(spec.report, f"{name}\t{told}\n".encode())
        except OSError:
            pass  # nobody listens any more


def _refuse(reason: str) -> NoReturn:
    os.write(2, f"confine: {reason}\n".encode())
    os._exit(UNCONFINED_EXIT)
