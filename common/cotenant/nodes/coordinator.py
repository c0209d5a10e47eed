"""Node 0's side: it waits for the other nodes, leads every launch, and gathers their results."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cotenant.errors import CotenantError
from cotenant.files import readable
from cotenant.nodes.clocks import Offset, offset_of
from cotenant.nodes.cluster import Cluster, addresses_of, boot_id
from cotenant.nodes.connection import Connection, Heart
from cotenant.nodes.peers import (
    MOST_CHARACTERS,
    MOST_NS,
    CommonGo,
    NodeResult,
    Peers,
    Reason,
    check_result,
    reason_of,
)
from cotenant.protocol.messages import Message, ProtocolError
from cotenant.stats.budget import Amount
from cotenant.text import listed, printable

POLL_S = 0.2
ANSWER_S = 1.0
"""A runner that waits for GO answers within a millisecond, and one that has connected joins at once."""
CLOCK_S = 5.0
"""For all round trips with a node."""
MOST_WAITING = 64
"""Connections that have not joined yet; of more the oldest has to go."""
RESULT_LIMIT_S = 120.0
MOST_NAME = 64
"""Characters of a host's name (hostname(7))."""


@dataclass(slots=True)
class PeerNode:
    """Another node as node 0 knows it: its connection, and how far it is with the launch."""

    number: int
    hostname: str
    shared: bool
    connection: Connection
    ready: bool = False
    done: bool = False
    offset: Offset | None = None
    failure: Reason | None = None
    result: dict[str, Any] | None = None
    late: Reason | None = None
    """It has not ended a launch in time: its messages on that would be taken for the next one's."""
    pong_ns: int = -1
    """Its clock's reading in its last answer; below zero until one has come."""

    @property
    def name(self) -> str:
        return f"Node {self.number} ({self.hostname})"

    def begin(self) -> None:
        self.ready = self.done = False
        self.offset = self.failure = self.result = None

    def hear(self, wait_s: float = 0.0) -> None:
        """Take the messages that have come from it."""
        self.connection.hear(self._take, wait_s)

    def _take(self, message: Message) -> None:
        fields = message.fields
        if message.kind == "pong":
            if not 0 <= fields["now_ns"] < MOST_NS:
                raise ProtocolError(f"a clock that shows {fields['now_ns']} ns")
            self.pong_ns = fields["now_ns"]
        elif message.kind == "arrived":
            self.ready = True
        elif message.kind == "finished":
            self.done = True
        elif message.kind == "lost":
            self.failure = self.failure or reason_of(self.name, fields)
        elif message.kind == "result":
            check_result(fields)
            self.result = fields

    def lost(self, silence_s: float) -> Reason | None:
        """Return why nobody has to wait for it any more; None while it is there."""
        if self.late is not None:
            return self.late
        if self.connection.nonsense:
            return "node_lost", f"{self.name} does not speak the protocol: {self.connection.nonsense}."
        if not self.connection.open:
            return "node_lost", f"{self.name} has left: its runner ended, or was ended."
        if self.connection.silent_s > silence_s:
            return "node_lost", f"{self.name} was not heard for {silence_s:g} s: its link is cut, or the host is down."
        return None

    def measured_offset(self) -> Offset | None:
        """Compare its clock with ours; None where it does not answer."""
        until_s = time.monotonic() + CLOCK_S
        try:
            return offset_of(lambda: self._round_trip(min(until_s, time.monotonic() + ANSWER_S)))
        except TimeoutError:
            return None

    def _round_trip(self, until_s: float) -> tuple[int, int, int]:
        self.pong_ns = -1
        sent_ns = time.perf_counter_ns()
        self.connection.send("ping")
        while self.pong_ns < 0:
            left_s = until_s - time.monotonic()
            if left_s <= 0 or not self.connection.open:
                raise TimeoutError
            self.hear(left_s)
        return sent_ns, self.pong_ns, time.perf_counter_ns()


