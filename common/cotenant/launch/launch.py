"""One launch as a state machine: enter, build, load, stop; and every way it can end."""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cotenant.isolation.backend import Backend, Counters, NotIsolatedError, ReadBack
from cotenant.launch.interruption import Interruption
from cotenant.launch.rendezvous import Events, Link, Listener
from cotenant.launch.tenant import Order, Rank, Tenant, start_tenant
from cotenant.launch.watch import host_oom_kills, outcome_of
from cotenant.protocol.messages import Message, ProtocolError

GO_DELAY_NS = 50_000_000
POLL_S = 1.0
READING_S = 0.1
READY_LIMIT_S = 600.0
FAREWELL_LIMIT_S = 60.0


class Phase(enum.IntEnum):
    ENTER = 0
    BUILD = 1
    LOAD = 2
    STOP = 3


@dataclass(frozen=True, slots=True)
class Ending:
    """How one tenant ended: its order, outcome, what its ranks said, and what the kernel counted."""

    order: Order
    outcome: str
    message: str
    ranks: dict[int, Rank] = field(default_factory=dict)
    read_back: ReadBack = field(default_factory=ReadBack)
    before: Counters = field(default_factory=Counters)
    after: Counters = field(default_factory=Counters)


@dataclass(frozen=True, slots=True)
class LaunchResult:
    """All endings, in the tenants' order, and what they share."""

    endings: tuple[Ending, ...]
    started: datetime
    ended: datetime
    t0_ns: int
    meters: dict[str, Any]


