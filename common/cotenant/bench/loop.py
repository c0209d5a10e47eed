"""The loop around observations: warm-up before READY, `repeat` observations, load until STOP."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from cotenant.bench.auditor import Auditor
from cotenant.bench.batches import Batches
from cotenant.bench.chrono import Observation, Work, clock_ns, observe
from cotenant.bench.compiling import RECORDING, compilations_noted, keeping_no_output, step_until_compiled
from cotenant.bench.contract import Benchmark
from cotenant.bench.loader import rows_or_none
from cotenant.bench.run import Run
from cotenant.bench.sizes import ObservedSizes, bytes_of
from cotenant.bench.steps import MarkedSteps
from cotenant.errors import CotenantError

WARM_UP_STEPS = 3
LONG_WARM_UP_NS = 60_000_000_000
"""A warm-up of this length makes no further step: a batch of minutes would delay its launch's READY."""
WAIT_S = 0.01
SHORT_STEP_NS = 1_000_000
BOOKED_OF_SHORT = 10
"""Booking a batch costs some microseconds between steps: half a percent of a step of a millisecond."""


class Loop:
    """THE loop: the same for every benchmark, alone and beside others; `updates` counts the updates in observations."""

    def __init__(self, benchmark: Benchmark, run: Run) -> None:
        self.benchmark = benchmark
        self._run = run
        self.steps_ns: list[list[int]] = []
        """The time of every step of each observation, for a benchmark that serves."""
        self.updates = 0
        self._number = 1
        self._batches = 0
        self._observations = 0
        self._before = (0, 0)
        freeze_imports()
        benchmark.build(run)
        self._input = Batches(benchmark, run)
        self._sizes = ObservedSizes(benchmark)
        self._step = run.precision.around(benchmark.step)
        self._work = Work(
            batches=self._input.endless,
            step=self._step,
            items=self._input.items,
            run=run,
            device=run.chosen,
            resident=self._input.resident,
            batch_bytes=bytes_of(self._input.first),
        )
        self.auditor = Auditor(benchmark, run, self._step)

    def try_out(self) -> None:
        """Do the step that tries convolution algorithms, eagerly, and release the memory it took."""
        with torch.compiler.set_stance("force_eager"):
            self.rehearse()
        self._run.chosen.synchronize()
        self._run.chosen.forget_memory()

    def rehearse(self) -> None:
        """Do a step outside of every observation."""
        self._work.step(self._run, next(self._work.batches))

    def warm_up(self) -> list[int]:
        """Do the first steps, watch the first and the last one, and switch the garbage collector off.

        Returns the nanoseconds of each step. If they are long there are fewer than WARM_UP_STEPS, which is a finding.
        Raises CotenantError for a loss that is not a scalar.
        """
        work, auditor, run = self._work, self.auditor, self._run
        times_ns, counts, updates = list[int](), set[float](), set[int]()
        for index in range(WARM_UP_STEPS):
            if index == 1:
                self._compile()
            updated, start_ns = run.updates, clock_ns()
            batch = next(work.batches)
            loss = auditor.watch(batch) if index in (0, WARM_UP_STEPS - 1) else work.step(run, batch)
            items = work.items(batch)
            counts.add(items)
            if loss is not None and loss.dim() != 0:
                raise CotenantError(f"The step returned a loss of shape {tuple(loss.shape)}, not a scalar.")
            run.chosen.synchronize()
            times_ns.append(clock_ns() - start_ns)
            updates.add(run.updates - updated)
            self._sizes.take_first(batch, items)
            # All ranks or none: one step more on some of them would hang their collectives.
            if run.any_says(sum(times_ns) > LONG_WARM_UP_NS):
                break
        auditor.expect(updates)
        self._before = (run.updates, run.precision.skipped or 0)
        if len(times_ns) < WARM_UP_STEPS:
            run.note(
                "short_warm_up",
                "warning",
                f"Warm-up ended after {len(times_ns)} of {WARM_UP_STEPS} steps and {sum(times_ns) / 1e9:.0f} s.",
                "Use a smaller batch, or a launch long enough to skip its first observations.",
            )
        # With other input every wait and every row is booked: batches may be fetched ahead, or partial.
        if min(times_ns) < SHORT_STEP_NS and len(counts) == 1 and self._input.resident:
            work.every = BOOKED_OF_SHORT
        gc.collect()
        gc.disable()
        return times_ns

    def _compile(self) -> None:
        """Compile the models, if asked for; the first, watched step was eager."""
        mode = self.benchmark.compile
        if mode in RECORDING:
            self._work.step = keeping_no_output(self._step)
        if mode:
            step_until_compiled(self._run, self.rehearse)

    def settle(self, until_ns: int, number: int) -> None:
        """Load the device as observations of `number` batches do, unmeasured, until `until_ns`."""
        run = self._run
        # All ranks or none, as in the warm-up.
        while run.any_says(clock_ns() < until_ns):
            for _ in range(number):
                self.rehearse()
            run.chosen.synchronize()
            gc.collect()

    def observe(self, number: int) -> Observation:
        """Make one observation; its garbage is collected after its clock has stopped."""
        self._number = number
        work, updated = self._work, self._run.updates
        marked = MarkedSteps(work.step, work.device) if self.benchmark.serves else None
        with compilations_noted(self._run):
            observation = observe(work if marked is None else replace(work, step=marked), number)
        if marked is not None:
            self.steps_ns.append(marked.times_ns())
        self.updates += self._run.updates - updated
        self._batches += number
        self._observations += 1
        self._sizes.take(observation.held, work.items)
        observation.held.clear()
        gc.collect()
        if work.every > 1 and not observation.even:
            work.every = 1
            self._run.note(
                "items_estimated",
                "warning",
                "Batches held different numbers of items, and items were counted in some batches only.",
                "Let every batch hold the same number of items, or make steps longer than a millisecond.",
            )
        return observation

    def audit(self) -> None:
        """Watch one more step, outside of every clock."""
        self.auditor.audit(next(self._work.batches), self._observations)

    def audited(self) -> dict[str, Any]:
        """Return the record's part on audits and batches, and the number of items per row of a batch."""
        counted, batch_rows = self._work.items(self._input.first), rows_or_none(self._input.first)
        audit = self.auditor.results()
        return {
            "rows": batch_rows,
            "items_per_row": counted / batch_rows if batch_rows else None,
            **self._sizes.results(),
            "audit": audit | {"differences": [*audit["differences"], *self._sizes.differences()]},
        }

    @property
    def promised(self) -> int | None:
        """The updates that observations should have made; None if the warm-up does not tell."""
        return self.auditor.updates_of_batch * self._batches or None

    def scaled(self) -> dict[str, int]:
        """Return the updates since the warm-up, and the number that changed nothing; empty without a gradient scaler.

        Waits for the device.
        """
        skipped = self._run.precision.skipped
        if skipped is None:
            return {}
        return {"updates_scaled": self._run.updates - self._before[0], "updates_skipped": skipped - self._before[1]}

    @property
    def books_every(self) -> int:
        """The number of batches that one booked batch stands for."""
        return self._work.every

    def load_until(self, stopped: Callable[[], bool]) -> int:
        """Go on stepping, unmeasured, until `stopped()`; return the clock at the end of the last whole step.

        One of several ranks only waits: one step more on some of them would hang their collectives.
        """
        # The load may last: without its collector this tenant might outgrow its slice.
        gc.enable()
        end_ns = clock_ns()
        steps = 0
        while not stopped():
            if self._run.world.size > 1:
                time.sleep(WAIT_S)
                continue
            self.rehearse()
            steps += 1
            # As often as in observations: a neighbour that still observes must not meet a lighter load.
            if steps % self._number == 0:
                self._run.chosen.synchronize()
        if steps:
            self._run.chosen.synchronize()
            end_ns = clock_ns()
        return end_ns


def freeze_imports() -> None:
    """Keep the garbage collector from imported modules: they live as long as the process.

    These are 300,000 objects, nearly all of torch's. A collection over them takes some tenths of a second, and the
    interpreter makes several as it ends. torch._dynamo is a quarter of them; the first step of any optimizer imports
    it.
    """
    import torch._dynamo  # noqa: F401 # Frozen with the rest.

    gc.freeze()
