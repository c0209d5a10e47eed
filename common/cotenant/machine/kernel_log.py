"""The kernel's own account of whom it killed for memory, and for whose limit: its log, where that may be read.

Counters cannot say it: a full NUMA node and a full host raise a slice's `oom_kill`, too, and a peak at the limit is
as reading a large file does. The line is that of `dump_oom_summary` in the kernel's mm/oom_kill.c (since 5.0).
"""

from __future__ import annotations

import contextlib
import os
import re
from dataclasses import dataclass
from pathlib import Path

from cotenant.procfs import parse_list

RECORD_BYTES = 8192
_SUMMARY = re.compile(
    r";oom-kill:constraint=CONSTRAINT_(?P<constraint>\w+),nodemask=(?P<nodemask>[^=]*),cpuset=[^=]*,"
    r"mems_allowed=(?P<allowed>[-,\d]*)(,oom_memcg=(?P<limited>[^,]*))?(,global_oom)?,"
    r"task_memcg=(?P<victim>.*),task=.*,pid=(?P<pid>\d+),uid=\d+$"
)


@dataclass(frozen=True, slots=True)
class MemoryKill:
    """One process killed for memory. Cgroups are paths from the root of their hierarchy, as the kernel names them.

    `limited` is the cgroup whose limit was reached; None where no limit was, but `nodes` (empty: all) were full.
    `pid` is of the host's own namespace.
    """

    pid: int
    victim: str
    limited: str | None
    nodes: tuple[int, ...] = ()


class KernelLog:
    """The log from the moment of opening. Without the right to read it there is nothing in it.

    That a kill is not in it says nothing: the kernel logs at most ten in five seconds, and its ring overwrites itself.
    """

    def __init__(self, path: Path = Path("/dev/kmsg")) -> None:
        self._descriptor: int | None = None
        with contextlib.suppress(OSError):
            self._descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            os.lseek(self._descriptor, 0, os.SEEK_END)

    def kills(self) -> list[MemoryKill]:
        """Return the kills that were logged since the last call."""
        kills: list[MemoryKill] = []
        while self._descriptor is not None:
            try:
                record = os.read(self._descriptor, RECORD_BYTES)
            except BrokenPipeError:  # Records were overwritten before we read them; the next read has the oldest left.
                continue
            except OSError:
                break
            if not record:
                break
            if (kill := parse_kill(record.decode(errors="replace"))) is not None:
                kills.append(kill)
        return kills

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def parse_kill(record: str) -> MemoryKill | None:
    """Return the kill that a record of the log reports, or None where it is another record."""
    match = _SUMMARY.search(record.partition("\n")[0])
    if match is None:
        return None
    nodes: tuple[int, ...] = ()
    if match["constraint"] == "CPUSET":
        nodes = parse_list(match["allowed"])
    elif match["constraint"] == "MEMORY_POLICY":
        nodes = parse_list(match["nodemask"])
    limited = match["limited"] if match["constraint"] == "MEMCG" else None
    return MemoryKill(int(match["pid"]), match["victim"], limited, nodes)
