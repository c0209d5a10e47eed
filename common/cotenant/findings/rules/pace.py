"""A pace at which no work can have been done: batches that were credited and did not run."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from cotenant.finding import Finding
from cotenant.findings.rules.kept import kept

if TYPE_CHECKING:
    from cotenant.results.record import Record

LEAST_NS = 1000
"""A loop that does nothing but ask for a batch takes about as long."""
MOST_FASTER = 10


def check(record: Record) -> Finding | None:
    number, observations = record.arguments.get("number"), kept(record)
    if not observations or not isinstance(number, int) or number < 1:
        return None
    batch_ns = median(one.end_ns - one.start_ns for one in observations) / number
    warm_up_ns = min((record.rendezvous.warm_up_ns if record.rendezvous else []), default=0)
    if batch_ns < LEAST_NS:
        told = f"A batch took {batch_ns:.0f} ns: that is the cost of a loop that does nothing."
    elif warm_up_ns > MOST_FASTER * batch_ns:
        times = warm_up_ns / batch_ns
        told = f"A batch took {batch_ns / 1e3:.4g} us, and the fastest step of the warm-up {times:.0f} times as long."
    else:
        return None
    return Finding(
        "pace",
        "warning",
        told,
        "See that every credited batch is run, and that the device is synchronised before the clock is read.",
    )
