"""One tenant of one launch as the runner sees it: its process, the ranks that joined, its end."""

from __future__ import annotations

import contextlib
import enum
import os
import signal
import socket
import stat
import subprocess
import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from cotenant.files import Directory
from cotenant.isolation.backend import Counters, LiveSlice, NotIsolatedError, ReadBack
from cotenant.isolation.entry import start_entry
from cotenant.isolation.family import Family
from cotenant.isolation.processes import families, is_of
from cotenant.isolation.slice import Slice
from cotenant.launch.endings import MEASURED, Ending, Patience
from cotenant.launch.environment import whole_environment
from cotenant.launch.events import Life
from cotenant.launch.inbox import HelloMessage, TenantMessage
from cotenant.launch.rank import Rank, RankPhase
from cotenant.launch.rendezvous import Link, Listener, TakenError
from cotenant.procfs import described, process_of, status_of
from cotenant.protocol.messages import RUN_VARIABLE, ProtocolError, rank_log
from cotenant.suite.foreign import Foreign

LOG_TAIL_LINES = 5
BETWEEN_LINES = " | "
LOG_TAIL_BYTES = 8192


class TenantPhase(enum.IntEnum):
    """The progress of a tenant: it enters its slice, runs, has been killed, and has ended, or cannot be ended."""

    ENTERING = 0
    RUNNING = 1
    KILLED = 2
    ENDED = 3


@dataclass(frozen=True, slots=True)
class TenantSpec:
    """A tenant's specification: its slice, command, and its own log, directory and socket.

    `environment` is added to the caller's. Tenants of one `cell` do equal work, and measure equal amounts.
    """

    slice: Slice
    command: list[str]
    environment: dict[str, str]
    log: Path
    temporary: Path
    socket: Path
    cell: str = ""
    foreign: Foreign | None = None
    """The program of `exec`, which does not know STOP."""
    follows: bool | None = None
    """True if rank 0 is on another of several nodes, so that this runner hears nothing; None on a single host."""


