"""Prints the rate of the measured loop over that of a bare loop around the same steps of a task (`harness.py TASK
FLAG...`): the median of interleaved pairs with its 95 % interval."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from time import perf_counter_ns

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))

from pairs import interleaved, median_of
from sides import Timed, benchmark_of, observed, prepared

from cotenant.bench import Run
from cotenant.bench.arguments import parse
from cotenant.bench.chrono import Work

PAIRS, TURN_NS = 60, 40e6


def bare(work: Work, number: int) -> Timed:
    """Return a turn of steps between two clock reads, closed by waiting for the device."""

    def turn() -> int:
        step, batches, given, device = work.step, work.batches, work.run, work.device
        device.synchronize()
        start_ns = perf_counter_ns()
        for _ in range(number):
            step(given, next(batches))
        device.synchronize()
        return perf_counter_ns() - start_ns

    return turn


def main(task: str, *words: str) -> None:
    cls = benchmark_of(task)
    benchmark = cls(**parse(cls, [*words, "--cuda"]).values)
    work, _ = prepared(benchmark, Run(benchmark))
    once = bare(work, 10)
    once()
    number = max(1, round(TURN_NS / (once() / 10)))
    ours, theirs = interleaved(observed(work, number), bare(work, number), PAIRS)
    found = median_of([bare_ns / ours_ns for ours_ns, bare_ns in zip(ours, theirs, strict=True)])
    print(json.dumps({"rate_over_bare": found.value, "low": found.low, "high": found.high, "pairs": found.n}))


if __name__ == "__main__":
    main(*sys.argv[1:])
