"""The rendezvous' messages as a tenant speaks them: one JSON object a line, standard library only.

A tenant says `hello`, `begin`, `ready`, `observation`, `done`, `record` or `failed`, and `elsewhere` for ranks on other
hosts; the runner says `go`, `enough` and `stop`, and `refused` if the rank is already taken.
A tenant's `turn` asks for a turn on the device, the runner's gives it; a tenant's `turned` ends it, the runner's says
that all have had theirs. launch/inbox.py has the fields, and decodes and checks tenants' messages.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SEND_EVERY_NS = 50_000_000
"""Shorter observations are sent together: a message for each would take a hundredth of a short one's time."""
SOCKET_VARIABLE = "COTENANT_SOCKET"
TENANT_VARIABLE = "COTENANT_TENANT"
RUN_VARIABLE = "COTENANT_RUN"
REAPER_VARIABLE = "COTENANT_REAPER"
"""The run that a reaper guards; RUN_VARIABLE names the run with which a process ends."""
RANKS_VARIABLE = "COTENANT_RANKS"
LOG_VARIABLE = "COTENANT_LOG"
GROUP_VARIABLE = "COTENANT_GROUP"
NODE_VARIABLE = "COTENANT_NODE"
"""A runner's facts for its ranks, in JSON, if a launch is on several hosts; NODES_VARIABLE has all nodes' facts."""
NODES_VARIABLE = "COTENANT_NODES"
WARM_UP_VARIABLE = "COTENANT_WARM_UP"
"""`alone` if tenants that share processors by turns are to warm up by turns."""
DEVICE_MEMORY_VARIABLE = "COTENANT_DEVICE_MEMORY"
"""The bytes of device memory to which a tenant limits itself, if nothing else does."""
LINE_LIMIT_BYTES = 16 << 20

UNSAID = 1 << 30
"""The `number` of a READY that leaves the steps of an observation to the runner."""


class ProtocolError(ValueError):
    """A line that is no message of this protocol, or a message that has no meaning at this point."""


@dataclass(frozen=True)  # Without slots: programs of Python 3.8 use this class, too.
class Message:
    """One message of the runner, decoded."""

    kind: str
    fields: dict[str, Any]


def encode(kind: str, **fields: Any) -> bytes:
    """Return one line, its newline included."""
    return json.dumps({"kind": kind, **fields}, separators=(",", ":")).encode() + b"\n"


def decode(line: bytes) -> Message:
    """Return the message of a line from the runner, which is trusted."""
    fields = json.loads(line)
    return Message(fields.pop("kind"), fields)


class WholeLines:
    """Splits bytes into whole lines; a part of a line waits for the rest."""

    def __init__(self) -> None:
        self._pending = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """Return the lines that `data` completes. Raises ProtocolError for a line that is too long."""
        whole, newline, rest = data.rpartition(b"\n")
        if len(self._pending) + len(data) > LINE_LIMIT_BYTES:
            raise ProtocolError(f"a line of more than {LINE_LIMIT_BYTES} bytes")
        if not newline:
            self._pending += data
            return []
        lines = bytes(self._pending + whole).split(b"\n")
        self._pending = bytearray(rest)
        return lines


class MessageBuffer:
    """Splits the runner's bytes into whole messages."""

    def __init__(self) -> None:
        self._lines = WholeLines()

    def feed(self, data: bytes) -> list[Message]:
        """Return the messages that `data` completes."""
        return [decode(line) for line in self._lines.feed(data)]


def rank_log(log: Path, rank: int) -> Path:
    """Return the log of one rank, given the tenant's: `job.R0.T0.log`, which rank 0 shares with its launcher, or
    `job.R0.T0.rank1.log`."""
    return log if rank == 0 else log.with_name(f"{log.stem}.rank{rank}.log")
