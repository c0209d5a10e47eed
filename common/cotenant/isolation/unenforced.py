"""Backends without cgroups: `affinity` binds a tenant to its processors, `none` leaves it as it is.

Neither limits memory, and both find a tenant's processes by the marker in their environment.
"""

from __future__ import annotations

import signal
from collections.abc import Iterable, Sequence

from cotenant.isolation.backend import (
    Backend,
    Counters,
    Holder,
    LiveSlice,
    NotIsolatedError,
    ReadBack,
    Refusal,
    SliceEntry,
)
from cotenant.isolation.entry import entry_of
from cotenant.isolation.processes import kill_marked, marked, send
from cotenant.isolation.runs import RunName
from cotenant.isolation.slice import Slice
from cotenant.isolation.stopped import bind, children_of, is_still
from cotenant.procfs import start_ticks


class UnenforcedSlice(LiveSlice):
    """A slice in name only: processors by affinity, or nothing at all.

    SIGSTOP holds still the processes that carry the tenant's marker when they are first stopped, and their descendants
    from then on. A search by marker reads all of /proc, which is too much for every border of a block.
    """

    def __init__(self, run: RunName, tenant: int, entry: SliceEntry) -> None:
        self.entry = entry
        self._run = str(run)
        self._tenant = tenant
        self._since_ticks: dict[int, int] = {}

    def verify(self) -> ReadBack:
        return ReadBack()

    def counters(self) -> Counters:
        return Counters()

    @property
    def held_by(self) -> Holder | None:
        return "stopped"

    def freeze(self) -> None:
        self._stop(self._living or marked(self._run, self._tenant))

    def frozen(self) -> bool:
        """Whether every thread of theirs is still. Whom one has forked just before it stopped is sent SIGSTOP, too."""
        living = self._living
        if not all(map(is_still, living)):
            return False
        # Who is still forks no more: the last look finds nobody new. Nobody waits for the dead meanwhile.
        children = {child for pid in living for child in children_of(pid)}.difference(living)
        new = [pid for pid in children if start_ticks(pid) is not None]
        self._stop(new)
        return not new

    def thaw(self) -> None:
        for pid in self._living:
            send(pid, signal.SIGCONT)

    def move(self, processors: Sequence[int]) -> None:
        if not self.entry.set_affinity:
            return
        try:
            found = bind(self._living, processors)
        except OSError as error:
            raise NotIsolatedError(f"user {self._tenant} cannot be moved: {error}") from error
        if found != sorted(processors):
            raise NotIsolatedError(f"user {self._tenant} was to run on {sorted(processors)}, and is on {found}")

    def kill(self) -> None:
        kill_marked(self._run, self._tenant)

    def remove(self) -> None:
        """Nothing was made."""

    def _stop(self, pids: Iterable[int]) -> None:
        for pid in pids:
            if (ticks := start_ticks(pid)) is not None:
                self._since_ticks[pid] = ticks
                send(pid, signal.SIGSTOP)

    @property
    def _living(self) -> list[int]:
        """The processes that are known; none whose number has passed to another."""
        self._since_ticks = {pid: ticks for pid, ticks in self._since_ticks.items() if start_ticks(pid) == ticks}
        return [*self._since_ticks]


class NoIsolation(Backend):
    """Copies as they come: the case where everybody just starts."""

    name = "none"
    unenforced: tuple[str, ...] = ("processors", "nodes", "memory", "swap", "pids")

    def __init__(self) -> None:
        self._run: RunName | None = None

    def probe(self) -> Refusal | None:
        return None

    def open(self, run: RunName) -> None:
        self._run = run

    def create(self, slice_: Slice) -> UnenforcedSlice:
        assert self._run is not None
        return UnenforcedSlice(self._run, slice_.tenant, self._entry(slice_))

    def close(self) -> None:
        if self._run is not None:
            kill_marked(str(self._run))

    def _entry(self, slice_: Slice) -> SliceEntry:
        return SliceEntry()


class Affinity(NoIsolation):
    """Processors by sched_setaffinity, which a tenant could undo; memory comes from any node, without limit."""

    name = "affinity"
    unenforced: tuple[str, ...] = ("nodes", "memory", "swap", "pids")

    def _entry(self, slice_: Slice) -> SliceEntry:
        return entry_of(slice_, set_affinity=True)
