"""The loop around observations: warm-up before READY, `repeat` observations, load until STOP."""

from __future__ import annotations

import gc
import itertools
import operator
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch

from cotenant.bench.chrono import Observation, Work, clock_ns, observe
from cotenant.bench.contract import Benchmark, rows
from cotenant.bench.observed import observed_dtype
from cotenant.bench.outcome import MissingDataError
from cotenant.bench.run import Run
from cotenant.errors import CotenantError
from cotenant.findings.finding import Finding

WARM_UP_STEPS = 3
WAIT_S = 0.01


class Loop:
    """THE loop: the same for every benchmark, alone and beside others."""

    def __init__(self, benchmark: Benchmark, run: Run) -> None:
        self._benchmark = benchmark
        self._run = run
        self.observed_dtype: str | None = None
        benchmark.build(run)
        first, batches = self._start()
        self._work = Work(
            batches=itertools.chain([first], batches),
            restart=self._restart,
            step=run.precision.around(benchmark.step),
            items=_counter(benchmark, first),
            run=run,
            device=run.chosen,
        )

    def warm_up(self) -> list[int]:
        """Do the first steps, watch the first one's dtypes, and switch the garbage collector off.

        Returns the nanoseconds of each step. Raises CotenantError for a loss that is not a scalar.
        """
        times_ns = []
        for index in range(WARM_UP_STEPS):
            start_ns = clock_ns()
            loss = self._step(watched=index == 0)
            if loss is not None and loss.dim() != 0:
                raise CotenantError(f"The step returned a loss of shape {tuple(loss.shape)}, not a scalar.")
            self._run.chosen.synchronize()
            times_ns.append(clock_ns() - start_ns)
        gc.collect()
        gc.freeze()
        gc.disable()
        return times_ns

    def observe(self, number: int) -> Observation:
        """Make one observation; what became garbage in it is collected after its clock has stopped."""
        seen = observe(self._work, number)
        gc.collect()
        return seen

    def load_until(self, stopped: Callable[[], bool]) -> int:
        """Go on stepping, unmeasured, until `stopped()`; return the clock at the end of the last whole step.

        Several ranks only wait: one more step on some of them would hang their collectives.
        """
        # Nobody knows how long: without its collector this tenant might outgrow its slice.
        gc.enable()
        end_ns = clock_ns()
        while not stopped():
            if self._run.world.size > 1:
                time.sleep(WAIT_S)
                continue
            self._step()
            self._run.chosen.synchronize()
            end_ns = clock_ns()
        # What is frozen is never destroyed, and C++ extensions complain of leaks at exit.
        gc.unfreeze()
        return end_ns

    def _step(self, watched: bool = False) -> torch.Tensor | None:
        work = self._work
        try:
            batch = next(work.batches)
        except StopIteration:
            work.batches = work.restart()
            batch = next(work.batches)
        if not watched:
            return work.step(self._run, batch)
        loss, self.observed_dtype = observed_dtype(lambda: work.step(self._run, batch))
        return loss

    def _start(self) -> tuple[Any, Iterator[Any]]:
        batches = iter(self._benchmark.batches(self._run))
        for first in batches:
            return first, batches
        raise MissingDataError("The benchmark's input holds no batch.")

    def _restart(self) -> Iterator[Any]:
        if not any(finding.rule == "input_restarted" for finding in self._run.findings):
            self._run.findings.append(
                Finding(
                    "input_restarted",
                    "warning",
                    "The input ended and was started again inside the measured loop.",
                    "Let `batches` go on without end, as run.loader does.",
                )
            )
        first, batches = self._start()
        return itertools.chain([first], batches)


def _counter(benchmark: Benchmark, batch: Any) -> Callable[[Any], float]:
    """Return the benchmark's `items`, or the cheapest equal of the default one for batches of this type.

    Raises CotenantError where that says no plain number for `batch`.
    """
    try:
        counted = benchmark.items(batch)
    except (TypeError, IndexError, KeyError) as error:
        raise CotenantError(f"The items of a batch cannot be counted: {error}.", "Define `items(batch)`.") from error
    if not isinstance(counted, (int, float)):
        raise CotenantError(f"`items` returned {counted!r:.60}.", "Let it return a plain number, known on the host.")
    if type(benchmark).items is not Benchmark.items:
        return benchmark.items
    if isinstance(batch, torch.Tensor):
        return _size
    if isinstance(batch, (tuple, list)) and isinstance(batch[0], torch.Tensor):
        return _size_of_first
    return rows


# A tensor's len() is written in Python; size(0) takes a third of its time.
_size = operator.methodcaller("size", 0)


def _size_of_first(batch: Any) -> int:
    return batch[0].size(0)  # type: ignore[no-any-return]
