"""One tenant of one launch as the runner sees it: its process, the ranks that joined, its end."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import stat
import subprocess
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from cotenant.files import Directory
from cotenant.isolation.backend import Counters, LiveSlice, NotIsolatedError, ReadBack
from cotenant.isolation.entry import start
from cotenant.isolation.processes import families
from cotenant.isolation.slice import Slice
from cotenant.launch.environment import whole_environment
from cotenant.launch.events import Life
from cotenant.launch.rendezvous import Link, Listener, Rank, TakenError
from cotenant.procfs import described, process_of, status_of
from cotenant.protocol.messages import RUN_VARIABLE, Message, ProtocolError, rank_log
from cotenant.results.record import Side
from cotenant.suite.foreign import Foreign

LOG_TAIL_LINES = 5
BETWEEN_LINES = " | "
LOG_TAIL_BYTES = 8192

Reason = tuple[str, str]
"""An outcome, and the sentence that explains it."""
Deadline = tuple[float, Reason | None]
"""The time, in seconds of the monotonic clock, until which a tenant is waited for, and the reason of its end then; None
for a tenant that has been asked to end after it was measured."""


@dataclass(frozen=True, slots=True)
class DuetPlace:
    """A tenant's place in a duet: its side, and the number of the slice that it shares with one of the other side."""

    side: Side
    slice: int

    @property
    def turn(self) -> int:
        """The turn, 0 or 1, in which it is awake: in slices with odd numbers B has the turn of A in the others."""
        return (self.side == "B") ^ (self.slice % 2)


