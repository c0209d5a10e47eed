"""A tenant's processes without a cgroup, and their processor time. Standard library only."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from cotenant.isolation.stopped import children_of
from cotenant.procfs import Process, process_of, start_ticks

TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")


@dataclass(slots=True)
class _Member:
    """A process of a family, as last seen.

    `own_ns` is its processor time, `inherited_ns` the time of ended children that it has waited for. `owed_ns` is time
    already counted for ended descendants while they lived: it is not counted again when it is inherited.
    """

    start_ticks: int
    parent: int
    own_ns: int = 0
    inherited_ns: int = 0
    owed_ns: int = 0

    def inherit(self, total_ns: int) -> int:
        """Take the time that its ended children used so far; return the part that is not counted yet."""
        gained_ns, self.inherited_ns = total_ns - self.inherited_ns, total_ns
        paid_ns = min(gained_ns, self.owed_ns)
        self.owed_ns -= paid_ns
        return gained_ns - paid_ns


class Family:
    """Processes, their descendants, and orphans of theirs that this process, as a subreaper, has adopted.

    The processor time is exact for processes that live, or whose parent has waited for them. For others (a parent that
    ignores SIGCHLD, an orphan that left its session and its environment unseen) it is a lower bound.
    """

    def __init__(self, pids: Iterable[int] = (), is_ours: Callable[[int], bool] = lambda pid: False) -> None:
        """`is_ours` tells whether a child of this process is an orphan of the family."""
        self._is_ours = is_ours
        self._members: dict[int, _Member] = {}
        self._used_ns = 0
        self._take({pid: process for pid in pids if (process := process_of(pid))})

    def look(self) -> list[int]:
        """Find the processes that came and went since the last look; return the new living ones."""
        members = ((pid, process_of(pid)) for pid in self._members)
        seen = {pid: process for pid, process in members if process and self._is_same(pid, process)}
        orphans = [pid for pid in children_of(os.getpid()) if pid not in seen and self._is_ours(pid)]
        seen |= {pid: process for pid in orphans if (process := process_of(pid))}
        waiting = [*seen]
        while waiting:
            for pid in children_of(waiting.pop()):
                if pid not in seen and (process := process_of(pid)):
                    seen[pid] = process
                    waiting.append(pid)
        return self._take(seen)

    def living(self) -> list[int]:
        """Return the processes known at the last look that still live."""
        return [pid for pid, member in self._members.items() if start_ticks(pid) == member.start_ticks]

    def processor_ns(self) -> int:
        """Return the time used so far by processes known at the last look, and by all before them."""
        for pid, member in self._members.items():
            try:
                # clock_getcpuclockid(3): the clock of another process, CPUCLOCK_SCHED of include/linux/posix-timers.h.
                own_ns = time.clock_gettime_ns(~pid << 3 | 2)
            except OSError:
                continue
            # If another process has taken over an ended one's number since the last look, its clock shows less.
            self._used_ns += max(0, own_ns - member.own_ns)
            member.own_ns = max(own_ns, member.own_ns)
        return self._used_ns

    def _is_same(self, pid: int, process: Process) -> bool:
        """Return whether the number still belongs to the same process."""
        return process.start_ticks == self._members[pid].start_ticks

    def _take(self, seen: dict[int, Process]) -> list[int]:
        """Make these the members; return the new living ones."""
        same = {pid for pid in self._members if pid in seen and self._is_same(pid, seen[pid])}
        self._bury(self._members.keys() - same)
        # Parents come first, also at later looks: a child that is reaped meanwhile is inherited once it is buried.
        for pid, process in sorted(seen.items(), key=lambda item: item[1].start_ticks):
            member = self._members.setdefault(pid, _Member(process.start_ticks, process.parent))
            member.parent = process.parent
            self._used_ns += member.inherit(process.waited_ticks * TICK_NS)
        return [pid for pid, process in seen.items() if pid not in same and process.state not in "ZX"]

    def _bury(self, gone: Collection[int]) -> None:
        """Forget these processes; the nearest remaining ancestor of each owes its time, which is counted already."""
        for pid in gone:
            ancestor = self._members[pid].parent
            while ancestor in gone:
                ancestor = self._members[ancestor].parent
            if (heir := self._members.get(ancestor)) is not None:
                member = self._members[pid]
                heir.owed_ns += member.own_ns + member.inherited_ns + member.owed_ns
        for pid in gone:
            del self._members[pid]
