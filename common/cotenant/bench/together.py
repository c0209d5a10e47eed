"""The runner's counterpart of a rank whose launch extends over several hosts.

Only rank 0 speaks to a runner, on node 0. In the launch's store all ranks say that they are READY, rank 0 hands on
GO and STOP, and the others leave their observations. Over a process group of their own they leave GO at one moment,
and exchange signs of life during the launch.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, NoReturn

import torch
from torch.distributed import (  # type: ignore[attr-defined] # as its documentation has it
    DistStoreError,
    PrefixStore,
    ProcessGroupGloo,
    TCPStore,
)

from cotenant.bench.outcome import BenchmarkError
from cotenant.bench.world import World
from cotenant.errors import EXIT_FAILED
from cotenant.protocol.client import Rendezvous, wait_until
from cotenant.protocol.messages import NODE_VARIABLE, NODES_VARIABLE, SOCKET_VARIABLE, TENANT_VARIABLE
from cotenant.text import listed

SILENCE_S = 60.0
"""A rank that sent nothing for this long is lost: its link is cut, or its host is down."""
BEATS = 4
"""The number of signs of life in that time."""
WORD_BYTES = 4096
WORDS = 1
"""The tag of signs of life, and of the last words of ranks."""
SOON_S = 1.0
"""When one rank ends, others follow; within this time all have given their reason."""
BEAT = b"beat"

Reason = tuple[str, str]
"""An outcome, and the sentence that explains it."""


class NodeLostError(BenchmarkError):
    """Another node does not take part, or no longer does."""

    outcome = "node_lost"


class Together:
    """The counterpart of one rank; all of them make the same calls in the same order.

    `nodes` describes the other hosts for a record.
    """

    warms_up_alone = False
    settle_ns = made = 0

    def __init__(self, world: World, nodes: Sequence[Mapping[str, Any]], ready_by_s: float, silence_s: float) -> None:
        """Meet the other ranks. Raises NodeLostError if one does not come by `ready_by_s`."""
        self._world, self._nodes, self._ready_by_s, self._silence_s = world, nodes, ready_by_s, silence_s
        self._runner: Rendezvous | None = None
        if world.rank == 0:
            address, tenant = os.environ[SOCKET_VARIABLE], int(os.environ[TENANT_VARIABLE])
            self._runner = Rendezvous(address, tenant, 0, world.size, world.size - 1)
        self._ending = threading.Lock()
        self._observations: list[dict[str, Any]] = []
        self._go_ns = 0
        self._ends: dict[int, Reason | None] = {}
        """The reasons that ranks gave for their end, in order; None for one that gave none."""
        self._over = threading.Event()
        self._peers = range(1, world.size) if world.rank == 0 else range(1)
        try:
            self._meet()
        except (NodeLostError, RuntimeError) as error:
            if self._runner is not None:
                self._runner.failed(NodeLostError.outcome, str(error))
            raise

    @classmethod
    def from_environment(cls, world: World, environ: Mapping[str, str] = os.environ) -> Together | None:
        """Meet the other ranks of a launch over several hosts; None for a launch on one host."""
        if not environ.get(NODE_VARIABLE) or not environ.get(NODES_VARIABLE):
            return None
        node, nodes = json.loads(environ[NODE_VARIABLE]), json.loads(environ[NODES_VARIABLE])
        return cls(world, nodes, node["ready_by_s"], min(SILENCE_S, node["ready_s"]))

    def _meet(self) -> None:
        address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
        limit_s = max(1.0, self._ready_by_s - time.monotonic()) + self._silence_s
        store = TCPStore(address, port, is_master=False, timeout=timedelta(seconds=limit_s))
        self._store = PrefixStore("cotenant", store)
        self._say("here")
        self._await("here", "started")
        silence, rank, size = timedelta(seconds=self._silence_s), self._world.rank, self._world.size
        self._group: Any = ProcessGroupGloo(self._store, rank, size, silence)  # torch's stubs lack what it inherits
        for peer in self._peers:
            threading.Thread(target=self._listen, args=(peer,), daemon=True).start()
        threading.Thread(target=self._beat, daemon=True).start()

    def begin(self, work: dict[str, Any]) -> None:
        if self._runner is not None:
            nodes = [{**node, "clock": "its own, since its GO"} for node in self._nodes[1:]]
            self._runner.begin(work | {"nodes": nodes})

    def turn(self) -> None:
        """Do nothing: each rank has its own device."""

    turned = turn

    def ready(self, number: int, repeat: int, skip: int, warm_up_ns: list[int]) -> None:
        """Wait, as rank 0, until all ranks are READY; then say so to the runner. Raises NodeLostError."""
        self._say("ready")
        if self._runner is not None:
            self._await("ready", "ready")
            self._runner.ready(number, repeat, skip, warm_up_ns)

    def await_go(self) -> tuple[int, int, int]:
        """Block until GO; return the time at which this rank left its barrier, and the amount that rank 0 was given."""
        if self._runner is not None:
            t0_ns, *amount = self._runner.await_go()
            self._store.set("go", json.dumps([*amount, self._runner.settle_ns]))
            wait_until(t0_ns)
        number, repeat, self.settle_ns = json.loads(self._store.get("go"))
        self._group.barrier().wait()
        self._go_ns = time.perf_counter_ns()
        return self._go_ns, number, repeat

    def observation(self, **fields: Any) -> None:
        self._observations.append(fields)
        if self._runner is not None:
            self._runner.observation(**fields)

    def enough(self) -> bool:
        return False

    def done(self) -> None:
        if self._runner is not None:
            self._runner.done()

    def stopped(self) -> bool:
        """Return whether rank 0's runner has sent STOP."""
        if self._runner is not None and self._runner.stopped():
            self._store.set("stop", "")
        return bool(self._store.check(["stop"]))

    def record(self, record: dict[str, Any]) -> dict[str, Any]:
        """Hand over the record and all ranks' observations, in rank 0's time, as if all had left GO at once. Raises
        NodeLostError."""
        part_of_rank = {
            "observations": [_moved(fields, -self._go_ns) for fields in self._observations],
            "losses": [record["losses_non_finite"], record["losses_checked"]],
        }
        self._say("record", json.dumps(part_of_rank))
        if self._runner is not None:
            self._ready_by_s = time.monotonic() + self._silence_s
            parts = [json.loads(part) for part in self._await("record", "reported what they observed")]
            # The others leave once they find `recorded`.
            self._over.set()
            for rank, part in enumerate(parts[1:], 1):
                self._runner.elsewhere(rank, [_moved(fields, self._go_ns) for fields in part["observations"]])
            non_finite, checked = map(sum, zip(*(part["losses"] for part in parts), strict=True))
            self._runner.record(record | {"losses_non_finite": non_finite, "losses_checked": checked})
            self._store.set("recorded", "")
        else:
            self._store.get("recorded")
            self._over.set()
        return record

    def failed(self, outcome: str, message: str) -> None:
        """Report this rank's reason for its end to rank 0; rank 0 tells the runner the reason that explains all."""
        if self._runner is None:
            with contextlib.suppress(RuntimeError):  # Rank 0 has ended.
                self._tell(json.dumps([outcome, message[: WORD_BYTES // 8]]).encode())
            return
        if outcome == "failed":
            time.sleep(SOON_S)
        self._end((outcome, message))

    def _say(self, what: str, content: str = "") -> None:
        self._store.set(f"{what}/{self._world.rank}", content)

    def _await(self, what: str, word: str) -> list[bytes]:
        """Return the content that each rank has stored. Raises NodeLostError if one stores nothing in time."""
        keys = [f"{what}/{rank}" for rank in range(self._world.size)]
        left_s = max(0.01, self._ready_by_s - time.monotonic())
        try:
            self._store.wait(keys, timedelta(seconds=left_s))
        except DistStoreError as error:
            missing = [rank for rank, key in enumerate(keys) if not self._store.check([key])]
            names = listed(dict.fromkeys(map(self._name, missing)))
            ranks = f"rank{'s' * (len(missing) > 1)} {', '.join(map(str, missing))}"
            raise NodeLostError(f"{names}: {ranks} had not {word} in time.", "--ready-timeout waits longer.") from error
        return [self._store.get(key) for key in keys]

    def _name(self, rank: int) -> str:
        node = self._nodes[rank // self._world.local_size]
        return f"Node {node['node']} ({node['hostname']})"

    def _tell(self, word: bytes) -> None:
        """Send a word to all peers. Raises RuntimeError if one cannot be reached."""
        buffer = torch.zeros(WORD_BYTES, dtype=torch.uint8)
        buffer[: len(word)] = torch.frombuffer(bytearray(word), dtype=torch.uint8)
        for peer in self._peers:
            self._group.send([buffer], peer, WORDS).wait()

    def _beat(self) -> None:
        while not self._over.wait(self._silence_s / BEATS):
            try:
                self._tell(BEAT)
            except RuntimeError:
                return  # The thread that listens to the peer learns more.

    def _listen(self, peer: int) -> None:
        """Receive a peer's signs of life; end this rank if the peer ends before everything is recorded."""
        while True:
            buffer = torch.zeros(WORD_BYTES, dtype=torch.uint8)
            try:
                self._group.recv([buffer], peer, WORDS).wait()
            except RuntimeError as error:
                if "caused pair closure" in str(error):
                    return  # Another rank's link, without news.
                self._ends.setdefault(peer, None)
                break
            if (word := bytes(buffer.tolist()).rstrip(b"\0")) != BEAT:
                outcome, message = json.loads(word)
                self._ends[peer] = outcome, message
                break
        if not self._over.is_set():
            time.sleep(SOON_S)
        if self._over.is_set():
            return
        if self._runner is None:
            self._leave(f"Rank 0 on {self._name(0)} has ended, or its link is cut.")
        self._end(None)
        self._leave("The launch has ended.")

    def _end(self, own_reason: Reason | None) -> None:
        """Tell the runner why the launch ends: the first reason that no other rank's end explains."""
        with self._ending:
            if not self._over.is_set():
                self._over.set()
                assert self._runner is not None
                self._runner.failed(*self._cause(own_reason))

    def _cause(self, own_reason: Reason | None) -> Reason:
        """Return the reason that explains all others, with the name of its node."""
        said = {peer: reason for peer, reason in self._ends.items() if reason is not None}
        size = self._world.local_size
        lost = [peer for peer in self._ends if peer // size not in {rank // size for rank in said}]
        for peer, (outcome, message) in said.items():
            if outcome != "failed":
                return outcome, f"{self._name(peer)}, rank {peer}: {message}"
        if own_reason is not None and own_reason[0] != "failed":
            return own_reason
        if lost:
            why = f"its rank {lost[0]} ended without a word, or its link is cut."
            return "node_lost", f"{self._name(lost[0])} is lost: {why}"
        for peer, (outcome, message) in said.items():
            return outcome, f"{self._name(peer)}, rank {peer}: {message}"
        return own_reason or ("failed", "The launch has ended.")

    def _leave(self, words: str) -> NoReturn:
        """End this process, even if its main thread waits for something."""
        print(words, file=sys.stderr, flush=True)
        os._exit(EXIT_FAILED)


def _moved(observation: Mapping[str, Any], by_ns: int) -> dict[str, Any]:
    """Return an observation with its times moved by `by_ns`."""
    times = ("start_ns", "end_ns", "issued_ns")
    moved = {name: observation[name] + by_ns for name in times if observation[name] is not None}
    return {**observation, **moved}
