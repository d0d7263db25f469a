"""Lets nodes in network namespaces reach the package index: a proxy that listens inside and connects outside.

A namespace has no way out of this machine. Its proxy listens on the namespace's own loopback, where nobody else comes,
and does one thing: the ``CONNECT`` of HTTPS, from outside the namespace.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import socket
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

PORT = 3128

_CLONE_NEWNET = 0x40000000
_PIECE = 2**16


class Relay:
    """Serves any number of namespaces from a thread of this process, until it is closed."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._servers: list[asyncio.Server] = []
        self._connections: set[asyncio.Task[None] | None] = set()
        """All that are open: asyncio itself does not keep one whose near end has nothing more to say."""
        self._thread = threading.Thread(target=self._loop.run_forever, name="relay", daemon=True)
        self._thread.start()

    def listen_in(self, namespace: str) -> str:
        """Listen inside; the address there."""
        with ThreadPoolExecutor(1) as apart:  # a thread that enters a namespace stays in it
            self.listen(apart.submit(_ear, Path("/run/netns") / namespace).result())
        return f"http://127.0.0.1:{PORT}"

    def listen(self, ear: socket.socket) -> None:
        """Serve who connects to a socket."""
        started = asyncio.run_coroutine_threadsafe(asyncio.start_server(self._serve, sock=ear), self._loop)
        self._servers.append(started.result())

    def close(self) -> None:
        """Stop, with all connections."""
        stopped: Future[None] = asyncio.run_coroutine_threadsafe(self._stop(), self._loop)
        stopped.result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = asyncio.current_task()
        self._connections.add(connection)
        try:
            await _connect(reader, writer)
        finally:
            self._connections.discard(connection)

    async def _stop(self) -> None:
        for server in self._servers:
            server.close()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)


def _ear(namespace: Path) -> socket.socket:
    """A socket that listens in the namespace, wherever it is used from."""
    handle = os.open(namespace, os.O_RDONLY)
    try:
        if ctypes.CDLL(None, use_errno=True).setns(handle, _CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f"cannot enter {namespace}")
    finally:
        os.close(handle)
    return socket.create_server(("127.0.0.1", PORT))


async def _connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.closing(writer), contextlib.suppress(OSError, ValueError, asyncio.IncompleteReadError):
        head = await reader.readuntil(b"\r\n\r\n")
        verb, target, _ = head.split(b"\r\n", 1)[0].split(b" ")
        if verb != b"CONNECT":
            writer.write(b"HTTP/1.1 405 Method Not Allowed\r\n\r\n")
            return
        host, _, port = target.decode("ascii").rpartition(":")
        far_reader, far_writer = await asyncio.open_connection(host.strip("[]"), int(port))
        with contextlib.closing(far_writer):
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await asyncio.gather(_pump(reader, far_writer), _pump(far_reader, writer))


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while piece := await reader.read(_PIECE):
        writer.write(piece)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()