@dataclass(slots=True)
class Tenant:
    """The state of one tenant, which only the launch changes."""

    spec: TenantSpec
    live: LiveSlice
    read_back: ReadBack
    process: subprocess.Popen[bytes]
    channel: socket.socket
    pidfd: int
    listener: Listener
    logs: Directory
    phase: TenantPhase = TenantPhase.ENTERING
    links: list[Link] = field(default_factory=list)
    ranks: dict[int, Rank] = field(default_factory=dict)
    ending: Ending | None = None
    """The first known reason of its end; its exit status may give another."""
    patience: Patience | None = None
    """The moment until which it is waited for; None if only the launch's limits end it."""
    status: int | None = None
    """Its first process's exit status; None if it has not ended."""
    before: Counters = field(default_factory=Counters)
    after: Counters = field(default_factory=Counters)

    @property
    def index(self) -> int:
        return self.spec.slice.tenant

    @property
    def alive(self) -> bool:
        """True while it is waited for: it has not ended, and is not known to be impossible to end."""
        return self.phase < TenantPhase.ENDED

    @property
    def is_killed(self) -> bool:
        return self.phase >= TenantPhase.KILLED

    @property
    def lost(self) -> bool:
        """True if it will not finish: it has ended, it fails, or it is being killed."""
        return self.is_killed or self.ending is not None

    @property
    def joined(self) -> bool:
        return bool(self.ranks)

    @property
    def several(self) -> bool:
        """True if it has several processes, which wait for each other."""
        return any(rank.world > 1 for rank in self.ranks.values())

    @property
    def returns(self) -> bool:
        """True if its program is restarted when it ends before it is measured."""
        return self.spec.foreign is not None and self.spec.foreign.again

    def all_ranks(self, phase: RankPhase) -> bool:
        """Return whether all its ranks on this host have come to this phase."""
        if not self.ranks:
            return False
        first = next(iter(self.ranks.values()))
        here = first.world - first.elsewhere
        return len(self.ranks) == here and all(rank.has_come_to(phase) for rank in self.ranks.values())

    def rank_of(self, link: Link) -> Rank | None:
        """Return the rank that a connection has; None before its hello."""
        return next((rank for rank in self.ranks.values() if rank.link is link), None)

    def join(self, link: Link, hello: TenantMessage) -> Rank:
        """Return the rank that a connection gets by its first message. Raises ProtocolError."""
        if not isinstance(hello, HelloMessage):
            raise ProtocolError(f"'{hello.__struct_config__.tag}' before hello")
        if hello.tenant != self.index:
            raise ProtocolError(f"hello as user {hello.tenant}, which it is not")
        number, world, elsewhere = hello.rank, hello.world, hello.elsewhere
        if any((rank.world, rank.elsewhere) != (world, elsewhere) for rank in self.ranks.values()):
            raise ProtocolError(f"hello as rank {number} of {world}, which does not fit its other ranks")
        rank = self.ranks.get(number)
        if rank is not None and self.returns and hello.start > rank.starts and _may_follow(link, rank):
            self.links.remove(rank.link)
            rank.rejoin(link, hello.start)
            link.joined = True
            return rank
        if rank is not None:
            raise TakenError(f"a second hello as rank {number}: RANK and WORLD_SIZE tell processes apart")
        # A tenant of one process ends with that process, which the pidfd of our own child shows.
        life = Life.of(link.peer) if world > 1 else None
        link.joined = True
        rank = self.ranks[number] = Rank(link, number, world, life, elsewhere, starts=hello.start)
        return rank

    def entry_report(self) -> str:
        """Return its report while it enters its slice: `in`, or why it cannot; "" if there is none."""
        try:
            return self.channel.recv(4096).decode(errors="replace").strip()
        except OSError:
            return ""

    def release(self) -> None:
        """Let it become the benchmark; if it has ended, its pidfd shows that."""
        with contextlib.suppress(OSError):
            self.channel.send(b"1")

    def ask_to_end(self, limit_s: float) -> None:
        """Send SIGTERM to its first process, which passes it on; if it has ended, its pidfd shows that."""
        self.ending = self.ending or MEASURED
        self.patience = Patience(time.monotonic() + limit_s, self.ending)
        with contextlib.suppress(OSError):
            signal.pidfd_send_signal(self.pidfd, signal.SIGTERM)

    def kill(self) -> None:
        """Kill all its processes, including one that is not in its slice yet, and a child without our marker.

        Raises NotIsolatedError.
        """
        if self.status is None:
            # A process that has become another user's is left to the slice's kill.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
        self.live.kill()

    def end(self) -> str:
        """Read the peaks of its processes, and kill them; running counters were read at the last DONE, if it came.

        Return why one cannot be killed; "" if all are. The neighbours' numbers still count: `leave` raises after they
        are kept.
        """
        self.after = self.live.counters().at_end(self.after)
        self.phase = TenantPhase.KILLED
        try:
            self.kill()
        except NotIsolatedError as error:
            return str(error)
        return ""

    def give_up(self, why: str) -> None:
        """Stop waiting for it: it cannot be ended."""
        self.phase = TenantPhase.ENDED
        self.ending = self.ending or Ending("failed", f"It could not be ended: {why}.")

    def wait(self) -> None:
        """Wait for the end of its first process."""
        self.status, self.phase = self.process.wait(), TenantPhase.ENDED

    def leave(self) -> None:
        """Kill the rest of its processes and close every descriptor. Raises NotIsolatedError."""
        self.listener.close()
        for link in self.links:
            link.close()
        for rank in self.ranks.values():
            if rank.life is not None:
                rank.life.close()
        self.channel.close()
        os.close(self.pidfd)
        self.kill()
        self.wait()

    def log_tail(self, rank: int = 0) -> str:
        """Return the last lines of its log, or of the rank's own log if there is one, as one line.

        The numbers of ranks that follow another node are unknown: the first one's log is read.
        """
        rank_log_name = rank_log(self.spec.log, rank).name
        if self.spec.follows:
            rank_log_name = min(_rank_logs(self.spec.log, self.logs), default=rank_log_name)
        log = rank_log_name if self.logs.kind_of(rank_log_name) else self.spec.log.name
        text = log_end(self.logs, log, LOG_TAIL_BYTES)
        return BETWEEN_LINES.join([line.strip() for line in text.splitlines() if line.strip()][-LOG_TAIL_LINES:])


