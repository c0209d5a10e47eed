"""The exact interval of a median. Standard library only: the runner asks while tenants are timed."""

from __future__ import annotations

import functools
from collections.abc import Sequence


@functools.lru_cache(maxsize=64)
def median_interval_ranks(n: int) -> tuple[int, int] | None:
    """Return the 1-based ranks between which the median lies with at least 95 %, or None where n is too small.

    The narrowest symmetric pair (r, n + 1 - r): it misses the median where fewer than r observations lie on one side,
    of which the chance is 2 P(binomial(n, 1/2) < r) (David and Nagaraja, Order Statistics, 7.1). Counted in whole
    numbers, so exact: `below` of the 2^n equally likely patterns have fewer than `rank` + 1 on the one side.
    """
    rank, ways, below = 0, 1, 1
    while 40 * below <= 1 << n:
        rank += 1
        ways = ways * (n + 1 - rank) // rank
        below += ways
    return (rank, n + 1 - rank) if rank else None


def relative_half_width(ordered: Sequence[float]) -> float | None:
    """Return half the width of the median's interval over the median; None where there is no interval.

    `ordered`: rates, ascending, none below 0; of a median of 0 there is none either.
    """
    ranks, half = median_interval_ranks(len(ordered)), len(ordered) // 2
    if ranks is None:
        return None
    median = (ordered[half] + ordered[~half]) / 2
    return (ordered[ranks[1] - 1] - ordered[ranks[0] - 1]) / 2 / median if median > 0 else None
