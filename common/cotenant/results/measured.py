"""From a tenant's observations to the numbers of its record. Imports scipy: only where numbers are made."""

from __future__ import annotations

from collections.abc import Sequence

from cotenant.results.record import Observed, Train, TrainItem
from cotenant.stats.describe import describe
from cotenant.stats.description import Description


def measured(observations: Sequence[Observed], skip: int) -> tuple[Train, TrainItem, Description] | None:
    """Return train, train_item and statistics of the observations after the first `skip`; None where none is left."""
    kept = observations[skip:]
    if not kept:
        return None
    seconds = [(one.end_ns - one.start_ns) / 1e9 for one in kept]
    items = [one.items for one in kept]
    average = sum(seconds) / len(seconds)
    variance = sum((one - average) ** 2 for one in seconds) / len(seconds)
    train = Train(avg=average, count=len(kept), max=max(seconds), min=min(seconds), sd=variance**0.5)
    per_observation = sum(items) / len(items)
    best, worst = per_observation / train.min, per_observation / train.max
    train_item = TrainItem(avg=per_observation / average, max=best, min=worst, range=best - worst)
    return train, train_item, describe(items, seconds)
