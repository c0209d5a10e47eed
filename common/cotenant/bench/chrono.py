"""One observation: `number` batches between two clock reads, and nothing else between them.

`perf_counter_ns` is CLOCK_MONOTONIC on Linux, one clock for all processes of a host.
"""

from __future__ import annotations

import operator
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from cotenant.bench.device import Device
from cotenant.bench.sizes import chosen

clock_ns = time.perf_counter_ns
StepFunction = Callable[[Any, Any], Tensor | None]
"""Does the work of a run on a batch, and returns its loss."""


@dataclass(frozen=True, slots=True)
class Observation:
    """The measurements of one observation; `losses` are still on the device."""

    start_ns: int
    end_ns: int
    items: float
    data_wait_ns: int
    losses: list[Tensor]
    event_ns: int | None
    even: bool
    """True if all booked batches counted the same number of items."""
    issued_ns: int | None = None
    """The time at which the host had issued all work; None on a CPU, which has then finished it."""
    held: list[Any] = field(default_factory=list)
    """Some of the batches, drawn at random, to be looked at after the clock has stopped."""


@dataclass(slots=True)
class Work:
    """One batch's work: the endless source of batches, the step on each, and the function that counts items.

    Only the last of `every` batches is booked, for all of them: its wait, its items, its loss. A `resident` batch is
    the same every time and involves no wait.
    """

    batches: Iterator[Any]
    step: StepFunction
    items: Callable[[Any], float]
    run: Any
    device: Device
    resident: bool = False
    every: int = 1
    batch_bytes: int = 0


def observe(work: Work, number: int) -> Observation:
    """Time `number` batches: the wait for data, the step, and the synchronisation that closes them."""
    run, step, items, batches, clock = work.run, work.step, work.items, work.batches, clock_ns
    resident = work.resident
    sizes = [min(work.every, number - first) for first in range(0, number, work.every)]
    looked_at = chosen(len(sizes), work.batch_bytes)
    plan = [(size - 1, index in looked_at) for index, size in enumerate(sizes)]
    held: list[Any] = []
    losses: list[Tensor] = []
    requested_ns: list[int] = []
    arrived_ns: list[int] = []
    counts: list[float] = []
    keep, request, arrive, count = losses.append, requested_ns.append, arrived_ns.append, counts.append
    hold = held.append
    work.device.synchronize()
    opening = work.device.mark()
    start_ns = clock()
    for before, holds in plan:
        if before:
            for _ in range(before):
                # Both live until the next replace them, as in a plain loop: freeing them at once costs 0.5 % of a step.
                batch = next(batches)
                loss = step(run, batch)
        if resident:
            batch = next(batches)
        else:
            request(clock())
            batch = next(batches)
            arrive(clock())
        loss = step(run, batch)
        if loss is not None:
            keep(loss.data)  # as loss.detach(), in half the time
        count(items(batch))
        if holds:
            hold(batch)
    # Spinning would take a processor from the processes that load the next batches.
    closing = work.device.mark(asleep=not resident)
    issued_ns = None if closing is None else clock()
    if closing is not None and not resident:
        closing.synchronize()
    work.device.synchronize()
    end_ns = clock()
    event_ns = None if opening is None else round(opening.elapsed_time(closing) * 1e6)
    waited_ns = sum(
        (arrived - requested) * size for requested, arrived, size in zip(requested_ns, arrived_ns, sizes, strict=False)
    )
    # A slow batch that is booked for others must not make the wait longer than the observation.
    waited_ns = min(waited_ns, end_ns - start_ns)
    items_seen = sum(map(operator.mul, counts, sizes))
    even = len(set(counts)) == 1
    return Observation(start_ns, end_ns, float(items_seen), waited_ns, losses, event_ns, even, issued_ns, held)
