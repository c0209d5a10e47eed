"""Reads whole messages from a socket within limits. Standard library only."""

from __future__ import annotations

import os
import socket
import time

from cotenant.protocol.messages import Message, MessageBuffer

CHUNK_BYTES = 1 << 16
CHUNKS_A_TURN = 16
"""More than fits into a Unix socket's buffer, so that one turn hears a dead tenant out; a chatterbox has to wait."""


class Inbox:
    """The messages of one peer. `open` until the other end has left; `heard_s` is when something came from it last.

    `emptied_ns` is when the last turn found that nothing was left, 0 where it did not come so far; `received_bytes` is
    how much has come in all.
    """

    def __init__(self, connection: socket.socket) -> None:
        """Read from a socket that does not block, or has a timeout: that is for sending, and not waited for."""
        self._socket = connection
        self._lines = MessageBuffer()
        self.open = True
        self.heard_s = time.monotonic()
        self.emptied_ns = 0
        self.received_bytes = 0

    def take(self) -> list[Message]:
        """Return the messages that can be read now, of so many chunks; wait for nothing. Raises ProtocolError."""
        messages: list[Message] = []
        self.emptied_ns = 0
        for _ in range(CHUNKS_A_TURN):
            now_ns = time.perf_counter_ns()
            try:
                data = os.read(self._socket.fileno(), CHUNK_BYTES)
            except BlockingIOError:
                self.emptied_ns = now_ns
                break
            except OSError:
                data = b""
            if not data:
                self.open = False
                break
            self.heard_s = time.monotonic()
            self.received_bytes += len(data)
            messages += self._lines.feed(data)
        return messages
