"""The rendezvous' messages and their codec: one JSON object a line, standard library only.

A tenant says `hello`, `ready`, `observation`, `done`, `record` or `failed`; the runner says `go` and `stop`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

SOCKET_VARIABLE = "COTENANT_SOCKET"
TENANT_VARIABLE = "COTENANT_TENANT"
LINE_LIMIT_BYTES = 16 << 20

FIELDS: dict[str, dict[str, type | tuple[type, ...]]] = {
    "hello": {"tenant": int, "rank": int, "world": int, "pid": int},
    "ready": {"number": int, "repeat": int, "skip": int, "warm_up_ns": list},
    "observation": {
        "index": int,
        "start_ns": int,
        "end_ns": int,
        "items": (int, float),
        "data_wait_ns": int,
    },
    "done": {},
    "record": {"record": dict},
    "failed": {"outcome": str, "message": str},
    "go": {"t0_ns": int, "number": int, "repeat": int},
    "stop": {},
}


class ProtocolError(ValueError):
    """A line that is no message of this protocol."""


@dataclass(frozen=True, slots=True)
class Message:
    """One decoded line; `fields` holds at least what FIELDS names for its kind."""

    kind: str
    fields: dict[str, Any]


def encode(kind: str, **fields: Any) -> bytes:
    """Return one line, its newline included."""
    assert FIELDS[kind].keys() <= fields.keys(), (kind, fields)
    return json.dumps({"kind": kind, **fields}, separators=(",", ":")).encode() + b"\n"


def decode(line: bytes) -> Message:
    """Return the message a line holds. Raises ProtocolError."""
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"not JSON: {line[:80]!r}") from error
    if not isinstance(fields, dict) or not isinstance(fields.get("kind"), str):
        raise ProtocolError(f"not a message: {line[:80]!r}")
    kind = fields.pop("kind")
    if kind not in FIELDS:
        raise ProtocolError(f"unknown message '{kind[:40]}'")
    for name, wanted in FIELDS[kind].items():
        value = fields.get(name)
        if not isinstance(value, wanted) or isinstance(value, bool):
            raise ProtocolError(f"message '{kind}' needs '{name}', got {value!r:.80}")
    return Message(kind, fields)


class Lines:
    """Bytes in, whole messages out; what is not yet a line waits."""

    def __init__(self) -> None:
        self._pending = bytearray()

    def feed(self, data: bytes) -> list[Message]:
        """Return the messages that `data` completes. Raises ProtocolError, also for a line without end."""
        self._pending += data
        *whole, rest = self._pending.split(b"\n")
        if len(rest) > LINE_LIMIT_BYTES:
            raise ProtocolError(f"a line of more than {LINE_LIMIT_BYTES} bytes")
        self._pending = bytearray(rest)
        return [decode(bytes(line)) for line in whole]
