"""The runner's end of a connection: a process's messages as structs, decoded once, within limits.

Any program may speak the protocol, so every value is checked here; unknown fields are dropped.
"""

from __future__ import annotations

import json
import os
import socket
import time
from typing import Annotated, Any, Literal

import msgspec

from cotenant.decoding import AtLeastOne, Count, Nanoseconds, Whole, decoded
from cotenant.nesting import DEEPEST, is_deep
from cotenant.protocol.messages import ProtocolError, WholeLines
from cotenant.results.record import portable
from cotenant.stats.budget import Amount

CHUNK_BYTES = 1 << 16
CHUNKS_A_TURN = 16
"""More than a Unix socket's buffer holds, so that one turn reads all that a dead tenant sent; others may have more."""
SHOWN_BYTES = 80

OwnOutcome = Literal[
    "failed",
    "device_out_of_memory",
    "interrupted",
    "missing_data",
    "missing_package",
    "nan",
    "node_lost",
    "out_of_memory",
    "unsupported",
]
"""The outcomes that a tenant may report itself, such as memory that was refused; the runner finds all others."""


def _tag(name: str) -> str:
    return name.removesuffix("Message").lower()


class _Message(msgspec.Struct, frozen=True, tag_field="kind", tag=_tag):
    """A message, whose class's name begins with its kind."""


class HelloMessage(_Message, frozen=True):
    """The first message of a process: its rank, the `world` of ranks, the number of them `elsewhere`, and its program's
    `start`, if it is restarted."""

    tenant: Count
    rank: Count
    world: AtLeastOne
    elsewhere: Count = 0
    start: AtLeastOne = 1

    def __post_init__(self) -> None:
        if self.rank >= self.world or self.elsewhere >= self.world:
            raise ValueError(f"hello as rank {self.rank} of {self.world}, of which {self.elsewhere} are elsewhere")


class BeginMessage(_Message, frozen=True):
    """The work to do, so that a record names it in any case."""

    work: dict[str, Any]

    def __post_init__(self) -> None:
        _check_free(self.work)


class ReadyMessage(_Message, frozen=True):
    """Build, first batch and warm-up are over; the amount to measure, and the time of each warm-up step."""

    number: AtLeastOne
    repeat: AtLeastOne
    skip: Count
    warm_up_ns: list[Nanoseconds]

    def __post_init__(self) -> None:
        if self.skip >= self.repeat:
            raise ValueError(f"ready for {self.repeat} observations, without the first {self.skip}")

    @property
    def amount(self) -> Amount:
        return Amount(self.number, self.repeat, self.skip)


class ObservationMessage(_Message, frozen=True):
    """One observation, as `Observed` has it in a record."""

    index: Count
    start_ns: Nanoseconds
    end_ns: Nanoseconds
    items: Count | Annotated[float, msgspec.Meta(ge=0)]
    data_wait_ns: Whole
    event_ns: Nanoseconds | None = None
    issued_ns: Nanoseconds | None = None

    def __post_init__(self) -> None:
        if self.end_ns <= self.start_ns:
            raise ValueError(f"observation {self.index} ends at {self.end_ns} ns and starts at {self.start_ns} ns")
        if self.issued_ns is not None and not self.start_ns <= self.issued_ns <= self.end_ns:
            raise ValueError(f"observation {self.index} was issued at {self.issued_ns} ns, outside of its time")


class DoneMessage(_Message, frozen=True):
    """The last observation is made; the load goes on until STOP."""


class ElsewhereMessage(_Message, frozen=True):
    """All observations of a rank on another host."""

    rank: Count
    observations: list[ObservationMessage]


class RecordMessage(_Message, frozen=True):
    """The tenant's part of its record."""

    record: dict[str, Any]

    def __post_init__(self) -> None:
        _check_free(self.record)


class FailedMessage(_Message, frozen=True):
    """The reason why a process ends without a record."""

    outcome: OwnOutcome
    message: str


class TurnMessage(_Message, frozen=True):
    """A process asks for its turn on the device."""


class TurnedMessage(_Message, frozen=True):
    """The process's turn is over."""


TenantMessage = (
    HelloMessage
    | BeginMessage
    | ReadyMessage
    | ObservationMessage
    | DoneMessage
    | ElsewhereMessage
    | RecordMessage
    | FailedMessage
    | TurnMessage
    | TurnedMessage
)
_DECODER: msgspec.json.Decoder[TenantMessage] = msgspec.json.Decoder(TenantMessage)


def message_of(line: bytes) -> TenantMessage:
    """Return the message that a line holds. Raises ProtocolError."""
    try:
        try:
            return decoded(_DECODER, line)
        except msgspec.ValidationError:
            raise
        except msgspec.DecodeError:
            # Python's json writes NaN and halves of surrogate pairs, which other readers reject.
            message: TenantMessage = msgspec.convert(portable(json.loads(line.decode())), TenantMessage)
            return message
    except (ValueError, RecursionError) as error:  # msgspec's and UTF-8's errors are ValueErrors
        raise ProtocolError(f"{error}: {line[:SHOWN_BYTES]!r}") from error


def _check_free(values: dict[str, Any]) -> None:
    """Raise ValueError if no file can hold these values: nested too deeply, or with integers of more than 64 bits."""
    if is_deep(values):
        raise ValueError(f"a message nested more than {DEEPEST} levels deep")
    try:
        msgspec.msgpack.encode(values)
    except OverflowError as error:
        raise ValueError(str(error)) from error


class Inbox:
    """The messages of one peer. `open` until the other end has left.

    `emptied_ns` is the time at which the last turn found nothing left, 0 if it did not; `received_bytes` is the total
    received.
    """

    def __init__(self, connection: socket.socket) -> None:
        """Read from a socket that does not block, or has a timeout, which only limits sending."""
        self._socket = connection
        self._lines = WholeLines()
        self.open = True
        self.emptied_ns = 0
        self.received_bytes = 0

    def take(self) -> list[TenantMessage]:
        """Return the messages readable now, up to CHUNKS_A_TURN chunks, without waiting. Raises ProtocolError."""
        messages: list[TenantMessage] = []
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
            self.received_bytes += len(data)
            messages += map(message_of, self._lines.feed(data))
        return messages
