"""The input that a task reads: whether it came in time, and where it was."""

from __future__ import annotations

import math
from collections.abc import Sequence

from cotenant.finding import Finding, error, info, warning
from cotenant.findings import record_rule
from cotenant.findings.rules.timing import kept_observations, moved_by, seconds_per_item
from cotenant.results.record import Observed, Record

LITTLE_WAITING, MOST_WAITING = 0.05, 0.2
"""Batches loaded ahead made no step much shorter if later steps wait for less than the first share."""
SMALLER = 0.05
"""The share by which items of a shuffled set are smaller than the warm-up's by chance."""
ROUNDED = 1 + 1e-9


@record_rule
def input_stall(record: Record) -> Finding | None:
    """Observations that took far longer because their input came late."""
    from cotenant.stats.steadiness import spikes

    times, waits = seconds_per_item(record)
    late = spikes(times, waits).late
    if not late:
        return None
    worst = max(times[index] for index in late) / sorted(times)[len(times) // 2]
    return warning(
        f"In {len(late)} of {len(times)} kept observations the input came late: "
        f"the slowest took {worst:.2f} times the median time, most of it waiting for data.",
        "Use more --workers or a faster disk; look for other programs that read from it.",
        value=worst,
        effect=moved_by(times, late),
    )


@record_rule
def loaded_ahead(record: Record) -> Finding | None:
    """Observations whose input was loaded before GO are as fast as a queue is emptied, not as it is filled."""
    ahead, number = record.observed.get("loaded_ahead"), record.arguments.get("number")
    observations = kept_observations(record)
    if not isinstance(ahead, int) or not isinstance(number, int) or number < 1:
        return None
    before = record.observations.index(observations[0]) if observations else 0
    fed = min(len(observations), math.ceil(max(0, ahead - before * number) / number))
    later = observations[fed:]
    if not fed or (later and _waiting_share(later) < LITTLE_WAITING):
        return None
    severity = error if later and 2 * fed >= len(observations) else warning
    return severity(
        f"The first {fed} of {len(observations)} kept observations had input that was loaded before GO: "
        f"up to {ahead} batches.",
        f"Skip them: --skip {math.ceil(ahead / number)}, with a --repeat of three times that.",
        value=float(math.ceil(ahead / number)),
        effect=moved_by(seconds_per_item(record)[0], range(fed)),
    )


@record_rule
def data_bound(record: Record) -> Finding | None:
    """A task that waits for its loader: its rate says more about the input than about the device."""
    share = _waiting_share(kept_observations(record))
    # Input that is made in the task's own process is work of the task.
    if share <= MOST_WAITING or not record.observed.get("workers"):
        return None
    return info(
        f"The task waited for its input for {100 * share:.0f} % of its time.",
        "More --workers, a faster disk or a warm page cache would make it faster; a faster device would not.",
    )


def _waiting_share(observations: Sequence[Observed]) -> float:
    """Return the share of their time in which observations waited for input; 0 if they took no time."""
    total_ns = sum(row.took_ns for row in observations)
    return sum(row.data_wait_ns for row in observations) / total_ns if total_ns else 0.0


@record_rule
def padding_counted(record: Record) -> Finding | None:
    """Words of a batch that are padding: they are no items, and a row with them is shorter than it looks."""
    items, words, share = (record.observed.get(name) for name in ("items_per_step", "words_per_step", "padding"))
    if not isinstance(items, int | float) or not isinstance(words, int | float) or not isinstance(share, int | float):
        return None
    if record.observed.get("item_is_row") is True:
        # A program's report may be NaN: that is no padding.
        if not share > 0:
            return None
        rows = f"{record.unit or 'row'}s"
        return warning(
            f"{100 * share:.1f} % of the words of a batch are padding: its {rows} are shorter than they look.",
            "Fill every row, or count words without padding in `items`.",
            value=share,
            effect=share,
        )
    if items <= ROUNDED * max(0, words):
        return None
    return error(
        f"A step counts {items:g} items, and its batch holds {words:g} words that are no padding.",
        "Count words without padding in `items`.",
        value=items / words if words else None,
        effect=1 - words / items,
    )


@record_rule
def batch_sizes(record: Record) -> Finding | None:
    """Items that hold less than the items of the warm-up's batches: smaller items give a higher rate."""
    sizes = record.observed.get("size_per_item")
    if record.statistics is None or not isinstance(sizes, dict):
        return None
    before, after, batches = (sizes.get(name) for name in ("warm_up", "observed", "batches"))
    if not isinstance(before, int | float) or not isinstance(after, int | float) or before <= 0 or not batches:
        return None
    ratio = after / before
    if ratio >= 1 - SMALLER:
        return None
    return warning(
        f"An item held {after:.4g} words or numbers on average in the batches looked at, and "
        f"{before:.4g} in the warm-up's.",
        "Count words in `items`, or let the launch last for the whole data set.",
        value=ratio,
        effect=1 - ratio,
    )
