"""One launch as a state machine.

ENTER: every tenant enters its slice; once all have, they are released.
BUILD: every tenant builds and warms up; once all are ready, GO is sent.
LOAD:  tenants are measured; once all that are left are done, STOP is sent.
ALONE: if there are no blocks, some tenants go on alone by turns; all others have STOP.
STOP:  every tenant sends its record and ends.

A tenant that ends early (by its own report, its death, memory, a limit, a signal) has a `reason`. Before GO the others
end with it; after GO they finish.
"""

from __future__ import annotations

import contextlib
import enum
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from operator import attrgetter

from cotenant.files import Directory
from cotenant.isolation.backend import Backend, NotIsolatedError, ReadBack
from cotenant.launch.admission import claim, most_connections, owner_of
from cotenant.launch.allowances import Allowance, allowances, by_blocks, going_on
from cotenant.launch.alone import AloneTurns, WentOn
from cotenant.launch.conductor import Conductor
from cotenant.launch.crowd import Crowd
from cotenant.launch.events import Events, Interruption
from cotenant.launch.limits import ASKED_LIMIT_S, USUAL_LIMITS, Limits, after_stop, grace, late
from cotenant.launch.load import READING_S, MeasuredLoad, expected_s
from cotenant.launch.memory import kills_outside
from cotenant.launch.observer import Observer, Unobserved
from cotenant.launch.outcome import LaunchResult, TenantResult, failure, not_started, outcome_of, rank_death, result_of
from cotenant.launch.pairing import Pairing
from cotenant.launch.rendezvous import Claim, Go, Link, Rank, TakenError
from cotenant.launch.schedule import Schedule
from cotenant.launch.tenant import Reason, Tenant, TenantSpec, families_of, held_up, ranks_of, say_enough, start_tenant
from cotenant.launch.turns import Turns
from cotenant.launch.unready import SEEN_AFTER_S, unready
from cotenant.machine.load import memory_kills
from cotenant.meters.meters import Meters
from cotenant.procfs import described
from cotenant.protocol.messages import Message, ProtocolError
from cotenant.text import sender_of

POLL_S = 1.0
SIGNAL_WAIT_S = 0.1


class Phase(enum.IntEnum):
    ENTER = 0
    BUILD = 1
    LOAD = 2
    ALONE = 3
    STOP = 4


