"""The runner's side of the rendezvous: a listening socket, its links, and one loop over everything that can happen."""

from __future__ import annotations

import contextlib
import selectors
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cotenant.launch.life import Life
from cotenant.protocol.messages import Lines, Message, encode

CHUNK_BYTES = 1 << 16
CHUNKS_A_TURN = 16
"""More than fits into a socket's buffer, so that one turn hears a dead tenant out; a chatterbox has to wait."""
CONNECTIONS_A_TURN = 128


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
            # An earlier call of this turn may have forgotten it, and its number may belong to another by now.
            if self._selector.get_map().get(key.fd) == key:
                key.data()

    def close(self) -> None:
        self._selector.close()


class Link:
    """One connection of one process of a tenant; `open` until the other end has left, or we have."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._lines = Lines()
        self.open = True
        connection.setblocking(False)

    def fileno(self) -> int:
        return self._connection.fileno()

    def life(self) -> Life | None:
        """Return the process that connected, to see its end; None where it cannot be seen."""
        return Life.at_the_other_end(self._connection)

    def receive(self) -> list[Message]:
        """Return what can be read now, within limits. Raises ProtocolError, and then the link is closed."""
        messages: list[Message] = []
        for _ in range(CHUNKS_A_TURN):
            try:
                data = self._connection.recv(CHUNK_BYTES)
            except BlockingIOError:
                break
            except OSError:
                data = b""
            if not data:
                self.open = False
                break
            try:
                messages += self._lines.feed(data)
            except ValueError:
                self.close()
                raise
        return messages

    def say(self, kind: str, **fields: Any) -> None:
        """Send one message; a tenant that is gone is seen on its pidfd, not here."""
        with contextlib.suppress(OSError):
            self._connection.sendall(encode(kind, **fields))

    def close(self) -> None:
        self.open = False
        self._connection.close()


class Listener:
    """The socket whose path stands in one tenant's environment: who connects here is of that tenant."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.unlink(missing_ok=True)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.bind(str(path))
            self._socket.listen(CONNECTIONS_A_TURN)
        except OSError:
            self._socket.close()
            raise
        self._socket.setblocking(False)

    def fileno(self) -> int:
        return self._socket.fileno()

    def accept(self) -> list[Link]:
        """Return the connections that wait, within limits; none once it is closed."""
        links = []
        with contextlib.suppress(OSError):
            for _ in range(CONNECTIONS_A_TURN):
                links.append(Link(self._socket.accept()[0]))
        return links

    def close(self) -> None:
        self._socket.close()
        self._path.unlink(missing_ok=True)
