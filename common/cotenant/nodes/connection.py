"""A connection between the runners of two hosts: lines of the rendezvous' protocol over TCP, and a sign of life."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

from cotenant.files import readable
from cotenant.protocol.messages import Lines, Message, ProtocolError, encode

CHUNK_BYTES = 1 << 16
BEAT_S = 1.0
SILENCE_S = 10.0
"""A host that sends nothing for so long is lost: its link is cut, or it is."""


class Connection:
    """One end of it; `open` until the other end has left. `silent_s` is how long nothing has come."""

    def __init__(self, connection: socket.socket, silence_s: float = SILENCE_S) -> None:
        self._socket = connection
        self._lines = Lines()
        self._heard_s = time.monotonic()
        self._sending = threading.Lock()
        self.open = True
        # What is sent may have to wait for the network, what is received never does.
        connection.settimeout(silence_s)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def fileno(self) -> int:
        return self._socket.fileno()

    @property
    def silent_s(self) -> float:
        return time.monotonic() - self._heard_s

    def receive(self, wait_s: float = 0.0) -> list[Message]:
        """Return what has come; `wait_s` is how long to wait for something. Nonsense closes it."""
        messages: list[Message] = []
        while self.open and readable(self._socket.fileno(), 0.0 if messages else wait_s):
            try:
                data = self._socket.recv(CHUNK_BYTES, socket.MSG_DONTWAIT)
                arrived = self._lines.feed(data)
            except BlockingIOError:
                break
            except (OSError, ProtocolError):
                data, arrived = b"", []
            if not data:
                self.open = False
                break
            self._heard_s = time.monotonic()
            messages += [message for message in arrived if message.kind != "beat"]
        return messages

    def send(self, kind: str, **fields: Any) -> None:
        """Send one message; a host that is gone is seen by what no longer comes from it."""
        with self._sending, contextlib.suppress(OSError):
            self._socket.sendall(encode(kind, **fields))

    def close(self) -> None:
        self.open = False
        self._socket.close()


class Heart:
    """A thread that sends a sign of life once a second over all connections, whatever the runner is busy with."""

    def __init__(self, connections: Callable[[], Iterable[Connection]]) -> None:
        self._connections = connections
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True, name="cotenant-heart")
        self._thread.start()

    def _beat(self) -> None:
        while not self._over.wait(BEAT_S):
            for connection in list(self._connections()):
                if connection.open:
                    connection.send("beat")

    def stop(self) -> None:
        self._over.set()
        self._thread.join()
