"""The conductor of a launch by blocks: it freezes and thaws tenants at borders, and records the times.

The runner's own loop calls it, so that no tenant is frozen without the knowledge of the code that kills tenants.
"""

from __future__ import annotations

import contextlib
import random
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from cotenant.isolation.backend import NotIsolatedError
from cotenant.isolation.slice import Slice
from cotenant.launch.duet import DuetSchedule
from cotenant.launch.schedule import ALL, HOME, LATEST_NS, ONLY, TURN, WARM_UP_ROUNDS, Block, Passed, Schedule
from cotenant.launch.tenant import Tenant
from cotenant.stats.kept import Spent

HELD_WITHIN_NS = 2_000_000_000
"""A process in a driver's call stops when the call returns; a tenant that takes longer than this makes a block void."""
POLL_S = 0.0002
REST = "rest"
"""The kind of a block for a tenant that is frozen in it."""


@dataclass(slots=True)
class Conducted:
    """A schedule as it was carried out: its blocks in order, the times of borders, each tenant's use of processors.

    `complete` says whether it went through all planned blocks. `spent` is by tenant and by the tenants that ran, and
    empty if processor time is not counted. `unheld` says how often each tenant was not frozen in time. `members` are
    the tenants whose meeting is evaluated: one pair of several, else all.
    """

    schedule: Schedule
    held_by: str
    members: frozenset[int]
    complete: bool = False
    processor_ns: int = 0
    """The runner's processor time that conducting took."""
    passed: list[Passed] = field(default_factory=list)
    borders_ns: list[int] = field(default_factory=list)
    spent: dict[int, dict[frozenset[int], Spent]] = field(default_factory=dict)
    unheld: Counter[int] = field(default_factory=Counter)

    def spent_of(self, tenant: int) -> dict[str, Spent]:
        """Return a tenant's use of processors by kind of block: beside all other members, alone, and at rest."""
        kinds: dict[str, Spent] = {}
        for awake, spent in self.spent.get(tenant, {}).items():
            if kind := self._kind(awake, tenant):
                kinds.setdefault(kind, Spent()).add(spent.processor_ns, spent.lasted_ns)
        return kinds

    def _kind(self, awake: frozenset[int], tenant: int) -> str:
        if tenant not in awake:
            return REST
        if awake == self.members:
            return ALL
        if isinstance(self.schedule, DuetSchedule):
            return TURN
        return ONLY if len(awake) == 1 else ""


