"""The side of every other node: it joins node 0, launches what that says, and tells what was measured."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Sequence
from typing import Any

from cotenant.errors import CotenantError, NodeLostError
from cotenant.nodes.cluster import Cluster, boot_id
from cotenant.nodes.connection import Connection, Heart
from cotenant.nodes.peers import CommonGo, Reason
from cotenant.protocol.messages import Message
from cotenant.stats.budget import Amount

POLL_S = 0.2


class Member:
    """The peers of a launch on a node that does not lead."""

    leads = False

    def __init__(self, cluster: Cluster, silence_s: float) -> None:
        self._cluster, self._silence_s = cluster, silence_s
        self._connection: Connection | None = None
        self._heart = Heart(self.connections)
        self._keys: list[str] = []
        self._over = False
        self._begin()

    def _begin(self) -> None:
        self.audits = 0
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
            if self._met(identity):
                return
            if time.monotonic() > until_s:
                raise CotenantError(
                    f"Node 0 does not answer at {self._cluster.endpoint} within {limit_s:g} s.",
                    "Start the same command there with --node-rank 0; --ready-timeout waits longer.",
                )
            time.sleep(POLL_S)

    def _met(self, identity: str) -> bool:
        """Connect and join. Return whether node 0 was there; raises CotenantError where it refuses."""
        try:
            reached = socket.create_connection((self._cluster.host, self._cluster.port), timeout=self._silence_s)
        except OSError:
            return False
        connection = Connection(reached, self._silence_s)
        hostname = socket.gethostname()
        connection.send("join", node=self._cluster.node, hostname=hostname, boot=boot_id(), identity=identity)
        answers = [message for message in connection.receive(self._silence_s) if message.kind in ("welcome", "refused")]
        if not answers:
            connection.close()
            return False
        if answers[0].kind == "refused":
            connection.close()
            raise CotenantError(
                f"Node 0 at {self._cluster.endpoint} refuses this node: {answers[0].fields['sentence']}.",
                "Start the same command on each node, with its own --node-rank.",
            )
        self._connection = connection
        return True

    def next_launch(self, interrupted: Callable[[], object]) -> str | None:
        """Wait for the next launch, and return its key; None when node 0 has no more. Raises NodeLostError.

        Between launches node 0 may prepare data for hours: only its silence is limited.
        """
        while not (self._keys or self._over or interrupted()):
            # First: while the last launch was cleared away nobody listened.
            self._take(POLL_S)
            if (reason := self._lost()) is not None and not self._over:
                raise NodeLostError(reason[1], "The records are on node 0; the same command with --resume goes on.")
        return self._keys.pop(0) if self._keys else None

    def send_result(self, result: dict[str, Any]) -> None:
        assert self._connection is not None
        self._connection.send("result", result=result)

    def _take(self, wait_s: float = 0.0) -> None:
        assert self._connection is not None
        for message in self._connection.receive(wait_s):
            self._obey(self._connection, message)

    def _obey(self, connection: Connection, message: Message) -> None:
        fields = message.fields
        if message.kind == "ping":
            connection.send("pong", now_ns=time.perf_counter_ns())
        elif message.kind == "launch":
            # What comes from here on is of this launch.
            self._begin()
            self._keys.append(fields["key"])
        elif message.kind == "go":
            self._go = CommonGo(fields["t0_ns"], Amount(fields["number"], fields["repeat"], fields["skip"]))
        elif message.kind == "audit":
            self.audits += 1
        elif message.kind == "stop":
            self._stopped = True
        elif message.kind == "halt":
            self._halt = fields["outcome"], f"Node 0: {fields['message']}"
        elif message.kind == "over":
            self._over = True

    def _lost(self) -> Reason | None:
        assert self._connection is not None
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

    def go(self) -> CommonGo | None:
        return self._go

    def _say(self, kind: str, **fields: Any) -> None:
        for connection in self.connections():
            connection.send(kind, **fields)

    def started(self, t0_ns: int, amount: Amount) -> None:
        """Node 0 has told all nodes."""

    def audit(self) -> None:
        """Node 0 asks all nodes."""

    def done(self) -> bool:
        if not self._finished:
            self._finished = True
            self._say("finished")
        return self._stopped

    def stop(self) -> None:
        """Node 0 stops all nodes."""

    def fail(self, reason: Reason) -> None:
        self._say("lost", outcome=reason[0], message=reason[1])
