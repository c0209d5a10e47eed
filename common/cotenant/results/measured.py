"""From a tenant's kept observations to the numbers of its record."""

from __future__ import annotations

from collections.abc import Sequence

from cotenant.results.record import Observed, Train, TrainItem
from cotenant.stats.describe import Description, describe

Numbers = tuple[Train, TrainItem, Description] | tuple[None, None, None]


def measured(kept: Sequence[Observed]) -> Numbers:
    """Return train, train_item and statistics; none of them without observations, or with an impossible one."""
    if not kept or not all(one.possible for one in kept):
        return None, None, None
    seconds = [(one.end_ns - one.start_ns) / 1e9 for one in kept]
    items = [one.items for one in kept if one.items is not None]
    average = sum(seconds) / len(seconds)
    variance = sum((one - average) ** 2 for one in seconds) / len(seconds)
    train = Train(avg=average, count=len(kept), max=max(seconds), min=min(seconds), sd=variance**0.5)
    per_observation = sum(items) / len(items)
    best, worst = per_observation / train.min, per_observation / train.max
    train_item = TrainItem(avg=per_observation / average, max=best, min=worst, range=best - worst)
    return train, train_item, describe(items, seconds)
