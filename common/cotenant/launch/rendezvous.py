"""The runner's side of the rendezvous: a listening socket, its links, and one loop over everything that can happen."""

from __future__ import annotations

import contextlib
import selectors
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cotenant.protocol.messages import Lines, Message, encode

CHUNK_BYTES = 1 << 16


class Events:
    """Calls what was registered for a descriptor when it becomes readable."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()

    def on_readable(self, source: Any, call: Callable[[], None]) -> None:
        self._selector.register(source, selectors.EVENT_READ, call)

    def forget(self, source: Any) -> None:
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(source)

    def turn(self, timeout_s: float) -> None:
        """Wait for the next events, at most so long, and call for each."""
        for key, _ in self._selector.select(max(0.0, timeout_s)):
            # An earlier call of this turn may have forgotten it.
            if key.fd in self._selector.get_map():
                key.data()

    def close(self) -> None:
        self._selector.close()


class Link:
    """One connection of one process of a tenant."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._lines = Lines()
        connection.setblocking(False)

    def fileno(self) -> int:
        return self._connection.fileno()

    def receive(self) -> tuple[list[Message], bool]:
        """Return what can be read now, and whether the other end is still there. Raises ProtocolError."""
        messages: list[Message] = []
        while True:
            try:
                data = self._connection.recv(CHUNK_BYTES)
            except BlockingIOError:
                return messages, True
            except ConnectionError:
                return messages, False
            if not data:
                return messages, False
            messages += self._lines.feed(data)

    def say(self, kind: str, **fields: Any) -> None:
        """Send one message; a tenant that is gone is seen on its pidfd, not here."""
        with contextlib.suppress(OSError):
            self._connection.sendall(encode(kind, **fields))

    def close(self) -> None:
        self._connection.close()


class Listener:
    """The socket whose path stands in every tenant's environment."""

    def __init__(self, path: Path) -> None:
        path.unlink(missing_ok=True)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.bind(str(path))
        self._socket.listen(128)
        self._socket.setblocking(False)

    def fileno(self) -> int:
        return self._socket.fileno()

    def accept(self) -> list[Link]:
        """Return every connection that waits."""
        links = []
        with contextlib.suppress(BlockingIOError):
            while True:
                links.append(Link(self._socket.accept()[0]))
        return links

    def close(self) -> None:
        self._socket.close()
