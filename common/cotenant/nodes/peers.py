"""Passes a launch's questions to the runners on other hosts; without any, the answer is its own."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cotenant.nodes.clocks import Offset
from cotenant.nodes.connection import Connection
from cotenant.protocol.messages import ProtocolError, check_fields
from cotenant.stats.budget import Amount
from cotenant.text import printable

Reason = tuple[str, str]
"""An outcome, and the sentence that explains it."""
MOST_NS = 1 << 62
MOST_CHARACTERS = 2000


def reason_of(name: str, fields: Mapping[str, Any]) -> Reason:
    """Return why a launch ends on the node of this name, as that says. Raises ProtocolError for no reason."""
    if fields["outcome"] == "completed":
        raise ProtocolError("a launch that ends before its time as 'completed'")
    return fields["outcome"], f"{name}: {printable(fields['message'][:MOST_CHARACTERS])}"


def check_result(fields: Mapping[str, Any]) -> None:
    """Raise ProtocolError for the result of a launch that no runner sends."""
    times = [fields["late_ns"], fields["load_end_ns"]]
    for rank, rows in fields["observations"].items():
        if not (rank.isascii() and rank.isdecimal() and isinstance(rows, list)):
            raise ProtocolError(f"observations of a rank {rank[:40]!r}")
        for row in rows:
            check_fields("observation", row if isinstance(row, dict) else {})
            if not row["start_ns"] < row["end_ns"] or not (math.isfinite(row["items"]) and row["items"] >= 0):
                raise ProtocolError(f"an observation from {row['start_ns']} to {row['end_ns']} ns")
            times += [row["start_ns"], row["end_ns"]]
    if not all(0 <= time_ns < MOST_NS for time_ns in times):
        raise ProtocolError("a result with times that no clock has")
    if not all(isinstance(change, str) for change in fields["changes"]):
        raise ProtocolError("a result with changes that are no sentences")


@dataclass(frozen=True, slots=True)
class CommonGo:
    """The GO that another node has given: t0 by this host's clock, and how much is measured."""

    t0_ns: int
    amount: Amount


@dataclass(frozen=True, slots=True)
class NodeResult:
    """How a launch ended on another node, which is `shared` where it is this very machine.

    Times are by the clock of node 0; `offset` is None where there was no GO. `observations` holds the fields of every
    rank's observations, by its number; `isolation` the slice there, `changes` how it did not stay so, and `slurm`
    the limits of Slurm.
    """

    node: int
    hostname: str
    shared: bool
    outcome: str
    message: str
    offset: Offset | None = None
    version: str = ""
    late_ns: int = 0
    load_end_ns: int = 0
    observations: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    changes: tuple[str, ...] = ()
    isolation: dict[str, Any] = field(default_factory=dict)
    slurm: dict[str, Any] = field(default_factory=dict)


class Peers:
    """The other nodes, as a launch asks and tells them; these answers are those of a host that is the only one."""

    def connections(self) -> Sequence[Connection]:
        """Return the connections that have to be heard as soon as something comes."""
        return ()

    def hear(self) -> Reason | None:
        """Take the messages that came; return why the launch has to end, once another node is lost or has failed."""
        return None

    def ready(self) -> bool:
        """Say that all ranks here are READY; return whether they are on all nodes."""
        return True

    def awaited(self) -> str:
        """Return the names of the nodes that are not READY, or not DONE where all have been READY; "" on one host."""
        return ""

    def go(self) -> CommonGo | None:
        """Return the GO that another node gives; None where this one leads. Clocks are compared before it returns."""
        return None

    def started(self, t0_ns: int, amount: Amount) -> None:
        """Tell the GO to all other nodes."""

    def done(self) -> bool:
        """Say that all ranks here are DONE; return whether they are on all nodes."""
        return True

    def stop(self) -> None:
        """Tell all other nodes that the load is over."""

    def fail(self, reason: Reason) -> None:
        """Say that the launch ends here before its time, so that it ends everywhere."""


NO_PEERS = Peers()
