"""Namespaces: a network, process numbers and a view of the file system that are the command's own."""

from __future__ import annotations

import ctypes
import os
import stat

from confine import system

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_KINDS = {
    "network": system.NEW_NETWORK, "mounts": system.NEW_MOUNTS, "processes": system.NEW_PIDS, "memory": system.NEW_IPC,
}  # fmt: skip

_BIND, _RECURSIVE, _PRIVATE, _NO_SUID, _NO_DEVICES = 4096, 16384, 1 << 18, 2, 4
_MOUNT_SETATTR, _AT_FDCWD, _AT_RECURSIVE = 442, -100, 0x8000
_READ_ONLY, _NO_SUID_ATTRIBUTE = 1, 2

_NOT_PERMITTED = 1  # the same everywhere

SHARED_MEMORY = "/dev/shm"
SHARED_MEMORY_BYTES = 2**31

OWN_PID_LIMIT_SINCE = (6, 14)
"""The kernel from which on a process namespace has a limit of its own; before that, the file is the whole machine's."""
OWN_PROCESS_COUNT_SINCE = (5, 14)
"""The kernel from which on processes are counted by user namespace, and no longer all that a user has."""


def enter() -> dict[str, str]:
    """Enter new ones, as many as the system allows; say of each why not, or nothing.

    Who may not make them alone may do so in a user namespace, where the system allows that.
    """
    everything = sum(_KINDS.values())
    own = os.getuid(), os.getgid()
    try:
        system.unshare(everything)
    except OSError:
        try:
            _rehearse(*own)
            system.unshare(system.NEW_USER | everything)
        except OSError as error:
            return _enter_each(str(error.strerror))
        _map_to_itself(*own)
    return dict.fromkeys(_KINDS, "")


def _enter_each(refused: str) -> dict[str, str]:
    """Where not all can be had, each on its own."""
    found = {}
    for name, flag in _KINDS.items():
        try:
            system.unshare(flag)
            found[name] = ""
        except OSError:
            found[name] = f"the system refuses new namespaces: {refused}"
    return found


def _rehearse(user: int, group: int) -> None:
    """Make a user namespace in a process that ends with it; raise where it cannot be made or mapped.

    Some systems let anybody make one and refuse the rest. There is no way back from one that is not mapped.
    """
    child = os.fork()
    if child == 0:
        number = _NOT_PERMITTED
        try:
            system.unshare(system.NEW_USER)
            _map_to_itself(user, group)
            number = 0
        except OSError as error:
            number = error.errno or number
        finally:
            os._exit(number)
    _, status = os.waitpid(child, 0)
    if status:
        number = os.WEXITSTATUS(status) or _NOT_PERMITTED
        raise OSError(number, os.strerror(number))


def _map_to_itself(user: int, group: int) -> None:
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(text)


def in_user_namespace() -> bool:
    """Whether this process's numbers of users are not the machine's."""
    with open("/proc/self/uid_map", encoding="ascii") as file:
        return file.read().split() != ["0", "0", "4294967295"]


def seal(writable: Sequence[str], needed: Sequence[str], hidden: Iterable[str]) -> None:
    """Make everything read-only but ``writable``; of ``hidden`` folders leave only what is ``needed``."""
    system.mount(None, "/", None, _RECURSIVE | _PRIVATE)
    for folder in hidden:
        _hide(folder, [*needed, *writable])
    for folder in writable:
        system.mount(folder, folder, None, _BIND | _RECURSIVE)
    options = f"size={SHARED_MEMORY_BYTES},mode=1777"
    if os.path.isdir(SHARED_MEMORY):
        system.mount("tmpfs", SHARED_MEMORY, "tmpfs", _NO_SUID | _NO_DEVICES, options)
    _set_attributes("/", _AT_RECURSIVE, added=_READ_ONLY | _NO_SUID_ATTRIBUTE)
    for folder in (*writable, SHARED_MEMORY):
        if os.path.isdir(folder):
            _set_attributes(folder, _AT_RECURSIVE, removed=_READ_ONLY)


def own_proc() -> None:
    """Show only the processes of this namespace."""
    system.mount("proc", "/proc", "proc", _NO_SUID | _NO_DEVICES)


def limit_processes(most: int) -> None:
    """Limit how many this namespace may hold; call from within it."""
    if system.kernel() < OWN_PID_LIMIT_SINCE:
        raise OSError("the kernel has no limit for one namespace")
    with open("/proc/sys/kernel/pid_max", "w", encoding="ascii") as file:
        file.write(str(most))


def _hide(folder: str, needed: Iterable[str]) -> None:
    """Put an empty folder over this one, and into it again what lies in it and is needed."""
    if not os.path.isdir(folder) or os.path.islink(folder) or any(_within(folder, path) for path in needed):
        return
    kept = [(path, os.open(path, os.O_PATH)) for path in _outermost(path for path in needed if _within(path, folder))]
    system.mount("tmpfs", folder, "tmpfs", _NO_SUID | _NO_DEVICES, "size=1m,mode=755")
    for path, handle in kept:
        _make_place(path, is_folder=stat.S_ISDIR(os.fstat(handle).st_mode))
        system.mount(f"/proc/self/fd/{handle}", path, None, _BIND | _RECURSIVE)
        os.close(handle)


def _outermost(paths: Iterable[str]) -> list[str]:
    """Those that lie in no other: what is in them comes along, and a link in there may lead where nothing is yet."""
    found: list[str] = []
    for path in sorted(set(paths)):
        if not any(_within(path, other) for other in found):
            found.append(path)
    return found


def _make_place(path: str, *, is_folder: bool) -> None:
    os.makedirs(path if is_folder else os.path.dirname(path), exist_ok=True)
    if not is_folder:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o644))


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _set_attributes(path: str, flags: int, *, added: int = 0, removed: int = 0) -> None:
    attributes = bytes((ctypes.c_uint64 * 4)(added, removed, 0, 0))
    system.syscall(_MOUNT_SETATTR, _AT_FDCWD, os.fsencode(path), flags, attributes, len(attributes))
