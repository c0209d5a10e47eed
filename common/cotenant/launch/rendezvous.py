"""The runner's side of the rendezvous: a listening socket, its links, and the messages of one process over each."""

from __future__ import annotations

import contextlib
import itertools
import math
import socket
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import Any

from cotenant.launch.events import Life
from cotenant.protocol.inbox import Inbox
from cotenant.protocol.messages import SEND_EVERY_NS, Message, ProtocolError, check_fields, encode
from cotenant.stats.budget import Amount

_CREDENTIALS = struct.Struct("3i")
CONNECTIONS_A_TURN = 128
HELLO_BYTES = 4096
SPOKEN_BYTES = 64 << 20
"""The most bytes that a process may send beside its observations; each message is a line of limited length."""
OBSERVATION_BYTES = 1024
OWN_OUTCOMES = frozenset(
    (
        "failed",
        "device_out_of_memory",
        "interrupted",
        "missing_data",
        "missing_package",
        "nan",
        "node_lost",
        "out_of_memory",
        "unsupported",
    )
)
"""The outcomes that a tenant may report itself, like memory that was refused; the runner finds all others."""


class Claim(Enum):
    """How certain it is that a connection comes from the tenant's own process."""

    OWN = "own"
    UNPROVEN = "unproven"
    """Possibly: a wrong message only closes this connection, and a process that is the tenant's own takes its place."""
    STRANGER = "stranger"


def peer_of(connection: socket.socket) -> tuple[int, int]:
    """Return the ids of the process and user that connected (unix(7)); the process is 0 if we cannot see it."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid, user, _ = _CREDENTIALS.unpack(credentials)
    return pid, user


class TakenError(ProtocolError):
    """A hello for a rank that another process already has."""


class Link:
    """One connection of one process of a tenant; `open` until either end closes it.

    `peer` is the id of the process that connected, 0 if we cannot see it, and `user` its user's; `rank` is its rank
    after its hello. `claim` says how certain it is that the process is the tenant's own.
    """

    def __init__(self, connection: socket.socket) -> None:
        self.rank: Rank | None = None
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

    def receive(self) -> list[Message]:
        """Return the messages that can be read now, within limits. Closes the link before it raises ProtocolError.

        The total is limited: to HELLO_BYTES for a first line, and after it to the bytes of a whole launch.
        """
        self.awaited_ns = self._looks_ns[0]
        try:
            messages = self._inbox.take()
            if self._inbox.received_bytes > (HELLO_BYTES if self.rank is None and not messages else self._most_bytes):
                raise ProtocolError(f"{self._inbox.received_bytes} bytes, which are more than it has to say")
        except ProtocolError:
            self.close()
            raise
        if self._inbox.emptied_ns:
            self._looks_ns = self._looks_ns[1], self._inbox.emptied_ns
        return messages

    def expect(self, observations: int) -> None:
        """Raise the limit of bytes for so many more observations."""
        self._most_bytes += observations * OBSERVATION_BYTES

    def send(self, kind: str, **fields: Any) -> None:
        """Send one message; the end of a tenant is noticed on its pidfd, not here."""
        with contextlib.suppress(OSError):
            self._connection.sendall(encode(kind, **fields))

    def close(self) -> None:
        self._inbox.open = False
        self._connection.close()


class Listener:
    """The socket whose path is in one tenant's environment; processes of others may also connect to it."""

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
        """A sentence where no connection can come since its path leads elsewhere; "" if it does not, or once closed."""
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
    return found.st_dev, found.st_ino, found.st_mtime_ns  # The number of a removed file is given to another one.


@dataclass(frozen=True, slots=True)
class Go:
    """The message that starts a load: its time `t0_ns`, and the `given` amount to measure."""

    t0_ns: int
    given: Amount
    settle_ns: int = 0
    """Nanoseconds of unmeasured load before the first observation."""
    alone: int = 0
    """The last observations, which are for a turn alone."""

    @property
    def together(self) -> Go:
        """The same without observations for a turn alone."""
        return replace(self, given=replace(self.given, repeat=self.given.repeat - self.alone), alone=0)


