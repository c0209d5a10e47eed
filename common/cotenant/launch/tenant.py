"""One tenant of one launch as the runner sees it: its process, what it said, how it ended."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cotenant.isolation import enter
from cotenant.isolation.backend import Counters, LiveSlice, ReadBack
from cotenant.isolation.plan import Slice
from cotenant.launch.rendezvous import Link

LOG_TAIL_LINES = 5
LOG_TAIL_BYTES = 8192


@dataclass(slots=True)
class Rank:
    """One process of a tenant that joined the rendezvous."""

    link: Link
    world: int
    ready: dict[str, Any] | None = None
    ready_ns: int = 0
    observations: list[dict[str, Any]] = field(default_factory=list)
    done: bool = False
    record: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Order:
    """What a tenant is to be: its slice, command, whole environment, log and directory for temporary files."""

    slice: Slice
    command: list[str]
    environment: dict[str, str]
    log: Path
    temporary: Path


@dataclass(slots=True)
class Tenant:
    """The state of one tenant; only the launch changes it."""

    order: Order
    live: LiveSlice
    read_back: ReadBack
    process: subprocess.Popen[bytes]
    channel: socket.socket
    pidfd: int
    entered: bool = False
    released: bool = False
    ranks: dict[int, Rank] = field(default_factory=dict)
    failure: tuple[str, str] | None = None
    killed_for: tuple[str, str] | None = None
    status: int | None = None
    before: Counters = field(default_factory=Counters)
    after: Counters = field(default_factory=Counters)
    deadline_s: float | None = None

    @property
    def index(self) -> int:
        return self.order.slice.tenant

    @property
    def alive(self) -> bool:
        return self.status is None

    @property
    def lost(self) -> bool:
        """It will not finish: it has ended, said that it fails, or is being killed."""
        return not self.alive or self.failure is not None or self.killed_for is not None

    @property
    def joined(self) -> bool:
        return bool(self.ranks)

    def all_ranks(self, what: str) -> bool:
        """Have all ranks of its world said `what` (ready, done, record)?"""
        if not self.ranks:
            return False
        world = next(iter(self.ranks.values())).world
        return len(self.ranks) == world and all(
            getattr(rank, what) not in (None, False) for rank in self.ranks.values()
        )

    def log_tail(self) -> str:
        """Return the last lines of its log, in one line."""
        try:
            with self.order.log.open("rb") as file:
                file.seek(max(0, self.order.log.stat().st_size - LOG_TAIL_BYTES))
                text = file.read().decode(errors="replace")
        except OSError:
            return ""
        return " | ".join([line.strip() for line in text.splitlines() if line.strip()][-LOG_TAIL_LINES:])

    def reap(self) -> None:
        """Take the exit status of a process that has ended."""
        self.status = self.process.wait()


def start_tenant(order: Order, live: LiveSlice, read_back: ReadBack) -> Tenant:
    """Start the shim of one tenant; it enters the slice and waits for a byte on the channel."""
    ours, theirs = socket.socketpair()
    entry = live.entry
    mode = "FREE" if entry.processors is None else "SET" if entry.set_affinity else "CHECK"
    shim = [
        sys.executable,
        "-I",
        "-S",
        enter.__file__,
        str(theirs.fileno()),
        str(os.getpid()),
        mode,
        ",".join(map(str, entry.processors or ())),
        *map(str, entry.procs_files),
        "--",
        *order.command,
    ]
    order.temporary.mkdir(parents=True, exist_ok=True)
    order.log.unlink(missing_ok=True)
    with theirs, order.log.open("wb") as log:
        process = subprocess.Popen(
            shim,
            env=order.environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )
    ours.setblocking(False)
    return Tenant(order, live, read_back, process, ours, os.pidfd_open(process.pid))


def signal_name(status: int) -> str:
    """Say an exit status as a person would."""
    return f"killed by {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
