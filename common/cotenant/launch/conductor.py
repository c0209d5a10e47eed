"""The conductor of a launch by blocks: it freezes and thaws tenants at borders, and records the times.

The runner's own loop calls it, so that no tenant is frozen without the knowledge of the code that kills tenants.
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from cotenant.isolation.backend import NotIsolatedError
from cotenant.isolation.slice import Slice
from cotenant.launch.design.passed import ALL, HOME, Block, Kind, Passed, SeenSoFar
from cotenant.launch.design.shared import Rounds, blocks_of
from cotenant.launch.tenant import Tenant
from cotenant.stats.kept import Spent

HELD_WITHIN_NS = 2_000_000_000
"""A process in a driver's call stops when the call returns; a tenant that takes longer than this makes a block void."""
LATEST_NS = 1_000_000_000
"""A block that lasted this much longer than planned was disturbed: the runner was stopped, or got no processor."""
POLL_S = 0.0002
REST = "rest"
"""The kind of a block for a tenant that is frozen in it."""


@dataclass(slots=True)
class Conducted:
    """A launch's blocks as they were carried out, in order, the times of borders, each tenant's use of processors.

    `complete` says whether it made all planned rounds. `spent` is by tenant, then by kind of block and the tenants that
    ran, and empty if processor time is not counted. `unheld` counts how often each tenant was not frozen in time.
    `residents` counts all tenants; the meeting of `members` is evaluated.
    """

    held_by: str
    members: frozenset[int]
    residents: int
    complete: bool = False
    processor_ns: int = 0
    """The runner's processor time that conducting took."""
    passed: list[Passed] = field(default_factory=list)
    borders_ns: list[int] = field(default_factory=list)
    spent: dict[int, dict[tuple[Kind, frozenset[int]], Spent]] = field(default_factory=dict)
    unheld: Counter[int] = field(default_factory=Counter)

    @property
    def rounds(self) -> int:
        """The number of rounds that have begun after the warm-up."""
        return max((one.block.round for one in self.passed), default=0)

    def spent_of(self, tenant: int) -> dict[str, Spent]:
        """Return a tenant's use of processors by kind of block: beside all other members, alone, and at rest."""
        kinds: dict[str, Spent] = {}
        for (kind, awake), spent in self.spent.get(tenant, {}).items():
            if kind != ALL or awake == self.members or tenant not in awake:
                kinds.setdefault(kind if tenant in awake else REST, Spent()).add(spent.processor_ns, spent.lasted_ns)
        return kinds


class Conductor:
    """Takes a launch's tenants through the blocks of a design from t0 on, each to the slot that a block gives it.

    `over` is true after the last block; `stop` lets all tenants go on at once, in their own slices, at any moment. The
    conductor stops by itself if a tenant cannot be moved: `unmoved` is that tenant's number, and the reason.
    """

    def __init__(
        self,
        rounds: Rounds,
        tenants: Collection[Tenant],
        t0_ns: int,
        count: Callable[[], Mapping[int, int]],
        slots: Sequence[Slice] = (),
        numbers: Mapping[int, int] | None = None,
        clock_ns: Callable[[], int] = time.perf_counter_ns,
    ) -> None:
        """Begin the first block at `t0_ns`. `count` returns each counted tenant's processor time in ns; `numbers` are
        the steps in an observation of each."""
        self._tenants = {tenant.index: tenant for tenant in tenants}
        self._slots = slots
        self._at = dict.fromkeys(self._tenants, HOME)
        self._blocks = blocks_of(rounds)
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
        self.conducted = Conducted(named, frozenset(self._tenants), len(self._tenants))
        rows = {index: tenant.ranks[0].observations for index, tenant in self._tenants.items()}
        self._seen = SeenSoFar(self.conducted.passed, rows, numbers or {})

    @property
    def over(self) -> bool:
        return self._block is None

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
            # Not earlier, as that would count the load in which all settle as the first block's.
            self._counted, self._counted_since_ns = self._count(), self._clock_ns()
        if not self.due_s():
            self._cross(self._block)

    def stop(self) -> None:
        """End the blocks now, and let all tenants go on in their own slices. Never raises."""
        self._block = None
        for index in [index for index, slot in self._at.items() if slot != HOME]:
            with contextlib.suppress(NotIsolatedError):  # A tenant left elsewhere is found when limits are verified.
                self._move(index, HOME)
        self._thaw(list(self._frozen))

    def _cross(self, block: Block) -> None:
        began_ns = time.process_time_ns()
        # The design sees the block that ends now, and may compute before the border.
        self.conducted.passed.append(self._passed(block))
        following = self._following()
        self.conducted.passed[-1] = passed = self._passed(block)
        end_ns = passed.end_ns
        if self._is_late(block, end_ns):
            # While the runner is stopped the reaper thaws all tenants: none is certain to be frozen.
            self._unheld = [*self._frozen]
        running = dict.fromkeys(self._tenants, HOME) if following is None else following.awake
        moving = [index for index, slot in running.items() if self._at[index] != slot]
        resting = [index for index in self._tenants if index not in running or index in moving]
        # A tenant that was not frozen in time may still run.
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

    def _passed(self, block: Block) -> Passed:
        """Return a block that ends now."""
        end_ns = self._clock_ns()
        return Passed(block, self._start_ns, end_ns, bool(self._unheld) or self._is_late(block, end_ns))

    def _is_late(self, block: Block, end_ns: int) -> bool:
        """Return whether a block was so much longer than planned that it is unknown which tenants ran in it."""
        return end_ns - self._start_ns > block.lasting_ns + LATEST_NS

    def _following(self) -> Block | None:
        """Return the block that follows the one that has just passed; None after the last one."""
        try:
            return self._blocks.send(self._seen)
        except StopIteration as ended:
            self.conducted.complete = ended.value
            return None

    def _move(self, index: int, slot: int) -> None:
        """Move a tenant to the processors of a slot. Raises NotIsolatedError if the kernel refuses."""
        tenant = self._tenants[index]
        tenant.live.move((tenant.spec.slice if slot == HOME else self._slots[slot]).processors)
        self._at[index] = slot

    def _freeze(self, indices: Iterable[int], now_ns: int) -> list[int]:
        """Freeze tenants and wait until the kernel confirms it; return the tenants that were not frozen in time."""
        awaited = []
        for index in indices:
            self._frozen.setdefault(index, now_ns)
            with contextlib.suppress(OSError):  # The tenant has ended, which will end the blocks.
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

        The counters are read while every tenant that does not run on both sides of the border is frozen, so that its
        use does not grow.
        """
        before, counted = self._counted or {}, self._count()
        self._counted = counted
        if self._unheld:
            return
        ran = block.kind, frozenset(block.awake)
        for index in before.keys() & counted.keys():
            spent = self.conducted.spent.setdefault(index, {}).setdefault(ran, Spent())
            spent.add(counted[index] - before[index], end_ns - self._counted_since_ns)
