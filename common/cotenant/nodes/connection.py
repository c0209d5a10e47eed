"""A connection between the runners of two hosts: lines of the rendezvous' protocol over TCP, and a sign of life."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

from cotenant.files import readable
from cotenant.protocol.inbox import Inbox
from cotenant.protocol.messages import Message, ProtocolError, encode
from cotenant.text import printable

BEAT_S = 1.0
SILENCE_S = 10.0
"""A host that sends nothing for so long is lost: its link is cut, or it is."""


class Connection:
    """One end of it; `open` until the other end has left, or has sent `nonsense`, which says why it is that.

    `silent_s` is how long nothing has come.
    """

    def __init__(self, connection: socket.socket, silence_s: float = SILENCE_S) -> None:
        self._socket = connection
        self._inbox = Inbox(connection)
        self._sending = threading.Lock()
        self.nonsense = ""
        # Sending may have to wait for the network, receiving never does.
        connection.settimeout(silence_s)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def fileno(self) -> int:
        return self._socket.fileno()

    @property
    def open(self) -> bool:
        return self._inbox.open

    @property
    def silent_s(self) -> float:
        return time.monotonic() - self._inbox.heard_s

    def receive(self, wait_s: float = 0.0) -> list[Message]:
        """Return the messages that have come; it takes `wait_s` at the most, whatever dribbles in. Nonsense ends it."""
        until_s = time.monotonic() + wait_s
        while self.open:
            try:
                messages = [message for message in self._inbox.take() if message.kind != "beat"]
            except ProtocolError as error:
                self._refuse(error)
                break
            left_s = max(0.0, until_s - time.monotonic())
            if messages or not left_s or not readable(self._socket.fileno(), left_s):
                return messages
        return []

    def hear(self, take: Callable[[Message], None], wait_s: float = 0.0) -> None:
        """Have `take` take the messages that have come; one for which that raises ProtocolError is nonsense, too."""
        try:
            for message in self.receive(wait_s):
                take(message)
        except ProtocolError as error:
            self._refuse(error)

    def _refuse(self, error: ProtocolError) -> None:
        self.nonsense, self._inbox.open = printable(str(error)), False

    def send(self, kind: str, **fields: Any) -> None:
        """Send one message; a host that is gone is seen by its silence."""
        with self._sending, contextlib.suppress(OSError):
            self._socket.sendall(encode(kind, **fields))

    def close(self) -> None:
        self._inbox.open = False
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
