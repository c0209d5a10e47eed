"""Assigns each tenant equally many processors: whole cores, of one NUMA node and socket if possible. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from heapq import heapify, heapreplace
from itertools import chain, combinations, groupby
from typing import NamedTuple

from cotenant.isolation.cores import Core, Cpus, Level, mixtures, node_of, package_of, views_of
from cotenant.machine.topology import Processor

_WORTH = 8
"""For one node or socket, whole cores or one mixture of them, a tenant gives up at most one in this many processors."""
_WORTH_ALIKE = 4
"""The same if the mixture is gained: tenants on unlike cores cannot be compared at all."""


def assign(processors: Sequence[Processor], limit: int, wanted: Sequence[int | None]) -> list[Cpus]:
    """Return equally many processors for each tenant; `wanted` has each tenant's preferred node.

    At most `limit` are assigned and at least one to each tenant: the caller ensures `len(wanted) <= limit`. Each tenant
    gets as many as fit, or up to 1/8 fewer if that puts each tenant on one node or socket, or on whole cores, or all
    on the same mixture of cores; for the mixture up to 1/4 fewer.
    """
    assert 1 <= len(wanted) <= limit <= len(processors)
    views = views_of(processors)
    if len(views[0]) < len(wanted):
        # Fewer than one core each: use the logical processors, siblings next to each other.
        views = [
            [Core((p,), core.kind, core.node, core.place) for core in cores for p in core.processors] for cores in views
        ]
    hope_of = Hope(processors, views[0], len(wanted))
    best: list[Cpus] = []
    best_merit = Merit(False, False, False, False)
    largest = 0
    for size in range(limit // len(wanted), 0, -1):
        worth = _WORTH if best_merit.alike else _WORTH_ALIKE
        if all(best_merit) or size * worth < largest * (worth - 1):
            break
        little = size * _WORTH >= largest * (_WORTH - 1)
        for whole in (True, False):
            hope = hope_of(size, whole)
            if best and not (hope > best_merit and (little or hope.alike)):
                continue
            found, merit = _best_of(processors, views, size, wanted, whole, hope)
            largest = largest or (size if found else 0)
            evened = merit.alike and not best_merit.alike
            if found and (not best or (merit > best_merit and (little or evened))):
                best, best_merit = found, merit
    return best


class Merit(NamedTuple):
    """The merits of an assignment, the weightiest first; `near`: each tenant has one node, `together`: one socket."""

    near: bool
    whole: bool
    alike: bool
    together: bool


def merit_of(processors: Iterable[Processor], assignment: Sequence[Cpus], whole: bool) -> Merit:
    by_id = {processor.id: processor for processor in processors}
    near = all(len({by_id[number].node for number in cpus}) == 1 for cpus in assignment)
    together = all(len({by_id[number].package for number in cpus}) == 1 for cpus in assignment)
    first, *others = mixtures(by_id.values(), assignment)
    return Merit(near, whole, all(other == first for other in others), together)


Held = Counter[frozenset[tuple[str, int]]]
"""The number of groups that hold each set of (kind, number of processors)."""


class Hope:
    """Counts the best merit that an assignment of a size can have, so that no impossible one is searched for."""

    def __init__(self, processors: Sequence[Processor], cores: Sequence[Core], tenants: int) -> None:
        self._tenants = tenants
        self._nodes, self._packages = (_held(processors, level) for level in (node_of, package_of))
        self._widths = {len(core) for core in cores}
        of_kinds = Counter(processor.kind for processor in processors)
        self._alike = sum(count // tenants for count in of_kinds.values())
        self._mixtures = list(chain.from_iterable(combinations(of_kinds, n) for n in range(1, len(of_kinds) + 1)))

    def __call__(self, size: int, whole: bool) -> Merit:
        """Return the best merit for slices of `size`; cores of one width are `whole` only if the width divides it."""
        near = self._fit(self._nodes, size)
        alike, together = size <= self._alike, self._fit(self._packages, size)
        if alike and near:
            alike = self._fit_alike(self._nodes, size)
        if alike and together:
            together = self._fit_alike(self._packages, size)
        comes_out = len(self._widths) > 1 or not size % min(self._widths)
        return Merit(near, whole and comes_out, alike, together)

    def _fit_alike(self, groups: Held, size: int) -> bool:
        """Return whether each slice fits in one group, with the same kinds of core in all slices."""
        return any(self._fit(groups, size, kinds) for kinds in self._mixtures)

    def _fit(self, groups: Held, size: int, kinds: Sequence[str] = ()) -> bool:
        """Return whether each slice fits in one group, using only these kinds, in groups that have all of them."""
        room = 0
        for held, count in groups.items():
            there = [number for kind, number in held if not kinds or kind in kinds]
            if len(there) >= len(kinds):
                room += count * (sum(there) // size)
        return room >= self._tenants


def _held(processors: Iterable[Processor], level: Level) -> Held:
    groups: defaultdict[int, Counter[str]] = defaultdict(Counter)
    for processor in processors:
        groups[level(processor)][processor.kind] += 1
    return Counter(frozenset(held.items()) for held in groups.values())


def assign_all(processors: Sequence[Processor], wanted: Sequence[int | None], size: int) -> list[Cpus]:
    """Return exactly `size` processors of whole cores for each tenant; an empty list if that is impossible."""
    hope = Merit(near=True, whole=True, alike=True, together=True)
    return _best_of(processors, views_of(processors), size, wanted, True, hope)[0]


def _best_of(
    processors: Sequence[Processor],
    views: Iterable[Sequence[Core]],
    size: int,
    wanted: Sequence[int | None],
    whole: bool,
    hope: Merit,
) -> tuple[list[Cpus], Merit]:
    """Return the first assignment of `size` by these views that fulfils `hope`, else the best, with its merit.

    The assignment is empty if there is none.
    """
    best, best_merit = list[Cpus](), Merit(False, False, False, False)
    for cores in views:
        dealt = _deal(cores, range(len(wanted)), wanted, size, whole)
        if dealt is None:
            continue
        made = [dealt[tenant] for tenant in range(len(wanted))]
        if (merit := merit_of(processors, made, whole)) > best_merit or not best:
            best, best_merit = made, merit
        if merit >= hope:
            break
    return best, best_merit


def _deal(
    cores: Sequence[Core], tenants: Sequence[int], wanted: Sequence[int | None], size: int, whole: bool, depth: int = 0
) -> dict[int, Cpus] | None:
    """Return `size` of these processors for each of the tenants, None if they do not suffice.

    As many tenants as fit get processors within one group of this level, and there again within one of the next. The
    others get the remaining cores, in their order.
    """
    dealt: dict[int, Cpus] = {}
    if tenants and depth < len(cores[0].place):
        groups = [list(group) for _, group in groupby(cores, key=lambda core: core.place[depth])]
        if len(groups) == 1:
            return _deal(cores, tenants, wanted, size, whole, depth + 1)
        for group, local in zip(groups, _homes(groups, tenants, wanted, size, whole), strict=True):
            within = _deal(group, local, wanted, size, whole, depth + 1)
            if within is None:
                return None
            dealt |= within
        cores = _left(cores, dealt.values())
        order: dict[int | None, int] = {core.node: at for at, core in reversed(list(enumerate(cores)))}
        left = (tenant for tenant in tenants if tenant not in dealt)
        tenants = sorted(left, key=lambda tenant: order.get(wanted[tenant], len(cores)))
    while tenants:
        # Cores of several widths may serve tenants differently.
        count = _capacity(cores, len(tenants), size, whole)
        filled = _fill(cores, count, size, whole)
        if not filled:
            return None
        dealt |= zip(tenants, filled, strict=False)
        cores, tenants = _left(cores, filled), tenants[count:]
    return dealt


def _left(cores: Iterable[Core], filled: Iterable[Cpus]) -> list[Core]:
    taken = set(chain.from_iterable(filled))
    return [core for core in cores if taken.isdisjoint(core.processors)]


def _homes(
    groups: Sequence[Sequence[Core]], tenants: Sequence[int], wanted: Sequence[int | None], size: int, whole: bool
) -> list[list[int]]:
    """Return the tenants of each group: a tenant goes to its device's node if that has room, else to the roomiest."""
    room = [_capacity(group, len(tenants), size, whole) for group in groups]
    homes: list[list[int]] = [[] for _ in groups]
    groups_of: dict[int | None, list[int]] = {}
    for position, group in enumerate(groups):
        for node in {core.node for core in group}:
            groups_of.setdefault(node, []).append(position)
    others = []
    for tenant in tenants:
        home = next((position for position in groups_of.get(wanted[tenant], ()) if room[position]), None)
        if home is None:
            others.append(tenant)
        else:
            homes[home].append(tenant)
            room[home] -= 1
    rest = [(-left, position) for position, left in enumerate(room) if left]
    heapify(rest)
    picked = list(_roomiest(rest, len(others)))
    for tenant, home in zip(others, sorted(picked), strict=False):
        homes[home].append(tenant)
    return [sorted(local) for local in homes]


