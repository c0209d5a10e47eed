"""One launch as a state machine.

ENTER: every tenant enters its slice; once all have, they are released.
BUILD: every tenant builds and warms up; once all are ready, GO is sent.
LOAD:  tenants are measured; once all survivors are done, STOP is sent.
ALONE: if there are no blocks, some tenants go on alone by turns; all others have had STOP.
STOP:  every tenant sends its record and ends.

A tenant that ends early (by its own report, its death, memory, a limit, a signal) has an `ending`. Before GO the others
end with it; after GO they finish.
"""

from __future__ import annotations

import contextlib
import enum
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from operator import attrgetter

from cotenant.files import Directory
from cotenant.isolation.backend import Backend, NotIsolatedError, ReadBack
from cotenant.launch.allowances import Allowance, allowances, by_blocks, going_on
from cotenant.launch.alone import AloneTurns, WentOn
from cotenant.launch.conductor import Conductor
from cotenant.launch.connections import Connections
from cotenant.launch.design.designs import ALL_AT_ONCE
from cotenant.launch.design.shared import Design, DesignPlan
from cotenant.launch.endings import Ending, Patience
from cotenant.launch.events import Events, Interruption
from cotenant.launch.inbox import (
    DoneMessage,
    FailedMessage,
    ReadyMessage,
    RecordMessage,
    TenantMessage,
    TurnedMessage,
    TurnMessage,
)
from cotenant.launch.limits import ASKED_LIMIT_S, USUAL_LIMITS, Limits, after_stop, grace, late
from cotenant.launch.load import READING_S, MeasuredLoad, expected_s
from cotenant.launch.memory import kills_outside
from cotenant.launch.observer import Observer, Unobserved
from cotenant.launch.outcome import LaunchResult, TenantResult, ending_of, failure, not_started, rank_death, result_of
from cotenant.launch.rank import Rank, RankPhase
from cotenant.launch.tenant import (
    Tenant,
    TenantPhase,
    TenantSpec,
    families_of,
    held_up,
    ranks_of,
    say_enough,
    start_tenant,
)
from cotenant.launch.turns import Turns
from cotenant.launch.unready import SEEN_AFTER_S, unready
from cotenant.machine.load import memory_kills
from cotenant.meters.meters import Meters
from cotenant.procfs import awaits_sigkill
from cotenant.protocol.messages import ProtocolError
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
    GO and the last DONE; `observer` is called before and after, except in ALONE.
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
    design: Design = ALL_AT_ONCE
    goers: Collection[int] = ()
    """The tenants that go on alone at its end, if it has no blocks."""
    variables: Callable[[TenantSpec, ReadBack], Mapping[str, str]] | None = None
    """Returns the variables that a tenant of a launch over several nodes gets once its slice has been read back."""
    _events: Events = field(default_factory=Events, init=False)
    _kills_before: int = field(default_factory=memory_kills, init=False)
    _tenants: list[Tenant] = field(default_factory=list, init=False)
    _turns: Turns = field(init=False)
    _connections: Connections = field(init=False)
    _phase: Phase = field(default=Phase.ENTER, init=False)
    _load: MeasuredLoad | None = field(default=None, init=False)
    _unconducted: str = field(init=False)
    _alone: AloneTurns | None = field(default=None, init=False)
    _begun_s: float = field(default=0.0, init=False)
    _killed_outside: int = field(default=0, init=False)
    _changes: dict[str, None] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._turns, self._unconducted = Turns(self._tenants), self.design.refusal
        self._connections = Connections(self._events, self._tenants, self)

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
            unconducted=self._unconducted,
            went_on=self._went_on(load),
        )

    def _went_on(self, load: MeasuredLoad) -> WentOn | None:
        if self._alone is not None:
            return self._alone.went_on
        goers = any(go.alone for go in load.gos.values())
        return WentOn(load.stop_ns or time.perf_counter_ns()) if goers else None

    def _start(self, leaving: contextlib.ExitStack) -> tuple[TenantResult, ...] | None:
        """Make every slice and start its tenant; return the launch's results if one cannot be made or started."""
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
            self._events.on_readable(tenant.listener, self._connections.accept, tenant)
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
                # After GO only a restarted program may join.
                for tenant in filter(attrgetter("returns"), self._tenants):
                    self._connections.accept(tenant, awaited=self._phase is Phase.STOP)
            if self._load is not None and self._phase is Phase.LOAD:
                for tenant in self._tenants:
                    self._connections.read(tenant)
                # After STOP only some ranks would hear a request before they end, and would wait for the others.
                if self._phase is Phase.LOAD:
                    self._load.look(self._survivors(), time.perf_counter_ns())
                    self._fail_unmoved()
                    self._stop_if_done()
            if self._alone is not None and self._phase is Phase.ALONE:
                self._look_alone(self._alone)
            now_s = time.monotonic()
            if now_s >= poll_s + POLL_S:
                self._poll(poll_s - self._begun_s, now_s - self._begun_s)
                poll_s = now_s
            self._end_those_due(now_s, now_s - self._begun_s)
        self._killed_outside = self._kills_outside()
        return tuple(result_of(tenant, self._killed_outside) for tenant in self._tenants)

    def _kills_outside(self) -> int:
        return kills_outside(self._kills_before, self._tenants)

    def _wake(self) -> None:
        """Thaw every tenant that the conductor froze: a frozen tenant neither ends when it is killed, nor finishes
        when others die."""
        if (conductor := self._conductor) is not None:
            conductor.stop()

    def _release(self, tenants: Sequence[Tenant]) -> None:
        """Thaw the tenants among these that are frozen until their turns alone."""
        if self._alone is not None:
            for tenant in tenants:
                self._alone.release(tenant)

    def _look_alone(self, turns: AloneTurns) -> None:
        for tenant in self._tenants:
            self._connections.read(tenant)
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
                    self.fails(tenant, Ending("not_isolated", f"Its blocks ended early: {why}."))

    def _poll(self, before_s: float, elapsed_s: float) -> None:
        """Do what is due once a second; the last time was `before_s` after the launch's start."""
        for tenant in self._tenants:
            # A tenant may wait for a killed worker forever.
            if self.limits.on_oom == "group" and not tenant.is_killed and tenant.live.oom_kills():
                self._kill([tenant])
            if self._load is not None and tenant.status is None and awaits_sigkill(tenant.process.pid):
                # Once it is thawed it dies, which ends the blocks for all.
                self._wake()
                self._release([tenant])
        # If a reaper cannot be started now, that is tried again in a second, and before the next launch.
        with contextlib.suppress(OSError):
            self.upkeep()
        if self._phase is Phase.BUILD:
            self._turns.look()
            if before_s < SEEN_AFTER_S <= elapsed_s:
                self._say_unready()
        if self._phase is Phase.LOAD:
            self.sampling.sample()
        elif self._phase is not Phase.ALONE:
            self.observer.tick()

    def _say_unready(self) -> None:
        """Report the first tenant that makes no step, and what it did."""
        for tenant in self._tenants:
            if sentence := unready(tenant):
                self.observer.tell(f"User {tenant.index} is not ready after {SEEN_AFTER_S:g} s. {sentence}")
                break

    def _entered(self, tenant: Tenant) -> None:
        """Handle a tenant's report: `in`, or why it could not enter. The channel closes as it becomes the benchmark."""
        report = tenant.entry_report()
        if report != "in":
            self._events.forget(tenant.channel)
            if report and tenant.phase is TenantPhase.ENTERING:
                self.fails(tenant, Ending("not_isolated", f"It could not enter its slice: {report}."))
            elif report:
                self.fails(tenant, Ending("failed", f"{tenant.spec.command[0]} could not be executed: {report}."))
            return
        tenant.phase = max(tenant.phase, TenantPhase.RUNNING)
        if all(other.phase is TenantPhase.RUNNING for other in self._tenants):
            self._phase = Phase.BUILD
            for other in self._tenants:
                other.release()
            self.observer.building(0)

    def _go_if_ready(self) -> None:
        if self._phase is not Phase.BUILD:
            return
        self.observer.building(sum(tenant.all_ranks(RankPhase.READY) for tenant in self._tenants))
        if any(tenant.lost or not tenant.all_ranks(RankPhase.READY) for tenant in self._tenants):
            return
        try:
            planned, given = self._amounts()
        except ProtocolError as error:
            self._kill(self._tenants, Ending("failed", str(error)))
            return
        if sentence := self.limits.long_step(ranks_of(self._tenants)):
            self.observer.tell(sentence)
        self.observer.measuring(self._expected_s(planned, given))
        self._phase = Phase.LOAD
        rounds = None if planned is None else planned.rounds
        self._load = MeasuredLoad(self.limits, given, self.sampling, self._tenants, rounds, self.design.slots)
        for tenant in self._tenants:
            # All ranks have connected.
            if tenant.returns:
                self._events.forget(tenant.listener)
            else:
                self._connections.close_listener(tenant)
            for rank in tenant.ranks.values():
                # From here to STOP messages wait in the kernel: a wake-up for each would take time from the tenants.
                self._events.forget(rank.link)
                rank.start(self._load.gos[tenant.index])

    @property
    def _left_s(self) -> float:
        """The seconds until the launch's time limit."""
        return self._begun_s + self.limits.timeout_s - time.monotonic()

    def _amounts(self) -> tuple[DesignPlan | None, dict[int, Allowance]]:
        """Return the plan of the blocks, if there are any, and each tenant's amount. Raises ProtocolError."""
        planned = by_blocks(self._tenants, self.design, self.limits, self._left_s)
        if not isinstance(planned, str):
            return planned
        if self.design.failure:
            raise ProtocolError(self.design.failure.format(why=planned))
        self._unconducted = planned
        goers = [tenant for tenant in self._tenants if tenant.index in self.goers]
        return None, going_on(allowances(self._tenants, self.limits), goers)

    def _expected_s(self, planned: DesignPlan | None, given: Mapping[int, Allowance]) -> float | None:
        """Return the seconds that the launch will measure; None if they are unknown."""
        if planned is not None:
            return self.limits.settle_s + planned.expected_ns / 1e9
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
        # All slices are verified, even after a tenant's end: no tenant is timed any more.
        self._verify_again(self._tenants)
        goers = [tenant for tenant in survivors if self._load.gos[tenant.index].alone]
        # After the loss of a tenant no rate is comparable.
        if goers and len(survivors) == len(self._tenants):
            self._phase = Phase.ALONE
            others = [tenant for tenant in self._tenants if tenant not in goers]
            self._alone = AloneTurns(goers, others, self._left_s)
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
            if not tenant.lost:
                tenant.patience = after_stop(tenant, self._load.gos[tenant.index].given.number)
            for rank in tenant.ranks.values():
                if rank.link.open:
                    self._connections.await_messages(tenant, rank.link)
                    rank.link.send("stop")

    def hear(self, tenant: Tenant, rank: Rank, message: TenantMessage) -> None:
        """Act on a message that the rank has taken."""
        match message:
            case TurnMessage():
                self._turns.request(tenant)
            case TurnedMessage():
                self._turns.over(tenant)
            case ReadyMessage():
                self._turns.look()
                self._go_if_ready()
            case DoneMessage():
                self._stop_if_done()
            case RecordMessage() if tenant.patience is not None and tenant.patience.ending is None:
                tenant.patience = Patience(0.0, None)
            case FailedMessage():
                self.fails(tenant, failure(tenant, rank, message))

    def fails(self, tenant: Tenant, ending: Ending) -> None:
        """Let a tenant end for this reason, unless an earlier one is known."""
        tenant.ending = tenant.ending or ending
        tenant.patience = grace(tenant, tenant.ending)
        self._stop_if_done()

    def intruded(self, culprit: Tenant, ending: Ending) -> None:
        """End a tenant that has connected to another's socket, and before GO the launch with it."""
        self._kill([culprit], ending)
        self._gone(culprit)

    def rank_ended(self, tenant: Tenant, rank: Rank) -> None:
        """Handle the end of one of several ranks; before its record the others would wait for it in vain."""
        assert rank.life is not None
        self._events.forget(rank.life)
        status = rank.life.status()
        if rank.link.open:
            self._connections.listen(tenant, rank.link)
        if (ending := rank_death(tenant, rank, status)) is not None:
            reporter = tenant.ending.by if tenant.ending is not None else None
            if reporter is not None and reporter.lives:
                # The reporter lives, and has only lost its connection to this rank.
                tenant.ending = None
            self.fails(tenant, ending)

    def _exited(self, tenant: Tenant) -> None:
        """Handle the end of a tenant's first process: read counters, kill the rest, read the last messages."""
        self._events.forget(tenant.pidfd)
        for rank in tenant.ranks.values():
            if rank.life is not None and rank.life.ended:
                self.rank_ended(tenant, rank)
        self._entered(tenant)
        if self._phase is Phase.LOAD:
            # A DONE counts while its tenant is not lost: with the last one all counters are read and slices verified.
            self._read_rest(tenant)
        self._end(tenant)
        self._read_rest(tenant)
        tenant.wait()
        if tenant.status and tenant.ending is None and self._are_interrupted(tenant):
            tenant.ending = self._interruption_ending
        self._gone(tenant)

    def _read_rest(self, tenant: Tenant) -> None:
        """Read what a tenant that ends has said so far."""
        self._connections.accept(tenant)
        self._connections.read(tenant)

    def _are_interrupted(self, tenant: Tenant) -> bool:
        """Return whether a signal came to us, too: batch systems signal all processes of a job, in any order.

        If this tenant is the first to end, wait for the signal.
        """
        is_first = all(other.alive for other in self._tenants if other is not tenant)
        until_s = time.monotonic() + (SIGNAL_WAIT_S if is_first else 0.0)
        while not self.interruption.requested and time.monotonic() < until_s:
            time.sleep(SIGNAL_WAIT_S / 50)
        return self.interruption.requested is not None

    @property
    def _interruption_ending(self) -> Ending:
        return Ending("interrupted", f"Stopped by {sender_of(str(self.interruption.requested))}.")

    def _gone(self, tenant: Tenant) -> None:
        """Before GO end the others with a tenant that has ended or cannot be ended; after GO stop waiting for it."""
        if self._phase >= Phase.LOAD:
            self._stop_if_done()
        else:
            ending = ending_of(tenant, self._kills_outside())
            sentence = f"User {tenant.index} ended before GO ({ending.outcome}): {ending.message}"
            self._kill([other for other in self._tenants if other is not tenant], Ending("aborted", sentence))

    def _end_those_due(self, now_s: float, elapsed_s: float) -> None:
        if self.interruption.requested:
            self._kill(self._tenants, self._interruption_ending)
        for tenant in self._tenants:
            if tenant.patience is None or now_s < tenant.patience.until_s:
                continue
            if tenant.patience.ending is not None:
                self._kill([tenant], tenant.patience.ending)
            elif not tenant.is_killed:
                # A program that has ended by itself is not asked: its end is its own.
                tenant.ask_to_end(ASKED_LIMIT_S)
        if self._phase is not Phase.STOP:
            self._kill_each(late(self._tenants, self.limits, elapsed_s, self._phase >= Phase.LOAD))

    def _kill(self, tenants: Sequence[Tenant], ending: Ending | None = None) -> None:
        self._kill_each([(tenant, ending) for tenant in tenants])

    def _kill_each(self, endings: Sequence[tuple[Tenant, Ending | None]]) -> None:
        living = [(tenant, ending) for tenant, ending in endings if not tenant.is_killed]
        for tenant, ending in living:
            tenant.ending = tenant.ending or ending
        for tenant, _ in living:
            if not tenant.is_killed and (why := self._end(tenant)):
                tenant.give_up(why)
                self._gone(tenant)

    def _end(self, tenant: Tenant) -> str:
        """End a tenant's processes; return why one cannot be killed, "" if all are."""
        if self._phase >= Phase.ALONE or tenant.spec.follows:
            self._verify_again([tenant])
        self._wake()
        self._release([tenant])
        if not tenant.is_killed and tenant.ending is not None and tenant.ending.outcome == "timeout":
            message = f"{tenant.ending.message} {held_up(tenant)}".rstrip()
            tenant.ending = replace(tenant.ending, message=message)
        return tenant.end()

    def _verify_again(self, tenants: Sequence[Tenant]) -> None:
        """Compare slices with their plan, and processes with their slices, once more, while no tenant is timed."""
        sliced = {tenant.index: tenant for tenant in tenants if tenant.live.entry.procs_files}
        for index, family in families_of(sliced.values()).items():
            joined = {rank.link.peer for rank in sliced[index].ranks.values()}
            self._changes |= dict.fromkeys(sliced[index].live.changes(family | joined - {0}))
