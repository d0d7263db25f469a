"""The proxy through which nodes in network namespaces reach the index."""

from __future__ import annotations

import gc
import socket

from demo.relay import Relay


def test_a_connection_lasts_until_both_ends_are_done() -> None:
    """Where the near end has said all it has to say, only the far one's answer is waited for: nobody else holds it."""
    relay = Relay()
    with socket.create_server(("127.0.0.1", 0)) as far, socket.create_server(("127.0.0.1", 0)) as ear:
        far.settimeout(60)
        relay.listen(ear)
        with socket.create_connection(ear.getsockname(), timeout=60) as near:
            near.sendall(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\n\r\n" % far.getsockname()[1])
            connection, _ = far.accept()
            with connection:
                connection.settimeout(60)
                assert near.recv(100).startswith(b"HTTP/1.1 200 ")
                near.sendall(b"all that is asked")
                near.shutdown(socket.SHUT_WR)
                assert connection.recv(100) == b"all that is asked"
                assert connection.recv(100) == b""
                gc.collect()
                connection.sendall(b"the answer")
            assert near.recv(100) == b"the answer"
            assert near.recv(100) == b""
        relay.close()
