"""One tenant of one launch as the runner sees it: its process, who of it joined, how it ended."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import socket
import stat
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cotenant.files import Directory
from cotenant.isolation.backend import Counters, LiveSlice, NotIsolatedError, ReadBack
from cotenant.isolation.entry import start
from cotenant.isolation.slice import Slice
from cotenant.launch.environment import whole_environment
from cotenant.launch.events import Life
from cotenant.launch.rendezvous import Link, Listener, Rank, TakenError
from cotenant.protocol.messages import Message, ProtocolError, rank_log
from cotenant.results.record import Side
from cotenant.suite.foreign import Foreign

LOG_TAIL_LINES = 5
LOG_TAIL_BYTES = 8192

Reason = tuple[str, str]
"""An outcome, and the sentence that explains it."""
Deadline = tuple[float, Reason | None]
"""Until when a tenant is waited for, by the monotonic clock in seconds, and why it ends then; None of one that has been
asked to end, and is measured."""


@dataclass(frozen=True, slots=True)
class DuetPlace:
    """A tenant's place in a duet: its side, and which slice it has together with one of the other side."""

    side: Side
    slice: int

    @property
    def turn(self) -> int:
        """In which of two turns it is awake: in every other slice B is where elsewhere A is."""
        return (self.side == "B") ^ (self.slice % 2)


