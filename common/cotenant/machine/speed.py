"""How fast a processor is from moment to moment: what no counter of ours shows, the same work's time does.

Two threads of one core share its units, and the other one of a virtual processor's may belong to another machine.
"""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass

_READS = 10_000
_MOMENT_S = 0.01
_BEGINNING_S = 0.05
"""Until then a clock that follows the load may still be rising."""


@dataclass(frozen=True, slots=True)
class Speed:
    """What a read of the clock takes in ns: at the tenth fastest of a hundred moments, and at the tenth slowest."""

    fast_ns: float
    slow_ns: float


def clock_read_ns() -> float:
    """Return the nanoseconds that one read of the clock adds to a loop, over ten thousand: about a millisecond's work.

    perf_counter_ns is a call from the interpreter into C, so both weigh in it.
    """
    clock = time.perf_counter_ns
    start_ns = clock()
    for _ in range(_READS):
        clock()
    read_ns = clock()
    for _ in range(_READS):
        pass
    return (2 * read_ns - start_ns - clock()) / _READS


def speed_over(window_s: float) -> Speed:
    """Keep one processor busy for so long, a tenth of a second or more, and return how even its speed is."""
    begin_s = time.monotonic()
    while time.monotonic() - begin_s < _BEGINNING_S:
        clock_read_ns()
    moments_ns = []
    while (now_s := time.monotonic()) - begin_s < window_s:
        # The median of a moment leaves out what an interrupt cost one of its readings.
        readings_ns = [clock_read_ns()]
        while time.monotonic() - now_s < _MOMENT_S:
            readings_ns.append(clock_read_ns())
        moments_ns.append(statistics.median(readings_ns))
    tenths = statistics.quantiles(moments_ns, n=10, method="inclusive")
    return Speed(tenths[0], tenths[-1])
