"""Backends without cgroups: `affinity` binds a tenant to its processors, `none` does not bind it.

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
from cotenant.isolation.family import Family
from cotenant.isolation.processes import kill_marked, send
from cotenant.isolation.runs import RunName
from cotenant.isolation.slice import Slice
from cotenant.isolation.stopped import bind_stopped, is_still


class UnenforcedSlice(LiveSlice):
    """A slice in name only: processors by affinity, or nothing at all.

    SIGSTOP freezes the family given at the start, and all its descendants. A search for the tenant's marker in all of
    /proc would take too long at every border of a block.
    """

    def __init__(self, run: RunName, tenant: int, entry: SliceEntry) -> None:
        self.entry = entry
        self._run = str(run)
        self._tenant = tenant
        self._family = Family()

    def verify(self) -> ReadBack:
        return ReadBack()

    def counters(self) -> Counters:
        return Counters()

    @property
    def held_by(self) -> Holder | None:
        return "stopped"

    def begin(self, family: Family) -> None:
        self._family = family

    def freeze(self) -> None:
        self._family.look()
        self._signal(self._family.living(), signal.SIGSTOP)

    def frozen(self) -> bool:
        """Return whether every thread is still. A process forked just before that is sent SIGSTOP, too."""
        if not all(map(is_still, self._family.living())):
            return False
        # Stopped processes fork no more: the last look finds nothing new.
        new = self._family.look()
        self._signal(new, signal.SIGSTOP)
        return not new

    def thaw(self) -> None:
        self._signal(self._family.living(), signal.SIGCONT)

    def move(self, processors: Sequence[int]) -> None:
        if not self.entry.set_affinity:
            return
        try:
            found = bind_stopped(self._family.living(), processors)
        except OSError as error:
            raise NotIsolatedError(f"user {self._tenant} cannot be moved: {error}") from error
        if found != sorted(processors):
            raise NotIsolatedError(f"user {self._tenant} was to run on {sorted(processors)}, and is on {found}")

    def kill(self) -> None:
        kill_marked(self._run, self._tenant)

    def remove(self) -> None:
        """Do nothing: nothing was made."""

    @staticmethod
    def _signal(pids: Iterable[int], number: signal.Signals) -> None:
        for pid in pids:
            send(pid, number)


class NoIsolation(Backend):
    """Copies without any limits, as if each was just started."""

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
