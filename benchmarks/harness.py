"""Promise 2: at most 1 microsecond of harness per batch, around a step that does nothing.

`tasks.py` puts the rest of the promise beside real steps.
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


def per_batch() -> Median:
    """Return the nanoseconds that `observe` adds to a batch whose step does nothing, books kept on every one."""
    loss, batch, device = torch.zeros(()), torch.zeros(64, 4), Device(torch.device("cpu"))
    work = Work(itertools.repeat(batch), lambda run, batch: loss, counter(Benchmark(), batch), None, device)
    ours, theirs = interleaved(observed(work, STEPS), bare(work, STEPS), PAIRS)
    return median_of([(a - b) / STEPS for a, b in zip(ours, theirs, strict=True)])


def main() -> int:
    one_processor()
    cost = per_batch()
    table = Table("what", "median", "95 % interval", "pairs", "promise", title="Harness against a bare loop")
    interval = f"{cost.low:.0f} .. {cost.high:.0f}"
    table.add_row("harness per batch", f"{cost.value:.0f} ns", interval, str(cost.n), PROMISE.verdict(cost.value))
    Console(width=120).print(table)
    return 0 if PROMISE.kept(cost.value) else 1


if __name__ == "__main__":
    sys.exit(main())
