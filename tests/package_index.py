"""A package index on loopback, to which tests publish versions of the tiny simulator, and from which they yank them.

Real HTTP, in the form of PEP 691 with the upload times of PEP 700; without them where a test wants an index that does
not tell.
"""

from __future__ import annotations

import datetime
import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any

from tests import tinysim, wheels

MEDIA_TYPE = "application/vnd.pypi.simple.v1+json"


@dataclass(kw_only=True)
class PackageIndex:
    """What the index has."""

    folder: Path
    tells_times: bool = True
    uploaded: dict[str, datetime.date] = field(default_factory=dict)
    yanked: dict[str, str] = field(default_factory=dict)
    """Names of files with the reason."""
    address: str = ""
    stalls: bool = False
    """Whether it waits where it does not send all of a file, and does not hang up."""
    ended: Event = field(default_factory=Event)

    def publish(self, version: str, like: str, day: datetime.date) -> None:
        """A version of tinysim with what is planted in another."""
        tinysim.write_version(self.folder, version, like)
        self.uploaded[f"tinysim-{version}-py3-none-any.whl"] = day

    def publish_planted(self, version: str, replaced: dict[str, str], day: datetime.date) -> None:
        """A version of tinysim with lines of version 1.0 replaced."""
        tinysim.write_plant(self.folder, tinysim.Plant(version=version, what="of a test", replaced=replaced))
        self.uploaded[f"tinysim-{version}-py3-none-any.whl"] = day

    def publish_dependency(self, version: str, day: datetime.date, source: str = "SCALE = 1.0\n") -> None:
        """A version of what tinysim depends on."""
        wheels.write(self.folder, "tinydep", version, {"tinydep/__init__.py": source}, ())
        self.uploaded[f"tinydep-{version}-py3-none-any.whl"] = day

    def publish_uninstallable(self, version: str, day: datetime.date) -> None:
        """A version that resolves, but claims a format of the future."""
        files = {"tinysim/__init__.py": tinysim.SOURCE}
        wheels.write(self.folder, "tinysim", version, files, ("gymnasium", "tinydep"), form="99.0")
        self.uploaded[f"tinysim-{version}-py3-none-any.whl"] = day

    def yank(self, version: str, reason: str) -> None:
        """Withdraw a version of tinysim."""
        self.yanked[f"tinysim-{version}-py3-none-any.whl"] = reason

    def listing(self, package: str) -> dict[str, Any] | None:
        """What is said of a package."""
        names = [name for name in self.uploaded if name.startswith(f"{package}-")]
        files = [self._file(name) for name in names]
        versions = sorted({name.split("-")[1] for name in names})
        return (
            {"meta": {"api-version": "1.1"}, "name": package, "versions": versions, "files": files} if names else None
        )

    def _file(self, name: str) -> dict[str, Any]:
        content = (self.folder / name).read_bytes()
        told: dict[str, Any] = {
            "filename": name,
            "url": f"{self.address}/files/{name}",
            "hashes": {"sha256": hashlib.sha256(content).hexdigest()},
            "size": len(content),
        }
        if self.tells_times:
            told["upload-time"] = f"{self.uploaded[name]}T12:00:00Z"
        if name in self.yanked:
            told["yanked"] = self.yanked[name]
        return told

    def sent(self, path: str, content: bytes) -> int:
        """Of how many bytes it sends those that it promises."""
        return len(content)

    def answer(self, path: str) -> tuple[str, bytes] | None:
        """The type and the content of what is at a path."""
        _, room, name, *_ = [*path.split("/"), "", ""]
        if room == "files" and name in self.uploaded:
            return "application/octet-stream", (self.folder / name).read_bytes()
        found = self.listing(name) if room == "simple" else None
        return (MEDIA_TYPE, json.dumps(found).encode()) if found is not None else None


@contextmanager
def serving(index: PackageIndex) -> Iterator[PackageIndex]:
    """Serve it on loopback for as long as the block lasts."""

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.tell(with_content=False)

        def do_GET(self) -> None:
            self.tell(with_content=True)

        def tell(self, *, with_content: bool) -> None:
            found = index.answer(self.path)
            kind, content = found or ("text/plain", b"not here")
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.send_header("Cache-Control", "no-cache" if kind == MEDIA_TYPE else "max-age=3600")
            self.end_headers()
            if with_content:
                sent = index.sent(self.path, content)
                self.wfile.write(content[:sent])
                if sent < len(content) and index.stalls:
                    index.ended.wait()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    index.address = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield index
    finally:
        index.ended.set()
        server.shutdown()
        server.server_close()
        thread.join()
