"""A filter of system calls: what no simulator needs and an attacker would like, sockets that lead out among them.

A refused call fails with "operation not permitted"; the process goes on.
"""

from __future__ import annotations

import ctypes
import os
import struct

from confine import system

_NUMBERS: dict[str, dict[str, int]] = {
    "x86_64": {
        "ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312, "pidfd_getfd": 438,
        "add_key": 248, "request_key": 249, "keyctl": 250, "bpf": 321, "perf_event_open": 298, "userfaultfd": 323,
        "io_uring_setup": 425, "mount": 165, "umount2": 166, "pivot_root": 155, "chroot": 161, "unshare": 272,
        "setns": 308, "open_by_handle_at": 304, "init_module": 175, "finit_module": 313, "kexec_load": 246,
        "open_tree": 428, "move_mount": 429, "fsopen": 430, "fsmount": 432, "mount_setattr": 442, "fanotify_init": 300,
    },
    "aarch64": {
        "ptrace": 117, "process_vm_readv": 270, "process_vm_writev": 271, "kcmp": 272, "pidfd_getfd": 438,
        "add_key": 217, "request_key": 218, "keyctl": 219, "bpf": 280, "perf_event_open": 241, "userfaultfd": 282,
        "io_uring_setup": 425, "mount": 40, "umount2": 39, "pivot_root": 41, "chroot": 51, "unshare": 97,
        "setns": 268, "open_by_handle_at": 265, "init_module": 105, "finit_module": 273, "kexec_load": 104,
        "open_tree": 428, "move_mount": 429, "fsopen": 430, "fsmount": 432, "mount_setattr": 442, "fanotify_init": 262,
    },
}  # fmt: skip
_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_SOCKET = {"x86_64": 41, "aarch64": 198}
_CLONE = {"x86_64": 56, "aarch64": 220}
_CLONE3 = 435
_X32 = 0x40000000
_LOCAL = (1,)  # AF_UNIX
_OF_A_NAMESPACE = (*_LOCAL, 2, 10, 16)  # AF_INET, AF_INET6, AF_NETLINK: of others, not all are kept within one

_NAMESPACES = 0x7E020000  # every flag of clone that makes a namespace, but that of time, which it cannot take

_LOAD, _EQUAL, _AT_LEAST, _ANY_OF, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _REFUSE, _UNKNOWN, _KILL = 0x7FFF0000, 0x00050000 | 1, 0x00050000 | 38, 0x80000000
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16
_PR_SET_SECCOMP, _FILTER = 22, 2

_Instruction = tuple[int, int, int, int]


def install(*, network: bool) -> None:
    """Filter the calls of this process and of all that it starts; call after ``gain_nothing``.

    ``network`` says whether it has one of its own, so that sockets of it lead nowhere.
    """
    machine = os.uname().machine
    if machine not in _NUMBERS:
        raise OSError(f"no filter is known for {machine}")
    program = _program(machine, network=network)
    code = b"".join(struct.pack("=HBBI", *each) for each in program)
    held = ctypes.create_string_buffer(code, len(code))
    header = ctypes.create_string_buffer(struct.pack("@HP", len(program), ctypes.addressof(held)))
    system.prctl(_PR_SET_SECCOMP, _FILTER, ctypes.addressof(header))


def _program(machine: str, *, network: bool) -> list[_Instruction]:
    """Each block begins with the call's number at hand and answers by itself, so that no jump leads far."""
    program: list[_Instruction] = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, _ARCHITECTURES[machine]),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 0, 1, _X32),
        (_RETURN, 0, 0, _REFUSE),
    ]
    for number in _NUMBERS[machine].values():
        program += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _REFUSE)]
    # The C library falls back on clone, whose flags can be looked at.
    program += [(_EQUAL, 0, 1, _CLONE3), (_RETURN, 0, 0, _UNKNOWN)]
    program += _by_argument(_CLONE[machine], (_ANY_OF, 0, 1, _NAMESPACES), then=_REFUSE, otherwise=_ALLOW)
    program += _sockets(_SOCKET[machine], _OF_A_NAMESPACE if network else _LOCAL)
    return [*program, (_RETURN, 0, 0, _ALLOW)]


def _sockets(number: int, families: tuple[int, ...]) -> list[_Instruction]:
    """Sockets of these families and of no other: one to the machine that hosts this one knows no namespace."""
    allowed = [each for family in families for each in ((_EQUAL, 0, 1, family), (_RETURN, 0, 0, _ALLOW))]
    block = [(_LOAD, 0, 0, _FIRST_ARGUMENT), *allowed, (_RETURN, 0, 0, _REFUSE)]
    return [(_EQUAL, 0, len(block), number), *block]


def _by_argument(number: int, test: _Instruction, *, then: int, otherwise: int) -> list[_Instruction]:
    return [
        (_EQUAL, 0, 4, number),
        (_LOAD, 0, 0, _FIRST_ARGUMENT),
        test,
        (_RETURN, 0, 0, then),
        (_RETURN, 0, 0, otherwise),
    ]