def duet_place(tenant: int, merged: int) -> DuetPlace:
    """Return the place of a tenant where two that follow each other have one slice: A, and B; or where B, behind so
    many of A that are merged, has all of it."""
    if merged:
        return DuetPlace("B" if tenant == merged else "A", 0)
    return DuetPlace("B" if tenant % 2 else "A", tenant // 2)


@dataclass(frozen=True, slots=True)
class TenantSpec:
    """A tenant's specification: its slice, command, and its own log, directory and socket.

    `environment` is added to the caller's. Tenants of one `cell` do equal work, and measure as much. Those
    of a `duet` take turns.
    """

    slice: Slice
    command: list[str]
    environment: dict[str, str]
    log: Path
    temporary: Path
    socket: Path
    cell: str = ""
    foreign: Foreign | None = None
    """The program of `exec`, which knows nothing of STOP."""
    duet: DuetPlace | None = None


@dataclass(slots=True)
class Tenant:
    """The state of one tenant; only the launch changes it. `reason` is why it failed: the first that was known.

    `stuck` is why it, or something in its slice, could not be killed: nobody waits for it any more.
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
    """When a program that knows nothing of STOP is asked to end; None where it is not, or has been."""
    is_asked: bool = False
    status: int | None = None
    before: Counters = field(default_factory=Counters)
    after: Counters = field(default_factory=Counters)
    origin: dict[str, Any] = field(default_factory=dict)
    """The files and variables that its interpreter started with (`origin_of`)."""

    @property
    def index(self) -> int:
        return self.spec.slice.tenant

    @property
    def alive(self) -> bool:
        return self.status is None and not self.stuck

    @property
    def lost(self) -> bool:
        """It will not finish: it has ended, it fails, or it is being killed."""
        return not self.alive or self.killed or self.reason is not None

    @property
    def joined(self) -> bool:
        return bool(self.ranks)

    @property
    def finishes(self) -> bool:
        """It may go on to its own end behind STOP."""
        return self.spec.foreign is not None and self.spec.foreign.finish

    @property
    def several(self) -> bool:
        """It is of several processes, which wait for each other."""
        return any(rank.world > 1 for rank in self.ranks.values())

    def all_ranks(self, what: str) -> bool:
        """Have all ranks of its world on this host sent `what` (ready, done, record)?"""
        if not self.ranks:
            return False
        first = next(iter(self.ranks.values()))
        here = first.world - first.elsewhere
        return len(self.ranks) == here and all(getattr(rank, what) not in (None, False) for rank in self.ranks.values())

    def join(self, link: Link, hello: Message) -> Rank:
        """Return the rank that this connection's first message makes it. Raises ProtocolError."""
        if hello.kind != "hello":
            raise ProtocolError(f"'{hello.kind}' before hello")
        index, number, world = (hello.fields[name] for name in ("tenant", "rank", "world"))
        if index != self.index:
            raise ProtocolError(f"hello as user {index}, which it is not")
        elsewhere = hello.fields.get("elsewhere", 0)
        alike = all((rank.world, rank.elsewhere) == (world, elsewhere) for rank in self.ranks.values())
        if not 0 <= number < world or not alike:
            raise ProtocolError(f"hello as rank {number} of {world}, which does not fit its other ranks")
        if number in self.ranks:
            raise TakenError(f"a second hello as rank {number}: RANK and WORLD_SIZE tell processes apart")
        # A tenant of one process ends with it, which is seen on our own child.
        life = Life.of(link.peer) if world > 1 else None
        rank = link.rank = self.ranks[number] = Rank(link, number, world, life, elsewhere=elsewhere)
        return rank

    def entry_report(self) -> str:
        """Return its report while it enters its slice: `in`, or why it cannot; "" without any news."""
        try:
            return self.channel.recv(4096).decode(errors="replace").strip()
        except OSError:
            return ""

    def release(self) -> None:
        """Let it become the benchmark; one that is gone is seen on its pidfd."""
        with contextlib.suppress(OSError):
            self.channel.send(b"1")

    def ask_to_end(self) -> None:
        """Send SIGTERM to its first process, which passes it on; who is gone is seen on its pidfd."""
        self.asked_at_s, self.is_asked = None, True
        with contextlib.suppress(OSError):
            signal.pidfd_send_signal(self.pidfd, signal.SIGTERM)

    def kill(self) -> None:
        """Kill all of it, one that is not in its slice yet and a child without our marker included.

        Raises NotIsolatedError.
        """
        if self.alive:
            # A process that has become another user's is left to the slice's kill.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
        self.live.kill()

    def end(self) -> None:
        """Read the peaks of its processes, and kill them; running counters were read at the last DONE, if it came.

        Where some cannot be killed its neighbours' numbers are as good as any: `leave` raises once those are kept.
        """
        self.after = self.live.counters().at_end(self.after)
        self.killed = True
        try:
            self.kill()
        except NotIsolatedError as error:
            self.stuck = str(error)

    def leave(self) -> None:
        """Kill the rest of it and close every descriptor. Raises NotIsolatedError."""
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
        """Return the last lines of its log, or of the log of one of its ranks that writes its own, in one line."""
        own = rank_log(self.spec.log, rank).name
        log = own if self.logs.kind_of(own) else self.spec.log.name
        text = log_end(self.logs, log, LOG_TAIL_BYTES)
        return " | ".join([line.strip() for line in text.splitlines() if line.strip()][-LOG_TAIL_LINES:])


def start_tenant(
    spec: TenantSpec, live: LiveSlice, read_back: ReadBack, logs: Directory, shm_of: Path | None = None
) -> Tenant:
    """Start one tenant; it enters the slice and waits for a byte on the channel. Raises NotIsolatedError, OSError.

    Its log is made in `logs`. `shm_of`: a mount namespace whose /dev/shm it shares.
    """
    # A tenant of an earlier launch may have removed them.
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
            entry = dataclasses.replace(live.entry, shm_of=shm_of)
            process = start(entry, theirs.fileno(), log.fileno(), spec.command, environment)
        ours.setblocking(False)
        undo.pop_all()
    return Tenant(spec, live, read_back, process, ours, os.pidfd_open(process.pid), listener, logs)


def _rank_logs(log: Path, logs: Directory) -> list[str]:
    """Return the logs that the ranks of an earlier repetition of the same number have left."""
    beginning, _, end = rank_log(log, 1).name.rpartition("1")
    return [name for name in logs.names() if name.startswith(beginning) and name.endswith(end)]


def signal_name(status: int) -> str:
    """Return an exit status as a person would put it."""
    if status >= 0:
        return f"exit status {status}"
    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"killed by signal {-status}"


def log_end(logs: Directory, name: str, limit_bytes: int) -> str:
    """Return at most so many of the last bytes as text, nothing where the log cannot be read."""
    try:
        with logs.open(name) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - limit_bytes))
            return file.read().decode(errors="replace")
    except OSError:
        return ""