class Launch:
    """Starts the orders' tenants, brings them to one GO and one STOP, and leaves nothing behind."""

    def __init__(
        self,
        orders: Sequence[Order],
        backend: Backend,
        socket: Path,
        timeout_s: float,
        interruption: Interruption,
    ) -> None:
        self._orders = orders
        self._backend = backend
        self._socket = socket
        self._timeout_s = timeout_s
        self._interruption = interruption
        self._events = Events()
        self._tenants: list[Tenant] = []
        self._phase = Phase.ENTER
        self._t0_ns = 0
        self._cpu_at_go_ns = 0
        self._meters: dict[str, Any] = {}

    def run(self) -> LaunchResult:
        """Go through all phases. Whatever happens, no process and no slice of this launch is left."""
        started, kills_before = datetime.now(UTC), host_oom_kills()
        listener = Listener(self._socket)
        self._events.on_readable(listener, lambda: self._welcome(listener))
        self._events.on_readable(self._interruption, self._interrupt)
        try:
            endings = self._start()
            if endings is None:
                self._live(time.monotonic())
                host_kills = host_oom_kills() - kills_before
                endings = tuple(self._ending(tenant, host_kills) for tenant in self._tenants)
        finally:
            self._leave(listener)
        return LaunchResult(endings, started, datetime.now(UTC), self._t0_ns, self._meters)

    def _start(self) -> tuple[Ending, ...] | None:
        """Make every slice and start its shim; return the endings at once where a slice cannot be had."""
        for order in self._orders:
            try:
                live = self._backend.create(order.slice)
                try:
                    read_back = live.verify()
                except NotIsolatedError:
                    live.remove()
                    raise
            except NotIsolatedError as error:
                return self._not_isolated(order, str(error))
            tenant = start_tenant(order, live, read_back)
            self._tenants.append(tenant)
            self._events.on_readable(tenant.channel, _bound(self._entered, tenant))
            self._events.on_readable(tenant.pidfd, _bound(self._exited, tenant))
        return None

    def _not_isolated(self, culprit: Order, message: str) -> tuple[Ending, ...]:
        aborted = f"Tenant {culprit.slice.tenant} could not be isolated: {message}"
        return tuple(
            Ending(order, "not_isolated", f"{message}.") if order is culprit else Ending(order, "aborted", aborted)
            for order in self._orders
        )

    def _live(self, start_s: float) -> None:
        poll_s = start_s
        while any(tenant.alive for tenant in self._tenants):
            self._events.turn(self._rest_s(poll_s, start_s))
            if self._phase is Phase.LOAD:
                self._read_links()
            now_s = time.monotonic()
            if now_s >= poll_s + POLL_S:
                poll_s = now_s
                self._poll_memory()
            self._check_limits(now_s, now_s - start_s)

    def _rest_s(self, poll_s: float, start_s: float) -> float:
        """Return how long nothing but an event needs the runner."""
        if self._phase is Phase.LOAD:
            return READING_S
        limits = [tenant.deadline_s for tenant in self._tenants if tenant.deadline_s is not None]
        return min([poll_s + POLL_S, start_s + self._timeout_s, *limits]) - time.monotonic()

    # What tenants do

    def _entered(self, tenant: Tenant) -> None:
        """The shim says `in`, or why not; its end of the channel closes when it becomes the benchmark."""
        try:
            said = tenant.channel.recv(4096).decode(errors="replace").strip()
        except ConnectionError:
            said = ""
        if said == "in":
            tenant.entered = True
            if all(one.entered for one in self._tenants) and len(self._tenants) == len(self._orders):
                self._release()
            return
        self._events.forget(tenant.channel)
        if said and self._phase is Phase.ENTER:
            tenant.failure = ("not_isolated", f"It could not enter its slice: {said}.")
        elif said:
            tenant.failure = ("failed", f"{tenant.order.command[0]} could not be executed: {said}.")

    def _release(self) -> None:
        self._phase = Phase.BUILD
        for tenant in self._tenants:
            with contextlib.suppress(OSError):
                tenant.channel.send(b"1")

    def _welcome(self, listener: Listener) -> None:
        for link in listener.accept():
            self._events.on_readable(link, _bound(self._first_words, link))

    def _first_words(self, link: Link) -> None:
        """A connection belongs to nobody until its hello names a tenant and a rank that are still free."""
        try:
            messages, _ = link.receive()
        except ProtocolError:
            messages = []
        self._events.forget(link)
        hello = messages[0] if messages else None
        if hello is None or hello.kind != "hello":
            link.close()
            return
        index, number, world = (hello.fields[name] for name in ("tenant", "rank", "world"))
        tenant = next((one for one in self._tenants if one.index == index and not one.lost), None)
        if tenant is None or number in tenant.ranks or not 0 <= number < world:
            link.close()
            return
        rank = tenant.ranks[number] = Rank(link, world)
        self._events.on_readable(link, _bound(self._hear_out, (tenant, rank)))
        left = next((one for one in self._tenants if not one.alive), None)
        if left is not None and self._phase is Phase.BUILD:
            left.failure = ("failed", "It ended without joining the rendezvous, while another tenant joined.")
            self._abort_others(left)
        self._hear(tenant, rank, messages[1:])

    def _hear_out(self, whom: tuple[Tenant, Rank]) -> None:
        self._listen(*whom)

    def _listen(self, tenant: Tenant, rank: Rank) -> None:
        try:
            messages, open_ = rank.link.receive()
        except ProtocolError as error:
            messages, open_ = [], False
            self._fails(tenant, ("failed", f"It does not speak the protocol: {error}."))
        if not open_:
            self._events.forget(rank.link)
        self._hear(tenant, rank, messages)

    def _hear(self, tenant: Tenant, rank: Rank, messages: list[Message]) -> None:
        for message in messages:
            fields = message.fields
            if message.kind == "observation":
                rank.observations.append(fields)
            elif message.kind == "ready":
                rank.ready, rank.ready_ns = fields, time.perf_counter_ns()
                self._go_if_ready()
            elif message.kind == "done":
                rank.done = True
                self._stop_if_done()
            elif message.kind == "record":
                rank.record = fields["record"]
            elif message.kind == "failed":
                self._fails(tenant, (fields["outcome"], fields["message"]))

    def _fails(self, tenant: Tenant, failure: tuple[str, str]) -> None:
        tenant.failure = tenant.failure or failure
        tenant.deadline_s = time.monotonic() + FAREWELL_LIMIT_S / 6
        self._stop_if_done()

    def _exited(self, tenant: Tenant) -> None:
        """The direct child is gone: hear its last words, count, and clear what it left in its slice."""
        self._events.forget(tenant.pidfd)
        for rank in list(tenant.ranks.values()):
            self._listen(tenant, rank)
        tenant.status = tenant.process.wait()
        tenant.deadline_s = None
        final = tenant.live.counters()
        cpu_ns = tenant.after.processor_ns if tenant.after.processor_ns is not None else final.processor_ns
        tenant.after = dataclasses.replace(final, processor_ns=cpu_ns)
        tenant.live.kill()
        if self._phase < Phase.LOAD:
            if tenant.status != 0 or any(one.joined for one in self._tenants):
                self._abort_others(tenant)
        else:
            self._stop_if_done()

    # What the runner does

    def _go_if_ready(self) -> None:
        if self._phase is not Phase.BUILD or not all(not one.lost and one.all_ranks("ready") for one in self._tenants):
            return
        plans = {
            (rank.ready["number"], rank.ready["repeat"], rank.ready["skip"])
            for one in self._tenants
            for rank in one.ranks.values()
            if rank.ready
        }
        if len(plans) != 1:
            self._kill(self._tenants, "failed", f"Tenants disagree on number, repeat and skip: {sorted(plans)}.")
            return
        number, repeat, _ = plans.pop()
        self._phase = Phase.LOAD
        for tenant in self._tenants:
            tenant.before = tenant.live.counters()
        self._cpu_at_go_ns = time.process_time_ns()
        self._t0_ns = time.perf_counter_ns() + GO_DELAY_NS
        for tenant in self._tenants:
            for rank in tenant.ranks.values():
                # From here to STOP messages wait in the kernel and are read ten times a second: waking for each
                # would take a percent of a processor from the tenants.
                self._events.forget(rank.link)
                rank.link.say("go", t0_ns=self._t0_ns, number=number, repeat=repeat)

    def _read_links(self) -> None:
        for tenant in self._tenants:
            for rank in tenant.ranks.values():
                self._listen(tenant, rank)

    def _stop_if_done(self) -> None:
        survivors = [tenant for tenant in self._tenants if not tenant.lost]
        if self._phase is not Phase.LOAD or not survivors or not all(one.all_ranks("done") for one in survivors):
            return
        self._phase = Phase.STOP
        self._meters["runner_processor_share"] = (time.process_time_ns() - self._cpu_at_go_ns) / (
            time.perf_counter_ns() - self._t0_ns
        )
        for tenant in survivors:
            tenant.after = tenant.live.counters()
            tenant.deadline_s = time.monotonic() + FAREWELL_LIMIT_S
            for rank in tenant.ranks.values():
                self._events.on_readable(rank.link, _bound(self._hear_out, (tenant, rank)))
                rank.link.say("stop")

    def _poll_memory(self) -> None:
        """A tenant of which a worker was killed may wait for it for ever: the counter ends it."""
        for tenant in self._tenants:
            if tenant.alive and tenant.killed_for is None and tenant.live.counters().oom_kills:
                tenant.live.kill()

    def _check_limits(self, now_s: float, elapsed_s: float) -> None:
        late = [one for one in self._tenants if one.alive and one.deadline_s is not None and now_s >= one.deadline_s]
        self._kill(late, "timeout", f"It did not end within {FAREWELL_LIMIT_S:.0f} s after its last word.")
        if elapsed_s >= self._timeout_s:
            sentence = f"It was not finished after {self._timeout_s:g} s. Give it longer with --timeout."
            self._kill(self._tenants, "timeout", sentence)
        if self._phase is Phase.BUILD and elapsed_s >= READY_LIMIT_S and any(one.joined for one in self._tenants):
            unready = [one for one in self._tenants if not one.all_ranks("ready")]
            self._kill(unready, "timeout", f"It was not ready within {READY_LIMIT_S:.0f} s.")

    def _abort_others(self, culprit: Tenant) -> None:
        outcome, message = outcome_of(culprit, 0)
        sentence = f"Tenant {culprit.index} ended before GO ({outcome}): {message}"
        self._kill([one for one in self._tenants if one is not culprit], "aborted", sentence)

    def _interrupt(self) -> None:
        self._events.forget(self._interruption)
        self._kill(self._tenants, "interrupted", f"Interrupted by {self._interruption.requested}.")

    def _kill(self, tenants: Sequence[Tenant], outcome: str, message: str) -> None:
        for tenant in tenants:
            if tenant.alive and tenant.killed_for is None:
                tenant.killed_for = (outcome, message)
                tenant.live.kill()

    def _ending(self, tenant: Tenant, host_kills: int) -> Ending:
        outcome, message = outcome_of(tenant, host_kills)
        return Ending(tenant.order, outcome, message, tenant.ranks, tenant.read_back, tenant.before, tenant.after)

    def _leave(self, listener: Listener) -> None:
        """Kill what lives, remove every slice, close every descriptor."""
        for tenant in self._tenants:
            tenant.live.kill()
            tenant.status = tenant.process.wait()
            tenant.live.remove()
            tenant.channel.close()
            os.close(tenant.pidfd)
            for rank in tenant.ranks.values():
                rank.link.close()
        listener.close()
        self._events.close()
        self._socket.unlink(missing_ok=True)


def _bound(call: Callable[[Any], None], value: Any) -> Callable[[], None]:
    return lambda: call(value)
