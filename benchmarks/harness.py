"""Promise 2: at most 1 microsecond of harness per batch, around a step that does nothing.

On a batch that is resident, as random input is, and on another each time, as a loader brings them. `tasks.py` puts the
rest of the promise beside real steps.
"""

from __future__ import annotations

import itertools
import sys

import torch
from pairs import Median, interleaved, median_of
from promises import Promise
from rich.console import Console
from rich.table import Table
from sides import bare, observed, one_processor

from cotenant.bench.chrono import Work
from cotenant.bench.contract import Benchmark
from cotenant.bench.device import Device
from cotenant.bench.loop import counter

STEPS, PAIRS = 10_000, 101
PROMISE = Promise("<=", 1000, "ns")


def per_batch(resident: bool) -> Median:
    """Return the nanoseconds that `observe` adds to a batch whose step does nothing, books kept on every one."""
    loss, batch, device = torch.zeros((), requires_grad=True), torch.zeros(64, 4), Device(torch.device("cpu"))
    batches = itertools.repeat(batch) if resident else itertools.cycle([batch, batch.clone()])
    work = Work(batches, lambda run, batch: loss, counter(Benchmark(), batch, resident), None, device, resident)
    ours, theirs = interleaved(observed(work, STEPS), bare(work, STEPS), PAIRS)
    return median_of([(a - b) / STEPS for a, b in zip(ours, theirs, strict=True)])


def main() -> int:
    one_processor()
    table = Table("per batch", "median", "95 % interval", "pairs", "promise", title="Harness against a bare loop")
    kept = True
    for what, resident in (("resident", True), ("another each time", False)):
        cost = per_batch(resident)
        interval = f"{cost.low:.0f} .. {cost.high:.0f}"
        table.add_row(what, f"{cost.value:.0f} ns", interval, str(cost.n), PROMISE.verdict(cost.value))
        kept = kept and PROMISE.kept(cost.value)
    Console(width=120).print(table)
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
