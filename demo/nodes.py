"""A real Ray cluster on one machine whose nodes share no files: each has a home, caches and temporary files of its own.

Where this process may make network namespaces each node is also in one, with an address of its own; elsewhere nodes are
told apart by addresses of the loopback. Everything that was started is ended on leaving, however it is left.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Self

import psutil

from demo.relay import Relay

PATIENCE_SECONDS = 90.0
"""For a node to start or to join. It takes two on an idle machine."""

OBJECT_STORE_BYTES = 200_000_000

_ALONE = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")

_PROXIES = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "HTTP_PROXY", "http_proxy")


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A node that was started."""

    name: str
    address: str
    folder: Path
    """Its home; all that it writes is in there."""
    process: subprocess.Popen[bytes]
    network: tuple[str, ...]
    """Before a command that is to run where its network is."""
    is_alone: bool
    """Whether it sees no processes but its own, as a machine of its own."""
    variables: Mapping[str, str]

    @property
    def prefix(self) -> tuple[str, ...]:
        """Before a command that is to run on it."""
        if not self.is_alone:
            return self.network
        first = psutil.Process(self.process.pid).children()[0]
        return ("nsenter", "--target", str(first.pid), "--net", "--pid", "--mount")

    @property
    def cache(self) -> Path:
        """Where its virtualenvs are."""
        return self.folder / "cache"

    def family(self) -> list[psutil.Process]:
        """All processes that the node consists of."""
        try:
            head = psutil.Process(self.process.pid)
            return [head, *head.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    def kill(self) -> None:
        """End everything on it at once, as when its power fails."""
        for each in self.family():
            with contextlib.suppress(psutil.NoSuchProcess):
                each.kill()
        self.process.wait()


class Nodes:
    """A cluster, without a node at first; the first that is started is its head."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        """``environment`` is what the nodes' variables are made from: this process's own where none is given."""
        self._given = dict(os.environ if environment is None else environment)
        self._open = contextlib.ExitStack()
        self.folder = Path()
        self.members: list[Member] = []
        self._namespaces: _Namespaces | None = None
        self._port = 0

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as opening:
            self.folder = Path(opening.enter_context(_short_folder()))
            if may_make_namespaces(self._given):
                self._namespaces = opening.enter_context(_Namespaces())
            opening.callback(self._kill_all)
            self._open = opening.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    @property
    def address(self) -> str:
        """What an audit is given as ``--address``."""
        return f"{self.members[0].address}:{self._port}"

    def start_several(self, count: int) -> None:
        """Start a head and, at the same time, the other nodes."""
        self.start()
        others = [self._begin() for _ in range(count - 1)]
        for member in others:
            self._await(member)

    def start(
        self, *, slots: int = 1, python: Path = Path(sys.executable), alone: bool = False, **variables: str
    ) -> Member:
        """Start a node of as many slots from the Ray of that Python, with these variables besides.

        Where nodes have namespaces it may be ``alone``. Who calls from a node other than the head has to be on such a
        one: Ray looks for a caller's node among the processes that the caller sees, and takes the head if it is there.
        """
        member = self._begin(slots, python, variables, alone=alone)
        self._await(member)
        return member

    def _begin(
        self,
        slots: int = 1,
        python: Path = Path(sys.executable),
        variables: Mapping[str, str] = MappingProxyType({}),
        *,
        alone: bool = False,
    ) -> Member:
        name = f"node{len(self.members) + 1}"
        folder = self.folder / name
        folder.mkdir()
        network, address, ways_out = self._place(len(self.members) + 1)
        own = {**self._variables(folder), **ways_out, **variables}
        if not self.members:
            self._port = 6379 if self._namespaces else _free_port()
        head = ["--head", "--port", str(self._port), "--include-dashboard", "false"]
        where = ["--address", self.address] if self.members else head
        command = [
            *network, *(_ALONE if alone else ()), str(python), "-c", "from ray.scripts.scripts import main; main()",
            "start", "--block", *where,
            "--node-ip-address", address, "--num-cpus", str(slots), "--include-log-monitor", "false",
            "--object-store-memory", str(OBJECT_STORE_BYTES),
            "--temp-dir", str(folder / "r"),
        ]  # fmt: skip
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                command, cwd=folder, env=own, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        member = Member(
            name=name, address=address, folder=folder, process=process, network=tuple(network), is_alone=alone,
            variables=own,
        )  # fmt: skip
        self.members.append(member)
        return member

    def call(self, member: Member, command: Sequence[str], cwd: Path) -> subprocess.Popen[bytes]:
        """Run a command on a node, with the node's variables and this process's output."""
        return subprocess.Popen([*member.prefix, *command], cwd=cwd, env=dict(member.variables))

    def _place(self, number: int) -> tuple[list[str], str, dict[str, str]]:
        """What runs a command there, its address, and the variables by which it reaches the index."""
        if self._namespaces is None:
            return [], f"127.0.0.{number}", {}
        return self._namespaces.add(number)

    def _variables(self, folder: Path) -> dict[str, str]:
        """Those of a user who has nothing on this node yet, but the settings of uv and pip and the interpreters."""
        home = Path(self._given.get("HOME") or Path.home())
        (folder / "tmp").mkdir()
        kept = {
            "XDG_CONFIG_HOME": str(home / ".config"),
            "PYENV_ROOT": str(home / ".pyenv"),
            "UV_PYTHON_INSTALL_DIR": str(home / ".local/share/uv/python"),
        }
        own = {"HOME": str(folder), "TMPDIR": str(folder / "tmp"), "RELEASE_AUDIT_CACHE": str(folder / "cache")}
        of_ray = {
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_memory_monitor_refresh_ms": "0",
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN_PATH": str(self._token()),
        }
        left_out = ("RAY_ADDRESS", "RAY_AUTH_TOKEN", "UV_CACHE_DIR", "XDG_CACHE_HOME")
        given = {name: value for name, value in self._given.items() if name not in left_out}
        return {**kept, **given, **own, **of_ray}

    def _token(self) -> Path:
        """A secret of this cluster's own, without which nobody on this machine gets in."""
        path = self.folder / "token"
        if not path.exists():
            path.touch(mode=0o600)
            path.write_text(secrets.token_hex(32), encoding="ascii")
        return path

    def _await(self, member: Member) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        log = member.folder / "log"
        while b"Ray runtime started" not in log.read_bytes():
            if member.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{member.name} did not start:\n{log.read_text(errors='replace')}")
            time.sleep(0.05)

    def _kill_all(self) -> None:
        for member in reversed(self.members):
            member.kill()
        if self._namespaces is not None:
            self._namespaces.kill_all()  # whoever has left his family


def may_make_namespaces(environment: Mapping[str, str]) -> bool:
    """Whether nodes can have network namespaces: the system allows it, and the index is reached without a proxy."""
    if shutil.which("ip") is None or any(environment.get(name) for name in _PROXIES):
        return False
    name = f"ra{os.getpid()}probe"
    if not _ip("netns", "add", name):
        return False
    return _ip("netns", "delete", name)


class _Namespaces:
    """A bridge on this machine, and a network namespace at it for every node."""

    def __init__(self) -> None:
        self._stem = f"ra{os.getpid() % 10**6}"
        self._net = f"10.213.{os.getpid() % 250 + 1}"
        self._names: list[str] = []
        self._relay = Relay()

    def __enter__(self) -> Self:
        _require("link", "add", self._stem, "type", "bridge")
        _require("link", "set", self._stem, "up")
        return self

    def __exit__(self, *_: object) -> None:
        self.kill_all()
        self._relay.close()
        for name in self._names:
            _ip("netns", "delete", name)
        _ip("link", "delete", self._stem)

    def add(self, number: int) -> tuple[list[str], str, dict[str, str]]:
        """What runs a command inside, the address, and the variables by which it reaches the index."""
        name, address = f"{self._stem}n{number}", f"{self._net}.{number}"
        _require("netns", "add", name)
        self._names.append(name)
        outside = f"{self._stem}v{number}"
        _require("link", "add", outside, "type", "veth", "peer", "name", "eth0", "netns", name)
        _require("link", "set", outside, "master", self._stem, "up")
        _require("-n", name, "address", "add", f"{address}/24", "dev", "eth0")
        _require("-n", name, "link", "set", "eth0", "up")
        _require("-n", name, "link", "set", "lo", "up")
        proxy = self._relay.listen_in(name)
        return ["ip", "netns", "exec", name], address, {"HTTPS_PROXY": proxy, "https_proxy": proxy}

    def kill_all(self) -> None:
        """End whatever still runs in the namespaces: all of it was started for this cluster."""
        for name in self._names:
            listed = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True, check=False)
            for pid in map(int, listed.stdout.split()):
                with contextlib.suppress(psutil.NoSuchProcess):
                    psutil.Process(pid).kill()


@contextlib.contextmanager
def _short_folder() -> Iterator[str]:
    """A temporary folder whose name is short: Ray's sockets are in it, and their paths are limited to 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="ra-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        yield folder


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as ear:
        port: int = ear.getsockname()[1]
        return port


def _ip(*arguments: str) -> bool:
    done = subprocess.run(["ip", *arguments], capture_output=True, check=False)
    return done.returncode == 0


def _require(*arguments: str) -> None:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"ip {' '.join(arguments)}: {done.stderr.strip()}")
