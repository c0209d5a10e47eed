"""One process of a tenant: its phase, and the messages that it may send in each."""

from __future__ import annotations

import enum
import itertools
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from cotenant.launch.events import Life
from cotenant.launch.inbox import (
    BeginMessage,
    DoneMessage,
    ElsewhereMessage,
    FailedMessage,
    ObservationMessage,
    ReadyMessage,
    RecordMessage,
    TenantMessage,
    TurnedMessage,
    TurnMessage,
)
from cotenant.launch.rendezvous import Link
from cotenant.protocol.messages import SEND_EVERY_NS, ProtocolError
from cotenant.results.record import Observed
from cotenant.stats.budget import Amount


@dataclass(frozen=True, slots=True)
class Go:
    """The message that starts a load: its time `t0_ns`, and the `given` amount to measure."""

    t0_ns: int
    given: Amount
    settle_ns: int = 0
    """Nanoseconds of unmeasured load before the first observation."""
    alone: int = 0
    """The number of last observations that are for a turn alone."""

    @property
    def together(self) -> Go:
        """The same without observations for a turn alone."""
        return replace(self, given=replace(self.given, repeat=self.given.repeat - self.alone), alone=0)


class RankPhase(enum.IntEnum):
    """The progress of a process, by its own and the runner's messages."""

    JOINED = 0
    BEGUN = 1
    READY = 2
    GOING = 3
    """It has GO, and observes."""
    ENOUGH = 4
    """It may end its observations before the last one."""
    DONE = 5
    RECORDED = 6
    FAILED = 7
    """It has reported why it ends."""


_ALLOWED: dict[type[TenantMessage], tuple[RankPhase, ...]] = {
    BeginMessage: (RankPhase.JOINED,),
    TurnMessage: (RankPhase.JOINED, RankPhase.BEGUN),
    TurnedMessage: (RankPhase.JOINED, RankPhase.BEGUN),
    ReadyMessage: (RankPhase.JOINED, RankPhase.BEGUN),
    ObservationMessage: (RankPhase.GOING, RankPhase.ENOUGH),
    DoneMessage: (RankPhase.GOING, RankPhase.ENOUGH),
    ElsewhereMessage: (RankPhase.DONE,),
    RecordMessage: (RankPhase.DONE,),
    FailedMessage: tuple(RankPhase),
}
"""The phases in which a process may send a message."""


