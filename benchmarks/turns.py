"""The order of turns in launches by blocks: the gain of comparing blocks that are near in time, and the cost of a thaw.

Reads the records that `benchmarks/run.py kept` makes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from statistics import fmean, median, stdev
from typing import Any

from cotenant.stats.kept import block_sums
from cotenant.stats.launches import t_quantile

ALL = "all"
APART = {"1": range(1, 2), "3 to 7": range(3, 8), "9 to 25": range(9, 26)}
"""Distances, counted in blocks, between a block of all users and one of a user alone."""
A_ROUND = 3
"""Blocks in a round of two users: one of both, and one of each alone."""
LEAST = 6
"""The fewest ratios from which a spread is computed."""
HEAD = "\n| blocks apart | spread of together / alone from block to block | n |\n|---|---:|---:|"

Json = Mapping[str, Any]
Rates = Mapping[int, tuple[bool, float]]
"""By a block's number: whether all users were awake in it, and the logarithm of one user's rate."""


def order_of_turns(records: Iterable[Json]) -> str:
    """Return a table of spreads by distance, the median over users and launches, and the cost of a thaw."""
    every = [rates_of(record) for record in records if record["blocks"] is not None and not record["solo"]]
    rows = []
    for words, distances in APART.items():
        spreads = [spread for rates in every if (spread := _spread(rates, distances)) is not None]
        rows.append(f"| {words} | {median(spreads):.3f} | {len(spreads)} |")
    thawed = [cost for rates in every if (cost := _cost_of_thaw(rates)) is not None]
    half = t_quantile(len(thawed) - 1) * stdev(thawed) / math.sqrt(len(thawed))
    cost = f"{100 * fmean(thawed):.1f} % (± {100 * half:.1f} %) faster in it than one that was thawed for it"
    sentence = f"A user that goes on into a block of all is {cost}, the mean of {len(thawed)} users and launches."
    return "\n".join([HEAD, *rows, "", sentence])


def rates_of(record: Json) -> Rates:
    """Return a user's rates in the blocks that have observations which count."""
    kept = [one for one in record["observations"] if one["kept"]]
    made = ((one["block"], one["kind"] != ALL, one["items"], one["end_ns"] - one["start_ns"]) for one in kept)
    return {block.index: (not block.alone, block.log_rate) for block in block_sums(made)}


def _spread(rates: Rates, distances: Sequence[int]) -> float | None:
    """Return the standard deviation of log(together / alone), each with the first block at one of these distances."""
    ratios = []
    for block, (is_all, alone) in rates.items():
        beside = (block + sign * distance for distance, sign in product(distances, (1, -1)))
        together = next((rates[other][1] for other in beside if other in rates and rates[other][0]), None)
        if not is_all and together is not None:
            ratios.append(together - alone)
    return stdev(ratios) if len(ratios) >= LEAST else None


def _cost_of_thaw(rates: Rates) -> float | None:
    """Return the log gain of a user in blocks of all after its own block over near ones after another user's."""
    behind_own = {block: rate for block, (is_all, rate) in rates.items() if is_all and block - 1 in rates}
    others = {block: rate for block, (is_all, rate) in rates.items() if is_all and block - 1 not in rates}
    gains = []
    for block, rate in behind_own.items():
        near = [others[other] for other in (block - A_ROUND, block + A_ROUND) if other in others]
        if near:
            gains.append(rate - fmean(near))
    return fmean(gains) if len(gains) >= LEAST else None