@dataclass(slots=True)
class Rank:
    """One of a tenant's `world` processes, of which so many are `elsewhere`, and its messages so far."""

    link: Link
    number: int
    world: int
    life: Life | None = None
    work: dict[str, Any] = field(default_factory=dict)
    ready: dict[str, Any] | None = None
    ready_ns: int = 0
    observations: list[dict[str, Any]] = field(default_factory=list)
    enough: bool = False
    """Whether it may end its observations before the last one."""
    done: bool = False
    record: dict[str, Any] | None = None
    failed: bool = False
    elsewhere: int = 0
    others: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    """The observations of ranks elsewhere, by their numbers."""
    rests: list[tuple[int, int]] = field(default_factory=list)
    """The times from which until which it was held still."""
    late_ns: int = 0
    """The longest time from an observation's end during which it had not been sent, without rests."""
    start: int = 1
    """The number of its process' start, of a program that is started again."""
    _known: set[str] = field(default_factory=set)
    """The messages that this start repeats from an earlier one."""
    _sent_ns: int = 0
    """The end of the last observation that had to be sent immediately."""

    @property
    def name(self) -> str:
        return f"Rank {self.number} of {self.world}"

    @property
    def complains(self) -> bool:
        """Whether it has reported a failure and still lives."""
        return self.failed and self.life is not None and not self.life.ended

    @property
    def requested(self) -> Amount | None:
        """The amount that it is ready to measure; None before READY."""
        if self.ready is None:
            return None
        return Amount(self.ready["number"], self.ready["repeat"], self.ready["skip"])

    def longest_batch_s(self, number: int) -> float:
        """Return the mean seconds of a batch in its slowest observation of `number` batches; 0 without any."""
        times_ns = [fields["end_ns"] - fields["start_ns"] for fields in self.observations]
        return max(times_ns, default=0) / number / 1e9

    def take(self, message: Message, go: Go | None) -> None:
        """Keep a message after its hello. Raises ProtocolError for one that is not allowed at this point."""
        kind, fields = message.kind, message.fields
        if kind in self._known:
            self._known.remove(kind)
        elif kind == "begin" and not self.work and self.ready is None:
            self.work = fields["work"]
        elif kind in ("turn", "turned") and self.ready is None:
            pass  # The launch handles turns.
        elif kind == "ready" and self.ready is None:
            _check_ready(fields)
            self.ready, self.ready_ns = fields, time.perf_counter_ns()
        elif kind == "observation" and go is not None and not self.done:
            _check_observation(fields, self.observations, go)
            self.observations.append(fields)
            # One that ends sooner after the last that was sent is sent with the next one, which may be long.
            if fields["end_ns"] - self._sent_ns >= SEND_EVERY_NS:
                self._sent_ns = fields["end_ns"]
                self.late_ns = max(self.late_ns, self._awake_ns(self._sent_ns, self.link.awaited_ns))
        elif kind == "done" and go is not None and not self.done:
            if len(self.observations) != go.given.repeat and not self.enough:
                raise ProtocolError(f"done after {len(self.observations)} of {go.given.repeat} observations")
            self.done = True
        elif kind == "elsewhere" and go is not None and self.done and self.record is None:
            self._take_elsewhere(fields["rank"], fields["observations"], go)
        elif kind == "record" and self.done and self.record is None:
            self.record = fields["record"]
        elif kind == "failed":
            if fields["outcome"] not in OWN_OUTCOMES:
                raise ProtocolError(f"failed with the unknown outcome '{fields['outcome'][:40]}'")
            self.failed = True
        else:
            raise ProtocolError(f"'{kind}' is not what may be sent at this point")

    def rejoin(self, link: Link, start: int) -> None:
        """Go on with a later start of its program, which begins and warms up as the one before did."""
        self.link.close()
        self.link, self.start, link.rank = link, start, self
        self._known = {kind for kind, said in (("begin", self.work), ("ready", self.ready)) if said}

    def _awake_ns(self, since_ns: int, until_ns: int) -> int:
        """Return the nanoseconds that it was awake between two recent moments; negative if the second is earlier."""
        rests = itertools.takewhile(lambda rest: rest[1] > since_ns, reversed(self.rests))
        rested_ns = sum(max(0, min(end_ns, until_ns) - max(start_ns, since_ns)) for start_ns, end_ns in rests)
        return until_ns - since_ns - rested_ns

    def _take_elsewhere(self, rank: int, rows: list[Any], go: Go) -> None:
        if not 0 <= rank < self.world or rank == self.number or rank in self.others or not self.elsewhere:
            raise ProtocolError(f"observations of a rank {rank} elsewhere")
        if len(rows) != len(self.observations):
            raise ProtocolError(f"{len(rows)} observations of rank {rank}, and {len(self.observations)} of its own")
        taken: list[dict[str, Any]] = []
        for row in rows:
            check_fields("observation", row if isinstance(row, dict) else {})
            _check_observation(row, taken, go)
            taken.append(row)
        self.others[rank] = taken


def _check_observation(fields: dict[str, Any], before: Sequence[dict[str, Any]], go: Go) -> None:
    """Raise ProtocolError for an observation that cannot have been made after those `before`."""
    index, start_ns, end_ns = fields["index"], fields["start_ns"], fields["end_ns"]
    if index != len(before) or index >= go.given.repeat:
        raise ProtocolError(f"observation {index} where {len(before)} of {go.given.repeat} are known")
    begin_ns = before[-1]["end_ns"] if before else go.t0_ns
    if not begin_ns <= start_ns < end_ns <= time.perf_counter_ns():
        raise ProtocolError(
            f"observation {index} from {start_ns} to {end_ns} ns does not lie between {begin_ns} ns and now: "
            "times are those of CLOCK_MONOTONIC"
        )
    if not (math.isfinite(fields["items"]) and fields["items"] >= 0):
        raise ProtocolError(f"observation {index} of {fields['items']} items")


def _check_ready(fields: dict[str, Any]) -> None:
    number, repeat, skip = fields["number"], fields["repeat"], fields["skip"]
    if number < 1 or not 0 <= skip < repeat:
        raise ProtocolError(f"ready for {repeat} observations of {number} batches, without the first {skip}")
    if not all(isinstance(step_ns, int) for step_ns in fields["warm_up_ns"]):
        raise ProtocolError("ready with a warm-up that is no list of nanoseconds")