@dataclass(slots=True)
class Rank:
    """One of a tenant's `world` processes, `elsewhere` of them on other hosts, and its messages so far."""

    link: Link
    number: int
    world: int
    life: Life | None = None
    elsewhere: int = 0
    phase: RankPhase = RankPhase.JOINED
    work: dict[str, Any] = field(default_factory=dict)
    ready: ReadyMessage | None = None
    ready_ns: int = 0
    go: Go | None = None
    observations: list[Observed] = field(default_factory=list)
    others: dict[int, list[Observed]] = field(default_factory=dict)
    """The observations of ranks elsewhere, by their numbers."""
    record: dict[str, Any] | None = None
    rests: list[tuple[int, int]] = field(default_factory=list)
    """The spans in which it was frozen."""
    starts: int = 1
    """The starts so far of a program that is restarted."""
    late_ns: int = 0
    """The longest time for which an observation was unsent after its end, without rests."""
    _repeated: set[type[TenantMessage]] = field(default_factory=set)
    """The messages of an earlier start that this one has yet to repeat."""
    _sent_ns: int = 0
    """The end of the last observation that had to be sent immediately."""

    @property
    def name(self) -> str:
        return f"Rank {self.number} of {self.world}"

    @property
    def lives(self) -> bool:
        """True if it is one of several, and has not ended; a single process ends with its tenant."""
        return self.life is not None and not self.life.ended

    def has_come_to(self, phase: RankPhase) -> bool:
        """Return whether it has come to this phase; a failed process never will."""
        return phase <= self.phase < RankPhase.FAILED

    def longest_batch_s(self, number: int) -> float:
        """Return the mean seconds of a batch in its slowest observation of `number` batches; 0 without any."""
        return max((made.took_ns for made in self.observations), default=0) / number / 1e9

    def start(self, go: Go) -> None:
        """Send GO."""
        self.go, self.phase = go, RankPhase.GOING
        self._send_go(go)

    def rejoin(self, link: Link, start: int) -> None:
        """Go on with a later start, which begins and warms up like the one before, and gets GO for the rest."""
        self.link.close()
        self.link, self.starts = link, start
        said: dict[type[TenantMessage], RankPhase] = {BeginMessage: RankPhase.BEGUN, ReadyMessage: RankPhase.READY}
        self._repeated = {kind for kind, phase in said.items() if self.phase >= phase}

    def _send_go(self, go: Go) -> None:
        self.link.expect(go.given.repeat)
        made = len(self.observations)
        self.link.send("go", t0_ns=go.t0_ns, settle_ns=go.settle_ns, made=made, **asdict(go.given))
        if self.phase is RankPhase.ENOUGH:
            self.link.send("enough")

    def say_enough(self) -> None:
        """Let it end its observations before the last one."""
        if self.phase is RankPhase.GOING:
            self.phase = RankPhase.ENOUGH
            self.link.send("enough")

    def take(self, message: TenantMessage) -> None:
        """Take a message that follows the hello. Raises ProtocolError if it is not allowed at this point."""
        if type(message) in self._repeated:
            self._repeated.remove(type(message))
            if isinstance(message, ReadyMessage) and self.go is not None:
                self._send_go(self.go)
            return
        if self.phase not in _ALLOWED.get(type(message), ()):
            raise ProtocolError(f"'{message.__struct_config__.tag}' is not what may be sent at this point")
        match message:
            case BeginMessage():
                self.work, self.phase = message.work, RankPhase.BEGUN
            case ReadyMessage():
                self.ready, self.ready_ns, self.phase = message, time.perf_counter_ns(), RankPhase.READY
            case ObservationMessage():
                self.observations.append(self._observed(message, self.observations))
                # An observation that ends sooner after the last one sent is sent with the next one, which may be long.
                if message.end_ns - self._sent_ns >= SEND_EVERY_NS:
                    self._sent_ns = message.end_ns
                    self.late_ns = max(self.late_ns, self._awake_ns(self._sent_ns, self.link.awaited_ns))
            case DoneMessage():
                repeat = self._given.given.repeat
                if len(self.observations) != repeat and self.phase is not RankPhase.ENOUGH:
                    raise ProtocolError(f"done after {len(self.observations)} of {repeat} observations")
                self.phase = RankPhase.DONE
            case ElsewhereMessage():
                self._take_elsewhere(message)
            case RecordMessage():
                self.record, self.phase = message.record, RankPhase.RECORDED
            case FailedMessage():
                self.phase = RankPhase.FAILED

    @property
    def _given(self) -> Go:
        assert self.go is not None
        return self.go

    def _awake_ns(self, since_ns: int, until_ns: int) -> int:
        """Return the nanoseconds that it was awake between two recent moments; negative if the second is earlier."""
        rests = itertools.takewhile(lambda rest: rest[1] > since_ns, reversed(self.rests))
        rested_ns = sum(max(0, min(end_ns, until_ns) - max(start_ns, since_ns)) for start_ns, end_ns in rests)
        return until_ns - since_ns - rested_ns

    def _take_elsewhere(self, message: ElsewhereMessage) -> None:
        rank, rows = message.rank, message.observations
        if rank >= self.world or rank == self.number or rank in self.others or not self.elsewhere:
            raise ProtocolError(f"observations of a rank {rank} elsewhere")
        if len(rows) != len(self.observations):
            raise ProtocolError(f"{len(rows)} observations of rank {rank}, and {len(self.observations)} of its own")
        taken: list[Observed] = []
        for row in rows:
            taken.append(self._observed(row, taken))
        self.others[rank] = taken

    def _observed(self, message: ObservationMessage, before: Sequence[Observed]) -> Observed:
        """Return an observation in the form of a record. Raises ProtocolError if it cannot follow `before`."""
        go = self._given
        if message.index != len(before) or message.index >= go.given.repeat:
            raise ProtocolError(f"observation {message.index} after {len(before)} of {go.given.repeat}")
        begin_ns = before[-1].end_ns if before else go.t0_ns
        if not begin_ns <= message.start_ns < message.end_ns <= time.perf_counter_ns():
            raise ProtocolError(
                f"observation {message.index} from {message.start_ns} to {message.end_ns} ns does not lie between "
                f"{begin_ns} ns and now: times must be read from CLOCK_MONOTONIC"
            )
        return Observed(
            message.start_ns,
            message.end_ns,
            message.items,
            message.data_wait_ns,
            message.event_ns,
            message.issued_ns,
        )