@dataclass(slots=True)
class Launch:
    """Starts the tenants of `specs`, sends them one GO and one STOP, and leaves no process or slice behind.

    `upkeep`, which keeps the reaper alive, is called about once a second. `sampling` reads the host as often between
    GO and the last DONE; `observer` is called at all other times.
    """

    specs: Sequence[TenantSpec]
    backend: Backend
    interruption: Interruption
    limits: Limits = USUAL_LIMITS
    upkeep: Callable[[], None] = lambda: None
    sampling: Meters = field(default_factory=lambda: Meters(()))
    observer: Observer = field(default_factory=Unobserved)
    logs: Directory | None = None
    """The directory of the tenants' logs; by default the one in their specs."""
    takes_turns: bool = False
    """Whether its tenants are measured by blocks, if that is possible."""
    pairing: Pairing | None = None
    """The pairs of its tenants that meet; None if all run beside each other."""
    crowd: Crowd | None = None
    """The searcher that chooses how many of its tenants run beside each other; None if all do."""
    goers: Collection[int] = ()
    """The tenants that go on alone at its end, if it has no blocks."""
    refusal: str = ""
    """Why its tenants are not measured by blocks; before GO, if that is already known."""
    variables: Callable[[TenantSpec, ReadBack], Mapping[str, str]] | None = None
    """Returns the variables that a tenant of a launch over several nodes gets once its slice has been read back."""
    _events: Events = field(default_factory=Events, init=False)
    _kills_before: int = field(default_factory=memory_kills, init=False)
    _tenants: list[Tenant] = field(default_factory=list, init=False)
    _turns: Turns = field(init=False)
    _phase: Phase = field(default=Phase.ENTER, init=False)
    _load: MeasuredLoad | None = field(default=None, init=False)
    _alone: AloneTurns | None = field(default=None, init=False)
    _begun_s: float = field(default=0.0, init=False)
    _killed_outside: int = field(default=0, init=False)
    _changes: dict[str, None] = field(default_factory=dict, init=False)
    _has_said_unready: bool = field(default=False, init=False)
    _has_waited: bool = field(default=False, init=False)
    """Whether the runner has waited, after the first death of a tenant, for a signal to itself."""

    def __post_init__(self) -> None:
        self._turns = Turns(self._tenants)

    def run(self) -> LaunchResult:
        """Go through all phases; leave no process and no slice of this launch, even after an error.

        The result names a slice that cannot be removed at the end. Raises NotIsolatedError for earlier failures.
        """
        started, left_behind, results = datetime.now(UTC), "", None
        try:
            with contextlib.ExitStack() as leaving:
                leaving.callback(self._events.close)
                try:
                    results = self._start(leaving) or self._loop()
                finally:
                    self._wake()
                    self._release(self._tenants)
        except NotIsolatedError as error:
            if results is None:
                raise
            left_behind = str(error)
        result = LaunchResult(
            results,
            started,
            datetime.now(UTC),
            left_behind=left_behind,
            changes=tuple(self._changes),
            killed_outside=self._killed_outside,
        )
        if (load := self._load) is None:
            return result
        return replace(
            result,
            gos=load.gos,
            meters=load.meters,
            stop_ns=load.stop_ns,
            work=load.work.of_tenants,
            conducted=None if load.conductor is None else load.conductor.conducted,
            unconducted=self.refusal,
            went_on=self._went_on(load),
        )

    def _went_on(self, load: MeasuredLoad) -> WentOn | None:
        if self._alone is not None:
            return self._alone.went_on
        goers = any(go.alone for go in load.gos.values())
        return WentOn(load.stop_ns or time.perf_counter_ns()) if goers else None

    def _start(self, leaving: contextlib.ExitStack) -> tuple[TenantResult, ...] | None:
        """Make every slice and start its tenant; return the results at once if one of them fails."""
        logs = self.logs or leaving.enter_context(Directory(self.specs[0].log.parent))
        for spec in self.specs:
            try:
                live = self.backend.create(spec.slice)
                leaving.callback(live.remove)
                read_back = live.verify()
                added = {} if self.variables is None else self.variables(spec, read_back)
                whole = replace(spec, environment={**spec.environment, **added})
                tenant = start_tenant(whole, live, read_back, logs)
            except OSError as error:
                return not_started(self.specs, spec, error)
            leaving.callback(tenant.leave)
            self._tenants.append(tenant)
            self._events.on_readable(tenant.listener, self._connected, tenant)
            self._events.on_readable(tenant.channel, self._entered, tenant)
            self._events.on_readable(tenant.pidfd, self._exited, tenant)
        return None

    def _loop(self) -> tuple[TenantResult, ...]:
        self._begun_s = poll_s = time.monotonic()
        while any(tenant.alive for tenant in self._tenants):
            self._events.turn(READING_S if self._load is None else self._load.due_s())
            if any(tenant.lost for tenant in self._tenants):
                self._wake()
            if self._load is not None:
                # No other tenant is joined after GO.
                for tenant in filter(attrgetter("returns"), self._tenants):
                    self._connected(tenant)
            if self._load is not None and self._phase is Phase.LOAD:
                for tenant in self._tenants:
                    self._read_links(tenant)
                # After STOP only some ranks would hear a request before they end, and those would wait for the others.
                if self._phase is Phase.LOAD:
                    self._load.look(self._survivors(), time.perf_counter_ns())
                    self._fail_unmoved()
                    self._stop_if_done()
            if self._alone is not None and self._phase is Phase.ALONE:
                self._look_alone(self._alone)
            now_s = time.monotonic()
            if now_s >= poll_s + POLL_S:
                poll_s = now_s
                self._poll()
            self._end_those_due(now_s, now_s - self._begun_s)
        self._killed_outside = self._kills_outside()
        return tuple(result_of(tenant, self._killed_outside) for tenant in self._tenants)

    def _kills_outside(self) -> int:
        return kills_outside(self._kills_before, self._tenants)

    def _wake(self) -> None:
        """Thaw every tenant that a schedule holds still: a frozen one neither ends when it is killed, nor finishes
        when others die."""
        if (conductor := self._conductor) is not None:
            conductor.stop()

    def _release(self, tenants: Sequence[Tenant]) -> None:
        """Let these tenants go on if they are held still until their turns alone."""
        if self._alone is not None:
            for tenant in tenants:
                self._alone.release(tenant)

    def _look_alone(self, turns: AloneTurns) -> None:
        for tenant in self._tenants:
            self._read_links(tenant)
        self._stop(turns.look())
        if turns.is_over:
            self._phase = Phase.STOP
            self.observer.stopping()

    @property
    def _conductor(self) -> Conductor | None:
        return None if self._load is None else self._load.conductor

    def _fail_unmoved(self) -> None:
        """End the tenant that the kernel did not move to its block's processors; all observations so far are kept."""
        if (conductor := self._conductor) is not None and conductor.unmoved is not None:
            index, why = conductor.unmoved
            for tenant in self._tenants:
                if tenant.index == index and not tenant.lost:
                    self._fails(tenant, ("not_isolated", f"Its schedule of pairs ended early: {why}."))

    def _poll(self) -> None:
        for tenant in self._tenants:
            # A tenant may wait for a killed worker for ever.
            if self.limits.on_oom == "group" and tenant.alive and not tenant.killed and tenant.live.oom_kills():
                self._kill([tenant])
        # A reaper that cannot be started at this moment is tried again in a second, and before the next launch.
        with contextlib.suppress(OSError):
            self.upkeep()
        if self._phase is Phase.BUILD:
            self._turns.look()
            self._say_unready()
        if self._phase is Phase.LOAD:
            self.sampling.sample()
        elif self._phase is not Phase.ALONE:
            self.observer.tick()

    def _say_unready(self) -> None:
        """Say once, after SEEN_AFTER_S, what was seen of the first tenant that makes no step."""
        if self._has_said_unready or time.monotonic() < self._begun_s + SEEN_AFTER_S:
            return
        self._has_said_unready = True
        for tenant in self._tenants:
            if sentence := unready(tenant):
                self.observer.tell(f"User {tenant.index} is not ready after {SEEN_AFTER_S:g} s. {sentence}")
                break

    def _entered(self, tenant: Tenant) -> None:
        """Handle a tenant's report: `in`, or why it could not enter. The channel closes as it becomes the benchmark."""
        report = tenant.entry_report()
        if report != "in":
            self._events.forget(tenant.channel)
            if report and not tenant.entered:
                self._fails(tenant, ("not_isolated", f"It could not enter its slice: {report}."))
            elif report:
                self._fails(tenant, ("failed", f"{tenant.spec.command[0]} could not be executed: {report}."))
            return
        tenant.entered = True
        if all(other.entered for other in self._tenants):
            self._phase = Phase.BUILD
            for other in self._tenants:
                other.release()
            self.observer.building(0)

    def _go_if_ready(self) -> None:
        if self._phase is not Phase.BUILD:
            return
        self.observer.building(sum(tenant.all_ranks("ready") for tenant in self._tenants))
        if any(tenant.lost or not tenant.all_ranks("ready") for tenant in self._tenants):
            return
        try:
            schedule, given = self._amounts()
        except ProtocolError as error:
            self._kill(self._tenants, ("failed", str(error)))
            return
        if sentence := self.limits.long_step(ranks_of(self._tenants)):
            self.observer.tell(sentence)
        self.observer.measuring(self._expected_s(schedule, given))
        self._phase = Phase.LOAD
        slots = self.pairing.slots if self.pairing else ()
        left_s = self._begun_s + self.limits.timeout_s - time.monotonic()
        self._load = MeasuredLoad(self.limits, given, self.sampling, self._tenants, schedule, slots, left_s, self.crowd)
        for tenant in self._tenants:
            self._events.forget(tenant.listener)
            if not tenant.returns:
                # All ranks have connected.
                tenant.listener.close()
            for rank in tenant.ranks.values():
                # From here to STOP messages wait in the kernel: a wake-up for each would take time from the tenants.
                self._events.forget(rank.link)
                self._give_go(rank, self._load.gos[tenant.index])

    def _give_go(self, rank: Rank, go: Go) -> None:
        """Let a rank make the observations that are left of its amount."""
        rank.link.expect(go.given.repeat)
        made = len(rank.observations)
        rank.link.send("go", t0_ns=go.t0_ns, settle_ns=go.settle_ns, made=made, **asdict(go.given))
        if rank.enough:
            rank.link.send("enough")

    def _amounts(self) -> tuple[Schedule | None, dict[int, Allowance]]:
        """Return the schedule of blocks, if there is one, and each tenant's amount. Raises ProtocolError."""
        if self.takes_turns:
            pairs = self.pairing.pairs if self.pairing else ()
            planned = by_blocks(self._tenants, self.limits.budget_s, pairs, self.crowd)
            if not isinstance(planned, str):
                return planned
            if self.pairing is not None:
                raise ProtocolError(f"Pairs cannot take turns: {planned}. --baseline whole launches each by itself.")
            if self.crowd is not None:
                raise ProtocolError(f"Users cannot take turns: {planned}.")
            self.refusal = planned
            if any(tenant.spec.duet is not None for tenant in self._tenants):
                remedy = "Give it a longer --budget, or smaller steps, of one process each."
                raise ProtocolError(f"A duet takes turns, which cannot be had here: {planned}. {remedy}")
        goers = [tenant for tenant in self._tenants if tenant.index in self.goers]
        return None, going_on(allowances(self._tenants, self.limits), goers)

    def _expected_s(self, schedule: Schedule | None, given: Mapping[int, Allowance]) -> float | None:
        """Return the seconds that the launch will measure; None if they are unknown."""
        if schedule is not None:
            return self.limits.settle_s + schedule.total_ns / 1e9
        lasting = (
            expected_s(tenant.ranks.values(), given[tenant.index].least, self.limits.settle_s)
            for tenant in self._tenants
        )
        return max((seconds for seconds in lasting if seconds is not None), default=None)

    def _survivors(self) -> list[Tenant]:
        return [tenant for tenant in self._tenants if not tenant.lost]

    def _stop_if_done(self) -> None:
        survivors = self._survivors()
        if self._phase is not Phase.LOAD or not survivors:
            return
        assert self._load is not None
        if not all(map(self._load.enough.is_of, survivors)):
            return
        self._wake()
        self._load.end(survivors)
        # All slices are verified, also those of tenants that have ended: no neighbour is timed any more.
        self._verify_again(self._tenants)
        goers = [tenant for tenant in survivors if self._load.gos[tenant.index].alone]
        # Beside a tenant that was lost nothing is comparable.
        if goers and len(survivors) == len(self._tenants):
            self._phase, left_s = Phase.ALONE, self._begun_s + self.limits.timeout_s - time.monotonic()
            others = [tenant for tenant in self._tenants if tenant not in goers]
            self._alone = AloneTurns(goers, others, left_s)
            self._stop(self._alone.dismissed)
        else:
            self._phase = Phase.STOP
            self._stop(self._tenants)
            self.observer.stopping()

    def _stop(self, tenants: Sequence[Tenant]) -> None:
        """Send STOP to these tenants, and limit the time until their records."""
        assert self._load is not None
        say_enough(tenants)
        for tenant in tenants:
            if tenant.spec.foreign is not None and not tenant.lost:
                tenant.asked_at_s = time.monotonic() + ASKED_LIMIT_S
            elif not tenant.lost:
                tenant.deadline = after_stop(tenant, self._load.gos[tenant.index].given.number)
            for rank in tenant.ranks.values():
                if rank.link.open:
                    self._events.on_readable(rank.link, self._listen, tenant, rank.link)
                    rank.link.send("stop")

    def _connected(self, tenant: Tenant) -> None:
        most = most_connections(len(self._tenants))
        for link in tenant.listener.accept():
            link.claim = claim(tenant, self._tenants, link.peer, link.user)
            full = len(tenant.links) >= most
            if link.claim is Claim.STRANGER or (full and link.claim is not Claim.OWN):
                self._turn_away(tenant, link)
                continue
            tenant.links.append(link)
            if self._phase not in (Phase.LOAD, Phase.ALONE):
                self._events.on_readable(link, self._listen, tenant, link)
            if full:
                self._events.forget(tenant.listener)
                tenant.listener.close()
                self._nonsense(tenant, f"more than {most} connections")
                return

    def _turn_away(self, tenant: Tenant, link: Link) -> None:
        """Close a stranger's connection silently. If another tenant made it, the launch ends, naming that tenant.

        This is done at once, as the tenant that was kept from its socket might fail first.
        """
        who = described(link.peer)
        link.close()
        culprit = owner_of([other for other in self._tenants if other is not tenant], link.peer)
        if culprit is not None and not culprit.lost:
            self._kill([culprit], ("failed", f"Its process {who} has connected to the socket of user {tenant.index}."))
            self._gone(culprit)

    def _read_links(self, tenant: Tenant) -> None:
        for link in [link for link in tenant.links if link.open]:
            self._listen(tenant, link)

    def _listen(self, tenant: Tenant, link: Link) -> None:
        """Read a connection's messages; its hello makes it a rank that is still free."""
        try:
            for message in link.receive():
                if link.rank is None:
                    self._join(tenant, link, message)
                else:
                    self._take(tenant, link.rank, message)
        except ProtocolError as error:
            self._misspoken(tenant, link, error)
        if link.open:
            return
        self._events.forget(link)
        if link.rank is None:
            link.close()
            tenant.links.remove(link)
        elif tenant.returns and not link.rank.done:
            pass  # Its next start takes its place.
        elif link.rank.record is None and link.claim is not Claim.OWN:
            self._drop(tenant, link.rank)
        elif link.rank.record is None and tenant.deadline is None:
            sentence = "One of its processes left the rendezvous before its record, and the rest did not end."
            tenant.deadline = grace(tenant, ("failed", sentence))

    def _join(self, tenant: Tenant, link: Link, hello: Message) -> None:
        if link.claim is Claim.OWN and self._load is None:
            for unproven in [rank for rank in tenant.ranks.values() if rank.link.claim is not Claim.OWN]:
                self._drop(tenant, unproven)
        rank = tenant.join(link, hello)
        if rank.start > 1 and rank.ready is None:
            self._turns.over(tenant)
        if rank.life is not None:
            self._events.on_readable(rank.life, self._rank_ended, tenant, rank)

    def _drop(self, tenant: Tenant, rank: Rank) -> None:
        """Free a rank whose connection is not proven to be the tenant's."""
        self._events.forget(rank.link)
        rank.link.close()
        if rank.life is not None:
            self._events.forget(rank.life)
            rank.life.close()
        if tenant.ranks.get(rank.number) is rank:
            del tenant.ranks[rank.number]
            tenant.links.remove(rank.link)

    def _take(self, tenant: Tenant, rank: Rank, message: Message) -> None:
        rank.take(message, self._load.gos[tenant.index] if self._load else None)
        if message.kind == "turn":
            self._turns.request(tenant)
        elif message.kind == "turned":
            self._turns.over(tenant)
        elif message.kind == "ready" and self._load is not None:
            self._give_go(rank, self._load.gos[tenant.index])
        elif message.kind == "ready":
            self._turns.look()
            self._go_if_ready()
        elif message.kind == "done":
            self._stop_if_done()
        elif message.kind == "record" and tenant.asked_at_s is not None:
            tenant.asked_at_s = 0.0
        elif message.kind == "failed" and rank.link.claim is not Claim.OWN:
            rank.link.close()
        elif message.kind == "failed":
            self._fails(tenant, failure(tenant, rank, message.fields["outcome"], message.fields["message"]))

    def _misspoken(self, tenant: Tenant, link: Link, error: ProtocolError) -> None:
        """End a tenant that sends nonsense; only refuse a second process that says hello as a taken rank.

        A connection that is not proven to be the tenant's is only closed.
        """
        if link.claim is Claim.OWN and not isinstance(error, TakenError):
            self._nonsense(tenant, error)
            return
        if link.claim is Claim.OWN:
            link.send("refused", sentence=str(error))
        link.close()

    def _nonsense(self, tenant: Tenant, what: object) -> None:
        for link in tenant.links:
            self._events.forget(link)
            link.close()
        self._fails(tenant, ("failed", f"It does not speak the protocol: {what}."))

    def _fails(self, tenant: Tenant, reason: Reason) -> None:
        tenant.reason = tenant.reason or reason
        tenant.deadline = grace(tenant, tenant.reason)
        self._stop_if_done()

    def _rank_ended(self, tenant: Tenant, rank: Rank) -> None:
        """Handle the end of one of several ranks; before its record the others would wait for it in vain."""
        assert rank.life is not None
        self._events.forget(rank.life)
        status = rank.life.status()
        if rank.link.open:
            self._listen(tenant, rank.link)
        reason = rank_death(tenant, rank, status)
        if reason is not None:
            if any(other.complains for other in tenant.ranks.values()):
                # The reason so far was that this rank's connection ended; the other rank's report says more.
                tenant.reason = None
            self._fails(tenant, reason)

    def _exited(self, tenant: Tenant) -> None:
        """Handle the end of a tenant's first process: count, kill the rest in its slice, read its last messages."""
        self._events.forget(tenant.pidfd)
        for rank in tenant.ranks.values():
            if rank.life is not None and rank.life.ended:
                self._rank_ended(tenant, rank)
        self._end(tenant)
        self._entered(tenant)
        self._connected(tenant)
        self._read_links(tenant)
        tenant.status = tenant.process.wait()
        if tenant.status and tenant.reason is None and self._are_interrupted():
            tenant.reason = self._interruption_reason
        self._gone(tenant)

    def _are_interrupted(self) -> bool:
        """Return whether a signal came to us too: batch systems signal all processes of a job, in any order."""
        until_s = time.monotonic() + (0.0 if self._has_waited else SIGNAL_WAIT_S)
        self._has_waited = True
        while not self.interruption.requested and time.monotonic() < until_s:
            time.sleep(SIGNAL_WAIT_S / 50)
        return self.interruption.requested is not None

    @property
    def _interruption_reason(self) -> Reason:
        return "interrupted", f"Stopped by {sender_of(str(self.interruption.requested))}."

    def _gone(self, tenant: Tenant) -> None:
        """Before GO end the others with a tenant that has ended or cannot be ended; after GO stop waiting for it."""
        if self._phase >= Phase.LOAD:
            self._stop_if_done()
        else:
            outcome, message = outcome_of(tenant, self._kills_outside())
            sentence = f"User {tenant.index} ended before GO ({outcome}): {message}"
            self._kill([other for other in self._tenants if other is not tenant], ("aborted", sentence))

    def _end_those_due(self, now_s: float, elapsed_s: float) -> None:
        if self.interruption.requested:
            self._kill(self._tenants, self._interruption_reason)
        for tenant in self._tenants:
            # One that has ended by itself is not asked: its end is its own.
            if tenant.alive and tenant.asked_at_s is not None and now_s >= tenant.asked_at_s:
                tenant.ask_to_end()
                tenant.deadline = now_s + ASKED_LIMIT_S, None
            if tenant.deadline is not None and now_s >= tenant.deadline[0]:
                self._kill([tenant], tenant.deadline[1])
        if self._phase is not Phase.STOP:
            self._kill(*late(self._tenants, self.limits, elapsed_s, self._phase >= Phase.LOAD))

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
        if self._phase >= Phase.ALONE or tenant.spec.follows:
            self._verify_again([tenant])
        self._wake()
        self._release([tenant])
        if not tenant.killed and tenant.reason is not None and tenant.reason[0] == "timeout":
            tenant.reason = "timeout", f"{tenant.reason[1]} {held_up(tenant)}".rstrip()
        tenant.end()

    def _verify_again(self, tenants: Sequence[Tenant]) -> None:
        """Compare slices with their plan, and processes with their slices, once more, while no tenant is timed."""
        sliced = {tenant.index: tenant for tenant in tenants if tenant.live.entry.procs_files}
        for index, family in families_of(sliced.values()).items():
            joined = {rank.link.peer for rank in sliced[index].ranks.values()}
            self._changes |= dict.fromkeys(sliced[index].live.changes(family | joined - {0}))
