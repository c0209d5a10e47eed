"""Neighbours of known pressure: benchmarks that use a stated share of one resource and count the amount they got.

A level is a duty cycle, in percent: this much of each period is work, the rest is sleep (Bubble-Up, Mars et al.,
MICRO 2011, has such a dial). A level's meaning differs between machines; that of an amount in physical units does not.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from cotenant.bench.arguments import flag
from cotenant.bench.chrono import clock_ns
from cotenant.bench.contract import Benchmark
from cotenant.bench.outcome import UnsupportedError
from cotenant.bench.run import Run
from cotenant.errors import CotenantError
from cotenant.procfs import fields, read_text, to_int

FULL = 100
FIXED = {"batch_size": 1, "workers": 0, "cached_batch": False}
PIECE_NS, TRIES, MOST = 1_000_000, 10, 1000
"""The length of a piece of a device's work, the minimal pieces that are timed, and the most of them in a piece."""


class Pressure(Benchmark):
    """One step = one period: `work` for the level's share of it, then sleep. An item is an achieved unit."""

    fixed: ClassVar[dict[str, Any]] = FIXED | {"cuda": False}

    number: int = 20
    skip: int | None = 0
    level: int = flag(FULL, help="percent of each period that is work")
    period_ms: int = flag(20, help="milliseconds of work and sleep together")

    def __init__(self, **parameters: Any) -> None:
        super().__init__(**parameters)
        if self.level > FULL:
            raise CotenantError(f"--level {self.level} is more than {FULL} percent.", f"Use 1 to {FULL}.")
        self.amount = 0.0
        """The units that the last step achieved."""
        self.owed_ns = 0

    def build(self, run: Run) -> None:
        """Declare steps to be uneven, and prepare."""
        run.uneven = True  # A step is as many pieces of work as fit.
        self.prepare(run)

    def prepare(self, run: Run) -> None:
        """Make the data for `work`."""
        raise NotImplementedError

    def batches(self, run: Run) -> Iterator[int]:
        return itertools.repeat(0)

    def step(self, run: Run, batch: int) -> None:
        start_ns = clock_ns()
        self.amount = self.worked()
        if (left_ns := start_ns + self.period_ns - clock_ns()) > 0:
            time.sleep(left_ns / 1e9)

    def items(self, batch: int) -> float:
        return self.amount

    @property
    def period_ns(self) -> int:
        return self.period_ms * 1_000_000

    @property
    def share_ns(self) -> int:
        """The level's share of a period."""
        return self.period_ns * self.level // FULL

    def worked(self) -> float:
        """Work for the level's share of a period; return the items achieved.

        A piece of work cannot be cut: the excess of one period is taken off the next, which has at least one piece.
        """
        amount = 0.0
        self.owed_ns += self.share_ns
        while self.owed_ns > 0:
            start_ns = clock_ns()
            amount += self.work()
            self.pay(start_ns)
        return amount

    def pay(self, start_ns: int) -> None:
        """Subtract the time since `start_ns` from the time owed, which stays above minus one period's share: a piece
        that was frozen may have lasted for seconds."""
        self.owed_ns = max(self.owed_ns - (clock_ns() - start_ns), 1 - self.share_ns)

    def work(self) -> float:
        """Do a piece of work, short against a period; return the items achieved."""
        raise NotImplementedError


class DevicePressure(Pressure):
    """A neighbour on a device: work is enqueued one piece ahead, so that the device never rests between two pieces.

    Waiting for a piece blocks instead of spinning: the pressure is on the device alone.
    """

    fixed: ClassVar[dict[str, Any]] = FIXED

    def build(self, run: Run) -> None:
        """Make the data, and find the size of a piece. Raises UnsupportedError without a device."""
        self.device = run.chosen
        self.pending: Any = None
        """The end of the last piece, not yet waited for."""
        self.refuse_processors()
        super().build(run)
        self.times = self.least_pieces()

    def refuse_processors(self) -> None:
        if not self.device.is_accelerator:
            raise UnsupportedError(
                "It puts pressure on a device, and there is none here.",
                "On a host without devices use pressure on cpu, llc, dram or disk.",
            )

    def least_pieces(self) -> int:
        """Return the number of minimal pieces that take about as long as a piece should."""
        self.enqueue()  # Libraries initialise at their first call.
        self.device.synchronize()
        start_ns = clock_ns()
        for _ in range(TRIES):
            self.enqueue()
        self.device.synchronize()
        return max(1, min(MOST, PIECE_NS * TRIES // (clock_ns() - start_ns)))

    def work(self) -> float:
        amount = sum(self.enqueue() for _ in range(self.times))
        before, self.pending = self.pending, self.device.mark(asleep=True)
        if before is not None:
            before.synchronize()
        return amount

    def worked(self) -> float:
        amount = super().worked()
        if self.pending is not None:
            start_ns = clock_ns()
            self.pending.synchronize()
            self.pending = None
            self.pay(start_ns)
        return amount

    def enqueue(self) -> float:
        """Give the device the minimal piece of work; return the items that it achieves."""
        raise NotImplementedError


def own_processor_seconds() -> float:
    """Return the processor time of this process, all threads, user and system."""
    return time.process_time_ns() / 1e9


def bytes_from_storage() -> int | None:
    """Return the bytes fetched from storage for this process so far; None if the kernel does not count them."""
    return to_int(fields(read_text(Path("/proc/self/io")), ":").get("read_bytes", ""))
