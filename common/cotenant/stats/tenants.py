"""The tenants of one launch beside each other: how evenly they were served, and the load common to all of them."""

from __future__ import annotations

import bisect
import itertools
import math
import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


def jain(rates: Sequence[float]) -> float:
    """Return Jain's index of positive rates: 1 if all are equal, 1/n if one has everything.

    Jain, Chiu, Hawe: A quantitative measure of fairness and discrimination (1984). Raises ValueError without rates.
    """
    if not rates or not all(0 < rate < math.inf for rate in rates):
        raise ValueError(f"fairness of {list(rates)}")
    # By shares of the best, as squares of rates may overflow or vanish; rounding may exceed 1 slightly.
    best = max(rates)
    shares = [rate / best for rate in rates]
    index: float = sum(shares) ** 2 / (len(shares) * sum(map(operator.mul, shares, shares)))
    return min(1.0, index)


Span = tuple[int, int]
Reading = tuple[int, float]
"""A time in ns, and the amount used by then: a counter that only grows."""


def common_load(loads: Sequence[Span], since_ns: int | None = None) -> Span:
    """Return [latest start, earliest end] of the tenants' loads, in ns; empty spans have their end at their start.

    If all were under load before they were observed, `since_ns` is the start of that load.
    """
    start_ns = max(start for start, _ in loads)
    if since_ns is not None:
        start_ns = min(start_ns, since_ns)
    return start_ns, max(start_ns, min(end for _, end in loads))


def overlap(observations: Iterable[Span], common: Span) -> float:
    """Return the share of the observations' time that lies inside `common`.

    Raises ValueError for an observation that ends before it starts, and if none took any time.
    """
    inside_ns = total_ns = 0
    for start_ns, end_ns in observations:
        if end_ns < start_ns:
            raise ValueError(f"an observation from {start_ns} to {end_ns}")
        total_ns += end_ns - start_ns
        inside_ns += max(0, min(end_ns, common[1]) - max(start_ns, common[0]))
    if not total_ns:
        raise ValueError("no observed time")
    return inside_ns / total_ns


@dataclass(frozen=True, slots=True)
class WorkBeside:
    """A tenant's work in its own observations, and beside others' observations outside of its own.

    Both are in units of the counter per nanosecond: processors, if the counter is their nanoseconds.
    `observed_s` is the time in which others were observed, `beside_s` the part of it outside of the tenant's own
    observations and inside the load that it claims.
    """

    own: float
    beside: float
    beside_s: float
    observed_s: float

    @property
    def idle_share(self) -> float:
        """The part of the others' observed time that lacked this tenant's work; at least 0."""
        if not self.own or not self.observed_s:
            return 0.0
        return max(0.0, 1 - self.beside / self.own) * self.beside_s / self.observed_s


def work_beside(
    readings: Sequence[Reading], own_spans: Iterable[Span], claimed: Span, others: Iterable[Span]
) -> WorkBeside | None:
    """Return the work of a tenant that claims a load, beside the observations of `others`; None without readings.

    Between two readings a counter is assumed to grow evenly.
    """
    own_spans, others = _joined(own_spans), _joined(others)
    beside = _beside(others, claimed, own_spans)
    own_ns, observed_ns, beside_ns = (sum(end - start for start, end in spans) for spans in (own_spans, others, beside))
    if len(readings) < 2 or not own_ns:
        return None
    return WorkBeside(
        own=_used(readings, own_spans) / own_ns,
        beside=_used(readings, beside) / beside_ns if beside_ns else 0.0,
        beside_s=beside_ns / 1e9,
        observed_s=observed_ns / 1e9,
    )


def _joined(spans: Iterable[Span]) -> list[Span]:
    """Return the union of spans, in order, without empty ones."""
    joined: list[Span] = []
    for start, end in sorted(span for span in spans if span[0] < span[1]):
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((start, end))
    return joined


def _beside(others: Iterable[Span], claimed: Span, own_spans: Iterable[Span]) -> list[Span]:
    """Return the parts of `others` inside `claimed` and outside of `own_spans`; spans of one kind do not overlap."""
    kinds = ((1, others), (1, [claimed]), (-1, own_spans))
    edges = sorted(edge for sign, spans in kinds for start, end in spans for edge in ((start, sign), (end, -sign)))
    # Their sum is 2 while others are observed, the load is claimed, and no own observation is made.
    sums = itertools.accumulate(sign for _, sign in edges)
    parts = zip(itertools.pairwise(edges), sums, strict=False)
    return _joined((start, end) for ((start, _), (end, _)), total in parts if total == 2)


def _used(readings: Sequence[Reading], spans: Sequence[Span]) -> float:
    """Return the amount used in these spans."""
    return sum(_at(readings, end) - _at(readings, start) for start, end in spans)


def _at(readings: Sequence[Reading], now_ns: int) -> float:
    after = bisect.bisect_left(readings, now_ns, key=operator.itemgetter(0))
    if after in (0, len(readings)):
        return readings[min(after, len(readings) - 1)][1]
    (begin_ns, before), (end_ns, then) = readings[after - 1], readings[after]
    return before + (then - before) * (now_ns - begin_ns) / (end_ns - begin_ns)
