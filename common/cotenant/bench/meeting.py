"""Lets ranks of one launch on several hosts find each other, by torchrun's static rendezvous; node 0 first compares
the requests of all nodes.

Each launch has a store of its own, at one port of node 0. A node behind node 0's launch leaves, and one ahead of it
waits, so that the runners need no other connection.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from torch.distributed import (  # type: ignore[attr-defined] # as its documentation has it
    DistError,
    DistStoreError,
    TCPStore,
)
from torch.distributed.elastic.rendezvous import RendezvousInfo, RendezvousParameters
from torch.distributed.elastic.rendezvous.static_tcp_rendezvous import StaticTCPRendezvous

from cotenant.errors import EXIT_GONE_ON, EXIT_NOT_MET, CotenantError
from cotenant.protocol.messages import NODE_VARIABLE, NODES_VARIABLE
from cotenant.text import endpoint, listed, many

AGAIN_S = 2.0
READ_S = 1.0
"""Node 0 keeps its store this long after a refusal, so that the others can read it."""


class NotMetError(CotenantError):
    """The nodes of a launch did not meet, or run different commands."""

    exit_status = EXIT_NOT_MET


class GoneOnError(CotenantError):
    """Node 0 has gone on to a later launch."""

    exit_status = EXIT_GONE_ON


@dataclass(frozen=True, slots=True)
class Node:
    """This node, with the facts that its runner has handed over; `ranks` is the number of processes it starts."""

    facts: Mapping[str, Any]
    ranks: int

    @classmethod
    def of(cls, ranks: int, environ: Mapping[str, str] = os.environ) -> Node | None:
        """Return the node that a runner has described; None on a single host."""
        return cls(json.loads(environ[NODE_VARIABLE]), ranks) if environ.get(NODE_VARIABLE) else None

    def meet(self, host: str, port: int) -> tuple[TCPStore, list[dict[str, Any]]]:
        """Return the launch's store, and all nodes' facts for a record. Raises NotMetError and GoneOnError."""
        try:
            return self._lead(host, port) if self.facts["node"] == 0 else self._follow(host, port)
        except DistError as error:
            raise self._absent(host, port) from error

    def _left(self) -> timedelta:
        # A store takes a timeout of zero for no timeout.
        return timedelta(seconds=max(0.1, self.facts["ready_by_s"] - time.monotonic()))

    def _lead(self, host: str, port: int) -> tuple[TCPStore, list[dict[str, Any]]]:
        nodes = range(1, self.facts["nodes"])
        store = listening(host, port, self._left())
        store.set("launch", json.dumps([self.facts["index"], self.facts["launch"]]))
        with contextlib.suppress(DistStoreError):
            store.wait([f"node{node}" for node in nodes], self._left())
        missing = [str(node) for node in nodes if not store.check([f"node{node}"])]
        if missing:
            raise NotMetError(
                f"Not all of {self.facts['nodes']} nodes came to {endpoint(host, port)} within "
                f"{self.facts['ready_s']:g} s: missing are {listed(missing)}.",
                "Start the same command on each of them, with --node-rank; --ready-timeout waits longer.",
            )
        others = [json.loads(store.get(f"node{node}")) for node in nodes]
        refusal = next(filter(None, map(self.refusal, others)), "")
        boot = self.facts["boot"]
        shown = [
            {name: facts[name] for name in ("node", "hostname", "isolation", "slurm")}
            | {"shared": facts["boot"] == boot}
            for facts in (self.facts, *others)
        ]
        store.set("answer", json.dumps([refusal, shown]))
        if refusal:
            time.sleep(READ_S)
            raise NotMetError(refusal, "Start the same command on each node, with its own --node-rank.")
        return store, shown

    def refusal(self, other: Mapping[str, Any]) -> str:
        """Return why another node cannot take part in this one's launch; "" if it can."""
        name, conditions = f"Node {other['node']} ({other['hostname']})", self.facts["conditions"]
        unlike = [condition for condition, value in other["conditions"].items() if conditions.get(condition) != value]
        if unlike:
            return f"{name} differs from node 0 in {listed(unlike)}."
        if other["ranks"] != self.ranks:
            sentence = f"{name} has {many(other['ranks'], 'rank')} and node 0 has {self.ranks}"
            return f"{sentence}, but a rate needs the same number: --devices says how many take part on each node."
        return ""

    def _follow(self, host: str, port: int) -> tuple[TCPStore, list[dict[str, Any]]]:
        facts, key = json.dumps({**self.facts, "ranks": self.ranks}), f"node{self.facts['node']}"
        while True:
            store = TCPStore(host, port, is_master=False, timeout=self._left())
            index, launch = json.loads(store.get("launch"))
            if index > self.facts["index"]:
                raise GoneOnError(f"Node 0 is at its launch {launch} already, and this node at {self.facts['launch']}.")
            if index == self.facts["index"]:
                break
            # The store of an earlier launch, which some of its ranks have not left.
            del store
            time.sleep(AGAIN_S)
            if self.facts["ready_by_s"] < time.monotonic():
                raise self._absent(host, port)
        if store.compare_set(key, "", facts).decode() != facts:
            raise NotMetError(f"There are two nodes {self.facts['node']}.", "Give each its own --node-rank.")
        store.wait(["answer"], self._left())
        refusal, shown = json.loads(store.get("answer"))
        if refusal:
            raise NotMetError(f"Node 0 at {endpoint(host, port)} refuses this launch: {refusal}")
        return store, shown

    def _absent(self, host: str, port: int) -> NotMetError:
        return NotMetError(
            f"Node 0 does not answer at {endpoint(host, port)} in time, or has left.",
            "Start the same command there with --node-rank 0; --ready-timeout waits longer.",
        )


def listening(host: str, port: int, limit: timedelta, ranks: int = 0) -> TCPStore:
    """Return a store that listens at this address alone: a store asks for no password, and by default torch's listens
    at every address of the host. Raises NotMetError if the address cannot be used."""
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        descriptor = socket.create_server(address[:2], family=family).detach()
    except OSError as error:
        sentence = f"Node 0 cannot listen at {endpoint(host, port)}: {error.strerror or error}."
        raise NotMetError(sentence, "It takes an address of this host, and a port that is free here.") from error
    return TCPStore(
        host, port, ranks or None, True, limit, wait_for_workers=False, multi_tenant=True, master_listen_fd=descriptor
    )


class HostsRendezvous(StaticTCPRendezvous):
    """torchrun's static rendezvous, with the store of `listening`, or over several nodes the store of `Node.meet`."""

    def __init__(self, given: RendezvousParameters, node: Node | None) -> None:
        address, _, port = given.endpoint.rpartition(":")
        place, nodes = (0, 1) if node is None else (node.facts["node"], node.facts["nodes"])
        super().__init__(address.strip("[]"), int(port), place, nodes, given.run_id, STORE_LIMIT_S)
        self._node = node

    def get_backend(self) -> str:
        return BACKEND

    def next_rendezvous(self) -> RendezvousInfo:
        if self._store is None and self._node is None:
            self._store = listening(self.master_addr, self.master_port, self.timeout, self.world_size)
        elif self._store is None and self._node is not None:
            self._store, nodes = self._node.meet(self.master_addr, self.master_port)
            # The ranks inherit it.
            os.environ[NODES_VARIABLE] = json.dumps(nodes)
        return super().next_rendezvous()


BACKEND = "cotenant"
STORE_LIMIT_S = 600
"""torchrun's own timeout of a static rendezvous."""