class Coordinator(Peers):
    """The peers of a launch on node 0. Each launch: `begin`, the questions of Peers, `results`."""

    def __init__(self, cluster: Cluster, silence_s: float) -> None:
        """Listen at the endpoint. Raises CotenantError where that cannot be had."""
        self._cluster, self._silence_s = cluster, silence_s
        self._nodes: list[PeerNode] = []
        self._launched: list[PeerNode] = []
        self._waiting: list[tuple[Connection, float]] = []
        sixth = all(":" in address for address in addresses_of(cluster.host))
        family = socket.AF_INET6 if sixth else socket.AF_INET
        try:
            self._listener = socket.create_server((cluster.host, cluster.port), family=family, backlog=cluster.nodes)
        except OSError as error:
            raise CotenantError(
                f"Node 0 cannot listen at {cluster.endpoint}: {error.strerror or error}.",
                "--rdzv-endpoint names an address of node 0, and a port that is free there.",
            ) from error
        self._listener.setblocking(False)
        self._heart = Heart(lambda: [node.connection for node in self._nodes])

    @property
    def nodes(self) -> int:
        return self._cluster.nodes

    def close(self) -> None:
        """Let the other nodes go."""
        self._heart.stop()
        for node in self._nodes:
            node.connection.send("over")
        for connection in [node.connection for node in self._nodes] + [connection for connection, _ in self._waiting]:
            connection.close()
        self._listener.close()

    def gather(self, identity: str, limit_s: float, interrupted: Callable[[], object]) -> None:
        """Wait for all other nodes, whose `identity` has to be ours: the same work. Raises CotenantError."""
        until_s = time.monotonic() + limit_s
        while len(self._nodes) < self._cluster.nodes - 1 and not interrupted():
            if time.monotonic() > until_s:
                there = {0, *(node.number for node in self._nodes)}
                missing = [str(node) for node in range(self._cluster.nodes) if node not in there]
                raise CotenantError(
                    f"Not all of {self._cluster.nodes} nodes came to {self._cluster.endpoint} within {limit_s:g} s: "
                    f"missing are {listed(missing)}.",
                    "Start the same command on each of them, with --node-rank; --ready-timeout waits longer.",
                )
            if readable(self._listener.fileno(), POLL_S):
                with contextlib.suppress(OSError):
                    self._waiting.append((Connection(self._listener.accept()[0], self._silence_s), time.monotonic()))
            self._let_go()
            for connection, _ in self._waiting[:-MOST_WAITING]:
                connection.close()
            self._waiting = [each for each in self._waiting if self._is_awaited(*each, identity)]

    def _let_go(self) -> None:
        """Give free the places of nodes that have left before all came: their runners may be started again."""
        for node in self._nodes:
            node.hear()
            if node.lost(self._silence_s):
                node.connection.close()
        self._nodes = [node for node in self._nodes if node.connection.open]

    def _is_awaited(self, connection: Connection, since_s: float, identity: str) -> bool:
        """Admit or refuse who joins; return whether this connection may still do so."""
        joins = [message.fields for message in connection.receive() if message.kind == "join"]
        if joins:
            self._admit(connection, joins[0], identity)
            return False
        if connection.open and time.monotonic() < since_s + ANSWER_S:
            return True
        connection.close()
        return False

    def _admit(self, connection: Connection, fields: Mapping[str, Any], identity: str) -> None:
        """Take a node that joins; refuse one that is none of ours, and say why."""
        number, refusal = fields["node"], ""
        if not 0 < number < self._cluster.nodes or any(node.number == number for node in self._nodes):
            refusal = f"there is no place for a node {number} among {self._cluster.nodes}: another has it"
        elif fields["identity"] != identity:
            refusal = "it has other jobs, arguments, limits, devices or software than node 0"
        if refusal:
            connection.send("refused", sentence=refusal)
            connection.close()
            return
        connection.send("welcome")
        hostname = printable(fields["hostname"][:MOST_NAME])
        self._nodes.append(PeerNode(number, hostname, fields["boot"] == boot_id(), connection))

    def begin(self, key: str, nodes: int) -> None:
        """Have a launch begin on the first `nodes` of all nodes."""
        self._launched = sorted((node for node in self._nodes if node.number < nodes), key=lambda node: node.number)
        for node in self._launched:
            node.begin()
            node.connection.send("launch", key=key)

    def connections(self) -> Sequence[Connection]:
        return [node.connection for node in self._launched]

    def hear(self) -> Reason | None:
        for node in self._launched:
            node.hear()
        reasons = (node.failure or (None if node.result else node.lost(self._silence_s)) for node in self._launched)
        return next(filter(None, reasons), None)

    def lost(self) -> str | None:
        """Return which node is no longer there, None where all are."""
        for node in self._nodes:
            node.hear()
        reasons = (node.lost(self._silence_s) for node in self._nodes)
        return next((reason[1] for reason in reasons if reason is not None), None)

    def ready(self) -> bool:
        return all(node.ready for node in self._launched)

    def awaited(self) -> str:
        unready = [node.name for node in self._launched if not node.ready]
        return listed(unready or [node.name for node in self._launched if not node.done])

    def go(self) -> CommonGo | None:
        for node in self._launched:
            node.offset = node.measured_offset()
            if node.offset is None:
                node.failure = node.failure or ("node_lost", f"{node.name} does not answer while it waits for GO.")
        return None

    def started(self, t0_ns: int, amount: Amount) -> None:
        for node in self._launched:
            if node.offset is not None:
                given = {"number": amount.number, "repeat": amount.repeat, "skip": amount.skip}
                node.connection.send("go", t0_ns=node.offset.theirs(t0_ns), **given)

    def done(self) -> bool:
        return all(node.done for node in self._launched)

    def stop(self) -> None:
        for node in self._launched:
            # Both runners wait: how far the clocks have drifted apart under load is seen now.
            later = node.measured_offset()
            if node.offset is not None and later is not None:
                node.offset = node.offset.until(later)
            node.connection.send("stop")

    def fail(self, reason: Reason) -> None:
        outcome, message = reason
        for node in self._launched:
            node.connection.send("halt", outcome=outcome, message=message)

    def results(self, interrupted: Callable[[], object]) -> tuple[NodeResult, ...]:
        """Wait for the launch's results of the other nodes; a node that is lost has none."""
        limit_s, begin_s = RESULT_LIMIT_S, time.monotonic()
        results = []
        for node in self._launched:
            lost: Reason | None = None
            while node.result is None and lost is None:
                node.hear(POLL_S)
                lost = node.lost(self._silence_s)
                if interrupted():
                    limit_s = min(limit_s, self._silence_s)
                if lost is None and time.monotonic() > begin_s + limit_s:
                    lost = node.late = "node_lost", f"{node.name} did not end its launch within {limit_s:g} s."
            if node.result is None:
                outcome, message = node.failure or lost or ("node_lost", node.name)
                results.append(NodeResult(node.number, node.hostname, node.shared, outcome, message, node.offset))
            else:
                results.append(_by_our_clock(node, node.result))
        return tuple(results)


def _by_our_clock(node: PeerNode, result: dict[str, Any]) -> NodeResult:
    """Return a node's result with its times by our clock; without a GO there are none."""
    offset = node.offset or Offset(0, 0)
    observations = {
        int(number): [
            fields | {name: offset.ours(fields[name]) for name in ("start_ns", "end_ns")} for fields in of_rank
        ]
        for number, of_rank in result["observations"].items()
    }
    return NodeResult(
        node.number,
        node.hostname,
        node.shared,
        result["outcome"],
        f"{node.name}: {printable(result['message'][:MOST_CHARACTERS])}" if result["message"] else "",
        node.offset,
        result["version"],
        result["late_ns"],
        offset.ours(result["load_end_ns"]) if result["load_end_ns"] else 0,
        observations,
        tuple(result["changes"]),
        result["isolation"],
        result["slurm"],
    )
