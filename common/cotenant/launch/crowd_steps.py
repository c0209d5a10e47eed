"""The times of single steps in the rounds of a crowd, for jobs that serve, whose steps a person waits for."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

import msgspec

from cotenant.launch.crowd import blocks_in_a_round, opening_of
from cotenant.results.record import Nanoseconds, Record
from cotenant.stats.capacity import Values
from cotenant.stats.quantiles import quantile

P95 = 0.95


def p95_rounds(records: Sequence[Record]) -> list[Values]:
    """Return the value of each user in each round in which all users of the launch ran beside each other: the
    logarithm of 1 / p95 of its steps in seconds. A user that timed none of its steps has no value."""
    of_rounds: dict[int, dict[int, float]] = defaultdict(dict)
    for record in records:
        for number, times_ns in _steps_ns(record).items():
            of_rounds[number][record.tenant] = -math.log(quantile(times_ns, P95).value / 1e9)
    return [of_rounds[number] for number in sorted(of_rounds)]


def _steps_ns(record: Record) -> dict[int, list[int]]:
    """Return the times of a user's steps beside the others, in ns, by round."""
    try:
        rows = msgspec.convert(record.observed.get("steps_ns"), list[list[Nanoseconds]])
    except msgspec.ValidationError:
        return {}
    steps: dict[int, list[int]] = defaultdict(list)
    first, of_round = opening_of(record.tenants), blocks_in_a_round(record.tenants)
    if len(rows) == len(record.observations):
        for made, times_ns in zip(record.observations, rows, strict=True):
            if made.kept and made.kind == "all" and made.block is not None:
                steps[(made.block - first) // of_round] += times_ns
    return {number: times_ns for number, times_ns in steps.items() if times_ns}
