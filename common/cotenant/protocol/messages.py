"""The rendezvous' messages and their codec: one JSON object a line, standard library only.

A tenant says `hello`, `begin`, `ready`, `observation`, `done`, `record` or `failed`, and `elsewhere` for ranks on other
hosts; the runner says `go`, `enough` and `stop`, and `refused` to a process that another is already.
`turn` asks for a turn on the device and gives it; `turned` ends it and says that all have had theirs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cotenant.nesting import DEEPEST, is_deep

SEND_EVERY_NS = 50_000_000
"""Observations that are shorter are sent together: a message each takes a hundredth of the time of short ones."""
SOCKET_VARIABLE = "COTENANT_SOCKET"
TENANT_VARIABLE = "COTENANT_TENANT"
RUN_VARIABLE = "COTENANT_RUN"
REAPER_VARIABLE = "COTENANT_REAPER"
"""The run whose reaper a process is; RUN_VARIABLE names the run that a process ends with."""
RANKS_VARIABLE = "COTENANT_RANKS"
LOG_VARIABLE = "COTENANT_LOG"
GROUP_VARIABLE = "COTENANT_GROUP"
NODE_VARIABLE = "COTENANT_NODE"
"""The facts that a runner tells its ranks, in JSON, if others are on other hosts; NODES_VARIABLE has those of all."""
NODES_VARIABLE = "COTENANT_NODES"
WARM_UP_VARIABLE = "COTENANT_WARM_UP"
"""`alone` where tenants that have processors by turns are to warm up by turns."""
DEVICE_MEMORY_VARIABLE = "COTENANT_DEVICE_MEMORY"
"""The bytes of device memory that a tenant holds itself to, where nothing else does."""
LINE_LIMIT_BYTES = 16 << 20
INTEGER_LIMIT = 1 << 63

UNSAID = 1 << 30
"""The `number` of a READY that leaves it to the runner how many steps make an observation."""

FIELDS: dict[str, dict[str, type | tuple[type, ...]]] = {
    "hello": {"tenant": int, "rank": int, "world": int, "pid": int},
    "begin": {"work": dict},
    "ready": {"number": int, "repeat": int, "skip": int, "warm_up_ns": list},
    "observation": {
        "index": int,
        "start_ns": int,
        "end_ns": int,
        "items": (int, float),
        "data_wait_ns": int,
    },
    "done": {},
    "elsewhere": {"rank": int, "observations": list},
    "record": {"record": dict},
    "failed": {"outcome": str, "message": str},
    "go": {"t0_ns": int, "number": int, "repeat": int, "skip": int},
    "enough": {},
    "turn": {},
    "turned": {},
    "stop": {},
    "refused": {"sentence": str},
}


class ProtocolError(ValueError):
    """A line that is no message of this protocol, or a message that has no meaning where it was sent."""


@dataclass(frozen=True)  # Without slots: programs of Python 3.8 speak this, too.
class Message:
    """One decoded line; `fields` holds at least the names that FIELDS has for its kind."""

    kind: str
    fields: dict[str, Any]


def encode(kind: str, **fields: Any) -> bytes:
    """Return one line, its newline included."""
    assert FIELDS[kind].keys() <= fields.keys(), (kind, fields)
    return json.dumps({"kind": kind, **fields}, separators=(",", ":")).encode() + b"\n"


def decode(line: bytes) -> Message:
    """Return the message a line holds. Raises ProtocolError.

    Its integers fit 64 bits, its texts can be encoded, and it is nested no deeper than its readers can follow.
    """
    try:
        text = line.decode()
        fields = json.loads(text, parse_int=_integer)
        if "\\ud" in text.lower():
            # Half a surrogate pair (an argument that is not UTF-8, say) could be written to no file.
            fields = json.loads(json.dumps(fields, ensure_ascii=False).encode(errors="replace"))
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"not JSON: {line[:80]!r}") from error
    if not isinstance(fields, dict) or not isinstance(fields.get("kind"), str):
        raise ProtocolError(f"not a message: {line[:80]!r}")
    if line.count(b"[") + line.count(b"{") > DEEPEST and is_deep(fields):
        raise ProtocolError(f"a message nested more than {DEEPEST} levels deep: {line[:80]!r}")
    kind = fields.pop("kind")
    if kind not in FIELDS:
        raise ProtocolError(f"unknown message '{kind[:40]}'")
    check_fields(kind, fields)
    return Message(kind, fields)


def check_fields(kind: str, fields: Mapping[str, Any]) -> None:
    """Raise ProtocolError where a message of this kind lacks a field, or has one of another type."""
    for name, wanted in FIELDS[kind].items():
        value = fields.get(name)
        if not isinstance(value, wanted) or isinstance(value, bool):
            raise ProtocolError(f"message '{kind}' needs '{name}', got {value!r:.80}")


def _integer(digits: str) -> int:
    number = int(digits)
    if not -INTEGER_LIMIT <= number < INTEGER_LIMIT:
        raise ValueError(f"an integer of {len(digits)} digits")
    return number


class MessageBuffer:
    """Bytes in, whole messages out; a part of a line waits for the rest."""

    def __init__(self) -> None:
        self._pending = bytearray()

    def feed(self, data: bytes) -> list[Message]:
        """Return the messages that `data` completes. Raises ProtocolError, also for a line without end."""
        whole, newline, rest = data.rpartition(b"\n")
        if len(self._pending) + len(data) > LINE_LIMIT_BYTES:
            raise ProtocolError(f"a line of more than {LINE_LIMIT_BYTES} bytes")
        if not newline:
            self._pending += data
            return []
        lines = bytes(self._pending + whole).split(b"\n")
        self._pending = bytearray(rest)
        return [decode(line) for line in lines]


def rank_log(log: Path, rank: int) -> Path:
    """Return the log of one rank, given the tenant's: `job.R0.T0.log`, which rank 0 shares with its launcher, and
    `job.R0.T0.rank1.log`."""
    return log if rank == 0 else log.with_name(f"{log.stem}.rank{rank}.log")
