"""A buyer and vendors in one process, with small deterministic work instead of training, and an invented clock."""

from __future__ import annotations

import asyncio
import hashlib
import queue
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from cotenant.challenge.listener import ChallengeListener, Patience
from cotenant.challenge.messages import PROTOCOL, Join, Ready
from cotenant.challenge.transcript import Chain, Replay, Transcript, read
from cotenant.challenge.vendor import Buyer, BuyerConnection, BuyerError, ChallengedRun

TASK, VERSION = "regression/polynome/pytorch/main.py", "0123456789abcdef"
NUMBER, PIECES, ITEMS = 6, 5, 60.0
SOFTWARE = {"device": "a processor", "torch": "2", "threads": "1"}
PIECE_NS = 1_000_000_000
PATIENT = Patience(greeting_s=60.0, joining_s=60.0, ready_s=60.0, answer_s=60.0, whole_s=60.0)


class Clock:
    """The buyer's clock: 1 ns passes with each reading, PIECE_NS with each piece of the tenants."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._now_ns = 1

    def __call__(self) -> int:
        with self._lock:
            self._now_ns += 1
            return self._now_ns

    def go_on(self, span_ns: int = PIECE_NS) -> None:
        with self._lock:
            self._now_ns += span_ns


def losses_of(seed: int, nonce: bytes, left_out: Sequence[int] = (), scale: float = 1.0) -> tuple[bytes, bytes]:
    """Return the losses of NUMBER steps, each dependent on the one before, and the state after the last."""
    state, losses = hashlib.sha256(seed.to_bytes(8, "big") + nonce).digest(), []
    for step in range(NUMBER):
        losses.append(scale * (1 + state[0] / 256 + state[1] / 65536))
        if step not in left_out:
            state = hashlib.sha256(state).digest()
    return struct.pack(f"<{NUMBER}d", *losses), state


def replays(chain: Chain, indices: Sequence[int], **differences: Any) -> list[Replay]:
    """Replay pieces honestly, except for the fields in `differences`."""
    made = []
    for index in indices:
        losses, weights = losses_of(chain.seed, chain.exchanges[index].nonce)
        fields = {
            "tenant": chain.join.tenant,
            "index": index,
            "state": state_of(chain.seed),
            "items": ITEMS,
            "losses": losses,
            "weights": weights,
            "software": SOFTWARE,
        }
        made.append(Replay(**fields | differences))
    return made


def state_of(seed: int) -> bytes:
    return hashlib.sha256(b"saved" + seed.to_bytes(8, "big")).digest()


def join(tenant: int, tenants: int = 2, **other: Any) -> Join:
    fields = {"protocol": PROTOCOL, "launch": "one", "job": "work", "tenant": tenant, "tenants": tenants}
    return Join(**fields | {"task": TASK, "version": VERSION, "words": ("--lr", "1")} | other)


@dataclass
class Vendor:
    """Two tenants that answer in step, each in a thread. Cheats replace `before`, called before a piece, and `answer`.

    A piece beyond PIECES takes no time, and waits until the other tenant has answered its PIECES: a busy machine could
    otherwise make many of these, and beside them each honest piece would look late.
    """

    clock: Clock = field(default_factory=Clock)
    answer: Callable[[int, int, bytes], tuple[bytes, bytes]] = lambda seed, index, nonce: losses_of(seed, nonce)
    before: Callable[[int, int], None] | None = None
    refused: list[str] = field(default_factory=list)
    token: str = ""

    def __post_init__(self) -> None:
        self.step = threading.Barrier(2, action=self.clock.go_on)
        self.ended = (threading.Event(), threading.Event())

    def sell(self, port: int) -> Transcript:
        """Run a launch, and return the transcript that the buyer sends of it."""
        threads = [threading.Thread(target=self._tenant, args=(port, tenant)) for tenant in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        content, _ = Buyer(f"127.0.0.1:{port}").transcript("one", lambda: False)
        return read(content)

    def _tenant(self, port: int, tenant: int) -> None:
        try:
            buyer = ChallengedRun(BuyerConnection(f"127.0.0.1:{port}"), join(tenant, token=self.token))
            buyer.ready(Ready(state=state_of(buyer.seed), number=NUMBER, pieces=PIECES, software=SOFTWARE))
            while (nonce := buyer.nonce()) is not None:
                index = buyer.answers
                if self.before is not None:
                    self.before(tenant, index)
                elif index < PIECES:
                    with suppress(threading.BrokenBarrierError):  # The other tenant was refused.
                        self.step.wait(60)
                else:
                    self.ended[1 - tenant].wait(60)
                buyer.answer(ITEMS, *self.answer(buyer.seed, index, nonce))
                if index == PIECES - 1:
                    self.ended[tenant].set()
        except BuyerError as error:
            self.step.abort()
            self.ended[tenant].set()
            self.refused.append(str(error))


@contextmanager
def listening(clock: Clock, **options: Any) -> Iterator[tuple[int, list[Transcript]]]:
    """Yield the port of a buyer that ends after one launch, and a list that holds its transcripts at its end."""
    kept: list[Transcript] = []
    ports: queue.Queue[int] = queue.Queue()
    replayer, token = options.pop("replayer", replays), options.pop("token", "")
    listener = ChallengeListener({TASK: VERSION}, replayer, kept.append, clock_ns=clock, patience=PATIENT, token=token)
    thread = threading.Thread(target=lambda: asyncio.run(listener.serve("127.0.0.1", 0, 1, ports.put)), daemon=True)
    thread.start()
    yield ports.get(timeout=60), kept
    thread.join(60)
    assert not thread.is_alive()


def challenged(vendor: Vendor, **options: Any) -> Transcript:
    """Challenge a vendor, and return the transcript that it receives, which must equal the buyer's."""
    with listening(vendor.clock, **options) as (port, kept):
        sent = vendor.sell(port)
    assert kept == [sent]
    return sent