def start_tenant(spec: TenantSpec, live: LiveSlice, read_back: ReadBack, logs: Directory) -> Tenant:
    """Start one tenant; it enters the slice and waits for a byte on the channel. Raises NotIsolatedError, OSError.

    Its log is made in `logs`.
    """
    # A tenant of an earlier launch may have removed these directories.
    spec.socket.parent.mkdir(mode=0o700, exist_ok=True)
    spec.temporary.mkdir(parents=True, exist_ok=True)
    for old in (spec.log.name, *_rank_logs(spec.log, logs)):
        if logs.kind_of(old) == stat.S_IFDIR:
            logs.set_aside(old)
        logs.remove(old)
    with contextlib.ExitStack() as undo:
        listener = Listener(spec.socket)
        undo.callback(listener.close)
        ours, theirs = socket.socketpair()
        undo.callback(ours.close)
        with theirs, logs.open(spec.log.name, "xb") as log:
            environment = whole_environment(spec.environment, spec.slice)
            process = start_entry(live.entry, theirs.fileno(), log.fileno(), spec.command, environment)
        ours.setblocking(False)
        undo.pop_all()
    return Tenant(spec, live, read_back, process, ours, os.pidfd_open(process.pid), listener, logs)


def _may_follow(link: Link, rank: Rank) -> bool:
    """Return whether a process may replace a rank's own: that has ended, is the only rank and not measured yet, and
    both are equally certain to be the tenant's. A child that it has forked may still hold its connection."""
    process = process_of(rank.link.peer)
    lives = rank.link.open and (not rank.link.peer or (process is not None and process.state not in "ZX"))
    return not lives and rank.phase < RankPhase.DONE and rank.world == 1 and link.claim is rank.link.claim


def ranks_of(tenants: Iterable[Tenant]) -> list[Rank]:
    """Return all ranks of these tenants that have joined."""
    return [rank for tenant in tenants for rank in tenant.ranks.values()]


def say_enough(tenants: Iterable[Tenant]) -> None:
    """Let these tenants end their observations. A tenant of several ranks is not told: one more observation on some of
    its ranks would hang their collectives."""
    for rank in ranks_of(tenant for tenant in tenants if not tenant.several):
        rank.say_enough()


def families_of(tenants: Collection[Tenant]) -> dict[int, set[int]]:
    """Return the living processes of each of these tenants of one launch, by its number."""
    if not tenants:
        return {}
    run = next(iter(tenants)).spec.environment.get(RUN_VARIABLE, "")
    return families({tenant.index: tenant.process.pid for tenant in tenants}, run)


def followed(tenants: Collection[Tenant]) -> dict[int, Family]:
    """Return the family of each of these tenants of one launch, which finds later processes, too."""

    def family(tenant: Tenant) -> Family:
        run = tenant.spec.environment.get(RUN_VARIABLE, "")
        return Family(pids[tenant.index], lambda pid: is_of(pid, tenant.process.pid, run, tenant.index))

    pids = families_of(tenants)
    return {tenant.index: family(tenant) for tenant in tenants}


def held_up(tenant: Tenant) -> str:
    """Return a sentence on a process of this tenant that another program stops; "" without one."""
    for pid in sorted(families_of([tenant])[tenant.index]):
        process, tracer = process_of(pid), int(status_of(pid).get("TracerPid", "0"))
        if tracer:
            return f"Its process {described(pid)} was traced by {described(tracer)}: detach that from it."
        if process is not None and process.state == "T":
            return f"Its process {described(pid)} was stopped (state T): find the program that sends it such a signal."
    return ""


def _rank_logs(log: Path, logs: Directory) -> list[str]:
    """Return the names of logs of a tenant's ranks, perhaps from an earlier repetition."""
    beginning, _, end = rank_log(log, 1).name.rpartition("1")
    return [name for name in logs.names() if name.startswith(beginning) and name.endswith(end)]


def signal_name(status: int) -> str:
    """Return an exit status in words."""
    if status >= 0:
        return f"exit status {status}"
    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"killed by signal {-status}"


def log_end(logs: Directory, name: str, limit_bytes: int) -> str:
    """Return at most `limit_bytes` of the end of a log as text; "" if it cannot be read."""
    try:
        with logs.open(name) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - limit_bytes))
            return file.read().decode(errors="replace")
    except OSError:
        return ""
