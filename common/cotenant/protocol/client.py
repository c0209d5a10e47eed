"""The tenant's side of the rendezvous. Standard library only: a benchmark without torch speaks it in a page."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Mapping
from typing import Any

from cotenant.protocol.messages import (
    SEND_EVERY_NS,
    SOCKET_VARIABLE,
    TENANT_VARIABLE,
    WARM_UP_VARIABLE,
    Message,
    MessageBuffer,
    encode,
)

SPIN_NS = 2_000_000
CHUNK_BYTES = 1 << 16


class RunnerGoneError(ConnectionError):
    """The runner closed the rendezvous before it sent STOP, refused this process, or was not there at all."""


class Rendezvous:
    """A connection to the runner for one process of one tenant.

    A `Meter` makes these calls in their order: `begin(...)` if there is something to say, `ready(...)`, `await_go()`,
    `observation(...)` after each stopped clock, unless `enough()`, `done()`, work until `stopped()`, `record(...)`.
    `failed(...)` may be sent at any time.
    """

    warms_up_alone = False
    """Whether to warm up in a turn: beside the others its steps would take longer than later ones."""
    settle_ns = 0
    """From GO on: the nanoseconds of unmeasured load after t0, the same for all tenants."""

    made = 0
    """From GO on: the number of observations that earlier starts of the program made."""

    def __init__(
        self, path: str, tenant: int, rank: int = 0, world: int = 1, elsewhere: int = 0, start: int = 1
    ) -> None:
        """Connect and say hello; `elsewhere` of the `world` ranks do not speak to this runner.

        `start` counts the starts of a program that is restarted; a later one has no turn to warm up. Raises
        RunnerGoneError if there is no listener at `path`.
        """
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.connect(path)
        except OSError as error:
            self._socket.close()
            raise RunnerGoneError(f"no runner listens at {path}: {error.strerror or error}") from error
        self._lines = MessageBuffer()
        self._inbox: list[Message] = []
        self._unsent: list[dict[str, Any]] = []
        """Observations to send with the next message."""
        self._sent_ns = 0
        self.warms_up_alone = os.environ.get(WARM_UP_VARIABLE) == "alone" and start == 1
        self._say("hello", tenant=tenant, rank=rank, world=world, elsewhere=elsewhere, start=start, pid=os.getpid())

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> Rendezvous | None:
        """Connect if a runner's environment names a socket; return None if the benchmark runs alone."""
        if SOCKET_VARIABLE not in environ:
            return None
        world = int(environ.get("WORLD_SIZE", "1"))
        elsewhere = world - int(environ.get("LOCAL_WORLD_SIZE", world))
        rank = int(environ.get("RANK", "0"))
        return cls(environ[SOCKET_VARIABLE], int(environ[TENANT_VARIABLE]), rank, world, elsewhere)

    def begin(self, work: dict[str, Any]) -> None:
        """Describe the work to do (arguments, version, item ...), so that a record names it in any case."""
        self._say("begin", work=work)

    def ready(self, number: int, repeat: int, skip: int, warm_up_ns: list[int]) -> None:
        """Say that build, first batch and warm-up are over; `warm_up_ns` is the time of each warm-up step."""
        self._say("ready", number=number, repeat=repeat, skip=skip, warm_up_ns=warm_up_ns)

    def turn(self) -> None:
        """Block until this tenant has its device, or processors, to itself; ask only once. Raises RunnerGoneError."""
        self._say_and_hear("turn")

    def turned(self) -> None:
        """End the turn; block until every tenant that shares them has had its own. Raises RunnerGoneError."""
        self._say_and_hear("turned")

    def await_go(self) -> tuple[int, int, int]:
        """Block until GO, and return its (t0_ns, number, repeat), which override the amount that `ready` requested.

        Raises RunnerGoneError.
        """
        while True:
            while self._inbox:
                message = self._inbox.pop(0)
                if message.kind == "go":
                    self.settle_ns, self.made = message.fields.get("settle_ns", 0), message.fields.get("made", 0)
                    return message.fields["t0_ns"], message.fields["number"], message.fields["repeat"]
            self._receive()

    def observation(self, **fields: Any) -> None:
        """Report one observation: index, start_ns, end_ns, items, data_wait_ns; times of `time.perf_counter_ns`.

        Observations below 50 ms are sent together, every 50 ms, and before the next message.
        """
        self._unsent.append(fields)
        if fields["end_ns"] - self._sent_ns >= SEND_EVERY_NS:
            self._send(b"")
            self._sent_ns = fields["end_ns"]

    def flush(self) -> None:
        """Send the observations that are not sent yet; needed before a process ends without a further message."""
        if self._unsent:
            self._send(b"")

    def done(self) -> None:
        """Say that the last observation is made; the load goes on until STOP."""
        self._say("done")

    def enough(self) -> bool:
        """Return whether the runner has seen enough observations. Never blocks. Raises RunnerGoneError.

        The socket is read as often as observations are sent. A program that never asks makes all its observations.
        """
        return self._has_come("enough")

    def stopped(self) -> bool:
        """Return whether the runner has sent STOP. Never blocks. Raises RunnerGoneError."""
        return self._has_come("stop")

    def elsewhere(self, rank: int, observations: list[dict[str, Any]]) -> None:
        """Report all observations of a rank on another host, after this rank's own."""
        self._say("elsewhere", rank=rank, observations=observations)

    def record(self, record: dict[str, Any]) -> dict[str, Any]:
        """Hand over the tenant's part of its record, and return it."""
        self._say("record", record=record)
        return record

    def failed(self, outcome: str, message: str) -> None:
        """Say why this tenant ends without a record."""
        self._say("failed", outcome=outcome, message=message)

    def close(self) -> None:
        """Close the connection, as a process's end does."""
        self._socket.close()

    def _say(self, kind: str, **fields: Any) -> None:
        self._send(encode(kind, **fields))

    def _send(self, last: bytes) -> None:
        unsent, self._unsent = self._unsent, []
        try:
            self._socket.sendall(b"".join(encode("observation", **fields) for fields in unsent) + last)
        except (BrokenPipeError, ConnectionResetError) as error:
            raise RunnerGoneError("the runner has closed the rendezvous") from error

    def _say_and_hear(self, kind: str) -> None:
        self._say(kind)
        while not any(message.kind == kind for message in self._inbox):
            self._receive()

    def _has_come(self, kind: str) -> bool:
        if not self._unsent:
            with contextlib.suppress(BlockingIOError):
                self._receive(socket.MSG_DONTWAIT)
        return any(message.kind == kind for message in self._inbox)

    def _receive(self, flags: int = 0) -> None:
        try:
            data = self._socket.recv(CHUNK_BYTES, flags)
        except ConnectionResetError:  # The runner closed without having read everything.
            data = b""
        if not data:
            raise RunnerGoneError("the runner has closed the rendezvous")
        self._inbox += self._lines.feed(data)
        refused = next((message for message in self._inbox if message.kind == "refused"), None)
        if refused is not None:
            raise RunnerGoneError(f"the runner has refused this process: {refused.fields['sentence']}")


def wait_until(t0_ns: int) -> None:
    """Return at `t0_ns` of the monotonic clock: sleep until 2 ms before it, spin the rest."""
    while (left_ns := t0_ns - time.perf_counter_ns()) > 0:
        if left_ns > SPIN_NS:
            time.sleep((left_ns - SPIN_NS) / 1e9)
