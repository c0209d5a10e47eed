"""Prints how the measured loop sees steps of a known length, and steps of the host alone: milliseconds a step by the
host's clock and by events, and the share of an observation in which the host had issued all and waited."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import torch

from cotenant.bench.chrono import Work, observe
from cotenant.bench.device import Device

STEPS, STEP_MS, HOST_MS = 10, 20.0, 2.0
DEVICE = Device(torch.device("cuda"))


def slept_ms(cycles: int) -> float:
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    torch.cuda._sleep(cycles)
    end.record()
    end.synchronize()
    return float(begin.elapsed_time(end))


def observed(step: Callable[[Any, Any], None]) -> dict[str, float]:
    seen = observe(Work(itertools.repeat(None), step, lambda batch: 1, None, DEVICE, resident=True), STEPS)
    wall_ns = seen.end_ns - seen.start_ns
    return {
        "host_ms": wall_ns / 1e6 / STEPS,
        "event_ms": (seen.event_ns or 0) / 1e6 / STEPS,
        "waited": (seen.end_ns - (seen.issued_ns or 0)) / wall_ns,
    }


def main() -> None:
    # The first ones load the kernel and wake the clocks.
    waking = time.monotonic() + 0.5
    while time.monotonic() < waking:
        slept_ms(10_000_000)
    cycles = round(STEP_MS * 50_000_000 / slept_ms(50_000_000))
    lengths = [slept_ms(cycles) for _ in range(5)]
    busy = [observed(lambda run, batch: torch.cuda._sleep(cycles)) for _ in range(3)]
    # The device's clock moves: before and after stand for the time between.
    lengths += [slept_ms(cycles) for _ in range(5)]
    middle = {name: median(seen[name] for seen in busy) for name in busy[0]}
    # Not an empty step: of so little the closing wait would be most.
    idle = observed(lambda run, batch: time.sleep(HOST_MS / 1000))
    print(json.dumps({"true_ms": median(lengths), "busy": middle, "idle": idle}))


if __name__ == "__main__":
    main()
