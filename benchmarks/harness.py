"""Promise 2: at most 1 microsecond of harness per batch, around a step that does nothing.

It is measured on one resident batch, as random input is, and on a new batch each time, as a loader brings them.
`tasks.py` measures the rest of the promise, beside real steps.

A virtual processor runs at two thirds of its speed while another virtual machine uses the other thread of its core, and
no counter of steal shows it. So the promise is counted in reads of the clock, which are timed in the same turns: a read
took 41 to 59 ns when 1 us was promised, and 1 us is 16 of the slower reads.
"""

from __future__ import annotations

import itertools
import sys

import numpy as np
import torch
from measure import Median, Promise, Timed, bare, interleaved, median_of, observed, one_processor
from rich.console import Console
from rich.table import Table

from cotenant.bench.batches import counter
from cotenant.bench.chrono import Work
from cotenant.bench.contract import Benchmark
from cotenant.bench.device import Device
from cotenant.machine.cpu import clock_read_ns

STEPS, PAIRS = 10_000, 101
PROMISE = Promise("<=", 16, "clock reads")


def followed(turn: Timed, reads_ns: list[float]) -> Timed:
    """Return a turn that also times a clock read after its end and appends it to `reads_ns`."""

    def run() -> int:
        took_ns = turn()
        reads_ns.append(clock_read_ns())
        return took_ns

    return run


def per_batch(resident: bool) -> tuple[Median, Median, Median]:
    """Return the time that `observe` adds to a batch with an empty step, in ns and in clock reads, and a read's ns.

    The items of every batch are counted.
    """
    loss, batch, device = torch.zeros((), requires_grad=True), torch.zeros(64, 4), Device(torch.device("cpu"))
    batches = itertools.repeat(batch) if resident else itertools.cycle([batch, batch.clone()])
    work = Work(batches, lambda run, batch: loss, counter(Benchmark(), batch, resident), None, device, resident)
    reads_ns: list[float] = []
    sides = (followed(turn(work, STEPS), reads_ns) for turn in (observed, bare))
    ours, theirs = interleaved(*sides, PAIRS)
    costs_ns = np.subtract(ours, theirs) / STEPS
    # Each of a pair's two turns ends with a read; the uncounted first pair gave two more.
    paces_ns = np.reshape(reads_ns[2:], (-1, 2)).mean(axis=1)
    return median_of(list(costs_ns)), median_of(list(costs_ns / paces_ns)), median_of(list(paces_ns))


def main() -> int:
    one_processor()
    title = "Harness against a bare loop, medians with 95 % intervals"
    table = Table("per batch", "added", "one clock read", "in clock reads", "pairs", "promise", title=title)
    kept = True
    for what, resident in (("resident", True), ("another each time", False)):
        cost, reads, pace = per_batch(resident)
        table.add_row(
            what,
            cost.shown(".0f", " ns"),
            pace.shown(".0f", " ns"),
            reads.shown(".1f"),
            str(cost.n),
            PROMISE.verdict(reads.value),
        )
        kept = kept and PROMISE.kept(reads.value)
    Console(width=120).print(table)
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
