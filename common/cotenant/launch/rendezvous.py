"""The runner's side of the rendezvous: a listening socket, and the links to processes that connect."""

from __future__ import annotations

import contextlib
import enum
import socket
import struct
from pathlib import Path
from typing import Any

from cotenant.launch.inbox import Inbox, TenantMessage
from cotenant.protocol.messages import ProtocolError, encode

_CREDENTIALS = struct.Struct("3i")
CONNECTIONS_A_TURN = 128
HELLO_BYTES = 4096
SPOKEN_BYTES = 64 << 20
"""The most bytes that a process may send without its observations; each message is a line of limited length."""
OBSERVATION_BYTES = 1024


class Claim(enum.Enum):
    """The certainty that a connection comes from the tenant's own process."""

    OWN = "own"
    UNPROVEN = "unproven"
    """Possibly the tenant's: a wrong message only closes this connection, and the tenant's own process replaces it."""
    STRANGER = "stranger"


def peer_of(connection: socket.socket) -> tuple[int, int]:
    """Return the ids of the process and user that connected (unix(7)); the process is 0 if it cannot be seen."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid, user, _ = _CREDENTIALS.unpack(credentials)
    return pid, user


class TakenError(ProtocolError):
    """A hello for a rank that another process already has."""


class Link:
    """One connection of one process of a tenant; `open` until either end closes it.

    `peer` is the id of the process that connected, 0 if it cannot be seen, and `user` its user's; `joined` is
    true after its hello. `claim` says how certain it is that the process is the tenant's own.
    """

    def __init__(self, connection: socket.socket) -> None:
        self.joined = False
        self._connection = connection
        self.peer, self.user = peer_of(connection)
        self.claim = Claim.UNPROVEN
        self._inbox = Inbox(connection)
        self._looks_ns = (0, 0)
        self._most_bytes = SPOKEN_BYTES
        self.awaited_ns = 0
        """A time before which the bytes received now had not been sent: the buffer was empty then. It is the look
        before the last one, since the last one may have freed a sender that waited for room in a full buffer."""
        connection.setblocking(False)

    @property
    def open(self) -> bool:
        return self._inbox.open

    def fileno(self) -> int:
        return self._connection.fileno()

    def receive(self) -> list[TenantMessage]:
        """Return the messages that can be read now, within limits. Closes the link before it raises ProtocolError.

        The total is limited: to HELLO_BYTES for a first line, and after it to the bytes of a whole launch.
        """
        self.awaited_ns = self._looks_ns[0]
        try:
            messages = self._inbox.take()
            if self._inbox.received_bytes > (HELLO_BYTES if not self.joined and not messages else self._most_bytes):
                raise ProtocolError(f"{self._inbox.received_bytes} bytes, more than the protocol needs")
        except ProtocolError:
            self.close()
            raise
        if self._inbox.emptied_ns:
            self._looks_ns = self._looks_ns[1], self._inbox.emptied_ns
        return messages

    def expect(self, observations: int) -> None:
        """Raise the limit of bytes for this many more observations."""
        self._most_bytes += observations * OBSERVATION_BYTES

    def send(self, kind: str, **fields: Any) -> None:
        """Send one message; the end of a tenant is noticed on its pidfd, not here."""
        with contextlib.suppress(OSError):
            self._connection.sendall(encode(kind, **fields))

    def close(self) -> None:
        self._inbox.open = False
        self._connection.close()


class Listener:
    """The socket whose path is in one tenant's environment; other tenants' processes may also connect to it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.unlink(missing_ok=True)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.bind(str(path))
            self._socket.listen(CONNECTIONS_A_TURN)
            self._identity = _identity(path)
        except OSError:
            self._socket.close()
            raise
        self._socket.setblocking(False)

    def fileno(self) -> int:
        return self._socket.fileno()

    def accept(self) -> list[Link]:
        """Return waiting connections, within limits; none after `close`."""
        links = []
        with contextlib.suppress(OSError):
            for _ in range(CONNECTIONS_A_TURN):
                links.append(Link(self._socket.accept()[0]))
        return links

    @property
    def misplaced(self) -> str:
        """A sentence if no connection can come, as its path leads elsewhere; "" if it does not, or once closed."""
        if self._socket.fileno() < 0:
            return ""
        try:
            how = "" if _identity(self._path) == self._identity else "replaced"
        except OSError:
            how = "removed"
        return how and f"Its socket {self._path} was {how}: find the program that changes this directory."

    def close(self) -> None:
        self._socket.close()
        with contextlib.suppress(OSError):
            self._path.unlink()


def _identity(path: Path) -> tuple[int, int, int]:
    found = path.lstat()
    return found.st_dev, found.st_ino, found.st_mtime_ns  # A removed file's number is reused.
