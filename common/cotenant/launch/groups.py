"""Groups of pairs of jobs: memory holds all jobs of a group at once, so that its pairs meet in one launch. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from cotenant.launch.design.designs import Pair
from cotenant.launch.design.shared import BUDGET_NS

PAIR_S = 2 * BUDGET_NS / 1e9
"""Seconds for which a pair is measured, by default."""
PART_OF_TIMEOUT = 0.5
"""Share of a launch's time limit that its pairs may take: their fewest rounds may take longer than a budget."""
USUAL_BYTES = 3 << 29
"""Assumed memory of a job whose memory is unknown: 1.5 GiB, four times an import of torch."""


def groups_of(
    pairs: Sequence[Pair], needs: Sequence[int], room: int, most: int | None = None
) -> list[tuple[Pair, ...]]:
    """Return the pairs in groups, whose tenants fit into `room` bytes together; tenant `i` takes `needs[i]` bytes.

    Every pair is in one group, and no group has more than `most` pairs, the number a launch has time for. A pair that
    does not fit is a group of its own, as it would be a launch of its own. A group grows by the tenant that adds most
    pairs for its bytes.
    """
    left, groups = list(dict.fromkeys(pairs)), []
    while left:
        there = {*min(left, key=lambda pair: needs[pair[0]] + needs[pair[1]])}
        while candidates := _candidates(left, there, needs, room):
            there.add(max(candidates, key=lambda tenant: (candidates[tenant] / max(1, needs[tenant]), -tenant)))
        group = tuple(pair for pair in left if there.issuperset(pair))[:most]
        left = [pair for pair in left if pair not in group]
        groups.append(group)
    return groups


def _candidates(left: Sequence[Pair], there: set[int], needs: Sequence[int], room: int) -> dict[int, int]:
    """Return each tenant that still fits and the number of pairs it adds; 0 may become more with the next tenant."""
    free = room - sum(needs[tenant] for tenant in there)
    fitting = {tenant for pair in left for tenant in pair if tenant not in there and needs[tenant] <= free}
    return {tenant: sum(tenant in pair and not there.isdisjoint(pair) for pair in left) for tenant in fitting}