def _roomiest(rest: list[tuple[int, int]], count: int) -> Iterator[int]:
    """Yield the group with the most room (the first on a tie), `count` times or until no room is left."""
    for _ in range(count):
        if not rest or not rest[0][0]:
            return
        left, position = rest[0]
        heapreplace(rest, (left + 1, position))
        yield position


def _capacity(cores: Sequence[Core], tenants: int, size: int, whole: bool) -> int:
    """Return the number of tenants that these cores serve with `size` processors each."""
    widths = {len(core) for core in cores}
    if len(widths) == 1:
        width = widths.pop()
        return 0 if whole and size % width else min(tenants, len(cores) // -(-size // width))
    most = min(tenants, len(cores), sum(map(len, cores)) // size)
    counts = range(1, most + 1)
    return bisect_right(counts, False, key=lambda count: _fill(cores, count, size, whole) is None)


def _fill(cores: Sequence[Core], count: int, size: int, whole: bool) -> list[Cpus] | None:
    """Return `count` sets of `size` processors with no core in common, None if the cores do not suffice.

    All get the same mixture of wide and narrow cores and of kinds as far as they divide, with neighbouring cores
    together. Unless `whole`, the last core of each may be wider than needed; its rest stays unused.
    """
    if not count:
        return []
    sorts: dict[tuple[int, str], list[Core]] = {}
    for core in cores:
        sorts.setdefault((len(core), core.kind), []).append(core)
    filled: list[list[int]] = [[] for _ in range(count)]
    rest: list[deque[Core]] = []
    # The widest first, then in the given order.
    for width, kind in sorted(sorts, key=lambda sort: -sort[0]):
        group = sorts[width, kind]
        per_tenant = min(len(group) // count, (size - len(filled[0])) // width)
        for i, cpus in enumerate(filled):
            cpus.extend(chain.from_iterable(core.processors for core in group[i * per_tenant : (i + 1) * per_tenant]))
        rest.append(deque(group[per_tenant * count :]))
    for cpus in filled:
        for left in rest:
            while left and len(left[0]) <= size - len(cpus):
                cpus.extend(left.popleft().processors)
        if len(cpus) < size and not whole and any(rest):
            narrow = min((left for left in rest if left), key=lambda left: (len(left[0]), left[0].processors))
            cpus.extend(narrow.popleft().processors[: size - len(cpus)])
        if len(cpus) < size:
            return None
    return [tuple(sorted(cpus)) for cpus in filled]
