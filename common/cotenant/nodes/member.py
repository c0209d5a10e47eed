"""The side of every other node: it joins node 0, launches the tenants that it names, and sends the results."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cotenant.errors import CotenantError, NodeLostError
from cotenant.nodes.cluster import Cluster, boot_id
from cotenant.nodes.connection import Connection, Heart
from cotenant.nodes.peers import MOST_CHARACTERS, CommonGo, Peers, Reason, reason_of
from cotenant.protocol.messages import Message, ProtocolError
from cotenant.stats.budget import Amount
from cotenant.text import printable

POLL_S = 0.2
CONNECT_S = 2.0
GO_WITHIN_NS = 60_000_000_000
"""So far a GO may lie from the moment when it comes."""


class Member(Peers):
    """The peers of a launch on a node that does not lead: node 0 gives GO and stops all."""

    def __init__(self, cluster: Cluster, silence_s: float) -> None:
        self._cluster, self._silence_s = cluster, silence_s
        self._connection: Connection | None = None
        self._heart = Heart(self.connections)
        self._key: str | None = None
        self._over = False
        self._begin()

    def _begin(self) -> None:
        self._go: CommonGo | None = None
        self._stopped = self._arrived = self._finished = False
        self._halt: Reason | None = None

    def close(self) -> None:
        self._heart.stop()
        if self._connection is not None:
            self._connection.close()

    def join(self, identity: str, limit_s: float, interrupted: Callable[[], object]) -> None:
        """Meet node 0, which may start later. Raises CotenantError where it does not come, or refuses."""
        until_s = time.monotonic() + limit_s
        while not interrupted():
            if self._met(identity, min(until_s, time.monotonic() + self._silence_s), interrupted):
                return
            if time.monotonic() > until_s:
                raise CotenantError(
                    f"Node 0 does not answer at {self._cluster.endpoint} within {limit_s:g} s.",
                    "Start the same command there with --node-rank 0; --ready-timeout waits longer.",
                )
            time.sleep(POLL_S)

    def _met(self, identity: str, until_s: float, interrupted: Callable[[], object]) -> bool:
        """Connect and join. Return whether node 0 was there; raises CotenantError where it refuses."""
        try:
            reached = socket.create_connection((self._cluster.host, self._cluster.port), timeout=CONNECT_S)
        except OSError:
            return False
        connection = Connection(reached, self._silence_s)
        hostname = socket.gethostname()
        connection.send("join", node=self._cluster.node, hostname=hostname, boot=boot_id(), identity=identity)
        answers: list[Message] = []
        while connection.open and not answers and time.monotonic() < until_s and not interrupted():
            answers = [message for message in connection.receive(POLL_S) if message.kind in ("welcome", "refused")]
        if not answers:
            connection.close()
            return False
        if answers[0].kind == "refused":
            connection.close()
            sentence = printable(answers[0].fields["sentence"][:MOST_CHARACTERS])
            raise CotenantError(
                f"Node 0 at {self._cluster.endpoint} refuses this node: {sentence}.",
                "Start the same command on each node, with its own --node-rank.",
            )
        self._connection = connection
        return True

    def next_launch(self, interrupted: Callable[[], object]) -> str | None:
        """Wait for the next launch, and return its key; None when node 0 has no more. Raises NodeLostError.

        Between launches node 0 may prepare data for hours: only its silence is limited.
        """
        while self._key is None and not self._over and not interrupted():
            # First: while the last launch was cleared away nobody listened.
            self._take(POLL_S)
            if (reason := self._lost()) is not None and not self._over:
                raise NodeLostError(reason[1], "The records are on node 0; the same command with --resume goes on.")
        key, self._key = self._key, None
        return key

    def send_result(self, result: dict[str, Any]) -> None:
        assert self._connection is not None
        self._connection.send("result", **result)

    def _take(self, wait_s: float = 0.0) -> None:
        assert self._connection is not None
        self._connection.hear(self._obey, wait_s)

    def _obey(self, message: Message) -> None:
        fields = message.fields
        if message.kind == "ping":
            self._say("pong", now_ns=time.perf_counter_ns())
        elif message.kind == "launch":
            # Messages from here on are of this launch.
            self._begin()
            self._key = fields["key"]
        elif message.kind == "go":
            self._go = _go_of(fields)
        elif message.kind == "stop":
            self._stopped = True
        elif message.kind == "halt":
            self._halt = reason_of("Node 0", fields)
        elif message.kind == "over":
            self._over = True

    def _lost(self) -> Reason | None:
        assert self._connection is not None
        if self._connection.nonsense:
            return "node_lost", f"Node 0 does not speak the protocol: {self._connection.nonsense}."
        if not self._connection.open:
            return "node_lost", f"Node 0 at {self._cluster.endpoint} has left."
        if self._connection.silent_s > self._silence_s:
            return "node_lost", f"Node 0 at {self._cluster.endpoint} was not heard for {self._silence_s:g} s."
        return None

    def connections(self) -> Sequence[Connection]:
        return [] if self._connection is None else [self._connection]

    def hear(self) -> Reason | None:
        self._take()
        return self._halt or self._lost()

    def ready(self) -> bool:
        if not self._arrived:
            self._arrived = True
            self._say("arrived")
        return self._go is not None

    def awaited(self) -> str:
        return "Another node"

    def go(self) -> CommonGo | None:
        return self._go

    def _say(self, kind: str, **fields: Any) -> None:
        for connection in self.connections():
            connection.send(kind, **fields)

    def done(self) -> bool:
        if not self._finished:
            self._finished = True
            self._say("finished")
        return self._stopped

    def fail(self, reason: Reason) -> None:
        self._say("lost", outcome=reason[0], message=reason[1])


def _go_of(fields: Mapping[str, Any]) -> CommonGo:
    """Return the GO that node 0 gives. Raises ProtocolError for one that nobody could follow."""
    amount = Amount(fields["number"], fields["repeat"], fields["skip"])
    if amount.number < 1 or not 0 <= amount.skip < amount.repeat:
        raise ProtocolError(f"a GO for {amount.repeat} observations of {amount.number} batches")
    if abs(fields["t0_ns"] - time.perf_counter_ns()) > GO_WITHIN_NS:
        raise ProtocolError(f"a GO at {fields['t0_ns']} ns, which is not now")
    return CommonGo(fields["t0_ns"], amount)