def duet_place(tenant: int) -> DuetPlace:
    """Return the place of a tenant: two consecutive ones share a slice as A and B."""
    return DuetPlace("B" if tenant % 2 else "A", tenant // 2)


@dataclass(frozen=True, slots=True)
class TenantSpec:
    """A tenant's specification: its slice, command, and its own log, directory and socket.

    `environment` is added to the caller's. Tenants of one `cell` do equal work, and measure equal amounts. Those of a
    `duet` take turns.
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
    duet: DuetPlace | None = None
    follows: bool | None = None
    """Whether rank 0 is on another of several nodes, so that this runner hears nothing; None on a single host."""


@dataclass(slots=True)
class Tenant:
    """The state of one tenant, which only the launch changes. `reason` is the first known reason of its failure.

    `stuck` is why a process in its slice could not be killed; the launch then waits for it no longer.
    """

    spec: TenantSpec
    live: LiveSlice
    read_back: ReadBack
    process: subprocess.Popen[bytes]
    channel: socket.socket
    pidfd: int
    listener: Listener
    logs: Directory
    entered: bool = False
    links: list[Link] = field(default_factory=list)
    ranks: dict[int, Rank] = field(default_factory=dict)
    reason: Reason | None = None
    killed: bool = False
    stuck: str = ""
    deadline: Deadline | None = None
    asked_at_s: float | None = None
    """When a program that does not know STOP gets SIGTERM; None if it does not, or has got it."""
    is_asked: bool = False
    status: int | None = None
    before: Counters = field(default_factory=Counters)
    after: Counters = field(default_factory=Counters)

    @property
    def index(self) -> int:
        return self.spec.slice.tenant

    @property
    def alive(self) -> bool:
        return self.status is None and not self.stuck

    @property
    def lost(self) -> bool:
        """Whether it will not finish: it has ended, it fails, or it is being killed."""
        return not self.alive or self.killed or self.reason is not None

    @property
    def joined(self) -> bool:
        return bool(self.ranks)

    @property
    def several(self) -> bool:
        """Whether it has several processes, which wait for each other."""
        return any(rank.world > 1 for rank in self.ranks.values())

    @property
    def returns(self) -> bool:
        """Whether its program is started again when it ends before it is measured."""
        return self.spec.foreign is not None and self.spec.foreign.again

    def all_ranks(self, what: str) -> bool:
        """Return whether all its ranks on this host have sent this message (ready, done, record)."""
        if not self.ranks:
            return False
        first = next(iter(self.ranks.values()))
        here = first.world - first.elsewhere
        return len(self.ranks) == here and all(getattr(rank, what) not in (None, False) for rank in self.ranks.values())

    def join(self, link: Link, hello: Message) -> Rank:
        """Return the rank that a connection gets by its first message. Raises ProtocolError."""
        if hello.kind != "hello":
            raise ProtocolError(f"'{hello.kind}' before hello")
        index, number, world = (hello.fields[name] for name in ("tenant", "rank", "world"))
        if index != self.index:
            raise ProtocolError(f"hello as user {index}, which it is not")
        elsewhere, start = hello.fields.get("elsewhere", 0), hello.fields.get("start", 1)
        # Not every hello has these fields, so that their types are not checked yet.
        if not isinstance(start, int):
            raise ProtocolError(f"hello of the start {start!r:.40}")
        if not isinstance(elsewhere, int) or not 0 <= elsewhere < world:
            raise ProtocolError(f"hello with {elsewhere!r:.40} of {world} ranks elsewhere")
        alike = all((rank.world, rank.elsewhere) == (world, elsewhere) for rank in self.ranks.values())
        if not 0 <= number < world or not alike:
            raise ProtocolError(f"hello as rank {number} of {world}, which does not fit its other ranks")
        if number in self.ranks:
            rank = self.ranks[number]
            if self.returns and start > rank.start and _may_follow(link, rank):
                self.links.remove(rank.link)
                rank.rejoin(link, start)
                return rank
            raise TakenError(f"a second hello as rank {number}: RANK and WORLD_SIZE tell processes apart")
        # A tenant of one process ends with it, which the pidfd of our own child shows.
        life = Life.of(link.peer) if world > 1 else None
        rank = link.rank = self.ranks[number] = Rank(link, number, world, life, elsewhere=elsewhere, start=start)
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

    def ask_to_end(self) -> None:
        """Send SIGTERM to its first process, which passes it on; if it has ended, its pidfd shows that."""
        self.asked_at_s, self.is_asked = None, True
        with contextlib.suppress(OSError):
            signal.pidfd_send_signal(self.pidfd, signal.SIGTERM)

    def kill(self) -> None:
        """Kill all its processes, also one that is not in its slice yet, and a child without our marker.

        Raises NotIsolatedError.
        """
        if self.alive:
            # A process that has become another user's is left to the slice's kill.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
        self.live.kill()

    def end(self) -> None:
        """Read the peaks of its processes, and kill them; running counters were read at the last DONE, if it came.

        If one cannot be killed, the neighbours' numbers still count: `leave` raises after they are kept.
        """
        self.after = self.live.counters().at_end(self.after)
        self.killed = True
        try:
            self.kill()
        except NotIsolatedError as error:
            self.stuck = str(error)

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
        self.status = self.process.wait()

    def log_tail(self, rank: int = 0) -> str:
        """Return the last lines of its log, or of the rank's own log if there is one, as one line.

        Ranks that follow one on another node are not known by their numbers: it is that of the first.
        """
        own = rank_log(self.spec.log, rank).name
        if self.spec.follows:
            own = min(_rank_logs(self.spec.log, self.logs), default=own)
        log = own if self.logs.kind_of(own) else self.spec.log.name
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
            process = start(live.entry, theirs.fileno(), log.fileno(), spec.command, environment)
        ours.setblocking(False)
        undo.pop_all()
    return Tenant(spec, live, read_back, process, ours, os.pidfd_open(process.pid), listener, logs)


def _may_follow(link: Link, rank: Rank) -> bool:
    """Whether a process may take the place of a rank's own: that has ended, is not measured yet, and was no better
    known to be the tenant's. A child that the ended process has forked may still hold its connection."""
    process = process_of(rank.link.peer)
    lives = rank.link.open and (not rank.link.peer or (process is not None and process.state not in "ZX"))
    return not (lives or rank.done or rank.failed or rank.world > 1) and link.claim is rank.link.claim


def ranks_of(tenants: Iterable[Tenant]) -> list[Rank]:
    """Return all ranks of these tenants that have joined."""
    return [rank for tenant in tenants for rank in tenant.ranks.values()]


def say_enough(tenants: Iterable[Tenant]) -> None:
    """Let these tenants end their observations. One of several ranks is not told: another observation on some of its
    ranks would hang their collectives."""
    for rank in ranks_of(tenant for tenant in tenants if not tenant.several):
        if not rank.done:
            rank.enough = True
            rank.link.send("enough")


def families_of(tenants: Collection[Tenant]) -> dict[int, set[int]]:
    """Return the living processes of each of these tenants of one launch, by its number."""
    if not tenants:
        return {}
    run = next(iter(tenants)).spec.environment.get(RUN_VARIABLE, "")
    return families({tenant.index: tenant.process.pid for tenant in tenants}, run)


def held_up(tenant: Tenant) -> str:
    """Return a sentence on a process of this tenant that another program holds; "" without one."""
    for pid in sorted(families_of([tenant])[tenant.index]):
        process, tracer = process_of(pid), int(status_of(pid).get("TracerPid", "0"))
        if tracer:
            return f"Its process {described(pid)} was traced by {described(tracer)}: detach that from it."
        if process is not None and process.state == "T":
            return f"Its process {described(pid)} was stopped (state T): find the program that sends it such a signal."
    return ""


def _rank_logs(log: Path, logs: Directory) -> list[str]:
    """Return the logs that ranks have left in an earlier repetition with the same number."""
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