class Conductor:
    """Takes a launch's tenants through the blocks of a schedule from t0 on, each to the slot that a block gives it.

    `over` is true after the last block; `stop` lets all tenants go on at once, in their own slices, at any moment. It
    stops by itself if a tenant cannot be moved: `unmoved` is that tenant's number, and the reason.
    """

    def __init__(
        self,
        schedule: Schedule,
        tenants: Collection[Tenant],
        t0_ns: int,
        count: Callable[[], Mapping[int, int]],
        chance: random.Random | None = None,
        clock_ns: Callable[[], int] = time.perf_counter_ns,
        slots: Sequence[Slice] = (),
    ) -> None:
        """`count` returns each tenant's processor time in ns, without those whose time is not counted."""
        self._tenants = {tenant.index: tenant for tenant in tenants}
        self._slots = slots
        self._at = dict.fromkeys(self._tenants, HOME)
        self._chance = chance or random.SystemRandom()
        blocks = [*schedule.blocks(self._chance)]
        self._blocks, self._planned = iter(blocks), len(blocks)
        self._clock_ns = clock_ns
        self._block: Block | None = next(self._blocks)
        self._start_ns = t0_ns
        self._unheld: list[int] = []
        """Tenants that should rest now and are not held still: the block is void."""
        self.unmoved: tuple[int, str] | None = None
        self._frozen: dict[int, int] = {}
        self._count = count
        self._counted: Mapping[int, int] | None = None
        self._counted_since_ns = t0_ns
        held_by = {tenant.live.held_by for tenant in tenants}
        named = str(*held_by) if len(held_by) == 1 else ""
        self.conducted = Conducted(schedule, named, frozenset(self._tenants))

    @property
    def over(self) -> bool:
        return self._block is None

    @property
    def is_at_end(self) -> bool:
        """Whether the last planned block is over now; another one may still be added."""
        return self._block is not None and self._block.index == self._planned - 1 and not self.due_s()

    @property
    def whole_rounds(self) -> int:
        """The number of rounds that have passed after the warm-up, if one has just ended; else 0."""
        block, passed = self._block, self.conducted.passed
        if block is None or not passed or passed[-1].block.round == block.round:
            return 0
        return block.round - WARM_UP_ROUNDS

    def due_s(self) -> float:
        """Return the seconds until the next border."""
        if self._block is None:
            return float("inf")
        return max(0, self._start_ns + self._block.lasting_ns - self._clock_ns()) / 1e9

    def look(self) -> None:
        """Go into the next block if it is due."""
        if self._block is None:
            return
        if self._counted is None and self._clock_ns() >= self._start_ns:
            # Not before: it would count the load in which all settle as of the first block.
            self._counted, self._counted_since_ns = self._count(), self._clock_ns()
        if not self.due_s():
            self._cross(self._block)

    def follow(self, schedule: Schedule) -> None:
        """Go on by another schedule, whose blocks so far have the same tenants awake."""
        if self._block is not None:
            blocks = [*schedule.blocks(self._chance)]
            self._blocks = iter(blocks[self._block.index + 1 :])
            self.conducted.schedule, self._planned = schedule, len(blocks)

    def end_with_this_block(self) -> None:
        """Let no other block follow: after a whole round this one is the closing block of all tenants."""
        self._blocks = iter(())

    def stop(self) -> None:
        """End the schedule now, and let all tenants go on in their own slices. Never raises."""
        self._block = None
        for index in [index for index, slot in self._at.items() if slot != HOME]:
            with contextlib.suppress(NotIsolatedError):  # A tenant left elsewhere is found when limits are verified.
                self._move(index, HOME)
        self._thaw(list(self._frozen))

    def _cross(self, block: Block) -> None:
        began_ns = time.process_time_ns()
        following = next(self._blocks, None)
        end_ns = self._clock_ns()
        # It was so much longer than planned that it is unknown which tenants ran in it.
        is_late = end_ns - self._start_ns > block.lasting_ns + LATEST_NS
        if is_late:
            # While the runner is stopped the reaper lets all go on: nobody is held for certain.
            self._unheld = [*self._frozen]
        self.conducted.passed.append(Passed(block, self._start_ns, end_ns, bool(self._unheld) or is_late))
        self.conducted.complete = len(self.conducted.passed) == self._planned
        running = self.conducted.schedule.everybody if following is None else following.awake
        moving = [index for index, slot in running.items() if self._at[index] != slot]
        resting = [index for index in self._tenants if index not in running or index in moving]
        # Who was not held in time may still run.
        unheld = self._freeze([at for at in resting if at not in self._frozen or at in self._unheld], end_ns)
        self._add_up(block, end_ns)
        for index in moving:
            try:
                self._move(index, running[index])
            except NotIsolatedError as error:
                self.unmoved = index, str(error)
                self.stop()
                return
        self._thaw(running.keys() & self._frozen.keys())
        self._block, self._unheld = following, unheld
        self._start_ns = self._counted_since_ns = self._clock_ns()
        self.conducted.borders_ns.append(self._start_ns - end_ns)
        self.conducted.processor_ns += time.process_time_ns() - began_ns

    def _move(self, index: int, slot: int) -> None:
        """Move a tenant to the processors of a slot. Raises NotIsolatedError if the kernel refuses."""
        tenant = self._tenants[index]
        tenant.live.move((tenant.spec.slice if slot == HOME else self._slots[slot]).processors)
        self._at[index] = slot

    def _freeze(self, indices: Iterable[int], now_ns: int) -> list[int]:
        """Freeze tenants and wait until the kernel confirms it; return those that it did not hold in time."""
        awaited = []
        for index in indices:
            self._frozen.setdefault(index, now_ns)
            with contextlib.suppress(OSError):  # It has ended, which will end the schedule.
                self._tenants[index].live.freeze()
                awaited.append(index)
        while awaited := [index for index in awaited if not self._is_held(index)]:
            if self._clock_ns() > now_ns + HELD_WITHIN_NS:
                self.conducted.unheld.update(awaited)
                break
            time.sleep(POLL_S)
        return awaited

    def _is_held(self, index: int) -> bool:
        try:
            return self._tenants[index].live.frozen()
        except OSError:
            return True

    def _thaw(self, indices: Iterable[int]) -> None:
        for index in list(indices):
            with contextlib.suppress(OSError):
                self._tenants[index].live.thaw()
            rest = self._frozen.pop(index), self._clock_ns()
            for rank in self._tenants[index].ranks.values():
                rank.rests.append(rest)

    def _add_up(self, block: Block, end_ns: int) -> None:
        """Add each slice's use since the last border to its use beside the tenants of this block.

        The counters are read while all tenants rest that do not run on both sides of the border: a frozen slice's use
        does not grow.
        """
        before, counted = self._counted or {}, self._count()
        self._counted = counted
        if self._unheld:
            return
        awake = frozenset(block.awake)
        for index in before.keys() & counted.keys():
            spent = self.conducted.spent.setdefault(index, {}).setdefault(awake, Spent())
            spent.add(counted[index] - before[index], end_ns - self._counted_since_ns)
