"""One launch as a state machine: enter, build, load, stop; and every way it can end."""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

from cotenant.isolation.backend import Backend, NotIsolatedError
from cotenant.launch.events import Events, Interruption
from cotenant.launch.limits import USUAL_LIMITS, DisagreementError, Enough, Limits, after_stop, grace, late
from cotenant.launch.memory import KillWatch
from cotenant.launch.observer import Observer, Unobserved, expected_s
from cotenant.launch.outcome import (
    LaunchResult,
    TenantResult,
    failure_of,
    not_isolated,
    outcome_of,
    rank_death,
    result_of,
)
from cotenant.launch.rendezvous import Go, Link, Rank
from cotenant.launch.tenant import Order, Reason, Tenant, start_tenant
from cotenant.meters.meters import Meters
from cotenant.protocol.messages import Message, ProtocolError

GO_DELAY_NS = 50_000_000
POLL_S = 1.0
READING_S = 0.1
STRANGERS = 128


class Phase(enum.IntEnum):
    ENTER = 0
    BUILD = 1
    LOAD = 2
    STOP = 3


class Launch:
    """Starts the orders' tenants, brings them to one GO and one STOP, and leaves nothing behind.

    `upkeep` is called about once a second: what else has to be alive is looked after there. `sampling` looks at the
    host as often, between GO and the last DONE; `observer` is told of all but that.
    """

    def __init__(
        self,
        orders: Sequence[Order],
        backend: Backend,
        interruption: Interruption,
        limits: Limits = USUAL_LIMITS,
        upkeep: Callable[[], None] = lambda: None,
        sampling: Meters | None = None,
        observer: Observer | None = None,
    ) -> None:
        self._orders = orders
        self._backend = backend
        self._interruption = interruption
        self._limits = limits
        self._upkeep = upkeep
        self._sampling = sampling or Meters(())
        self._observer = observer or Unobserved()
        self._events = Events()
        self._kills = KillWatch()
        self._tenants: list[Tenant] = []
        self._phase = Phase.ENTER
        self._go: Go | None = None
        self._enough: Enough | None = None
        self._cpu_at_go_ns = 0
        self._start_s = self._poll_s = 0.0
        self._meters: dict[str, Any] = {}

    def run(self) -> LaunchResult:
        """Go through all phases. Whatever happens, no process and no slice of this launch is left.

        What could not be removed after all have ended is said in the result: what was measured is as good as any.
        Raises NotIsolatedError where something fails before.
        """
        started, left_behind = datetime.now(UTC), ""
        endings: tuple[TenantResult, ...] | None = None
        try:
            with contextlib.ExitStack() as leaving:
                leaving.callback(self._events.close)
                leaving.callback(self._kills.close)
                self._events.on_readable(self._interruption, self._interrupt)
                endings = self._start(leaving)
                if endings is None:
                    self._live()
                    host = self._kills.so_far(self._tenants)
                    endings = tuple(result_of(tenant, host) for tenant in self._tenants)
        except NotIsolatedError as error:
            if endings is None:
                raise
            left_behind = str(error)
        t0_ns, given = (self._go.t0_ns, self._go.given) if self._go else (0, None)
        return LaunchResult(endings, started, datetime.now(UTC), t0_ns, self._meters, given, left_behind)

    def _start(self, leaving: contextlib.ExitStack) -> tuple[TenantResult, ...] | None:
        """Make every slice and start its tenant; return the endings at once where a slice cannot be had."""
        for order in self._orders:
            try:
                live = self._backend.create(order.slice)
                leaving.callback(live.remove)
                tenant = start_tenant(order, live, live.verify())
            except NotIsolatedError as error:
                return not_isolated(self._orders, order, str(error))
            leaving.callback(tenant.leave)
            self._tenants.append(tenant)
            self._events.on_readable(tenant.listener, partial(self._welcome, tenant))
            self._events.on_readable(tenant.channel, partial(self._entered, tenant))
            self._events.on_readable(tenant.pidfd, partial(self._exited, tenant))
        return None

    def _live(self) -> None:
        self._start_s = self._poll_s = time.monotonic()
        while any(tenant.alive for tenant in self._tenants):
            self._events.turn(self._rest_s())
            if self._phase is Phase.LOAD:
                self._read_links()
                if self._enough is not None:
                    self._enough.look(self._survivors(), time.perf_counter_ns())
            now_s = time.monotonic()
            if now_s >= self._poll_s + POLL_S:
                self._poll_s = now_s
                self._poll_memory()
                # What cannot be started this moment is tried again in a second, and before the next launch.
                with contextlib.suppress(OSError):
                    self._upkeep()
                if self._phase is Phase.LOAD:
                    self._sampling.sample()
                else:
                    self._observer.tick()
            self._check_limits(now_s)

    def _rest_s(self) -> float:
        """Return how long nothing but an event needs the runner."""
        if self._phase is Phase.LOAD:
            return READING_S
        deadlines = [tenant.deadline[0] for tenant in self._tenants if tenant.alive and tenant.deadline is not None]
        return min([self._poll_s + POLL_S, *deadlines]) - time.monotonic()

    # What tenants do

    def _entered(self, tenant: Tenant) -> None:
        """It says `in`, or why not; its end of the channel closes when it becomes the benchmark."""
        try:
            said = tenant.channel.recv(4096).decode(errors="replace").strip()
        except OSError:
            said = ""
        if said == "in":
            tenant.entered = True
            if len(self._tenants) == len(self._orders) and all(one.entered for one in self._tenants):
                self._release()
            return
        self._events.forget(tenant.channel)
        if said and self._phase is Phase.ENTER:
            self._fails(tenant, ("not_isolated", f"It could not enter its slice: {said}."))
        elif said:
            self._fails(tenant, ("failed", f"{tenant.order.command[0]} could not be executed: {said}."))

    def _release(self) -> None:
        self._phase = Phase.BUILD
        for tenant in self._tenants:
            with contextlib.suppress(OSError):
                tenant.channel.send(b"1")
        self._observer.building(0)

    def _welcome(self, tenant: Tenant) -> None:
        for link in tenant.listener.accept():
            tenant.strangers.append(link)
            self._events.on_readable(link, partial(self._first_words, tenant, link))
        if len(tenant.strangers) > STRANGERS:
            self._events.forget(tenant.listener)
            tenant.listener.close()
            self._nonsense(tenant, f"more than {STRANGERS} connections without a hello")

    def _first_words(self, tenant: Tenant, link: Link) -> None:
        """A connection belongs to no rank until its hello names one that is still free."""
        try:
            messages = link.receive()
            if not messages:
                if not link.open:
                    self._turn_away(tenant, link)
                return
            rank = tenant.join(link, messages[0])
        except ProtocolError as error:
            self._nonsense(tenant, error)
            return
        tenant.strangers.remove(link)
        self._events.forget(link)
        self._events.on_readable(link, partial(self._listen, tenant, rank))
        if rank.life is not None:
            self._events.on_readable(rank.life, partial(self._rank_ended, tenant, rank))
        self._hear(tenant, rank, messages[1:])
        left = next((one for one in self._tenants if not one.alive), None)
        if left is not None and self._phase is Phase.BUILD:
            left.reason = left.reason or (
                "failed",
                "It ended without joining the rendezvous, while another tenant joined.",
            )
            self._abort_others(left)

    def _turn_away(self, tenant: Tenant, link: Link) -> None:
        self._events.forget(link)
        link.close()
        tenant.strangers.remove(link)

    def _listen(self, tenant: Tenant, rank: Rank) -> None:
        try:
            self._hear(tenant, rank, rank.link.receive())
        except ProtocolError as error:
            self._nonsense(tenant, error)
        if not rank.link.open:
            self._events.forget(rank.link)
            if rank.record is None and tenant.deadline is None:
                gone = "One of its processes left the rendezvous before its record, and the rest did not end."
                tenant.deadline = grace(tenant, ("failed", gone))

    def _hear(self, tenant: Tenant, rank: Rank, messages: Iterable[Message]) -> None:
        for message in messages:
            try:
                rank.take(message, self._go)
            except ProtocolError as error:
                self._nonsense(tenant, error)
                return
            if message.kind == "ready":
                self._go_if_ready()
            elif message.kind == "done":
                self._stop_if_done()
            elif message.kind == "failed":
                self._fails(tenant, failure_of(tenant, rank, message.fields["outcome"], message.fields["message"]))

    def _nonsense(self, tenant: Tenant, what: object) -> None:
        for link in tenant.links():
            self._events.forget(link)
            link.close()
        self._fails(tenant, ("failed", f"It does not speak the protocol: {what}."))

    def _fails(self, tenant: Tenant, reason: Reason) -> None:
        tenant.reason = tenant.reason or reason
        tenant.deadline = grace(tenant, tenant.reason)
        self._stop_if_done()

    def _rank_ended(self, tenant: Tenant, rank: Rank) -> None:
        """One of several processes is gone. Before its record the others would wait for it in vain."""
        assert rank.life is not None
        self._events.forget(rank.life)
        status = rank.life.status()
        if rank.link.open:
            self._listen(tenant, rank)
        reason = rank_death(tenant, rank, status)
        if reason is None or rank.failed or tenant.killed or not tenant.alive:
            return
        if any(other.complains for other in tenant.ranks.values()):
            # Of a connection that this one has left without a word.
            tenant.reason = None
        self._fails(tenant, reason)

    def _exited(self, tenant: Tenant) -> None:
        """The direct child is gone: count, clear what it left in its slice, and hear the last words."""
        self._events.forget(tenant.pidfd)
        for rank in tenant.ranks.values():
            if rank.life is not None and rank.life.ended:
                self._rank_ended(tenant, rank)
        self._end(tenant)
        self._entered(tenant)
        self._welcome(tenant)
        for link in list(tenant.strangers):
            self._first_words(tenant, link)
        for rank in list(tenant.ranks.values()):
            self._listen(tenant, rank)
        tenant.status = tenant.process.wait()
        self._gone(tenant)

    def _gone(self, tenant: Tenant) -> None:
        """The others are told, or need not wait for it: it has ended, or cannot be ended."""
        if self._phase >= Phase.LOAD:
            self._stop_if_done()
        elif tenant.status != 0 or any(one.joined for one in self._tenants):
            self._abort_others(tenant)

    # What the runner does

    def _go_if_ready(self) -> None:
        if self._phase is not Phase.BUILD:
            return
        self._observer.building(sum(one.all_ranks("ready") for one in self._tenants))
        if not all(not one.lost and one.all_ranks("ready") for one in self._tenants):
            return
        ranks = [rank for tenant in self._tenants for rank in tenant.ranks.values()]
        try:
            given = self._limits.given(ranks)
        except DisagreementError as error:
            self._kill(self._tenants, ("failed", str(error)))
            return
        self._observer.measuring(expected_s(ranks, given.number, given.repeat))
        self._phase = Phase.LOAD
        self._sampling.start([tenant.live for tenant in self._tenants])
        for tenant in self._tenants:
            tenant.before = tenant.live.counters()
        self._cpu_at_go_ns = time.process_time_ns()
        self._go = Go(time.perf_counter_ns() + GO_DELAY_NS, given)
        self._enough = Enough(self._limits, self._go)
        for rank in ranks:
            # From here to STOP messages wait in the kernel and are read ten times a second: waking for each
            # would take a percent of a processor from the tenants.
            self._events.forget(rank.link)
            rank.link.send("go", t0_ns=self._go.t0_ns, **dataclasses.asdict(given))

    def _read_links(self) -> None:
        for tenant in self._tenants:
            for rank in tenant.ranks.values():
                if rank.link.open:
                    self._listen(tenant, rank)

    def _survivors(self) -> list[Tenant]:
        return [tenant for tenant in self._tenants if not tenant.lost]

    def _stop_if_done(self) -> None:
        survivors = self._survivors()
        if self._phase is not Phase.LOAD or not survivors or not all(one.all_ranks("done") for one in survivors):
            return
        self._phase = Phase.STOP
        assert self._go is not None
        load_ns = time.perf_counter_ns() - (self._go.t0_ns - GO_DELAY_NS)
        self._meters["runner_processor_share"] = (time.process_time_ns() - self._cpu_at_go_ns) / load_ns
        for tenant in survivors:
            tenant.after = tenant.live.counters()
            tenant.deadline = after_stop(tenant, self._go.given.number)
        self._meters |= self._sampling.result(self._go.t0_ns)
        for tenant in self._tenants:
            for rank in tenant.ranks.values():
                if rank.link.open:
                    self._events.on_readable(rank.link, partial(self._listen, tenant, rank))
                    rank.link.send("stop")
        self._observer.stopping()

    def _poll_memory(self) -> None:
        """A tenant of which a worker was killed may wait for it for ever: the counter ends it, or is told not to."""
        if self._limits.on_oom == "process":
            return
        for tenant in self._tenants:
            if tenant.alive and not tenant.killed and tenant.live.oom_kills():
                self._kill([tenant])

    def _check_limits(self, now_s: float) -> None:
        for tenant in self._tenants:
            if tenant.deadline is not None and now_s >= tenant.deadline[0]:
                self._kill([tenant], tenant.deadline[1])
        loaded, elapsed_s = self._phase is Phase.LOAD, now_s - self._start_s
        if self._phase is Phase.STOP:
            return
        if (verdict := late(self._tenants, self._limits, elapsed_s, loaded)) is not None:
            self._kill(*verdict)

    def _abort_others(self, culprit: Tenant) -> None:
        outcome, message = outcome_of(culprit, self._kills.so_far(self._tenants))
        sentence = f"Tenant {culprit.index} ended before GO ({outcome}): {message}"
        self._kill([one for one in self._tenants if one is not culprit], ("aborted", sentence))

    def _interrupt(self) -> None:
        self._events.forget(self._interruption)
        self._kill(self._tenants, ("interrupted", f"Interrupted by {self._interruption.requested}."))

    def _kill(self, tenants: Sequence[Tenant], reason: Reason | None = None) -> None:
        ending = [tenant for tenant in tenants if tenant.alive and not tenant.killed]
        for tenant in ending:
            tenant.reason = tenant.reason or reason
        for tenant in ending:
            if not tenant.killed:
                self._end(tenant)
                if tenant.stuck:
                    self._gone(tenant)

    def _end(self, tenant: Tenant) -> None:
        """Read what its processes still hold, and kill them; what has flowed was read at the last DONE, if it came.

        Where some cannot be killed its neighbours' numbers are as good as any: `leave` says so once those are kept.
        """
        tenant.after = tenant.live.counters().at_end(tenant.after)
        tenant.killed = True
        try:
            tenant.kill()
        except NotIsolatedError as error:
            tenant.stuck = str(error)
